//! The unit of proving: one circuit instance, one Groth16 proof of 192 bytes.

use super::{Failure, Stage};
use crate::ids::{Digest, JobNumber, Millis, ProcessId, Token, WorkerId};

/// Where a partition is.
///
/// ```text
/// ready → synthesizing → synthesized → proving → finishing → proved
///   ↑          │              │           │          │
///   └── waiting ←─────────────┴───────────┴──────────┘ → failed | cancelled
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartitionState {
    /// May be started.
    Ready,
    /// Backs off until its wake-up time.
    Waiting,
    /// A worker process makes its witness.
    Synthesizing,
    /// The witness is in a worker process' memory and waits for a device slot.
    Synthesized,
    /// Holds a device slot.
    Proving,
    /// Assembled and verified, off the device.
    Finishing,
    /// A verified proof is stored.
    Proved,
    /// Given up.
    Failed,
    /// Cancelled with its job.
    Cancelled,
}

impl PartitionState {
    /// Every state, for tables and tests.
    pub const ALL: [Self; 9] = [
        Self::Ready,
        Self::Waiting,
        Self::Synthesizing,
        Self::Synthesized,
        Self::Proving,
        Self::Finishing,
        Self::Proved,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The stage whose lease this state holds, if it holds one.
    #[must_use]
    pub fn stage(self) -> Option<Stage> {
        match self {
            Self::Synthesizing => Some(Stage::Synth),
            Self::Proving => Some(Stage::Prove),
            Self::Finishing => Some(Stage::Finish),
            _ => None,
        }
    }

    /// The stage that is blamed when the process dies now: the one at work, or the last one while a witness waits.
    #[must_use]
    pub fn suspected(self) -> Option<Stage> {
        match self {
            Self::Synthesized => Some(Stage::Synth),
            state => state.stage(),
        }
    }

    /// An attempt is open.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(
            self,
            Self::Synthesizing | Self::Synthesized | Self::Proving | Self::Finishing
        )
    }

    /// The name in answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Waiting => "waiting",
            Self::Synthesizing => "synthesizing",
            Self::Synthesized => "synthesized",
            Self::Proving => "proving",
            Self::Finishing => "finishing",
            Self::Proved => "proved",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Deaths of the worker process, by its own fault, while it worked on this partition, in a row. After two the partition
/// runs alone; the second death while alone parks it. Coming further than every attempt of the generation before clears
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poison {
    /// The stage in which the process died last.
    pub stage: Stage,
    /// In a row, with neighbours.
    pub deaths: u32,
    /// In a row, alone.
    pub deaths_alone: u32,
}

/// One partition of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Whose.
    pub job: JobNumber,
    /// From 0.
    pub index: u32,
    /// Where it is.
    pub state: PartitionState,
    /// The number of its last attempt; runs on across generations; 0 before the first.
    pub attempts: u32,
    /// Failures of this generation that count against `max_attempts`.
    pub counted: u32,
    /// The lease it holds, in `Synthesizing`, `Proving` and `Finishing`.
    pub token: Option<Token>,
    /// The process that holds its witness, while an attempt is open.
    pub process: Option<ProcessId>,
    /// The worker that it occupies, in `Proving`.
    pub worker: Option<WorkerId>,
    /// When it may be tried again, in `Waiting`.
    pub wake_at: Option<Millis>,
    /// No neighbour may share its process.
    pub alone: bool,
    /// Times it ran out of memory in this generation.
    pub out_of_memory: u32,
    /// Deaths it may have caused.
    pub poison: Option<Poison>,
    /// A device that failed it last; another is preferred.
    pub avoid_device: Option<String>,
    /// Its last proof was invalid, so the witness is checked again before it is proved.
    pub recheck: bool,
    /// Why it was given up.
    pub failure: Option<Failure>,
}

impl Partition {
    /// A partition that nobody has touched.
    #[must_use]
    pub fn new(job: JobNumber, index: u32) -> Self {
        Self {
            job,
            index,
            state: PartitionState::Ready,
            attempts: 0,
            counted: 0,
            token: None,
            process: None,
            worker: None,
            wake_at: None,
            alone: false,
            out_of_memory: 0,
            poison: None,
            avoid_device: None,
            recheck: false,
            failure: None,
        }
    }
}

/// One finished piece of an unfinished proof. Secret: it reveals things about the witness.
#[derive(Clone, PartialEq, Eq)]
pub struct Piece {
    /// What it is, in the kind's own words (`"h"`, `"l"`, `"a"`, `"b1"`, `"b2"`); at most 16 bytes.
    pub name: String,
    /// The point; at most 192 bytes.
    pub bytes: Vec<u8>,
    /// How long it took to make, in milliseconds; what a reuse saves.
    pub millis: u64,
    /// The attempt that made it.
    pub attempt: u32,
}

impl std::fmt::Debug for Piece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Piece")
            .field("name", &self.name)
            .field("millis", &self.millis)
            .finish_non_exhaustive()
    }
}

/// What a restart needn't do again. One record for each partition; deleted when its proof is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Whose.
    pub job: JobNumber,
    /// Which partition.
    pub partition: u32,
    /// The witness that the pieces belong to.
    pub witness: Digest,
    /// The proving key they belong to.
    pub key: Digest,
    /// What is finished.
    pub pieces: Vec<Piece>,
}

/// A partition's proof, verified before it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredProof {
    /// Whose.
    pub job: JobNumber,
    /// Which partition.
    pub partition: u32,
    /// The attempt that made it.
    pub attempt: u32,
    /// SHA-256 of `bytes`.
    pub digest: Digest,
    /// 192 bytes, compressed points as ZCash writes them.
    pub bytes: Vec<u8>,
    /// The object that holds its public signals, 32 little-endian bytes each.
    pub public: Digest,
    /// When it was stored.
    pub stored_at: Millis,
}
