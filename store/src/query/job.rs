//! One job, whole: its lives, its place in the queue, its partitions with their attempts, its proofs.

use uuid::Uuid;

use super::reason::{backing_off, ready_of_job};
use super::{Counted, WaitReason, count_keys, estimate, number_at, schedule, wait_reason};
use crate::codec::{self, Damage, Record};
use crate::ids::{JobNumber, Millis};
use crate::keys::{self, Family};
use crate::records::{Attempt, Checkpoint, Generation, Job, Partition, StoredProof};
use crate::view::{self, ReadError, View};

/// What became of a job id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is a job.
    Job(JobNumber),
    /// It was one, forgotten at this moment.
    Pruned(Millis),
    /// There never was one, or it was forgotten long ago.
    Unknown,
}

/// Partitions of a job by what they came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// In all.
    pub total: u32,
    /// With a stored, verified proof.
    pub proved: u32,
    /// Given up.
    pub failed: u32,
    /// Cancelled with the job.
    pub cancelled: u32,
    /// With an open attempt.
    pub running: u32,
}

/// Where a job stands in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePlace {
    /// Its place among the jobs with ready partitions, from 1.
    pub position: Counted,
    /// Ready partitions of other jobs that are started before its first one.
    pub ahead: Counted,
}

/// One job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobDetail {
    /// The job.
    pub job: Job,
    /// Its partitions, counted.
    pub summary: Summary,
    /// Its current life.
    pub generation: Option<Generation>,
    /// Its place in the queue, while it has ready partitions.
    pub queue: Option<QueuePlace>,
    /// Why it waits, as far as the store knows.
    pub reason: Option<WaitReason>,
    /// Milliseconds until its last partition is proved, estimated from those that are.
    pub remaining_ms: Option<u64>,
}

/// A partition with what was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionDetail {
    /// The partition.
    pub partition: Partition,
    /// Its last attempts, oldest first; at most as many as asked for.
    pub attempts: Vec<Attempt>,
    /// Its proof, once there is one; `None` of a proved partition: the record is damaged.
    pub proof: Option<StoredProof>,
    /// What is kept of its unfinished proof, if that can be read.
    pub checkpoint: Option<Checkpoint>,
}

/// A page of partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionPage {
    /// By index.
    pub partitions: Vec<PartitionDetail>,
    /// The first index of the next page.
    pub next: Option<u32>,
}

/// A page of proofs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofPage {
    /// By partition; partitions without a proof are left out.
    pub proofs: Vec<StoredProof>,
    /// Partitions whose record can't be read.
    pub damaged: Vec<u32>,
    /// The first partition of the next page.
    pub next: Option<u32>,
}

/// Entries of the ready index that a question about the queue looks at.
const LOOK_AHEAD: usize = 2048;

/// Finds a job by its id.
///
/// # Errors
/// When the store can't be read.
pub fn find(view: &dyn View, id: Uuid) -> Result<Found, ReadError> {
    if let Some(number) = number_at(view, &keys::job_id(id))?.map(JobNumber) {
        // Both go in one transaction when it is forgotten.
        if view.get(&keys::job(number))?.is_none() {
            return Err(ReadError::damaged(&keys::job(number), Damage::Gone));
        }
        return Ok(Found::Job(number));
    }
    Ok(number_at(view, &keys::pruned(id))?.map_or(Found::Unknown, |at| Found::Pruned(Millis(at))))
}

/// The job's record.
///
/// # Errors
/// When the store can't be read.
pub fn job_by_number(view: &dyn View, number: JobNumber) -> Result<Option<Job>, ReadError> {
    view::record(view, &keys::job(number))
}

/// One job with everything that is asked for most; `None` if there is no such job.
///
/// # Errors
/// When the store can't be read.
pub fn job(view: &dyn View, number: JobNumber) -> Result<Option<JobDetail>, ReadError> {
    let Some(job) = job_by_number(view, number)? else {
        return Ok(None);
    };
    let summary = summary(view, &job)?;
    let generation = view::record(view, &keys::generation(number, job.generation))?;
    let queue = place(view, &job)?;
    let mut reason = wait_reason(
        view,
        &job,
        summary.running,
        schedule::queue(view)?,
        &schedule::devices(view)?,
    )?;
    if reason.is_none() && summary.running == 0 && queue.is_none() && job.state.grants() {
        let partitions: Vec<Partition> = view::records(view, &keys::of_job(Family::Partition, number))?;
        reason = backing_off(
            &job,
            partitions
                .iter()
                .map(|partition| (partition.state, partition.wake_at)),
        );
    }
    let remaining_ms = estimate::remaining_ms(view, &job)?;
    Ok(Some(JobDetail {
        job,
        summary,
        generation,
        queue,
        reason,
        remaining_ms,
    }))
}

/// Counts the job's partitions.
pub(super) fn summary(view: &dyn View, job: &Job) -> Result<Summary, ReadError> {
    let running = if job.state.is_terminal() {
        0
    } else {
        count_keys(
            view,
            &keys::of_job(Family::Open, job.number),
            job.partitions as usize,
        )?
        .count
    };
    Ok(Summary {
        total: job.partitions,
        proved: job.tally.proved,
        failed: job.tally.failed,
        cancelled: job.tally.cancelled,
        running: u32::try_from(running).unwrap_or(job.partitions),
    })
}

/// Where the job stands in the ready index: a walk from the front, bounded, since the front is what matters to
/// somebody who waits.
fn place(view: &dyn View, job: &Job) -> Result<Option<QueuePlace>, ReadError> {
    if !job.state.grants() || view.scan(&ready_of_job(job), None, 1)?.is_empty() {
        return Ok(None);
    }
    let front = view.scan(&keys::family(Family::Ready), None, LOOK_AHEAD)?;
    let mut ahead = 0;
    let mut jobs = 0;
    let mut last = None;
    for (_, number, _) in front.iter().filter_map(|(key, _)| keys::parse_ready(key)) {
        if number == job.number {
            let exactly = |count| Counted { count, more: false };
            return Ok(Some(QueuePlace {
                position: exactly(jobs + 1),
                ahead: exactly(ahead),
            }));
        }
        ahead += 1;
        if last != Some(number) {
            jobs += 1;
            last = Some(number);
        }
    }
    let more = |count| Counted { count, more: true };
    Ok(Some(QueuePlace {
        position: more(jobs + 1),
        ahead: more(ahead),
    }))
}

/// The last `limit` lives of a job, oldest first.
///
/// # Errors
/// When the store can't be read.
pub fn generations(view: &dyn View, job: JobNumber, limit: usize) -> Result<Vec<Generation>, ReadError> {
    decode_back(view.scan_back(&keys::of_job(Family::Generation, job), None, limit)?)
}

/// Up to `limit` partitions from index `from` on, each with its last `attempts` attempts.
///
/// # Errors
/// When the store can't be read.
pub fn partitions(
    view: &dyn View,
    job: JobNumber,
    from: u32,
    limit: usize,
    attempts: usize,
) -> Result<PartitionPage, ReadError> {
    let after = from.checked_sub(1).map(|before| keys::partition(job, before));
    let page = view.scan(&keys::of_job(Family::Partition, job), after.as_deref(), limit)?;
    let mut partitions = Vec::with_capacity(page.len());
    for (key, value) in &page {
        partitions.push(detail(view, decode(key, value)?, attempts)?);
    }
    let next = partitions
        .last()
        .map(|last| last.partition.index + 1)
        .filter(|_| page.len() == limit);
    Ok(PartitionPage { partitions, next })
}

/// One partition with its last `attempts` attempts.
///
/// # Errors
/// When the store can't be read.
pub fn partition(
    view: &dyn View,
    job: JobNumber,
    index: u32,
    attempts: usize,
) -> Result<Option<PartitionDetail>, ReadError> {
    view::record::<Partition>(view, &keys::partition(job, index))?
        .map(|partition| detail(view, partition, attempts))
        .transpose()
}

fn detail(view: &dyn View, partition: Partition, attempts: usize) -> Result<PartitionDetail, ReadError> {
    let (job, index) = (partition.job, partition.index);
    Ok(PartitionDetail {
        attempts: decode_back(view.scan_back(&keys::attempts(job, index), None, attempts)?)?,
        proof: readable(proof(view, job, index))?,
        checkpoint: readable(schedule::checkpoint(view, job, index))?,
        partition,
    })
}

/// The stored proof of one partition.
///
/// # Errors
/// When the store can't be read.
pub fn proof(view: &dyn View, job: JobNumber, partition: u32) -> Result<Option<StoredProof>, ReadError> {
    view::record(view, &keys::proof(job, partition))
}

/// Up to `limit` stored proofs from partition `from` on.
///
/// # Errors
/// When the store can't be read.
pub fn proofs(view: &dyn View, job: JobNumber, from: u32, limit: usize) -> Result<ProofPage, ReadError> {
    let after = from.checked_sub(1).map(|before| keys::proof(job, before));
    let page = view.scan(&keys::of_job(Family::Proof, job), after.as_deref(), limit)?;
    let (mut proofs, mut damaged): (Vec<StoredProof>, _) = (Vec::with_capacity(page.len()), Vec::new());
    let mut last = None;
    for (key, value) in &page {
        last = key
            .get(1..)
            .and_then(keys::parse_pair)
            .map(|(_, partition)| partition);
        match (StoredProof::decode(value), last) {
            (Ok(proof), _) => proofs.push(proof),
            (Err(_), Some(partition)) => damaged.push(partition),
            (Err(damage), None) => return Err(ReadError::damaged(key, damage)),
        }
    }
    let next = last.map(|last| last + 1).filter(|_| page.len() == limit);
    Ok(ProofPage {
        proofs,
        damaged,
        next,
    })
}

/// A record that can be done without: a damaged one is none.
fn readable<T>(read: Result<Option<T>, ReadError>) -> Result<Option<T>, ReadError> {
    match read {
        Err(ReadError::Damaged { .. }) => Ok(None),
        read => read,
    }
}

fn decode<R: Record>(key: &[u8], value: &[u8]) -> Result<R, ReadError> {
    R::decode(value).map_err(|damage| ReadError::damaged(key, damage))
}

fn decode_back<R: Record>(page: Vec<(keys::Key, Vec<u8>)>) -> Result<Vec<R>, ReadError> {
    page.iter().rev().map(|(key, value)| decode(key, value)).collect()
}

/// The canonical request's bytes, if they lie in the store itself; otherwise an object named by the job's digest holds
/// them.
///
/// # Errors
/// When the store can't be read.
pub fn request(view: &dyn View, job: JobNumber) -> Result<Option<Vec<u8>>, ReadError> {
    let key = keys::request(job);
    view.get(&key)?
        .map(|value| codec::read_bytes(&value).map_err(|damage| ReadError::damaged(&key, damage)))
        .transpose()
}
