//! Partitions and their attempts, from the first grant to the stored proof.

use super::job::put;
use crate::event::{AttemptEnd, Event, Next, What};
use crate::ids::{Digest, JobNumber, Token, WorkerId};
use crate::keys;
use crate::machine::{StepError, Transaction};
use crate::records::{
    Attempt, AttemptRef, FailureClass, Job, JobState, Lease, Outcome, Partition, PartitionState, Poison,
    Stage, Subject, Worker, WorkerState,
};

pub(super) fn apply(tx: &mut Transaction<'_>, event: &Event) -> Result<(), StepError> {
    let (Some(number), Some(index)) = (event.job, event.what.partition()) else {
        return Ok(());
    };
    let mut job = tx.job(number)?;
    let mut partition = tx.partition(number, index)?;
    match &event.what {
        What::SynthStarted {
            attempt,
            process,
            device,
            ticket_bytes,
            ..
        } => {
            let token = tx.token(event.boot, event.number, index);
            tx.grant(&lease(
                token,
                number,
                index,
                Stage::Synth,
                event,
                Some(*process),
                None,
            ));
            let attempt = Attempt {
                of: AttemptRef {
                    job: number,
                    partition: index,
                    number: *attempt,
                },
                generation: job.generation,
                opened_in: event.boot,
                closed_in: None,
                process: *process,
                device: device.clone(),
                worker: None,
                stage: Stage::Synth,
                outcome: None,
                started_at: event.at,
                ended_at: None,
                synth_ms: None,
                gpu_started_at: None,
                gpu_ms: None,
                ticket_bytes: *ticket_bytes,
                process_peak_bytes: None,
                witness: None,
                public: None,
                reused: Vec::new(),
                saved_ms: 0,
            };
            tx.put(keys::attempt(attempt.of), &attempt);
            partition.state = PartitionState::Synthesizing;
            partition.attempts = attempt.of.number;
            partition.token = Some(token);
            partition.process = Some(*process);
            job.tally.leases += 1;
            if job.state == JobState::Queued {
                job.state = JobState::Running;
                if let Some(mut generation) = tx.generation(&job)? {
                    generation.started_at = Some(event.at);
                    tx.put(keys::generation(number, job.generation), &generation);
                }
            }
        }
        What::SynthEnded {
            token,
            synth_ms,
            witness,
            public,
            ..
        } => {
            end_lease(tx, &mut job, *token)?;
            partition.state = PartitionState::Synthesized;
            partition.token = None;
            came_further(tx, &job, &mut partition, Reached::Witness)?;
            change_attempt(tx, &partition, |attempt| {
                attempt.synth_ms = Some(*synth_ms);
                attempt.witness = Some(*witness);
                attempt.public = Some(*public);
            })?;
        }
        What::ProveStarted { worker, .. } => {
            let token = tx.token(event.boot, event.number, index);
            let process = partition.process;
            tx.grant(&lease(
                token,
                number,
                index,
                Stage::Prove,
                event,
                process,
                Some(*worker),
            ));
            let key = keys::worker(*worker);
            if let Some(mut record) = tx.record::<Worker>(&key)? {
                record.state = WorkerState::Busy {
                    token,
                    job: number,
                    partition: index,
                    since: event.at,
                };
                tx.put(key, &record);
            }
            partition.state = PartitionState::Proving;
            partition.token = Some(token);
            partition.worker = Some(*worker);
            job.tally.leases += 1;
            change_attempt(tx, &partition, |attempt| {
                attempt.stage = Stage::Prove;
                attempt.worker = Some(*worker);
                attempt.gpu_started_at = Some(event.at);
            })?;
        }
        What::Checkpointed { witness, pieces, .. } if !pieces.is_empty() => {
            came_further(tx, &job, &mut partition, Reached::NewPiece(*witness))?;
        }
        What::ProveEnded {
            token,
            gpu_ms,
            reused,
            saved_ms,
            ..
        } => {
            if tx.rules.finishing_frees_the_slot {
                free_worker(tx, event, &mut partition, *token, "ok")?;
            }
            if let Some(mut lease) = tx.lease(*token)? {
                lease.subject = Subject::Partition {
                    job: number,
                    partition: index,
                    stage: Stage::Finish,
                };
                lease.worker = None;
                lease.granted_at = event.at;
                tx.grant(&lease);
            }
            partition.state = PartitionState::Finishing;
            partition.worker = None;
            came_further(tx, &job, &mut partition, Reached::Finish)?;
            change_attempt(tx, &partition, |attempt| {
                attempt.stage = Stage::Finish;
                attempt.gpu_ms = Some(*gpu_ms);
                attempt.reused.clone_from(reused);
                attempt.saved_ms = *saved_ms;
            })?;
        }
        What::ProofStored {
            token,
            process_peak_bytes,
            ..
        } => {
            if !tx.rules.finishing_frees_the_slot {
                free_any_worker(tx, event, *token)?;
            }
            end_lease(tx, &mut job, *token)?;
            clear_poison(&mut partition);
            close(&mut partition, PartitionState::Proved);
            tx.delete(keys::checkpoint(number, index))?;
            change_attempt(tx, &partition, |attempt| {
                close_attempt(attempt, event, Outcome::Ok, *process_peak_bytes);
            })?;
            tx.count(&keys::attempts_counter(&job.kind, "ok"))?;
            job.tally.proved += 1;
            if job.tally.proved == job.partitions
                && job.state == JobState::Running
                && tx.rules.last_proof_moves_the_job
            {
                job.state = JobState::Verifying;
            }
        }
        What::AttemptEnded(end) => attempt_ended(tx, event, &mut job, &mut partition, end)?,
        What::Woken { .. } => {
            partition.state = PartitionState::Ready;
            partition.wake_at = None;
        }
        _ => {}
    }
    tx.put_partition(&job, &partition)?;
    put(tx, event, job)
}

fn attempt_ended(
    tx: &mut Transaction<'_>,
    event: &Event,
    job: &mut Job,
    partition: &mut Partition,
    end: &AttemptEnd,
) -> Result<(), StepError> {
    let class = end.failure.class;
    let (stage, suspected) = (partition.state.stage(), partition.state.suspected());
    if let Some(token) = partition.token {
        if tx.rules.every_end_ends_the_lease {
            end_lease(tx, job, token)?;
        }
        let stopping = matches!(job.state, JobState::Stopping(_));
        if tx.rules.stopping_frees_workers || !stopping {
            free_worker(tx, event, partition, token, class.name())?;
        }
    }
    change_attempt(tx, partition, |attempt| {
        if stage == Some(Stage::Prove) && attempt.gpu_ms.is_none() {
            attempt.gpu_ms = attempt.gpu_started_at.map(|started| event.at.since(started));
        }
        close_attempt(
            attempt,
            event,
            Outcome::Ended(end.failure.clone()),
            end.process_peak_bytes,
        );
    })?;
    tx.count(&keys::attempts_counter(&job.kind, class.name()))?;
    let device = tx.last_attempt(partition)?.map(|attempt| attempt.device);
    if end.drop_checkpoints {
        tx.delete(keys::checkpoint(job.number, partition.index))?;
    }
    if end.counted {
        partition.counted += 1;
    }
    match (end.crashed, suspected) {
        (true, Some(stage)) => note_death(partition, stage),
        _ if end.counted => partition.poison = None,
        _ => {}
    }
    partition.alone |= end.alone;
    match class {
        FailureClass::OutOfMemory => partition.out_of_memory += 1,
        FailureClass::DeviceError | FailureClass::InvalidProof => partition.avoid_device = device,
        _ => {}
    }
    partition.recheck |= class == FailureClass::InvalidProof;
    match end.next {
        Next::Ready => close(partition, PartitionState::Ready),
        Next::Waiting(until) => {
            close(partition, PartitionState::Waiting);
            partition.wake_at = Some(until);
        }
        Next::Failed => {
            close(partition, PartitionState::Failed);
            partition.failure = Some(end.failure.clone());
            job.tally.failed += 1;
        }
        Next::Cancelled => {
            close(partition, PartitionState::Cancelled);
            job.tally.cancelled += 1;
        }
    }
    if event.boot.0 != 0
        && let Some(attempt) = tx.last_attempt(partition)?
        && attempt.opened_in != event.boot
    {
        let key = keys::boot(event.boot);
        if let Some(mut boot) = tx.record::<crate::records::Boot>(&key)? {
            boot.interrupted += 1;
            tx.put(key, &boot);
        }
    }
    Ok(())
}

/// One more death in a row, this time in `stage`.
fn note_death(partition: &mut Partition, stage: Stage) {
    let (deaths, deaths_alone) = partition
        .poison
        .map_or((0, 0), |poison| (poison.deaths, poison.deaths_alone));
    let mut poison = Poison {
        stage,
        deaths,
        deaths_alone,
    };
    if partition.alone {
        poison.deaths_alone += 1;
    } else {
        poison.deaths += 1;
    }
    partition.poison = Some(poison);
}

/// How far an attempt has come.
enum Reached {
    /// It has a witness.
    Witness,
    /// A piece was saved that wasn't there, of the proof of this witness.
    NewPiece(Digest),
    /// It has left the device.
    Finish,
}

/// Forgets the deaths of a partition that has come further than every attempt of this generation before. To pass a stage
/// that was passed before is no progress: one that dies now here and now there would never be parked.
fn came_further(
    tx: &Transaction<'_>,
    job: &Job,
    partition: &mut Partition,
    reached: Reached,
) -> Result<(), StepError> {
    // Attempts are looked at only where something died, so this costs nothing as a rule.
    if partition.poison.is_none() {
        return Ok(());
    }
    let before = if tx.rules.progress_is_new {
        partition.attempts
    } else {
        0
    };
    for number in (1..before).rev() {
        let of = AttemptRef {
            job: job.number,
            partition: partition.index,
            number,
        };
        let Some(before) = tx.record::<Attempt>(&keys::attempt(of))? else {
            break;
        };
        if before.generation != job.generation {
            break;
        }
        let as_far = match reached {
            Reached::Witness => before.witness.is_some(),
            // Pieces of another witness are dropped, so that those of a witness that changes are new each time.
            Reached::NewPiece(witness) => before.witness.is_some_and(|before| before != witness),
            Reached::Finish => before.stage == Stage::Finish,
        };
        if as_far {
            return Ok(());
        }
    }
    clear_poison(partition);
    Ok(())
}

fn clear_poison(partition: &mut Partition) {
    if partition.poison.take().is_some() {
        partition.alone = partition.out_of_memory > 0;
    }
}

fn close(partition: &mut Partition, state: PartitionState) {
    partition.state = state;
    partition.token = None;
    partition.process = None;
    partition.worker = None;
    partition.wake_at = None;
}

fn close_attempt(attempt: &mut Attempt, event: &Event, outcome: Outcome, peak: Option<u64>) {
    attempt.closed_in = Some(event.boot);
    attempt.ended_at = Some(event.at);
    attempt.outcome = Some(outcome);
    attempt.process_peak_bytes = peak.or(attempt.process_peak_bytes);
}

fn change_attempt(
    tx: &mut Transaction<'_>,
    partition: &Partition,
    change: impl FnOnce(&mut Attempt),
) -> Result<(), StepError> {
    if let Some(mut attempt) = tx.last_attempt(partition)? {
        change(&mut attempt);
        tx.put(keys::attempt(attempt.of), &attempt);
    }
    Ok(())
}

fn end_lease(tx: &mut Transaction<'_>, job: &mut Job, token: Token) -> Result<(), StepError> {
    if tx.end_lease(token)? {
        job.tally.leases = job.tally.leases.saturating_sub(1);
    }
    Ok(())
}

fn free_worker(
    tx: &mut Transaction<'_>,
    event: &Event,
    partition: &mut Partition,
    token: Token,
    outcome: &str,
) -> Result<(), StepError> {
    if let Some(worker) = partition.worker.take() {
        tx.free_worker(worker, token, outcome, event.at)?;
    }
    Ok(())
}

/// Only for the machine that forgets R5: whichever worker holds the token.
fn free_any_worker(tx: &mut Transaction<'_>, event: &Event, token: Token) -> Result<(), StepError> {
    let ids: Vec<WorkerId> = tx
        .records::<Worker>(&keys::family(keys::Family::Worker))?
        .into_iter()
        .filter(|worker| matches!(worker.state, WorkerState::Busy { token: held, .. } if held == token))
        .map(|worker| worker.id)
        .collect();
    for id in ids {
        tx.free_worker(id, token, "ok", event.at)?;
    }
    Ok(())
}

fn lease(
    token: Token,
    job: JobNumber,
    partition: u32,
    stage: Stage,
    event: &Event,
    process: Option<crate::ids::ProcessId>,
    worker: Option<WorkerId>,
) -> Lease {
    Lease {
        token,
        subject: Subject::Partition {
            job,
            partition,
            stage,
        },
        process,
        worker,
        granted_at: event.at,
    }
}
