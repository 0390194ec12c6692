//! How far the journal had come, noted outside sled.
//!
//! sled takes a damaged piece of its last segments for the torn end of its log, and opens with everything after it
//! gone: one flipped bit can take back thousands of acknowledged commands without an error. So after each sync the
//! journal's number is written into `REACHED`, in place and without a sync of its own. Its value is never ahead of what
//! is durable, whatever a power cut leaves of it, so a store that opens with less has lost something.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::ids::JournalNumber;

/// The open note.
#[derive(Debug)]
pub(crate) struct Reached(File);

impl Reached {
    /// Opens the note, and reads the number in it; `None` if there is no whole one.
    pub fn open(path: &Path) -> io::Result<(Self, Option<JournalNumber>)> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600);
        let mut file = options.open(path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        Ok((Self(file), parse(&text)))
    }

    /// Notes a number that is durable.
    pub fn note(&self, journal: JournalNumber) {
        // A note that can't be written makes nothing wrong; the one before it holds.
        if let Err(error) = self.0.write_all_at(line(journal).as_bytes(), 0) {
            tracing::warn!("REACHED could not be written: {error}");
        }
    }

    /// Makes the last note durable.
    pub fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// Always as long, so that one is overwritten by the next as a whole.
fn line(journal: JournalNumber) -> String {
    let text = format!("journal {:020}", journal.0);
    format!("{text} crc32c {:08x}\n", crc32c::crc32c(text.as_bytes()))
}

fn parse(text: &[u8]) -> Option<JournalNumber> {
    let number = str::from_utf8(text)
        .ok()?
        .strip_prefix("journal ")?
        .split(' ')
        .next()?
        .parse()
        .ok()?;
    let journal = JournalNumber(number);
    (line(journal).as_bytes() == text).then_some(journal)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn a_note_reads_back_and_a_torn_one_says_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("REACHED");
        let (note, found) = Reached::open(&path).unwrap();
        assert_eq!(found, None);
        for number in [0, 7, u64::MAX] {
            note.note(JournalNumber(number));
            assert_eq!(Reached::open(&path).unwrap().1, Some(JournalNumber(number)));
        }
        note.sync().unwrap();
        let whole = std::fs::read(&path).unwrap();
        for byte in 0..whole.len() {
            let mut torn = whole.clone();
            torn[byte] ^= 4;
            std::fs::write(&path, &torn).unwrap();
            assert_eq!(Reached::open(&path).unwrap().1, None);
        }
    }
}
