//! Indexes from their own side: each entry must say what a record says. That each record has its entries is checked
//! with the record.

use std::collections::BTreeSet;

use super::checker::Checker;
use super::names::{digest_at, u64_at};
use super::{Invariant, Mode, circuits};
use crate::event::Event;
use crate::ids::{Digest, JobNumber, JournalNumber};
use crate::keys::{self, Family};
use crate::records::{Circuit, Job, Lease, Partition, PartitionState, Subject};
use crate::view::ReadError;

pub(super) fn check(checker: &mut Checker<'_>, mode: Mode) -> Result<(), ReadError> {
    queue(checker)?;
    checker.walk(&keys::family(Family::Active), |checker, key, _| {
        ended_or_not(checker, key, false)
    })?;
    if mode == Mode::Live {
        return unlisted(checker);
    }
    checker.walk(&keys::family(Family::Done), |checker, key, _| {
        ended_or_not(checker, key, true)
    })?;
    names(checker)?;
    objects(checker)?;
    checker.walk(&keys::family(Family::JobEvent), |checker, key, _| {
        let (Some(job), Some(number)) = (keys::parse_job(key), u64_at(key, 9)) else {
            checker.find(Invariant::Index, key, "it isn't the key of a job's event");
            return Ok(());
        };
        let event = checker.get::<Event>(&keys::event(JournalNumber(number)))?;
        let of_job = event.is_some_and(|event| event.job == Some(job));
        checker.find_if(
            !of_job,
            Invariant::Index,
            key,
            "the journal has no such event of that job",
        );
        Ok(())
    })
}

/// Ready, waiting, open, deadline.
fn queue(checker: &mut Checker<'_>) -> Result<(), ReadError> {
    checker.walk(&keys::family(Family::Ready), |checker, key, _| {
        let Some((priority, job, index)) = keys::parse_ready(key) else {
            checker.find(Invariant::Queue, key, "it isn't the key of a ready partition");
            return Ok(());
        };
        let urgent = checker
            .get::<Job>(&keys::job(job))?
            .is_some_and(|job| job.priority == priority);
        checker.find_if(
            !urgent,
            Invariant::Queue,
            key,
            "the job is not there, or has another priority",
        );
        partition(checker, key, (job, index), "ready", |found| {
            found.state == PartitionState::Ready
        })
    })?;
    checker.walk(&keys::family(Family::Retry), |checker, key, _| {
        let Some((at, job, index)) = keys::parse_retry(key) else {
            checker.find(Invariant::Queue, key, "it isn't the key of a waiting partition");
            return Ok(());
        };
        partition(checker, key, (job, index), "waiting for that moment", |found| {
            found.state == PartitionState::Waiting && found.wake_at == Some(at)
        })
    })?;
    checker.walk(&keys::family(Family::Open), |checker, key, _| {
        let Some((job, index)) = keys::parse_pair(&key[1..]) else {
            checker.find(Invariant::Attempts, key, "it isn't the key of an open attempt");
            return Ok(());
        };
        partition(
            checker,
            key,
            (job, index),
            "in a state with an open attempt",
            |found| found.state.is_open(),
        )
    })?;
    checker.walk(&keys::family(Family::Deadline), |checker, key, _| {
        let Some((at, number)) = keys::parse_deadline(key) else {
            checker.find(Invariant::Index, key, "it isn't the key of a deadline");
            return Ok(());
        };
        let job = checker.get::<Job>(&keys::job(number))?;
        let due = job.is_some_and(|job| job.deadline == Some(at) && job.state.grants());
        checker.find_if(
            !due,
            Invariant::Index,
            key,
            "the job has ended, or has another deadline",
        );
        Ok(())
    })
}

/// A job that the queue names and the list of those that haven't ended doesn't: nobody would look at it again. (A full
/// check looks at every job.)
fn unlisted(checker: &mut Checker<'_>) -> Result<(), ReadError> {
    let mut jobs = BTreeSet::new();
    for family in [Family::Ready, Family::Retry, Family::Open, Family::Deadline] {
        checker.walk(&keys::family(family), |_, key, _| {
            jobs.extend(keys::job_of(key));
            Ok(())
        })?;
    }
    for lease in checker.records::<Lease>(&keys::family(Family::Lease))? {
        if let Subject::Partition { job, .. } | Subject::Verify { job } = lease.subject {
            jobs.insert(job);
        }
    }
    for job in jobs {
        let key = keys::active(job);
        let there = checker.has(&key)?;
        checker.find_if(
            !there,
            Invariant::Index,
            &key,
            "it is missing, and the queue names the job",
        );
    }
    Ok(())
}

fn partition(
    checker: &mut Checker<'_>,
    key: &[u8],
    (job, index): (JobNumber, u32),
    expected: &str,
    holds: impl Fn(&Partition) -> bool,
) -> Result<(), ReadError> {
    match checker.get::<Partition>(&keys::partition(job, index))? {
        Some(found) if holds(&found) => {}
        Some(found) => checker.find(
            Invariant::Queue,
            key,
            format!("the partition is {}; expected it {expected}", found.state.name()),
        ),
        None => checker.find(Invariant::Queue, key, "there is no such partition"),
    }
    Ok(())
}

fn ended_or_not(checker: &mut Checker<'_>, key: &[u8], ended: bool) -> Result<(), ReadError> {
    let number = keys::parse_job(key).unwrap_or_default();
    match checker.get::<Job>(&keys::job(number))? {
        Some(job) if job.state.is_terminal() == ended => {}
        Some(job) => checker.find(Invariant::Index, key, format!("the job is {}", job.state.name())),
        None => checker.missing(
            Invariant::Index,
            &keys::job(number),
            "an index names it and it is not there",
        ),
    }
    Ok(())
}

/// Ids and idempotency keys.
fn names(checker: &mut Checker<'_>) -> Result<(), ReadError> {
    checker.walk(&keys::family(Family::JobId), |checker, key, value| {
        let Some(number) = checker.decode_number(key, value) else {
            return Ok(());
        };
        let job = checker.get::<Job>(&keys::job(JobNumber(number)))?;
        let same = job.is_some_and(|job| keys::job_id(job.id) == key);
        checker.find_if(
            !same,
            Invariant::Index,
            key,
            format!("it points to job {number}, which has another id"),
        );
        Ok(())
    })?;
    checker.walk(&keys::family(Family::Idempotency), |checker, key, value| {
        let Some(number) = checker.decode_number(key, value) else {
            return Ok(());
        };
        let job = checker.get::<Job>(&keys::job(JobNumber(number)))?;
        let same = job
            .and_then(|job| job.idempotency_key)
            .is_some_and(|text| keys::idempotency(&text) == key);
        let text = format!("it points to job {number}, which was submitted without it");
        checker.find_if(!same, Invariant::Keys, key, text);
        Ok(())
    })
}

/// Who needs which object, both ways.
fn objects(checker: &mut Checker<'_>) -> Result<(), ReadError> {
    checker.walk(&keys::family(Family::Needs), |checker, key, _| {
        let Some((job, object)) = keys::parse_needs(key) else {
            checker.find(Invariant::Index, key, "it isn't the key of a job's object");
            return Ok(());
        };
        owner(checker, key, job)?;
        let other = keys::reference(object, job);
        let there = checker.has(&other)?;
        checker.find_if(
            !there,
            Invariant::Index,
            &other,
            "it is missing, so the object could be swept",
        );
        Ok(())
    })?;
    checker.walk(&keys::family(Family::Reference), |checker, key, _| {
        let Some(object) = digest_at(key, 1) else {
            checker.find(Invariant::Index, key, "it isn't the key of a reference");
            return Ok(());
        };
        match key.len() {
            41 => {
                let job = JobNumber(u64_at(key, 33).unwrap_or(0));
                let there = checker.has(&keys::needs(job, object))?;
                checker.find_if(
                    !there,
                    Invariant::Index,
                    key,
                    "the job's own list does not have it",
                );
                Ok(())
            }
            65 => circuit_object(checker, key, object),
            _ => {
                checker.find(Invariant::Index, key, "it isn't the key of a reference");
                Ok(())
            }
        }
    })
}

fn circuit_object(checker: &mut Checker<'_>, key: &[u8], object: Digest) -> Result<(), ReadError> {
    let digest = digest_at(key, 33).unwrap_or(object);
    let circuit = checker.get::<Circuit>(&keys::circuit(digest))?;
    let needed = circuit.is_some_and(|circuit| circuits::objects(&circuit).contains(&object));
    checker.find_if(
        !needed,
        Invariant::Index,
        key,
        "the circuit does not need it, or is not there",
    );
    Ok(())
}

/// What is keyed by a job belongs to one that is kept, or to one whose keys are still being deleted.
pub(super) fn owner(checker: &mut Checker<'_>, key: &[u8], job: JobNumber) -> Result<(), ReadError> {
    let owned = checker.has(&keys::job(job))? || checker.has(&keys::pruning(job))?;
    checker.find_if(!owned, Invariant::Index, key, format!("there is no job {job}"));
    Ok(())
}

/// Asks about every object that anything needs, once.
pub(super) fn check_objects(checker: &mut Checker<'_>) -> Result<(), ReadError> {
    let mut last = None;
    checker.walk(&keys::family(Family::Reference), |checker, key, _| {
        let object = digest_at(key, 1);
        if object == last {
            return Ok(());
        }
        last = object;
        if let Some(object) = object
            && !checker.object_ok(object)
        {
            let text = format!("object {object} is missing or damaged; upload it again");
            checker.find(Invariant::Object, key, text);
        }
        Ok(())
    })
}
