//! Admission of a job.

use super::{Admission, MAX_PARTITIONS, Refusal, Reply, StepError, Submit, Transaction, retry};
use crate::event::{Submitted, What};
use crate::ids::{Digest, JobNumber};
use crate::keys::{self, Sequence};
use crate::records::{CircuitState, Job, JobState};

pub(super) fn submit(tx: &mut Transaction<'_>, submit: &Submit) -> Result<Reply, StepError> {
    check_limits(submit)?;
    if let Some(key) = &submit.idempotency_key
        && tx.rules.keys_are_unique
        && let Some(number) = tx.number_at(&keys::idempotency(key))?
    {
        return repeat(tx, tx.job(JobNumber(number))?, submit);
    }
    if tx.queue()?.draining {
        return Err(Refusal::Draining.into());
    }
    if tx.number_at(&keys::job_id(submit.id))?.is_some() {
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
    retry::retry(tx, job.number, &submit.actor, None, &[])?;
    Ok(reply(job.generation + 1, Admission::Reopened))
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

fn check_limits(submit: &Submit) -> Result<(), Refusal> {
    let refuse = |field, expected: &str, found: String| {
        Err(Refusal::OutOfLimits {
            field,
            expected: expected.to_owned(),
            found,
        })
    };
    if submit.partitions == 0 || submit.partitions > MAX_PARTITIONS {
        return refuse("inputs", "1 to 1024 inputs", submit.partitions.to_string());
    }
    if submit.kind.is_empty() || submit.kind.len() > 64 {
        return refuse("kind", "1 to 64 bytes", format!("{} bytes", submit.kind.len()));
    }
    if submit.actor.is_empty() || submit.actor.len() > 64 {
        return refuse("actor", "1 to 64 bytes", format!("{} bytes", submit.actor.len()));
    }
    if submit.max_attempts == 0 || submit.max_attempts > 100 {
        return refuse("max_attempts", "1 to 100", submit.max_attempts.to_string());
    }
    if submit
        .inline
        .as_ref()
        .is_some_and(|bytes| bytes.len() > MAX_INLINE)
    {
        return refuse("request", "at most 2048 bytes in the store", "more".to_owned());
    }
    if let Some(key) = &submit.idempotency_key
        && (key.is_empty() || key.len() > 128 || !key.bytes().all(|byte| byte.is_ascii_graphic()))
    {
        let found = format!("{} bytes", key.len());
        return refuse("idempotency_key", "1 to 128 visible ASCII characters", found);
    }
    if submit.labels.len() > 16 {
        return refuse("labels", "at most 16 labels", submit.labels.len().to_string());
    }
    let mut bytes = 0;
    for (key, value) in &submit.labels {
        if key.is_empty() || key.len() > 63 || value.len() > 128 {
            let found = format!("{} and {} bytes", key.len(), value.len());
            return refuse(
                "labels",
                "keys of 1 to 63 bytes, values of at most 128 bytes",
                found,
            );
        }
        bytes += key.len() + value.len();
    }
    if bytes > 1024 {
        return refuse("labels", "at most 1024 bytes together", format!("{bytes} bytes"));
    }
    if submit.ticket_bytes > submit.budget_bytes {
        let (needed, budget) = (submit.ticket_bytes, submit.budget_bytes);
        return Err(Refusal::NeedsMemory { needed, budget });
    }
    Ok(())
}

/// The largest canonical request that is kept in the store itself; a larger one is an object.
pub const MAX_INLINE: usize = 2048;
