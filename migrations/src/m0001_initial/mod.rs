//! Schema 1: the first.
//!
//! What a field means is documented once, at the live type of the same name in `proofkeep-store`; here stands only how
//! it lies on disk. Times are milliseconds since the Unix epoch, durations milliseconds, sizes bytes.

#![allow(missing_docs)]

mod attempt;
mod circuit;
mod daemon;
mod event;
mod job;
mod partition;

#[cfg(test)]
mod golden;

pub use attempt::{Attempt, AttemptRef, Failure, FailureClass, Outcome, Stage};
pub use circuit::{Circuit, CircuitFacts, CircuitState, ImportState, SourceFiles};
pub use daemon::{
    Boot, BootEnd, Device, DeviceState, LastWork, Lease, ProcessId, Queue, Subject, Token, Worker,
    WorkerState,
};
pub use event::{AttemptEnd, Event, Next, Submitted, What};
pub use job::{Generation, Job, JobState, OnFailure, Priority, StopTarget, Tally};
pub use partition::{Checkpoint, Partition, PartitionState, Piece, Poison, StoredProof};

/// SHA-256.
pub type Digest = [u8; 32];

/// A UUID's 16 bytes, in the order in which they are written in text.
pub type Uuid = [u8; 16];
