//! What stands around every value.
//!
//! ```text
//! offset  bytes
//!      0  2      magic, B5 6B
//!      2  1      kind
//!      3  2      schema version, little-endian
//!      5  4      length of the payload, little-endian
//!      9  length payload
//!      …  4      CRC-32C (Castagnoli) over everything before it, little-endian
//! ```
//! A CRC-32C finds every change of up to three bits, and every burst of up to 32, in anything as short as a record.

use proofkeep_migrations::LATEST;

const MAGIC: [u8; 2] = [0xb5, 0x6b];
const HEADER: usize = 9;
const CHECKSUM: usize = 4;

/// Bytes that an envelope adds to its payload.
pub const OVERHEAD: usize = HEADER + CHECKSUM;

/// What a value is. The discriminants are on disk: never renumber, never use one again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RecordKind {
    /// A life of the daemon.
    Boot = 1,
    /// What an operator asked of the queue.
    Queue = 2,
    /// A device.
    Device = 3,
    /// A device slot.
    Worker = 4,
    /// A lease in force.
    Lease = 5,
    /// A job.
    Job = 6,
    /// A life of a job.
    Generation = 7,
    /// A partition.
    Partition = 8,
    /// An attempt.
    Attempt = 9,
    /// Pieces of an unfinished proof.
    Checkpoint = 10,
    /// A partition's proof.
    StoredProof = 11,
    /// A circuit.
    Circuit = 12,
    /// An entry of the journal.
    Event = 13,
    /// A number: a sequence, a counter, or what an index points to.
    Number = 64,
    /// The digest that an index points to.
    Digest = 65,
    /// Bytes that mean nothing to the store, such as a request.
    Bytes = 66,
}

impl RecordKind {
    /// Every kind, for tables and tests.
    pub const ALL: [Self; 16] = [
        Self::Boot,
        Self::Queue,
        Self::Device,
        Self::Worker,
        Self::Lease,
        Self::Job,
        Self::Generation,
        Self::Partition,
        Self::Attempt,
        Self::Checkpoint,
        Self::StoredProof,
        Self::Circuit,
        Self::Event,
        Self::Number,
        Self::Digest,
        Self::Bytes,
    ];

    fn name_of(code: u8) -> String {
        Self::ALL
            .iter()
            .find(|kind| **kind as u8 == code)
            .map_or_else(|| format!("unknown kind {code}"), |kind| format!("{kind:?}"))
    }
}

/// How a value differs from anything that was ever written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// Not even an empty envelope.
    #[error("{found} bytes are too few; a value has at least {OVERHEAD}")]
    TooShort {
        /// Bytes there are.
        found: usize,
    },
    /// It starts with something else.
    #[error("it does not start with the mark of a value")]
    Magic,
    /// The length in front is not the length there is.
    #[error("its length says {said} bytes of payload, there are {found}")]
    Length {
        /// By its own word.
        said: usize,
        /// In truth.
        found: usize,
    },
    /// Some bit is not what was written.
    #[error("its checksum is {found:08x} where {said:08x} was written")]
    Checksum {
        /// As written.
        said: u32,
        /// As computed from what is there.
        found: u32,
    },
    /// A value of another kind.
    #[error("expected {expected:?}, found {found}")]
    Kind {
        /// What belongs there.
        expected: RecordKind,
        /// What is there, in words.
        found: String,
    },
    /// Written by another version of proofkeep.
    #[error(
        "it has schema {found}, and this build knows schemas 1 to {newest}; use the proofkeep that wrote it"
    )]
    Schema {
        /// As written.
        found: u16,
        /// The newest that this build knows.
        newest: u16,
    },
    /// There is none, where there must be one.
    #[error("it is gone")]
    Gone,
    /// The checksum is right and the payload isn't: written by a faulty build.
    #[error("its payload can't be read: {0}")]
    Payload(String),
}

/// Puts an envelope around a payload.
#[must_use]
pub fn seal(kind: RecordKind, schema: u16, payload: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(payload.len() + OVERHEAD);
    sealed.extend_from_slice(&MAGIC);
    sealed.push(kind as u8);
    sealed.extend_from_slice(&schema.to_le_bytes());
    // Payloads are a few KiB; one of 4 GiB could not have been built.
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    sealed.extend_from_slice(&length.to_le_bytes());
    sealed.extend_from_slice(payload);
    let checksum = crc32c::crc32c(&sealed);
    sealed.extend_from_slice(&checksum.to_le_bytes());
    sealed
}

/// Checks an envelope and takes it off. The answer is the schema, 1 to [`LATEST`], and the payload.
///
/// # Errors
/// The first thing that is wrong, in the order of [`Damage`].
pub fn open(expected: RecordKind, bytes: &[u8]) -> Result<(u16, &[u8]), Damage> {
    let (kind, schema, payload) = open_any(bytes)?;
    if kind != expected as u8 {
        return Err(Damage::Kind {
            expected,
            found: RecordKind::name_of(kind),
        });
    }
    if schema == 0 || schema > LATEST {
        return Err(Damage::Schema {
            found: schema,
            newest: LATEST,
        });
    }
    Ok((schema, payload))
}

/// Checks an envelope and says what is in it.
///
/// # Errors
/// As [`open`]; a kind that no build wrote is a payload that can't be read.
pub fn kind_of(bytes: &[u8]) -> Result<RecordKind, Damage> {
    let (code, ..) = open_any(bytes)?;
    let known = RecordKind::ALL.into_iter().find(|kind| *kind as u8 == code);
    known.ok_or_else(|| Damage::Payload(RecordKind::name_of(code)))
}

/// Checks an envelope without expecting anything of its kind or schema: kind, schema, payload.
///
/// # Errors
/// As [`open`], kind and schema excepted.
pub fn open_any(bytes: &[u8]) -> Result<(u8, u16, &[u8]), Damage> {
    let short = Damage::TooShort { found: bytes.len() };
    let (body, checksum) = bytes.split_last_chunk::<CHECKSUM>().ok_or(short.clone())?;
    let (header, payload) = body.split_first_chunk::<HEADER>().ok_or(short)?;
    let [
        magic @ ..,
        kind,
        schema0,
        schema1,
        length0,
        length1,
        length2,
        length3,
    ] = *header;
    if magic != MAGIC {
        return Err(Damage::Magic);
    }
    let said = u32::from_le_bytes([length0, length1, length2, length3]) as usize;
    if said != payload.len() {
        return Err(Damage::Length {
            said,
            found: payload.len(),
        });
    }
    let (said, found) = (u32::from_le_bytes(*checksum), crc32c::crc32c(body));
    if said != found {
        return Err(Damage::Checksum { said, found });
    }
    Ok((kind, u16::from_le_bytes([schema0, schema1]), payload))
}
