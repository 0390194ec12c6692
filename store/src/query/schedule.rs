//! What the scheduler and the daemon's timers ask: always the front of an index, never a scan of everything.

use crate::codec::Record;
use crate::ids::{JobNumber, Millis};
use crate::keys::{self, Family};
use crate::machine::BACK_OFF_LIMIT_MS;
use crate::records::{
    Attempt, AttemptRef, Checkpoint, Circuit, CircuitState, Device, Failure, FailureClass, Job, Lease,
    Partition, Priority, Queue, Worker,
};
use crate::view::{self, ReadError, View};

/// A partition that may be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyEntry {
    /// Its job's priority.
    pub priority: Priority,
    /// Whose.
    pub job: JobNumber,
    /// Which.
    pub partition: u32,
}

/// Up to `limit` ready partitions in the order in which they are to be started (priority, job number, partition),
/// beginning after `after`.
///
/// # Errors
/// When the store can't be read.
pub fn ready_page(
    view: &dyn View,
    after: Option<ReadyEntry>,
    limit: usize,
) -> Result<Vec<ReadyEntry>, ReadError> {
    let after = after.map(|entry| keys::ready(entry.priority, entry.job, entry.partition));
    let page = view.scan(&keys::family(Family::Ready), after.as_deref(), limit)?;
    Ok(page
        .iter()
        .filter_map(|(key, _)| keys::parse_ready(key))
        .map(|(priority, job, partition)| ReadyEntry {
            priority,
            job,
            partition,
        })
        .collect())
}

/// A partition whose back-off is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Since when.
    pub at: Millis,
    /// Whose.
    pub job: JobNumber,
    /// Which.
    pub partition: u32,
}

/// Up to `limit` waiting partitions whose time has come, the longest overdue first; then, up to as many, those that
/// would wait longer than any back-off: the clock went back since, and nobody would come for them for that long.
///
/// # Errors
/// When the store can't be read.
pub fn retries_due(view: &dyn View, now: Millis, limit: usize) -> Result<Vec<Due>, ReadError> {
    let family = keys::family(Family::Retry);
    let latest = keys::retry(now.after(BACK_OFF_LIMIT_MS), JobNumber(u64::MAX), u32::MAX);
    let due = view.scan(&family, None, limit)?;
    let stranded = view.scan(&family, Some(&latest), limit)?;
    let waiting = |(key, _): &(keys::Key, Vec<u8>)| keys::parse_retry(key);
    Ok(due
        .iter()
        .filter_map(waiting)
        .take_while(|(at, _, _)| *at <= now)
        .chain(stranded.iter().filter_map(waiting))
        .map(|(at, job, partition)| Due { at, job, partition })
        .collect())
}

/// When the next back-off ends.
///
/// # Errors
/// When the store can't be read.
pub fn next_retry(view: &dyn View) -> Result<Option<Millis>, ReadError> {
    let page = view.scan(&keys::family(Family::Retry), None, 1)?;
    Ok(page
        .first()
        .and_then(|(key, _)| keys::parse_retry(key))
        .map(|(at, _, _)| at))
}

/// Up to `limit` jobs whose deadline has passed, the earliest deadline first.
///
/// # Errors
/// When the store can't be read.
pub fn deadlines_due(
    view: &dyn View,
    now: Millis,
    limit: usize,
) -> Result<Vec<(Millis, JobNumber)>, ReadError> {
    let page = view.scan(&keys::family(Family::Deadline), None, limit)?;
    Ok(page
        .iter()
        .filter_map(|(key, _)| keys::parse_deadline(key))
        .take_while(|(at, _)| *at <= now)
        .collect())
}

/// The next deadline.
///
/// # Errors
/// When the store can't be read.
pub fn next_deadline(view: &dyn View) -> Result<Option<Millis>, ReadError> {
    let page = view.scan(&keys::family(Family::Deadline), None, 1)?;
    Ok(page
        .first()
        .and_then(|(key, _)| keys::parse_deadline(key))
        .map(|(at, _)| at))
}

/// A page of jobs that are not terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivePage {
    /// In the order of submission.
    pub jobs: Vec<Job>,
    /// The job to go on after, when there may be more.
    pub next: Option<JobNumber>,
}

/// Up to `limit` jobs that are not terminal, those after `after`.
///
/// # Errors
/// When the store can't be read.
pub fn active_jobs(view: &dyn View, after: Option<JobNumber>, limit: usize) -> Result<ActivePage, ReadError> {
    let after = after.map(keys::active);
    let page = view.scan(&keys::family(Family::Active), after.as_deref(), limit)?;
    let mut jobs = Vec::with_capacity(page.len());
    let mut last = None;
    for (key, _) in &page {
        let Some(number) = keys::parse_job(key) else {
            continue;
        };
        jobs.extend(view::record::<Job>(view, &keys::job(number))?);
        last = Some(number);
    }
    Ok(ActivePage {
        jobs,
        next: last.filter(|_| page.len() == limit),
    })
}

/// A partition with an open attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenAttempt {
    /// The partition.
    pub partition: Partition,
    /// Its open attempt.
    pub attempt: Attempt,
}

/// Every open attempt, by job and partition. Their number is bounded by the device slots.
///
/// # Errors
/// When the store can't be read.
pub fn open_attempts(view: &dyn View) -> Result<Vec<OpenAttempt>, ReadError> {
    let mut open = Vec::new();
    for (job, index) in pairs(view, &keys::family(Family::Open))? {
        let Some(partition) = view::record::<Partition>(view, &keys::partition(job, index))? else {
            continue;
        };
        let of = AttemptRef {
            job,
            partition: index,
            number: partition.attempts,
        };
        let Some(attempt) = view::record::<Attempt>(view, &keys::attempt(of))? else {
            continue;
        };
        open.push(OpenAttempt { partition, attempt });
    }
    Ok(open)
}

/// Job and partition of every key below `prefix`.
pub(crate) fn pairs(view: &dyn View, prefix: &[u8]) -> Result<Vec<(JobNumber, u32)>, ReadError> {
    let mut pairs = Vec::new();
    view::for_each(view, prefix, |key, _| {
        pairs.extend(keys::parse_pair(&key[1..]));
        Ok(())
    })?;
    Ok(pairs)
}

/// Every lease in force.
///
/// # Errors
/// When the store can't be read.
pub fn leases(view: &dyn View) -> Result<Vec<Lease>, ReadError> {
    view::records(view, &keys::family(Family::Lease))
}

/// Every worker (device slot), by id.
///
/// # Errors
/// When the store can't be read.
pub fn workers(view: &dyn View) -> Result<Vec<Worker>, ReadError> {
    view::records(view, &keys::family(Family::Worker))
}

/// Every device, by name.
///
/// # Errors
/// When the store can't be read.
pub fn devices(view: &dyn View) -> Result<Vec<Device>, ReadError> {
    view::records(view, &keys::family(Family::Device))
}

/// What an operator asked of the queue.
///
/// # Errors
/// When the store can't be read.
pub fn queue(view: &dyn View) -> Result<Queue, ReadError> {
    Ok(view::record(view, &keys::queue())?.unwrap_or_default())
}

/// What is finished of a partition's unfinished proof.
///
/// # Errors
/// When the store can't be read.
pub fn checkpoint(view: &dyn View, job: JobNumber, partition: u32) -> Result<Option<Checkpoint>, ReadError> {
    view::record(view, &keys::checkpoint(job, partition))
}

/// Every circuit that is importing.
///
/// # Errors
/// When the store can't be read.
pub fn importing(view: &dyn View) -> Result<Vec<Circuit>, ReadError> {
    let mut circuits = Vec::new();
    view::for_each(view, &keys::family(Family::Importing), |key, _| {
        let circuit_key = [&[Family::Circuit as u8], &key[1..]].concat();
        if let Some(bytes) = view.get(&circuit_key)? {
            circuits
                .push(Circuit::decode(&bytes).map_err(|damage| ReadError::damaged(&circuit_key, damage))?);
        }
        Ok(())
    })?;
    Ok(circuits)
}

/// How far a walk over the ended jobs has come; the default is its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneWalk {
    kept: u64,
    before: Option<JobNumber>,
}

/// A page of jobs that may be forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrunePage {
    /// Jobs beyond those that are kept, the newest of them first.
    pub jobs: Vec<JobNumber>,
    /// Where the walk goes on; `None`: it is over.
    pub next: Option<PruneWalk>,
}

/// Looks at up to `limit` ended jobs, newest first, and answers those that come after the `max_jobs` newest.
///
/// # Errors
/// When the store can't be read.
pub fn prunable(
    view: &dyn View,
    max_jobs: u64,
    walk: PruneWalk,
    limit: usize,
) -> Result<PrunePage, ReadError> {
    let before = walk.before.map(keys::done);
    let page = view.scan_back(&keys::family(Family::Done), before.as_deref(), limit)?;
    let mut walk = walk;
    let mut jobs = Vec::new();
    for number in page.iter().filter_map(|(key, _)| keys::parse_job(key)) {
        if walk.kept < max_jobs {
            walk.kept += 1;
        } else {
            jobs.push(number);
        }
        walk.before = Some(number);
    }
    Ok(PrunePage {
        jobs,
        next: Some(walk).filter(|_| page.len() == limit),
    })
}

/// Up to `limit` forgotten jobs of which some keys are still to be deleted.
///
/// # Errors
/// When the store can't be read.
pub fn pruning(view: &dyn View, limit: usize) -> Result<Vec<JobNumber>, ReadError> {
    let page = view.scan(&keys::family(Family::Pruning), None, limit)?;
    Ok(page.iter().filter_map(|(key, _)| keys::parse_job(key)).collect())
}

/// A page of jobs that no worker can ever finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HopelessPage {
    /// In the order of submission, each with why.
    pub jobs: Vec<(Job, Failure)>,
    /// The job to go on after, when there may be more.
    pub next: Option<JobNumber>,
}

/// Looks at up to `limit` jobs that haven't ended, those after `after`, and answers those whose circuit was refused or
/// is gone: the daemon may have died between the end of an import and the end of its jobs.
///
/// # Errors
/// When the store can't be read.
pub fn jobs_that_cannot_run(
    view: &dyn View,
    after: Option<JobNumber>,
    limit: usize,
) -> Result<HopelessPage, ReadError> {
    let page = active_jobs(view, after, limit)?;
    let mut jobs = Vec::new();
    for job in page.jobs {
        let Some(digest) = job.circuit.filter(|_| job.state.grants()) else {
            continue;
        };
        let failure =
            match view::record::<Circuit>(view, &keys::circuit(digest))?.map(|circuit| circuit.state) {
                Some(CircuitState::Failed(failure)) => Failure {
                    class: FailureClass::CircuitFailed,
                    ..failure
                },
                Some(_) => continue,
                None => Failure::new(
                    FailureClass::InputMissing,
                    format!("circuit {digest} is not there any more; register it and retry the job"),
                ),
            };
        jobs.push((job, failure));
    }
    Ok(HopelessPage {
        jobs,
        next: page.next,
    })
}
