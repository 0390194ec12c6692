//! What a backup says of itself.

use uuid::Uuid;

use crate::dump::{Counts, Dumped, Lines, Parser};
use crate::ids::{Digest, JournalNumber, Millis};

/// The version of the layout of a backup.
const VERSION: u64 = 1;

/// A manifest: lines of a word and a value, the last with the checksum of all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    pub store: Uuid,
    pub at: Millis,
    pub began: JournalNumber,
    pub journal: JournalNumber,
    pub counts: Counts,
    pub dump_bytes: u64,
    pub dump_sha256: Digest,
}

impl Manifest {
    pub fn of(dumped: &Dumped) -> Self {
        Self {
            store: dumped.store,
            at: dumped.at,
            began: dumped.began,
            journal: dumped.journal,
            counts: dumped.counts,
            dump_bytes: dumped.bytes,
            dump_sha256: dumped.sha256,
        }
    }

    pub fn text(&self) -> String {
        let mut lines = Lines::new();
        lines.add("proofkeep", "backup");
        lines.add("version", VERSION);
        lines.add("store", self.store);
        lines.add("at", self.at);
        lines.add("began", self.began);
        lines.add("journal", self.journal);
        self.counts.write(&mut lines);
        lines.add("dump_bytes", self.dump_bytes);
        lines.add("dump_sha256", self.dump_sha256.hex());
        let text = lines.text();
        format!("{text}crc32c {:08x}\n", crc32c::crc32c(text.as_bytes()))
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut lines = Parser::new(bytes)?;
        let first = lines.word("proofkeep")?;
        if first != "backup" {
            return Err(format!("expected `proofkeep backup`, found `proofkeep {first}`"));
        }
        let version = lines.number("version")?;
        if version != VERSION {
            return Err(format!(
                "it has version {version}, and this build knows version {VERSION}; use the proofkeep that wrote it"
            ));
        }
        let manifest = Self {
            store: lines.value("store")?,
            at: Millis(lines.number("at")?),
            began: JournalNumber(lines.number("began")?),
            journal: JournalNumber(lines.number("journal")?),
            counts: Counts::read(&mut lines)?,
            dump_bytes: lines.number("dump_bytes")?,
            dump_sha256: lines
                .word("dump_sha256")
                .and_then(|text| Digest::parse(text).ok_or_else(|| "dump_sha256 is no digest".to_owned()))?,
        };
        // Every byte has to be what is written for these values, the checksum's too.
        if manifest.text().as_bytes() != bytes {
            return Err("its checksum is not that of its lines".to_owned());
        }
        Ok(manifest)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn a_manifest_reads_back_and_any_flip_in_it_is_found() {
        let manifest = Manifest {
            store: Uuid::new_v4(),
            at: Millis(1_700_000_000_000),
            began: JournalNumber(7),
            journal: JournalNumber(9),
            counts: Counts {
                records: 1,
                deletions: 2,
                objects: 3,
                object_bytes: 4,
                missing: 5,
            },
            dump_bytes: 6,
            dump_sha256: Digest([8; 32]),
        };
        let text = manifest.text().into_bytes();
        assert_eq!(Manifest::parse(&text), Ok(manifest));
        for byte in 0..text.len() {
            for bit in 0..8 {
                let mut flipped = text.clone();
                flipped[byte] ^= 1 << bit;
                assert!(Manifest::parse(&flipped).is_err(), "bit {bit} of byte {byte}");
            }
            assert!(Manifest::parse(&text[..byte]).is_err(), "cut at {byte}");
        }
    }
}
