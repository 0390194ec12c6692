//! Records as they lie on disk: a frozen shape of `proofkeep-migrations` inside an [`envelope`].
//!
//! bincode by itself has no defaults for new fields and would decode many a flipped bit to a wrong value, so every value
//! that says something, numbers in indexes included, carries its kind, its schema, its length and a checksum.

pub mod envelope;
mod mirror;
mod shapes;
mod small;

pub use envelope::{Damage, RecordKind};
pub use small::{bytes, digest, number, read_bytes, read_digest, read_number};

use proofkeep_migrations as migrations;

/// The most bytes that a key and its value may have together; what is larger belongs into `objects/`.
pub const MAX_RECORD: usize = 4096;

/// Something the store keeps at a key.
pub trait Record: Sized {
    /// What stands in its envelope.
    const KIND: RecordKind;

    /// The bytes to keep, in the latest schema.
    fn encode(&self) -> Vec<u8>;

    /// Reads what [`encode`](Self::encode) wrote, in this schema or an older one.
    ///
    /// # Errors
    /// When the bytes are damaged, of another kind, or of a newer schema.
    fn decode(bytes: &[u8]) -> Result<Self, Damage>;
}

/// Implements [`Record`] for live types through their frozen shapes.
macro_rules! records {
    ($($live:ident as $kind:ident),* $(,)?) => {$(
        impl Record for $live {
            const KIND: RecordKind = RecordKind::$kind;

            fn encode(&self) -> Vec<u8> {
                let shape = mirror::Mirror::freeze(self);
                envelope::seal(Self::KIND, migrations::LATEST, &migrations::wire::encode(&shape))
            }

            fn decode(bytes: &[u8]) -> Result<Self, Damage> {
                let (schema, payload) = envelope::open(Self::KIND, bytes)?;
                match schema {
                    1 => {
                        let shape = migrations::wire::decode::<migrations::m0001_initial::$live>(payload)
                            .map_err(Damage::Payload)?;
                        Ok(mirror::Mirror::thaw(shape))
                    }
                    unknown => Err(Damage::Schema { found: unknown, newest: migrations::LATEST }),
                }
            }
        }
    )*};
}

use crate::event::Event;
use crate::records::{
    Attempt, Boot, Checkpoint, Circuit, Device, Generation, Job, Lease, Partition, Queue, StoredProof, Worker,
};

records! {
    Boot as Boot,
    Queue as Queue,
    Device as Device,
    Worker as Worker,
    Lease as Lease,
    Job as Job,
    Generation as Generation,
    Partition as Partition,
    Attempt as Attempt,
    Checkpoint as Checkpoint,
    StoredProof as StoredProof,
    Circuit as Circuit,
    Event as Event,
}

/// A value of any kind and schema as this build would write it; what a migration does to every value. An empty value,
/// an index entry that says everything in its key, stays empty.
///
/// # Errors
/// When it is damaged, of an unknown kind, or of a newer schema.
pub fn reencode(value: &[u8]) -> Result<Vec<u8>, Damage> {
    fn again<R: Record>(value: &[u8]) -> Result<Vec<u8>, Damage> {
        R::decode(value).map(|record| record.encode())
    }
    if value.is_empty() {
        return Ok(Vec::new());
    }
    match envelope::kind_of(value)? {
        RecordKind::Boot => again::<Boot>(value),
        RecordKind::Queue => again::<Queue>(value),
        RecordKind::Device => again::<Device>(value),
        RecordKind::Worker => again::<Worker>(value),
        RecordKind::Lease => again::<Lease>(value),
        RecordKind::Job => again::<Job>(value),
        RecordKind::Generation => again::<Generation>(value),
        RecordKind::Partition => again::<Partition>(value),
        RecordKind::Attempt => again::<Attempt>(value),
        RecordKind::Checkpoint => again::<Checkpoint>(value),
        RecordKind::StoredProof => again::<StoredProof>(value),
        RecordKind::Circuit => again::<Circuit>(value),
        RecordKind::Event => again::<Event>(value),
        RecordKind::Number => read_number(value).map(number),
        RecordKind::Digest => read_digest(value).map(digest),
        RecordKind::Bytes => read_bytes(value).map(|plain| bytes(&plain)),
    }
}

#[cfg(test)]
mod tests;
