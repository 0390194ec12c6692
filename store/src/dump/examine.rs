//! A dump read to its end, and nothing made of it: what every import and restore goes through first.

use std::io::Read;

use uuid::Uuid;

use super::{Counts, DumpError, Item, Reader, Writer};
use crate::ids::{Digest, JournalNumber, Millis};

/// What a dump says of itself, all of it checked against its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examined {
    /// The newest schema that a record in it may have.
    pub schema: u16,
    /// The id of the store that was dumped.
    pub store: Uuid,
    /// When it was begun.
    pub at: Millis,
    /// The last durable journal number then.
    pub began: JournalNumber,
    /// The journal number whose state it holds.
    pub journal: JournalNumber,
    /// The bytes of objects are in it.
    pub inline: bool,
    /// How much is in it.
    pub counts: Counts,
    /// Bytes of the stream.
    pub bytes: u64,
    /// The digest of the stream.
    pub sha256: Digest,
}

/// Reads a dump to its end. `file` is what errors call it.
///
/// # Errors
/// When it is none, is damaged, is of a newer build, or can't be read.
pub fn examine(input: impl Read, file: &str) -> Result<Examined, DumpError> {
    let mut reader = Reader::begin(input, file.to_owned())?;
    let journal = loop {
        if let Item::End(journal) = reader.next()? {
            break journal;
        }
    };
    let (header, counts) = (reader.header, reader.counts());
    let (bytes, sha256) = reader.read_so_far();
    Ok(Examined {
        schema: header.schema,
        store: header.store,
        at: header.at,
        began: header.began,
        journal,
        inline: header.inline,
        counts,
        bytes,
        sha256,
    })
}

/// Writes again what was read of a dump: for those who check that a reader and a writer agree.
///
/// # Errors
/// As [`examine`].
pub fn repeat(dump: &[u8]) -> Result<Vec<u8>, DumpError> {
    let file = "the dump".to_owned();
    let unwritten = |source| DumpError::Io {
        file: "its copy".to_owned(),
        source,
    };
    let mut reader = Reader::begin(dump, file)?;
    let mut writer = Writer::begin(Vec::new(), &reader.header).map_err(unwritten)?;
    loop {
        match reader.next()? {
            Item::Put(key, value) => writer.put(&key, &value),
            Item::Delete(key) => writer.delete(&key),
            Item::Object { digest, length } => writer.object(digest, length),
            Item::Bytes(bytes) => writer.piece(&bytes),
            Item::Missing(digest) => writer.missing(digest),
            Item::End(journal) => return writer.end(journal).map(|(bytes, ..)| bytes).map_err(unwritten),
        }
        .map_err(unwritten)?;
    }
}
