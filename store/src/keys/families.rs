//! What each family holds.

use super::Family;
use crate::codec::RecordKind;

/// Every family, to find one by its first byte.
const FAMILIES: [Family; 34] = [
    Family::Sequence,
    Family::Boot,
    Family::Queue,
    Family::Device,
    Family::Worker,
    Family::Lease,
    Family::Stale,
    Family::Job,
    Family::JobId,
    Family::Generation,
    Family::Partition,
    Family::Attempt,
    Family::Checkpoint,
    Family::Proof,
    Family::Quarantine,
    Family::Request,
    Family::Active,
    Family::Ready,
    Family::Retry,
    Family::Deadline,
    Family::Open,
    Family::Done,
    Family::Idempotency,
    Family::Reference,
    Family::Needs,
    Family::Event,
    Family::JobEvent,
    Family::Counter,
    Family::PrunedCounter,
    Family::Pruned,
    Family::Pruning,
    Family::Circuit,
    Family::CircuitName,
    Family::Importing,
];

impl Family {
    /// The family of a key.
    #[must_use]
    pub fn of(key: &[u8]) -> Option<Self> {
        let first = *key.first()?;
        FAMILIES.into_iter().find(|family| *family as u8 == first)
    }

    /// What its values are; `None`: nothing, the key says it all.
    #[must_use]
    pub fn kind(self) -> Option<RecordKind> {
        match self {
            Self::Boot => Some(RecordKind::Boot),
            Self::Queue => Some(RecordKind::Queue),
            Self::Device => Some(RecordKind::Device),
            Self::Worker => Some(RecordKind::Worker),
            Self::Lease => Some(RecordKind::Lease),
            Self::Job => Some(RecordKind::Job),
            Self::Generation => Some(RecordKind::Generation),
            Self::Partition => Some(RecordKind::Partition),
            Self::Attempt => Some(RecordKind::Attempt),
            Self::Checkpoint => Some(RecordKind::Checkpoint),
            Self::Proof | Self::Quarantine => Some(RecordKind::StoredProof),
            Self::Request => Some(RecordKind::Bytes),
            Self::Event => Some(RecordKind::Event),
            Self::Circuit => Some(RecordKind::Circuit),
            Self::CircuitName => Some(RecordKind::Digest),
            Self::Sequence
            | Self::JobId
            | Self::Idempotency
            | Self::Counter
            | Self::PrunedCounter
            | Self::Pruned => Some(RecordKind::Number),
            Self::Stale
            | Self::Active
            | Self::Ready
            | Self::Retry
            | Self::Deadline
            | Self::Open
            | Self::Done
            | Self::Reference
            | Self::Needs
            | Self::JobEvent
            | Self::Pruning
            | Self::Importing => None,
        }
    }
}
