//! The whole picture in one consistent read: what `/v1/status` and the panel show, and what cuzk's shape is made of.

use super::drawing::Drawing;
use super::job::Summary;
use super::schedule::{self, OpenAttempt};
use super::{BootReport, Counted, Counters, WaitReason, count_keys, counters, current_boot, last_event};
use crate::ids::{JobNumber, JournalNumber, Millis, WorkerId};
use crate::keys::{self, Family};
use crate::records::{
    Circuit, Device, FailureClass, Generation, Job, LastWork, PartitionState, Priority, Queue, Worker,
    WorkerState,
};
use crate::view::{self, ReadError, View};

/// How much of the picture is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusLimits {
    /// Jobs in flight, those with open attempts first.
    pub jobs: usize,
    /// Partitions in full, over all jobs.
    pub partitions: usize,
    /// Partitions as one character, over all jobs.
    pub cells: usize,
    /// Jobs that ended a moment ago.
    pub recent: usize,
    /// How long that moment is, in milliseconds.
    pub recent_ms: u64,
    /// Entries of an index that are counted one by one.
    pub counted: usize,
}

impl Default for StatusLimits {
    fn default() -> Self {
        Self {
            jobs: 256,
            partitions: 1024,
            cells: 2048,
            recent: 64,
            recent_ms: 30_000,
            counted: 4096,
        }
    }
}

/// Ready partitions of one priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityQueue {
    /// Which.
    pub priority: Priority,
    /// How many.
    pub ready: Counted,
    /// How long the first in line has been there, in milliseconds since its job was submitted or retried.
    pub oldest_ms: Option<u64>,
}

/// The queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueStatus {
    /// What the operator asked of it.
    pub asked: Queue,
    /// Ready partitions.
    pub depth: Counted,
    /// Partitions that back off.
    pub waiting: Counted,
    /// The same by priority, most urgent first.
    pub by_priority: Vec<PriorityQueue>,
}

/// A partition in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionStatus {
    /// Which.
    pub index: u32,
    /// Where it is.
    pub state: PartitionState,
    /// The number of its last attempt; 0 before the first.
    pub attempt: u32,
    /// How long the witness of that attempt took, in milliseconds.
    pub synth_ms: Option<u64>,
    /// How long that attempt held the device, in milliseconds; while it is on it, until now.
    pub gpu_ms: Option<u64>,
    /// The device slot it holds now.
    pub worker: Option<WorkerId>,
    /// The device of the attempt.
    pub device: Option<String>,
    /// When the attempt was opened.
    pub started_at: Option<Millis>,
    /// When it wakes, while it backs off.
    pub wake_at: Option<Millis>,
    /// How the attempt failed, if it did.
    pub failure: Option<FailureClass>,
}

/// A job in flight, or just ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobStatus {
    /// The job.
    pub job: Job,
    /// Its current life.
    pub generation: Option<Generation>,
    /// Its partitions, counted.
    pub summary: Summary,
    /// Why it waits, as far as the store knows.
    pub reason: Option<WaitReason>,
    /// Partitions in full: all of them, or those with an open attempt.
    pub partitions: Vec<PartitionStatus>,
    /// When not all are there in full: one character a partition, see [`cell`].
    pub cells: Option<String>,
}

/// A worker (device slot).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerStatus {
    /// Which.
    pub id: WorkerId,
    /// Its device.
    pub device: String,
    /// Its place on that device.
    pub slot: u32,
    /// What it proves: job, partition and since when; `None`: idle.
    pub busy: Option<(JobNumber, u32, Millis)>,
    /// The id of that job for users.
    pub job: Option<uuid::Uuid>,
    /// How long it has been busy, in milliseconds.
    pub busy_ms: Option<u64>,
    /// What it did last.
    pub last: Option<LastWork>,
}

/// Open attempts by the state of their partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageCounts {
    /// A witness is being made.
    pub synthesizing: u32,
    /// A witness waits for a device slot.
    pub synthesized: u32,
    /// On a device.
    pub proving: u32,
    /// Being assembled and verified.
    pub finishing: u32,
}

/// One consistent read of everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The last event that this shows.
    pub journal: JournalNumber,
    /// Events that are kept; the others were pruned with their jobs.
    pub journal_kept: u64,
    /// The moment.
    pub at: Millis,
    /// The boot, and what its recovery did.
    pub boot: Option<BootReport>,
    /// The queue.
    pub queue: QueueStatus,
    /// Jobs in flight in all.
    pub active: Counted,
    /// Jobs in flight: those with an open attempt first, then by number.
    pub jobs: Vec<JobStatus>,
    /// Jobs that ended a moment ago, the last first.
    pub recent: Vec<JobStatus>,
    /// Open attempts by stage.
    pub stages: StageCounts,
    /// The devices.
    pub devices: Vec<Device>,
    /// The workers.
    pub workers: Vec<WorkerStatus>,
    /// Circuits that are importing.
    pub importing: Vec<Circuit>,
    /// What ended so far.
    pub counters: Counters,
}

/// The character that stands for a partition in `cells`.
#[must_use]
pub fn cell(state: PartitionState) -> char {
    match state {
        PartitionState::Ready => '.',
        PartitionState::Waiting => 'w',
        PartitionState::Synthesizing => 's',
        PartitionState::Synthesized => 'S',
        PartitionState::Proving => 'p',
        PartitionState::Finishing => 'f',
        PartitionState::Proved => '#',
        PartitionState::Failed => 'x',
        PartitionState::Cancelled => 'c',
    }
}

/// Reads the whole picture as of this view.
///
/// # Errors
/// When the store can't be read.
pub fn status(view: &dyn View, now: Millis, limits: StatusLimits) -> Result<Status, ReadError> {
    let queue = queue_status(view, now, limits)?;
    let devices = schedule::devices(view)?;
    let open = schedule::open_attempts(view)?;
    let active = count_keys(view, &keys::family(Family::Active), limits.counted)?;
    let mut drawing = Drawing::new(view, now, limits, queue.asked, &devices, &open);
    let jobs = drawing.jobs_in_flight()?;
    let recent = drawing.recent()?;
    let mut workers = Vec::new();
    for worker in schedule::workers(view)? {
        workers.push(worker_status(view, now, worker, &jobs)?);
    }
    let journal = last_event(view)?;
    Ok(Status {
        journal,
        journal_kept: super::events_kept(view)?,
        at: now,
        boot: current_boot(view)?,
        queue,
        active,
        jobs,
        recent,
        stages: stage_counts(&open),
        workers,
        devices,
        importing: schedule::importing(view)?,
        counters: counters(view)?,
    })
}

fn queue_status(view: &dyn View, now: Millis, limits: StatusLimits) -> Result<QueueStatus, ReadError> {
    let mut by_priority = Vec::new();
    let mut depth = Counted::default();
    let mut left = limits.counted;
    for priority in Priority::ALL.into_iter().rev() {
        let mut prefix = keys::ready(priority, JobNumber(0), 0);
        prefix.truncate(2);
        let ready = count_keys(view, &prefix, left)?;
        left -= usize::try_from(ready.count).unwrap_or(left).min(left);
        depth = Counted {
            count: depth.count + ready.count,
            more: depth.more || ready.more,
        };
        let front = view.scan(&prefix, None, 1)?;
        let oldest_ms = match front.first().and_then(|(key, _)| keys::parse_ready(key)) {
            Some((_, job, _)) => waiting_since(view, job)?.map(|since| now.since(since)),
            None => None,
        };
        by_priority.push(PriorityQueue {
            priority,
            ready,
            oldest_ms,
        });
    }
    let waiting = count_keys(view, &keys::family(Family::Retry), limits.counted)?;
    Ok(QueueStatus {
        asked: schedule::queue(view)?,
        depth,
        waiting,
        by_priority,
    })
}

fn waiting_since(view: &dyn View, number: JobNumber) -> Result<Option<Millis>, ReadError> {
    let Some(job) = view::record::<Job>(view, &keys::job(number))? else {
        return Ok(None);
    };
    let generation = view::record::<Generation>(view, &keys::generation(number, job.generation))?;
    Ok(Some(
        generation.map_or(job.created_at, |generation| generation.opened_at),
    ))
}

fn stage_counts(open: &[OpenAttempt]) -> StageCounts {
    let mut counts = StageCounts::default();
    for attempt in open {
        match attempt.partition.state {
            PartitionState::Synthesizing => counts.synthesizing += 1,
            PartitionState::Synthesized => counts.synthesized += 1,
            PartitionState::Proving => counts.proving += 1,
            PartitionState::Finishing => counts.finishing += 1,
            _ => {}
        }
    }
    counts
}

fn worker_status(
    view: &dyn View,
    now: Millis,
    worker: Worker,
    jobs: &[JobStatus],
) -> Result<WorkerStatus, ReadError> {
    let busy = match worker.state {
        WorkerState::Idle => None,
        WorkerState::Busy {
            job,
            partition,
            since,
            ..
        } => Some((job, partition, since)),
    };
    let job = match busy {
        None => None,
        Some((number, _, _)) => match jobs.iter().find(|job| job.job.number == number) {
            Some(found) => Some(found.job.id),
            None => view::record::<Job>(view, &keys::job(number))?.map(|job| job.id),
        },
    };
    Ok(WorkerStatus {
        id: worker.id,
        device: worker.device,
        slot: worker.slot,
        busy,
        job,
        busy_ms: busy.map(|(_, _, since)| now.since(since)),
        last: worker.last,
    })
}
