//! Every key: it belongs to a family, its value can be read, and the record is the one that belongs there.

use super::Invariant;
use super::checker::Checker;
use super::indexes::owner;
use crate::codec::Record;
use crate::event::Event;
use crate::keys::{self, Family, Key};
use crate::records::{
    Attempt, Boot, Checkpoint, Circuit, Device, Generation, Job, Lease, Partition, Queue, StoredProof, Worker,
};
use crate::view::ReadError;

pub(super) fn check(checker: &mut Checker<'_>) -> Result<(), ReadError> {
    checker.walk(&[], |checker, key, value| {
        checker.checked().records += 1;
        check_one(checker, key, value);
        if Family::of(key).is_some_and(keyed_by_job)
            && let Some(job) = keys::parse_job(key)
        {
            owner(checker, key, job)?;
        }
        Ok(())
    })
}

/// One value by itself.
pub(super) fn check_one(checker: &mut Checker<'_>, key: &[u8], value: &[u8]) {
    match Family::of(key) {
        Some(family) => check_value(checker, family, key, value),
        None => checker.find(
            Invariant::Record,
            key,
            "it belongs to no family that this build knows",
        ),
    }
}

fn keyed_by_job(family: Family) -> bool {
    matches!(
        family,
        Family::Generation
            | Family::Partition
            | Family::Attempt
            | Family::Checkpoint
            | Family::Proof
            | Family::Quarantine
            | Family::Request
            | Family::JobEvent
    )
}

fn check_value(checker: &mut Checker<'_>, family: Family, key: &[u8], value: &[u8]) {
    match family {
        Family::Boot => same(checker, key, value, |record: &Boot| keys::boot(record.number)),
        Family::Queue => same(checker, key, value, |_: &Queue| keys::queue()),
        Family::Device => same(checker, key, value, |record: &Device| keys::device(&record.name)),
        Family::Worker => same(checker, key, value, |record: &Worker| keys::worker(record.id)),
        Family::Lease => same(checker, key, value, |record: &Lease| keys::lease(record.token)),
        Family::Job => same(checker, key, value, |record: &Job| keys::job(record.number)),
        Family::Generation => {
            same(checker, key, value, |record: &Generation| {
                keys::generation(record.job, record.number)
            });
        }
        Family::Partition => {
            same(checker, key, value, |record: &Partition| {
                keys::partition(record.job, record.index)
            });
        }
        Family::Attempt => same(checker, key, value, |record: &Attempt| keys::attempt(record.of)),
        Family::Checkpoint => {
            same(checker, key, value, |record: &Checkpoint| {
                keys::checkpoint(record.job, record.partition)
            });
        }
        Family::Proof => {
            same(checker, key, value, |record: &StoredProof| {
                keys::proof(record.job, record.partition)
            });
        }
        Family::Quarantine => {
            same(checker, key, value, |record: &StoredProof| {
                keys::quarantine(record.job, record.partition)
            });
        }
        Family::Event => same(checker, key, value, |record: &Event| keys::event(record.number)),
        Family::Circuit => same(checker, key, value, |record: &Circuit| {
            keys::circuit(record.digest)
        }),
        Family::Sequence
        | Family::JobId
        | Family::Idempotency
        | Family::Counter
        | Family::PrunedCounter
        | Family::Pruned => {
            checker.decode_number(key, value);
        }
        Family::CircuitName => {
            checker.decode_digest(key, value);
        }
        Family::Request => {
            checker.decode_bytes(key, value);
        }
        Family::Stale
        | Family::Active
        | Family::Ready
        | Family::Retry
        | Family::Deadline
        | Family::Open
        | Family::Done
        | Family::Reference
        | Family::Needs
        | Family::JobEvent
        | Family::Pruning
        | Family::Importing => {
            let text = format!("an index entry is empty, this one has {} bytes", value.len());
            checker.find_if(!value.is_empty(), Invariant::Index, key, text);
        }
    }
}

fn same<R: Record>(checker: &mut Checker<'_>, key: &[u8], value: &[u8], name: impl Fn(&R) -> Key) {
    if let Some(record) = checker.decode::<R>(key, value) {
        let own = name(&record);
        let text = format!("what lies there is {}", super::describe(&own));
        checker.find_if(own != key, Invariant::Record, key, text);
    }
}
