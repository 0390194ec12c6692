//! One job with everything that hangs on it.

use std::collections::BTreeMap;

use super::checker::Checker;
use crate::codec::Record;
use crate::ids::JobNumber;
use crate::keys::{self, Family};
use crate::records::{Attempt, Checkpoint, Generation, Job, Partition, StoredProof};
use crate::view::ReadError;

/// A job's records, by the numbers in their keys.
pub(super) struct Whole {
    pub(super) job: Job,
    pub(super) generations: BTreeMap<u32, Generation>,
    pub(super) partitions: BTreeMap<u32, Partition>,
    pub(super) attempts: BTreeMap<(u32, u32), Attempt>,
    pub(super) proofs: BTreeMap<u32, StoredProof>,
    pub(super) checkpoints: BTreeMap<u32, Checkpoint>,
}

impl Whole {
    /// Reads everything of a job; `None` if the job itself is missing or damaged.
    pub(super) fn read(checker: &mut Checker<'_>, number: JobNumber) -> Result<Option<Self>, ReadError> {
        let Some(job) = checker.get::<Job>(&keys::job(number))? else {
            return Ok(None);
        };
        let whole = Self {
            job,
            generations: by(checker, Family::Generation, number, |record: &Generation| {
                record.number
            })?,
            partitions: by(checker, Family::Partition, number, |record: &Partition| {
                record.index
            })?,
            attempts: by(checker, Family::Attempt, number, |record: &Attempt| {
                (record.of.partition, record.of.number)
            })?,
            proofs: by(checker, Family::Proof, number, |record: &StoredProof| {
                record.partition
            })?,
            checkpoints: by(checker, Family::Checkpoint, number, |record: &Checkpoint| {
                record.partition
            })?,
        };
        let checked = checker.checked();
        checked.jobs += 1;
        checked.partitions += whole.partitions.len() as u64;
        checked.attempts += whole.attempts.len() as u64;
        Ok(Some(whole))
    }

    /// The attempts at one partition, in order.
    pub(super) fn attempts_at(&self, partition: u32) -> impl DoubleEndedIterator<Item = &Attempt> {
        self.attempts
            .range((partition, 0)..=(partition, u32::MAX))
            .map(|(_, attempt)| attempt)
    }
}

fn by<R: Record, K: Ord>(
    checker: &mut Checker<'_>,
    family: Family,
    job: JobNumber,
    name: impl Fn(&R) -> K,
) -> Result<BTreeMap<K, R>, ReadError> {
    let records = checker.records::<R>(&keys::of_job(family, job))?;
    Ok(records
        .into_iter()
        .map(|record| (name(&record), record))
        .collect())
}
