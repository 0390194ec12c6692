//! Where each record lies. One tree, one byte of family in front, numbers big-endian so that the order of the keys is
//! the order that queries want.

mod families;

use uuid::Uuid;

use crate::ids::{BootNumber, Digest, JobNumber, JournalNumber, Millis, Token, WorkerId};
use crate::records::{AttemptRef, JobState, Priority};

/// A key of the store's one tree.
pub type Key = Vec<u8>;

/// What a key belongs to. The discriminants are on disk: never renumber, never use one again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Family {
    /// One of the [`Sequence`]s.
    Sequence = 1,
    /// [`Boot`](crate::records::Boot) by number.
    Boot = 2,
    /// The [`Queue`](crate::records::Queue).
    Queue = 3,
    /// [`Device`](crate::records::Device) by name.
    Device = 4,
    /// [`Worker`](crate::records::Worker) by id.
    Worker = 5,
    /// [`Lease`](crate::records::Lease) by token.
    Lease = 6,
    /// Tokens of this boot whose late word was already noted.
    Stale = 7,
    /// [`Job`](crate::records::Job) by number.
    Job = 10,
    /// Job number by id.
    JobId = 11,
    /// [`Generation`](crate::records::Generation) by job and number.
    Generation = 12,
    /// [`Partition`](crate::records::Partition) by job and index.
    Partition = 13,
    /// [`Attempt`](crate::records::Attempt) by job, partition and number.
    Attempt = 14,
    /// [`Checkpoint`](crate::records::Checkpoint) by job and partition.
    Checkpoint = 15,
    /// [`StoredProof`](crate::records::StoredProof) by job and partition.
    Proof = 16,
    /// Proofs that were refused by the final check.
    Quarantine = 17,
    /// Canonical requests of at most 2 KiB, by job.
    Request = 18,
    /// Index: jobs that are not terminal.
    Active = 20,
    /// Index: `ready` partitions in the order of scheduling.
    Ready = 21,
    /// Index: `waiting` partitions by wake-up time.
    Retry = 22,
    /// Index: jobs by deadline.
    Deadline = 23,
    /// Index: open attempts.
    Open = 24,
    /// Index: terminal jobs, oldest first.
    Done = 25,
    /// Index: job number by idempotency key.
    Idempotency = 26,
    /// Index: who needs an object (a job or a circuit).
    Reference = 27,
    /// Index: which objects a job needs; [`Family::Reference`] the other way round.
    Needs = 28,
    /// [`Event`](crate::event::Event) by number.
    Event = 30,
    /// Index: events of a job.
    JobEvent = 31,
    /// Counters by kind and outcome.
    Counter = 40,
    /// What the counters owe to pruned jobs.
    PrunedCounter = 41,
    /// When a job id was pruned.
    Pruned = 42,
    /// Pruned jobs whose keys are still being deleted.
    Pruning = 43,
    /// [`Circuit`](crate::records::Circuit) by digest.
    Circuit = 50,
    /// Circuit digest by name.
    CircuitName = 51,
    /// Index: circuits that are importing.
    Importing = 52,
}

/// Numbers that only rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Sequence {
    /// The last journal number.
    Journal = 1,
    /// The last job number.
    Job = 2,
    /// The last boot number.
    Boot = 3,
}

fn key(family: Family, parts: &[&[u8]]) -> Key {
    let mut key = Vec::with_capacity(1 + parts.iter().map(|part| part.len()).sum::<usize>());
    key.push(family as u8);
    for part in parts {
        key.extend_from_slice(part);
    }
    key
}

/// The prefix of a whole family.
#[must_use]
pub fn family(family: Family) -> Key {
    vec![family as u8]
}

/// A sequence's key.
#[must_use]
pub fn sequence(sequence: Sequence) -> Key {
    key(Family::Sequence, &[&[sequence as u8]])
}

/// A boot's key.
#[must_use]
pub fn boot(boot: BootNumber) -> Key {
    key(Family::Boot, &[&boot.0.to_be_bytes()])
}

/// The queue's key.
#[must_use]
pub fn queue() -> Key {
    family(Family::Queue)
}

/// A device's key.
#[must_use]
pub fn device(name: &str) -> Key {
    key(Family::Device, &[name.as_bytes()])
}

/// A worker's key.
#[must_use]
pub fn worker(id: WorkerId) -> Key {
    key(Family::Worker, &[&id.0.to_be_bytes()])
}

/// A lease's key.
#[must_use]
pub fn lease(token: Token) -> Key {
    token_key(Family::Lease, token)
}

/// The key that says a late word of this token was noted.
#[must_use]
pub fn stale(token: Token) -> Key {
    token_key(Family::Stale, token)
}

fn token_key(family: Family, token: Token) -> Key {
    key(
        family,
        &[&token.boot.0.to_be_bytes(), &token.grant.0.to_be_bytes()],
    )
}

/// The prefix of everything in `family` that is keyed by a job first.
#[must_use]
pub fn of_job(family: Family, job: JobNumber) -> Key {
    key(family, &[&job.0.to_be_bytes()])
}

/// A job's key.
#[must_use]
pub fn job(job: JobNumber) -> Key {
    of_job(Family::Job, job)
}

/// The key that finds a job by its id.
#[must_use]
pub fn job_id(id: Uuid) -> Key {
    key(Family::JobId, &[id.as_bytes()])
}

/// A generation's key.
#[must_use]
pub fn generation(job: JobNumber, number: u32) -> Key {
    in_job(Family::Generation, job, number)
}

/// The key of something that a job has one of for each partition (or generation).
#[must_use]
pub fn in_job(family: Family, job: JobNumber, index: u32) -> Key {
    key(family, &[&job.0.to_be_bytes(), &index.to_be_bytes()])
}

/// A partition's key.
#[must_use]
pub fn partition(job: JobNumber, index: u32) -> Key {
    in_job(Family::Partition, job, index)
}

/// An attempt's key.
#[must_use]
pub fn attempt(of: AttemptRef) -> Key {
    key(
        Family::Attempt,
        &[
            &of.job.0.to_be_bytes(),
            &of.partition.to_be_bytes(),
            &of.number.to_be_bytes(),
        ],
    )
}

/// The prefix of a partition's attempts.
#[must_use]
pub fn attempts(job: JobNumber, partition: u32) -> Key {
    in_job(Family::Attempt, job, partition)
}

/// A partition's checkpoint key.
#[must_use]
pub fn checkpoint(job: JobNumber, partition: u32) -> Key {
    in_job(Family::Checkpoint, job, partition)
}

/// A partition's proof key.
#[must_use]
pub fn proof(job: JobNumber, partition: u32) -> Key {
    in_job(Family::Proof, job, partition)
}

/// The key of a proof in quarantine.
#[must_use]
pub fn quarantine(job: JobNumber, partition: u32) -> Key {
    in_job(Family::Quarantine, job, partition)
}

/// The key of a request that lies in the store.
#[must_use]
pub fn request(job: JobNumber) -> Key {
    of_job(Family::Request, job)
}

/// The index key of a job that isn't terminal.
#[must_use]
pub fn active(job: JobNumber) -> Key {
    of_job(Family::Active, job)
}

/// The index key of a ready partition: most urgent first, then oldest job, then lowest partition.
#[must_use]
pub fn ready(priority: Priority, job: JobNumber, partition: u32) -> Key {
    let urgency = 255 - priority as u8;
    key(
        Family::Ready,
        &[&[urgency], &job.0.to_be_bytes(), &partition.to_be_bytes()],
    )
}

/// Reads a [`ready`] key.
#[must_use]
pub fn parse_ready(bytes: &[u8]) -> Option<(Priority, JobNumber, u32)> {
    let rest = bytes.strip_prefix(&[Family::Ready as u8])?;
    let (urgency, rest) = rest.split_first()?;
    let priority = *Priority::ALL.get(usize::from(255 - urgency))?;
    let (job, partition) = parse_pair(rest)?;
    Some((priority, job, partition))
}

/// The index key of a waiting partition.
#[must_use]
pub fn retry(wake_at: Millis, job: JobNumber, partition: u32) -> Key {
    key(
        Family::Retry,
        &[
            &wake_at.0.to_be_bytes(),
            &job.0.to_be_bytes(),
            &partition.to_be_bytes(),
        ],
    )
}

/// Reads a [`retry`] key.
#[must_use]
pub fn parse_retry(bytes: &[u8]) -> Option<(Millis, JobNumber, u32)> {
    let rest = bytes.strip_prefix(&[Family::Retry as u8])?;
    let (wake_at, rest) = rest.split_first_chunk()?;
    let (job, partition) = parse_pair(rest)?;
    Some((Millis(u64::from_be_bytes(*wake_at)), job, partition))
}

/// The index key of a job with a deadline.
#[must_use]
pub fn deadline(at: Millis, job: JobNumber) -> Key {
    key(Family::Deadline, &[&at.0.to_be_bytes(), &job.0.to_be_bytes()])
}

/// Reads a [`deadline`] key.
#[must_use]
pub fn parse_deadline(bytes: &[u8]) -> Option<(Millis, JobNumber)> {
    let rest = bytes.strip_prefix(&[Family::Deadline as u8])?;
    let (at, job) = rest.split_first_chunk()?;
    Some((
        Millis(u64::from_be_bytes(*at)),
        JobNumber(u64::from_be_bytes(job.try_into().ok()?)),
    ))
}

/// The index key of an open attempt.
#[must_use]
pub fn open(job: JobNumber, partition: u32) -> Key {
    in_job(Family::Open, job, partition)
}

/// The index key of a terminal job.
#[must_use]
pub fn done(job: JobNumber) -> Key {
    of_job(Family::Done, job)
}

/// The index key of an idempotency key.
#[must_use]
pub fn idempotency(text: &str) -> Key {
    key(Family::Idempotency, &[text.as_bytes()])
}

/// The index key that says a job needs an object.
#[must_use]
pub fn reference(object: Digest, job: JobNumber) -> Key {
    key(Family::Reference, &[&object.0, &job.0.to_be_bytes()])
}

/// The index key that says a circuit needs an object; longer than a job's, so the two can't be confused.
#[must_use]
pub fn circuit_reference(object: Digest, circuit: Digest) -> Key {
    key(Family::Reference, &[&object.0, &circuit.0])
}

/// The index key of an object that a job needs.
#[must_use]
pub fn needs(job: JobNumber, object: Digest) -> Key {
    key(Family::Needs, &[&job.0.to_be_bytes(), &object.0])
}

/// Reads the object at the end of a [`needs`] key.
#[must_use]
pub fn parse_needs(bytes: &[u8]) -> Option<(JobNumber, Digest)> {
    let rest = bytes.strip_prefix(&[Family::Needs as u8])?;
    let (job, object) = rest.split_first_chunk()?;
    Some((
        JobNumber(u64::from_be_bytes(*job)),
        Digest(object.try_into().ok()?),
    ))
}

/// Reads the object in a [`reference()`] or [`circuit_reference`] key.
#[must_use]
pub fn parse_reference(bytes: &[u8]) -> Option<Digest> {
    let rest = bytes.strip_prefix(&[Family::Reference as u8])?;
    rest.first_chunk().copied().map(Digest)
}

/// The prefix of everybody who needs an object.
#[must_use]
pub fn references(object: Digest) -> Key {
    key(Family::Reference, &[&object.0])
}

/// An event's key.
#[must_use]
pub fn event(number: JournalNumber) -> Key {
    key(Family::Event, &[&number.0.to_be_bytes()])
}

/// The index key of a job's event.
#[must_use]
pub fn job_event(job: JobNumber, number: JournalNumber) -> Key {
    key(Family::JobEvent, &[&job.0.to_be_bytes(), &number.0.to_be_bytes()])
}

/// A counter: what ended, by kind (or `-`) and how.
#[must_use]
pub fn counter(name: &str) -> Key {
    key(Family::Counter, &[name.as_bytes()])
}

/// The part of a counter that pruned jobs had.
#[must_use]
pub fn pruned_counter(name: &str) -> Key {
    key(Family::PrunedCounter, &[name.as_bytes()])
}

/// The name of the counter of generations of `kind` that ended as `state`.
#[must_use]
pub fn jobs_counter(kind: &str, state: JobState) -> String {
    format!("jobs/{kind}/{}", state.name())
}

/// The name of the counter of attempts of `kind` that ended with `outcome` (`ok` or a failure class).
#[must_use]
pub fn attempts_counter(kind: &str, outcome: &str) -> String {
    format!("attempts/{kind}/{outcome}")
}

/// When a job id was pruned.
#[must_use]
pub fn pruned(id: Uuid) -> Key {
    key(Family::Pruned, &[id.as_bytes()])
}

/// A pruned job whose keys are still being deleted.
#[must_use]
pub fn pruning(job: JobNumber) -> Key {
    of_job(Family::Pruning, job)
}

/// A circuit's key.
#[must_use]
pub fn circuit(digest: Digest) -> Key {
    key(Family::Circuit, &[&digest.0])
}

/// The key of a circuit's name.
#[must_use]
pub fn circuit_name(name: &str) -> Key {
    key(Family::CircuitName, &[name.as_bytes()])
}

/// The index key of a circuit that is importing.
#[must_use]
pub fn importing(digest: Digest) -> Key {
    key(Family::Importing, &[&digest.0])
}

/// The job that a key is about, if it is about one job.
#[must_use]
pub fn job_of(key: &[u8]) -> Option<JobNumber> {
    match Family::of(key)? {
        Family::Job
        | Family::Generation
        | Family::Partition
        | Family::Attempt
        | Family::Checkpoint
        | Family::Proof
        | Family::Quarantine
        | Family::Request
        | Family::Active
        | Family::Open
        | Family::Done
        | Family::Needs
        | Family::JobEvent
        | Family::Pruning => parse_job(key),
        Family::Ready => parse_ready(key).map(|(_, job, _)| job),
        Family::Retry => parse_retry(key).map(|(_, job, _)| job),
        Family::Deadline => parse_deadline(key).map(|(_, job)| job),
        Family::Reference if key.len() == 41 => {
            let job = key.last_chunk()?;
            Some(JobNumber(u64::from_be_bytes(*job)))
        }
        _ => None,
    }
}

/// Reads the job and partition at the end of an index key.
#[must_use]
pub fn parse_pair(bytes: &[u8]) -> Option<(JobNumber, u32)> {
    let (job, partition) = bytes.split_first_chunk()?;
    Some((
        JobNumber(u64::from_be_bytes(*job)),
        u32::from_be_bytes(partition.try_into().ok()?),
    ))
}

/// Reads the job number in front of a key of a family that is keyed by a job.
#[must_use]
pub fn parse_job(bytes: &[u8]) -> Option<JobNumber> {
    let (_, rest) = bytes.split_first()?;
    let (job, _) = rest.split_first_chunk()?;
    Some(JobNumber(u64::from_be_bytes(*job)))
}
