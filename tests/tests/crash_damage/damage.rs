//! Ways to damage a file.

use std::fs;
use std::path::Path;

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Damage {
    /// One bit of the first byte.
    FlipFirst,
    /// One bit of the last byte.
    FlipLast,
    /// One bit anywhere.
    FlipAny,
    /// The second half is gone.
    Cut,
    /// Nothing is in it.
    Empty,
    /// It isn't there.
    Delete,
}

impl Damage {
    pub const ALL: [Self; 6] = [
        Self::FlipFirst,
        Self::FlipLast,
        Self::FlipAny,
        Self::Cut,
        Self::Empty,
        Self::Delete,
    ];

    /// Does it, in place, as a disk would.
    pub fn to(self, file: &Path, rng: &mut ChaCha8Rng) {
        let mut bytes = fs::read(file).unwrap();
        let last = bytes.len() - 1;
        match self {
            Self::FlipFirst => bytes[0] ^= 1 << rng.gen_range(0..8),
            Self::FlipLast => bytes[last] ^= 1 << rng.gen_range(0..8),
            Self::FlipAny => bytes[rng.gen_range(0..=last)] ^= 1 << rng.gen_range(0..8),
            Self::Cut => bytes.truncate(bytes.len() / 2),
            Self::Empty => bytes.clear(),
            Self::Delete => return fs::remove_file(file).unwrap(),
        }
        write_in_place(file, &bytes);
    }
}

/// Overwrites a file that others may have open or mapped.
pub fn write_in_place(file: &Path, bytes: &[u8]) {
    use std::os::unix::fs::FileExt as _;
    let open = fs::OpenOptions::new().write(true).open(file).unwrap();
    open.write_all_at(bytes, 0).unwrap();
    open.set_len(bytes.len() as u64).unwrap();
}
