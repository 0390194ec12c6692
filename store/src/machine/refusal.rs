//! Why the machine says no.

use uuid::Uuid;

use crate::ids::{Digest, JobNumber};
use crate::records::{JobState, PartitionState, Stage};

/// A guard that did not hold. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such job.
    #[error("there is no job number {0}")]
    UnknownJob(JobNumber),
    /// No such partition.
    #[error("job {job} has no partition {partition}")]
    UnknownPartition {
        /// The job.
        job: JobNumber,
        /// The partition asked for.
        partition: u32,
    },
    /// No such circuit.
    #[error("there is no circuit {0}")]
    UnknownCircuit(Digest),
    /// No such device, worker or process in this boot.
    #[error("{0} is not there in this boot")]
    UnknownDevice(String),
    /// The job is in a state that doesn't allow it.
    #[error("the job is {}, so it can't be done", .0.name())]
    JobState(JobState),
    /// The partition is in a state that doesn't allow it.
    #[error("the partition is {}, so it can't be done", .0.name())]
    PartitionState(PartitionState),
    /// The lease is in force, but in another stage.
    #[error("the lease is in stage {}, so it can't be done", .0.name())]
    WrongStage(Stage),
    /// The device slot is taken or its device takes no work.
    #[error("the device slot is not free")]
    SlotTaken,
    /// There is enough work ahead already.
    #[error("as much is ahead or under way as may be")]
    EnoughAhead,
    /// A partition that crashed its process, or ran out of memory, runs alone.
    #[error("a partition that must run alone shares its process with nobody")]
    MustRunAlone,
    /// The circuit is still being imported.
    #[error("the circuit is still being imported")]
    CircuitNotReady,
    /// Somebody works on the circuit's import.
    #[error(
        "the circuit is being imported ({done} of {total} points); wait until that is over \
         (Prefer: wait), then remove it"
    )]
    ImportUnderWay {
        /// Points done.
        done: u64,
        /// Points in all.
        total: u64,
    },
    /// The circuit was refused at import.
    #[error("the circuit was refused at import: {0}")]
    CircuitFailed(String),
    /// Jobs need the circuit.
    #[error("jobs that haven't ended need the circuit: {jobs} of them; cancel them or wait")]
    CircuitInUse {
        /// How many.
        jobs: u64,
    },
    /// The name points to another circuit.
    #[error("the name points to another circuit ({0}); pass replace to move it")]
    NameTaken(Digest),
    /// The queue starts nothing new.
    #[error("the queue is paused")]
    Paused,
    /// The daemon takes no submits.
    #[error("the daemon is draining and takes no new jobs; submit again when it is back")]
    Draining,
    /// The idempotency key belongs to another request.
    #[error("the idempotency key belongs to job {job}, whose request is another one; use a new key")]
    IdempotencyMismatch {
        /// That job.
        job: Uuid,
    },
    /// The id belongs to another job.
    #[error("there is already a job {0}")]
    DuplicateId(Uuid),
    /// The job would never fit.
    #[error("a partition needs {needed} bytes of memory and the budget is {budget} bytes")]
    NeedsMemory {
        /// Bytes for the largest partition.
        needed: u64,
        /// Bytes there are.
        budget: u64,
    },
    /// Something in the command is out of its limits.
    #[error("{field}: expected {expected}, found {found}")]
    OutOfLimits {
        /// What.
        field: &'static str,
        /// The limit.
        expected: String,
        /// What came.
        found: String,
    },
    /// Objects that the command names are not there.
    #[error("{} object(s) that the request names are not there; upload them first", .0.len())]
    BlobMissing(Vec<Digest>),
    /// It isn't time yet.
    #[error("it is not due yet")]
    NotDue,
    /// No boot is open.
    #[error("the daemon is starting or stopping, so nothing can be started")]
    NoBoot,
    /// A boot is already open.
    #[error("this boot was opened already")]
    AlreadyOpen,
}
