//! What runs next. Pure: a [`Snapshot`] of the store and the accounts of memory go in, [`Decision`]s come out.
//!
//! Priority, then the older job, then the lower partition. The head of the queue is never overtaken for memory. At most
//! two partitions a slot are ahead of a device, and one if it is large and the device is the processor; who must run alone
//! gets a process of its own.

mod decide;
mod follow;
mod snapshot;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use proofkeep_store::ids::{Digest, JobNumber, Millis, ProcessId, Token, WorkerId};
use proofkeep_store::records::{AttemptRef, Failure, PartitionState, Priority};

use crate::budget::{Ask, AskedKey, TicketFor};

pub use decide::decide;
pub use follow::Follow;
pub use snapshot::{Live, Retention, Walk, snapshot};

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Back-offs of this job are over.
    Wake(JobNumber),
    /// This job's deadline has passed.
    Expire(JobNumber),
    /// This job can't go on.
    FailJob(JobNumber, Failure),
    /// A suspended device is tried again.
    Resume(String),
    /// Give a device slot.
    GpuStart {
        /// To which attempt.
        attempt: AttemptRef,
        /// Which slot.
        worker: WorkerId,
        /// In which process.
        process: ProcessId,
    },
    /// Start a synthesis; the ticket is to be taken first.
    SynthStart {
        /// Whose.
        job: JobNumber,
        /// Which partition.
        partition: u32,
        /// In which process, with how much memory.
        ask: Ask,
    },
    /// Start an import; the ticket is to be taken first.
    ImportStart {
        /// Which circuit.
        circuit: Digest,
        /// In which process, with how much memory.
        ask: Ask,
    },
    /// Ask for the end of the work under a lease.
    Stop {
        /// In which process.
        process: ProcessId,
        /// Which lease.
        token: Token,
        /// Why: `cancelled` or `preempted`.
        failure: Failure,
    },
    /// Drop a finished witness: its memory is needed.
    GiveBack(AttemptRef),
    /// Drop a resident key that nobody pins.
    Evict(Digest),
    /// Check a job as a whole.
    VerifyStart(JobNumber),
    /// Forget a job.
    Prune(JobNumber),
}

/// What decisions rest on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Nothing new is to be started: paused, draining or stopping.
    pub paused: bool,
    /// No new device slot is to be given either: stopping.
    pub stopping: bool,
    /// Devices of this boot.
    pub devices: Vec<DeviceNow>,
    /// Open attempts, by job and partition.
    pub open: Vec<OpenNow>,
    /// Partitions that may be started, in order; those that are blocked for another reason than room left out.
    pub ready: Vec<ReadyNow>,
    /// Circuits that wait for their import.
    pub imports: Vec<ImportNow>,
    /// Imports that run, by process.
    pub importing: BTreeSet<ProcessId>,
    /// Jobs with a back-off that is over.
    pub due: Vec<JobNumber>,
    /// Jobs with a deadline that has passed.
    pub expired: Vec<JobNumber>,
    /// Jobs that can't go on.
    pub doomed: Vec<(JobNumber, Failure)>,
    /// Jobs to be checked as a whole.
    pub verify: Vec<JobNumber>,
    /// Checks that may still be started.
    pub verify_room: usize,
    /// Jobs to forget.
    pub prune: Vec<JobNumber>,
}

/// A device as the scheduler sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceNow {
    /// Its name.
    pub name: String,
    /// Slots.
    pub slots: u32,
    /// The process that is up and has said hello; `None` while there is none, or while the device is suspended.
    pub process: Option<ProcessId>,
    /// Suspended, and the time is over.
    pub resume: bool,
    /// Slots that nobody holds.
    pub idle: Vec<WorkerId>,
}

/// An open attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenNow {
    /// Which.
    pub attempt: AttemptRef,
    /// How urgent its job is.
    pub priority: Priority,
    /// Where it is.
    pub state: PartitionState,
    /// Its lease.
    pub token: Option<Token>,
    /// Its process.
    pub process: ProcessId,
    /// It must share its process with nobody.
    pub alone: bool,
    /// Its job is stopping.
    pub stopping: bool,
    /// Somebody asked it to stop already.
    pub asked: bool,
}

/// A partition that may be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyNow {
    /// How urgent.
    pub priority: Priority,
    /// Whose.
    pub job: JobNumber,
    /// Which.
    pub partition: u32,
    /// The number that its attempt would get.
    pub attempt: u32,
    /// Bytes it asks for.
    pub ticket_bytes: u64,
    /// The key it needs.
    pub key: Option<AskedKey>,
    /// It must share its process with nobody.
    pub alone: bool,
    /// A device that failed it last.
    pub avoid_device: Option<String>,
}

/// A circuit that waits for its import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportNow {
    /// Which.
    pub circuit: Digest,
    /// Bytes it asks for.
    pub bytes: u64,
}

impl DeviceNow {
    /// It proves on the cores that its syntheses run on.
    fn is_processor(&self) -> bool {
        self.name.starts_with("cpu:")
    }
}

impl ReadyNow {
    fn ask(&self, process: ProcessId) -> Ask {
        let of = TicketFor::Attempt {
            job: self.job,
            partition: self.partition,
            attempt: self.attempt,
        };
        Ask {
            of,
            process,
            bytes: self.ticket_bytes,
            key: self.key,
            critical: self.priority == Priority::Critical,
        }
    }
}

/// The ticket of an attempt.
#[must_use]
pub fn ticket_of(attempt: AttemptRef) -> TicketFor {
    TicketFor::Attempt {
        job: attempt.job,
        partition: attempt.partition,
        attempt: attempt.number,
    }
}

/// A moment that is far away for a device that was suspended by hand.
pub(crate) fn is_over(until: Option<Millis>, now: Millis) -> bool {
    until.is_some_and(|until| until <= now)
}
