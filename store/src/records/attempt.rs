//! One try at one partition: written before the work starts, never overwritten by another.

use super::{Failure, Stage};
use crate::ids::{BootNumber, Digest, JobNumber, Millis, ProcessId, WorkerId};

/// Which attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptRef {
    /// Whose.
    pub job: JobNumber,
    /// Which partition.
    pub partition: u32,
    /// From 1, running on across generations.
    pub number: u32,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its proof was stored.
    Ok,
    /// It ended without one.
    Ended(Failure),
}

/// One try at one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Which.
    pub of: AttemptRef,
    /// The generation it belongs to.
    pub generation: u32,
    /// The boot that opened it.
    pub opened_in: BootNumber,
    /// The boot that closed it; another one if it was cut off.
    pub closed_in: Option<BootNumber>,
    /// The process it ran in.
    pub process: ProcessId,
    /// The device of that process.
    pub device: String,
    /// The worker (device slot) it got, once it got one.
    pub worker: Option<WorkerId>,
    /// The last stage it reached.
    pub stage: Stage,
    /// How it ended; `None` while it is open.
    pub outcome: Option<Outcome>,
    /// When it was opened (synthesis starts).
    pub started_at: Millis,
    /// When it was closed.
    pub ended_at: Option<Millis>,
    /// How long the witness took, in milliseconds.
    pub synth_ms: Option<u64>,
    /// When the device was given to it.
    pub gpu_started_at: Option<Millis>,
    /// How long it held the device, in milliseconds.
    pub gpu_ms: Option<u64>,
    /// Memory granted to it, in bytes.
    pub ticket_bytes: u64,
    /// The most memory that its process used, in bytes, if that is known.
    pub process_peak_bytes: Option<u64>,
    /// The digest of the witness.
    pub witness: Option<Digest>,
    /// The object that holds the public signals.
    pub public: Option<Digest>,
    /// Pieces taken over from earlier attempts.
    pub reused: Vec<String>,
    /// What the reused pieces had cost, in milliseconds.
    pub saved_ms: u64,
}

impl Outcome {
    /// `ok`, or the failure class: the word in answers and counters.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Ended(failure) => failure.class.name(),
        }
    }
}
