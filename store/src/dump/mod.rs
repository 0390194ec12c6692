//! Everything that a store keeps, as one stream of bytes: the inside of a backup, and an export as a whole.
//!
//! ```text
//! proofkeep dump\n            15 bytes
//! frame, frame, …             the first is a header, the last an end; nothing follows it
//!
//! frame:    kind (1 byte), length of the payload (4, little-endian), payload (at most 1 MiB),
//!           crc32c of kind, length and payload (4, little-endian)
//!
//! H header  lines: version, schema, store, began, at, objects
//! P put     length of the key (2, little-endian), key, value: a record in its envelope, or nothing
//! D delete  key
//! O object  sha256 (32), length (8, little-endian)
//! B bytes   a piece of the object named last; only where the header says `objects inline`
//! M missing sha256 (32) of an object that the store itself had lost, or had damaged
//! E end     lines: journal, records, deletions, objects, object_bytes, missing, sha256
//! ```
//!
//! Puts and deletes come first and take effect in their order, so that what changed while the dump was made stands
//! behind what it replaces; objects and missing ones follow. `version` is that of this format and `schema` the newest
//! that a record may have; `store` is the id of the store that was dumped, `began` its last durable journal number when
//! the dump began, and `at` that moment in milliseconds since 1970. `journal` is the one whose state the dump holds,
//! the other numbers count frames and bytes of objects, and `sha256` is that of every byte before the end's frame.
//!
//! With `objects beside`, as in a backup, the bytes of an object lie in a file of their own.

mod error;
mod examine;
mod lines;
mod load;
mod objects;
mod reader;
mod source;
mod writer;

use uuid::Uuid;

use crate::ids::{Digest, JournalNumber, Millis};

pub use error::SaveError;
pub use examine::{Examined, examine, repeat};
pub(crate) use lines::{Lines, Parser};
pub(crate) use load::load;
pub use load::{LoadError, Restored};
pub(crate) use objects::{Copied, Kept, NewFile, copy_object};
pub use reader::DumpError;
pub(crate) use reader::{Item, Reader};
pub(crate) use source::{Sink, Source, dump};
pub(crate) use writer::Writer;

/// The first bytes.
pub(crate) const MAGIC: &[u8; 15] = b"proofkeep dump\n";

/// The version of this format.
pub const VERSION: u16 = 1;

/// The largest payload.
pub(crate) const MAX_PAYLOAD: usize = 1 << 20;

/// Bytes of an object in one frame, and read at once.
pub(crate) const PIECE: usize = 256 << 10;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Header = b'H',
    Put = b'P',
    Delete = b'D',
    Object = b'O',
    Bytes = b'B',
    Missing = b'M',
    End = b'E',
}

impl Kind {
    pub fn of(byte: u8) -> Option<Self> {
        use Kind::{Bytes, Delete, End, Header, Missing, Object, Put};
        [Header, Put, Delete, Object, Bytes, Missing, End]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// What stands in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub schema: u16,
    pub store: Uuid,
    pub began: JournalNumber,
    pub at: Millis,
    /// The bytes of objects are in the stream.
    pub inline: bool,
}

/// How much is in a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records written; one that changed meanwhile counts each time.
    pub records: u64,
    /// Records that were deleted meanwhile.
    pub deletions: u64,
    /// Objects.
    pub objects: u64,
    /// Their bytes.
    pub object_bytes: u64,
    /// Objects that the store itself had lost, or had damaged.
    pub missing: u64,
}

impl Counts {
    pub(crate) fn write(&self, lines: &mut Lines) {
        lines.add("records", self.records);
        lines.add("deletions", self.deletions);
        lines.add("objects", self.objects);
        lines.add("object_bytes", self.object_bytes);
        lines.add("missing", self.missing);
    }

    pub(crate) fn read(lines: &mut Parser<'_>) -> Result<Self, String> {
        Ok(Self {
            records: lines.number("records")?,
            deletions: lines.number("deletions")?,
            objects: lines.number("objects")?,
            object_bytes: lines.number("object_bytes")?,
            missing: lines.number("missing")?,
        })
    }
}

/// What a dump came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dumped {
    /// The id of the store.
    pub store: Uuid,
    /// When it was begun.
    pub at: Millis,
    /// The last durable journal number then: all up to it is in the dump.
    pub began: JournalNumber,
    /// The journal number whose state the dump holds.
    pub journal: JournalNumber,
    /// How much is in it.
    pub counts: Counts,
    /// Bytes of the stream.
    pub bytes: u64,
    /// The digest of the stream.
    pub sha256: Digest,
    /// Objects that the store itself had lost, or had damaged; the dump is without them.
    pub missing: Vec<Digest>,
}

#[cfg(test)]
mod tests;
