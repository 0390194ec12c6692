//! Jobs: submitted, stopping, ended, retried, pruned.

use crate::event::{Event, Submitted, What};
use crate::ids::JobNumber;
use crate::keys::{self, Sequence};
use crate::machine::{StepError, Transaction};
use crate::records::{Generation, Job, JobState, Partition, PartitionState, StopTarget, Tally};

pub(super) fn apply(tx: &mut Transaction<'_>, event: &Event) -> Result<(), StepError> {
    match (&event.what, event.job) {
        (What::Submitted(submitted), Some(number)) => submit(tx, event, number, submitted),
        (What::Stopping { target, failure, .. }, Some(number)) => {
            let mut job = tx.job(number)?;
            job.state = JobState::Stopping(*target);
            if let Some(mut generation) = tx.generation(&job)? {
                generation.failure.clone_from(failure);
                tx.put(keys::generation(number, job.generation), &generation);
            }
            for index in 0..job.partitions {
                let mut partition = tx.partition(number, index)?;
                if matches!(partition.state, PartitionState::Ready | PartitionState::Waiting) {
                    partition.state = PartitionState::Cancelled;
                    tx.put_partition(
                        &job,
                        &Partition {
                            wake_at: None,
                            ..partition
                        },
                    )?;
                    job.tally.cancelled += 1;
                }
            }
            put(tx, event, job)
        }
        (What::Ended { state }, Some(number)) => {
            let mut job = tx.job(number)?;
            job.state = *state;
            if let Some(mut generation) = tx.generation(&job)? {
                generation.ended_at = Some(event.at);
                generation.ended = Some(*state);
                tx.put(keys::generation(number, job.generation), &generation);
            }
            for index in 0..job.partitions {
                tx.delete(keys::checkpoint(number, index))?;
            }
            tx.count(&keys::jobs_counter(&job.kind, *state))?;
            put(tx, event, job)
        }
        (
            What::Retried {
                generation,
                actor,
                request,
                request_inline,
                replaced,
            },
            Some(number),
        ) => {
            let mut job = tx.job(number)?;
            job.generation = *generation;
            job.request = *request;
            job.request_inline = *request_inline;
            if let Some(at) = job.deadline.filter(|at| *at <= event.at) {
                tx.delete(keys::deadline(at, number))?;
                job.deadline = None;
            }
            let record = new_generation(event, number, *generation, actor);
            tx.put(keys::generation(number, *generation), &record);
            job.tally = Tally::default();
            for index in 0..job.partitions {
                let before = tx.partition(number, index)?;
                let replaced = replaced.binary_search(&index).is_ok();
                if before.state == PartitionState::Proved && !replaced {
                    job.tally.proved += 1;
                    continue;
                }
                if replaced {
                    tx.delete(keys::proof(number, index))?;
                    tx.delete(keys::checkpoint(number, index))?;
                }
                let fresh = Partition::new(number, index);
                tx.put_partition(
                    &job,
                    &Partition {
                        attempts: before.attempts,
                        // An invalid proof asks for another look at the witness, in whichever life comes next.
                        recheck: before.recheck,
                        ..fresh
                    },
                )?;
            }
            job.state = if job.tally.proved == job.partitions {
                JobState::Verifying
            } else {
                JobState::Queued
            };
            put(tx, event, job)
        }
        (What::Pruned { job, id }, _) => prune(tx, event, *job, *id),
        _ => Ok(()),
    }
}

/// Writes a job that an event touched.
pub(super) fn put(tx: &mut Transaction<'_>, event: &Event, mut job: Job) -> Result<(), StepError> {
    job.journal = event.number;
    Ok(tx.put_job(&job)?)
}

fn new_generation(event: &Event, job: JobNumber, number: u32, actor: &str) -> Generation {
    Generation {
        job,
        number,
        actor: actor.to_owned(),
        opened_at: event.at,
        opened_in: event.boot,
        started_at: None,
        ended_at: None,
        ended: None,
        failure: None,
    }
}

fn submit(
    tx: &mut Transaction<'_>,
    event: &Event,
    number: JobNumber,
    submitted: &Submitted,
) -> Result<(), StepError> {
    let job = Job {
        number,
        id: submitted.id,
        kind: submitted.kind.clone(),
        circuit: submitted.circuit,
        request: submitted.request,
        request_inline: submitted.request_inline,
        idempotency_key: submitted.idempotency_key.clone(),
        actor: submitted.actor.clone(),
        labels: submitted.labels.clone(),
        priority: submitted.priority,
        max_attempts: submitted.max_attempts,
        on_failure: submitted.on_failure,
        partitions: submitted.partitions,
        ticket_bytes: submitted.ticket_bytes,
        deadline: submitted.deadline,
        created_at: event.at,
        generation: 1,
        state: JobState::Queued,
        tally: Tally::default(),
        verifying: None,
        journal: event.number,
    };
    tx.set_sequence(Sequence::Job, number.0);
    tx.set_number(keys::job_id(job.id), number.0);
    if let Some(key) = &job.idempotency_key {
        tx.set_number(keys::idempotency(key), number.0);
    }
    tx.put(
        keys::generation(number, 1),
        &new_generation(event, number, 1, &job.actor),
    );
    for index in 0..job.partitions {
        tx.put_partition(&job, &Partition::new(number, index))?;
    }
    put(tx, event, job)
}

/// Forgets the job itself; `machine::prune` deletes what hangs on it, in slices.
fn prune(
    tx: &mut Transaction<'_>,
    event: &Event,
    number: JobNumber,
    id: uuid::Uuid,
) -> Result<(), StepError> {
    let Some(job) = tx.record::<Job>(&keys::job(number))? else {
        return Ok(());
    };
    let mut owed: Vec<String> = Vec::new();
    for number in 1..=job.generation {
        let generation = tx.record::<Generation>(&keys::generation(job.number, number))?;
        if let Some(state) = generation.and_then(|generation| generation.ended) {
            owed.push(keys::jobs_counter(&job.kind, state));
        }
    }
    for attempt in tx.records::<crate::records::Attempt>(&keys::of_job(keys::Family::Attempt, number))? {
        if let Some(outcome) = &attempt.outcome {
            owed.push(keys::attempts_counter(&job.kind, outcome.name()));
        }
    }
    for name in owed {
        let key = keys::pruned_counter(&name);
        let before = tx.number(&key)?;
        tx.set_number(key, before + 1);
    }
    if let Some(key) = &job.idempotency_key {
        tx.delete(keys::idempotency(key))?;
    }
    if let Some(at) = job.deadline {
        tx.delete(keys::deadline(at, number))?;
    }
    tx.delete(keys::done(number))?;
    tx.delete(keys::request(number))?;
    tx.delete(keys::job_id(id))?;
    tx.delete(keys::job(number))?;
    tx.set_number(keys::pruned(id), event.at.0);
    tx.set(keys::pruning(number), Vec::new());
    Ok(())
}

/// The terminal state that a stopping job goes to.
impl From<StopTarget> for JobState {
    fn from(target: StopTarget) -> Self {
        match target {
            StopTarget::Cancelled => Self::Cancelled,
            StopTarget::Failed => Self::Failed,
            StopTarget::Expired => Self::Expired,
        }
    }
}
