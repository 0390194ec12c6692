//! Digests of a file, and what tells that it is still the file that they were made of.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;

use blake2b_simd::Params as Blake2b;
use proofkeep_store::ids::Digest;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Whoever writes a file anew changes one of these. Compared instead of reading tens of gigabytes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Bytes of the file.
    pub bytes: u64,
    /// The file system.
    pub device: u64,
    /// The file in it.
    pub inode: u64,
    /// When it was last written, in seconds since 1970.
    pub seconds: i64,
    /// And nanoseconds.
    pub nanoseconds: i64,
}

impl Stamp {
    /// That of an open file.
    ///
    /// # Errors
    /// When the system doesn't say.
    pub fn of(file: &File) -> io::Result<Self> {
        let meta = file.metadata()?;
        Ok(Self {
            bytes: meta.len(),
            device: meta.dev(),
            inode: meta.ino(),
            seconds: meta.mtime(),
            nanoseconds: meta.mtime_nsec(),
        })
    }
}

/// Both digests of a file, as it is read.
pub(crate) struct Digests {
    sha256: Sha256,
    blake2b: blake2b_simd::State,
}

impl Default for Digests {
    fn default() -> Self {
        Self {
            sha256: Sha256::new(),
            blake2b: Blake2b::new().hash_length(64).to_state(),
        }
    }
}

impl io::Write for Digests {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Digests {
    /// More of the file.
    pub fn update(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        self.blake2b.update(bytes);
    }

    /// SHA-256 as objects are named, and BLAKE2b as the published table has it: the first 16 bytes, in hex.
    pub fn finish(self) -> (String, String) {
        let blake2b = self.blake2b.finalize();
        (
            Digest(self.sha256.finalize().into()).to_string(),
            hex::encode(&blake2b.as_bytes()[..16]),
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn digests_are_those_of_the_standards() {
        // RFC 7693's example of BLAKE2b-512, and FIPS 180's of SHA-256.
        let mut digests = Digests::default();
        digests.update(b"a");
        digests.update(b"bc");
        let (sha256, blake2b) = digests.finish();
        assert_eq!(
            sha256,
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(blake2b, "ba80a53f981c4d0d6a2797b69f12f6e9");
    }

    #[test]
    fn a_file_that_is_written_anew_has_another_stamp() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let stamp = || Stamp::of(&File::open(&path).unwrap()).unwrap();
        std::fs::write(&path, b"1").unwrap();
        let first = stamp();
        assert_eq!(first, stamp());
        std::fs::write(directory.path().join("other"), b"2").unwrap();
        std::fs::rename(directory.path().join("other"), &path).unwrap();
        assert_ne!(first, stamp());
    }
}
