//! What the store keeps, as the rest of the program sees it.
//!
//! These are the live shapes. What lies on disk are the frozen shapes of `proofkeep-migrations`; `codec` converts.
//! A fact stands in one record; whatever can be derived is not stored, with one exception that `fsck` recounts:
//! [`Tally`], since counting 1,024 partitions at every end would make ends slow.

pub mod attempt;
pub mod boot;
pub mod circuit;
pub mod failure;
pub mod job;
pub mod lease;
pub mod partition;
pub mod worker;

pub use attempt::{Attempt, AttemptRef, Outcome};
pub use boot::{Boot, BootEnd, Queue};
pub use circuit::{Circuit, CircuitFacts, CircuitState, ImportState, SourceFiles};
pub use failure::{Failure, FailureClass};
pub use job::{Generation, Job, JobState, OnFailure, Priority, StopTarget, Tally};
pub use lease::{Lease, Stage, Subject};
pub use partition::{Checkpoint, Partition, PartitionState, Piece, Poison, StoredProof};
pub use worker::{Device, DeviceState, LastWork, Worker, WorkerState};
