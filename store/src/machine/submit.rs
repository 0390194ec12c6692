//! Admission of a job.

use super::{Admission, Refusal, Reply, StepError, Submit, Transaction, limits, retry};
use crate::event::{Submitted, What};
use crate::ids::{Digest, JobNumber};
use crate::keys::{self, Sequence};
use crate::records::{CircuitState, Job, JobState};

pub(super) fn submit(tx: &mut Transaction<'_>, submit: &Submit) -> Result<Reply, StepError> {
    limits::submit(submit)?;
    if let Some(key) = &submit.idempotency_key
        && tx.rules.keys_are_unique
        && let Some(number) = tx.number_at(&keys::idempotency(key))?
    {
        return repeat(tx, tx.job(JobNumber(number))?, submit);
    }
    check_memory(submit)?;
    if tx.queue()?.draining {
        return Err(Refusal::Draining.into());
    }
    let taken = tx
        .get(&keys::job_id(submit.id))?
        .or(tx.get(&keys::pruned(submit.id))?);
    if taken.is_some() {
        return Err(Refusal::DuplicateId(submit.id).into());
    }
    check_circuit(tx, submit.circuit)?;
    let number = JobNumber(tx.sequence(Sequence::Job)? + 1);
    keep_request(tx, number, submit.inline.as_deref(), &submit.objects);
    tx.emit(
        Some(number),
        What::Submitted(Submitted {
            id: submit.id,
            kind: submit.kind.clone(),
            circuit: submit.circuit,
            request: submit.request,
            request_inline: submit.inline.is_some(),
            idempotency_key: submit.idempotency_key.clone(),
            actor: submit.actor.clone(),
            labels: submit.labels.clone(),
            priority: submit.priority,
            max_attempts: submit.max_attempts,
            on_failure: submit.on_failure,
            partitions: submit.partitions,
            ticket_bytes: submit.ticket_bytes,
            deadline: submit.deadline,
        }),
    )?;
    Ok(Reply::Submitted {
        job: number,
        id: submit.id,
        generation: 1,
        admission: Admission::Created,
    })
}

/// The key names a job already: the same request is answered with it, or opens it again if it ended without success.
fn repeat(tx: &mut Transaction<'_>, job: Job, submit: &Submit) -> Result<Reply, StepError> {
    if job.request != submit.request && tx.rules.keys_pin_the_request {
        return Err(Refusal::IdempotencyMismatch { job: job.id }.into());
    }
    let reply = |generation, admission| Reply::Submitted {
        job: job.number,
        id: job.id,
        generation,
        admission,
    };
    if !job.state.is_terminal() || job.state == JobState::Succeeded {
        return Ok(reply(job.generation, Admission::Existing));
    }
    check_memory(submit)?;
    retry::retry(tx, job.number, &submit.actor, None, &[])?;
    Ok(reply(job.generation + 1, Admission::Reopened))
}

/// A job whose largest partition can never fit is not taken.
fn check_memory(submit: &Submit) -> Result<(), Refusal> {
    let (needed, budget) = (submit.ticket_bytes, submit.budget_bytes);
    if needed > budget {
        return Err(Refusal::NeedsMemory { needed, budget });
    }
    Ok(())
}

/// A circuit must be there and not refused.
pub(super) fn check_circuit(tx: &Transaction<'_>, circuit: Option<Digest>) -> Result<(), StepError> {
    if let Some(digest) = circuit
        && let CircuitState::Failed(failure) = tx.circuit(digest)?.state
    {
        return Err(Refusal::CircuitFailed(failure.detail).into());
    }
    Ok(())
}

/// Keeps a small request in the store and notes what the job needs.
pub(super) fn keep_request(
    tx: &mut Transaction<'_>,
    job: JobNumber,
    inline: Option<&[u8]>,
    objects: &[Digest],
) {
    if let Some(bytes) = inline {
        tx.set(keys::request(job), crate::codec::bytes(bytes));
    }
    for object in objects {
        tx.set(keys::reference(*object, job), Vec::new());
        tx.set(keys::needs(job, *object), Vec::new());
    }
}
