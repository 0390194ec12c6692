//! Everything that is shown or decided is a question to one consistent [`View`]: a status page, a list, the scheduler's
//! next choice. Nothing here writes, and nothing is remembered between two questions.
//!
//! The view is read under the lock that the commit task takes, so each question has a bounded cost: it reads at most a
//! few thousand keys, then says where to go on (a [`Cursor`]) or that there is more (a [`Counted`]).

mod boots;
mod circuits;
mod counters;
mod cursor;
mod cuzk;
mod drawing;
mod estimate;
mod events;
mod job;
mod jobs;
mod reason;
mod schedule;
mod status;

use crate::codec;
use crate::ids::{BootNumber, JobNumber, JournalNumber};
use crate::keys::{self, Sequence};
use crate::view::{ReadError, View};

pub use boots::{BootReport, Recovered, boot_report, boots, current_boot, first_event_of};
pub use circuits::{CircuitPage, circuit, circuit_by_name, circuits, circuits_named};
pub use counters::{Count, Counters, counters};
pub use cursor::{Cursor, CursorError};
pub use cuzk::{
    Allocation, Allocations, Buffers, CuzkCounters, CuzkMemory, CuzkPartition, CuzkStatus, CuzkSynthesis,
    GpuWorker, Pipeline, Surroundings, cuzk,
};
pub use events::{EventPage, event, events, job_events};
pub use job::{
    Found, JobDetail, PartitionDetail, PartitionPage, ProofPage, QueuePlace, Summary, find, generations, job,
    job_by_number, partition, partitions, proof, proofs, request,
};
pub use jobs::{DamagedJob, JobFilter, JobPage, JobRow, ListError, Order, StateFilter, id_of, jobs};
pub use reason::{WaitReason, wait_reason};
pub use schedule::{
    ActivePage, Due, HopelessPage, OpenAttempt, PrunePage, PruneWalk, ReadyEntry, active_jobs, checkpoint,
    deadlines_due, devices, importing, jobs_that_cannot_run, leases, next_deadline, next_retry,
    open_attempts, prunable, pruning, queue, ready_page, retries_due, workers,
};
pub use status::{
    JobStatus, PartitionStatus, PriorityQueue, QueueStatus, StageCounts, Status, StatusLimits, WorkerStatus,
    cell, status,
};

/// A number that was counted up to a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// How many were counted.
    pub count: u64,
    /// There are more than that.
    pub more: bool,
}

/// Counts the keys below `prefix`, at most `limit`.
pub(crate) fn count_keys(view: &dyn View, prefix: &[u8], limit: usize) -> Result<Counted, ReadError> {
    let found = view.scan(prefix, None, limit.saturating_add(1))?.len();
    Ok(Counted {
        count: found.min(limit) as u64,
        more: found > limit,
    })
}

/// The number at `key`, if there is one.
pub(crate) fn number_at(view: &dyn View, key: &[u8]) -> Result<Option<u64>, ReadError> {
    view.get(key)?
        .map(|bytes| codec::read_number(&bytes).map_err(|damage| ReadError::damaged(key, damage)))
        .transpose()
}

/// The number of the last event.
///
/// # Errors
/// When the store can't be read.
pub fn last_event(view: &dyn View) -> Result<JournalNumber, ReadError> {
    Ok(JournalNumber(
        number_at(view, &keys::sequence(Sequence::Journal))?.unwrap_or(0),
    ))
}

/// The number of the last job.
///
/// # Errors
/// When the store can't be read.
pub fn last_job(view: &dyn View) -> Result<JobNumber, ReadError> {
    Ok(JobNumber(
        number_at(view, &keys::sequence(Sequence::Job))?.unwrap_or(0),
    ))
}

/// The number of the last boot.
///
/// # Errors
/// When the store can't be read.
pub fn last_boot(view: &dyn View) -> Result<BootNumber, ReadError> {
    Ok(BootNumber(
        number_at(view, &keys::sequence(Sequence::Boot))?.unwrap_or(0),
    ))
}

/// How many events are kept; the others went with pruned jobs.
///
/// # Errors
/// When the store can't be read.
pub fn events_kept(view: &dyn View) -> Result<u64, ReadError> {
    let pruned = number_at(view, &keys::pruned_counter(PRUNED_EVENTS))?.unwrap_or(0);
    Ok(last_event(view)?.0.saturating_sub(pruned))
}

/// The counter of events that went with pruned jobs.
pub(crate) const PRUNED_EVENTS: &str = "events";
