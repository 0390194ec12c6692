//! The next life of a job that ended without success.

use super::submit::{check_circuit, keep_request};
use super::{Refusal, Replacement, Reply, StepError, Transaction, limits};
use crate::event::What;
use crate::ids::JobNumber;
use crate::keys;
use crate::records::JobState;

pub(super) fn retry(
    tx: &mut Transaction<'_>,
    number: JobNumber,
    actor: &str,
    replacement: Option<&Replacement>,
    damaged: &[u32],
) -> Result<Reply, StepError> {
    limits::actor(actor)?;
    if let Some(Replacement {
        request,
        inline,
        objects,
        ..
    }) = replacement
    {
        limits::request(*request, inline.as_deref(), objects)?;
    }
    let job = tx.job(number)?;
    match job.state {
        JobState::Failed | JobState::Cancelled | JobState::Expired => {}
        JobState::Succeeded if !damaged.is_empty() => {}
        state => return Err(Refusal::JobState(state).into()),
    }
    if tx.queue()?.draining {
        return Err(Refusal::Draining.into());
    }
    check_circuit(tx, job.circuit)?;
    let mut replaced = damaged.to_vec();
    replaced.extend(replacement.iter().flat_map(|replacement| &replacement.partitions));
    replaced.sort_unstable();
    replaced.dedup();
    if let Some(partition) = replaced.iter().copied().find(|index| *index >= job.partitions) {
        return Err(Refusal::UnknownPartition {
            job: number,
            partition,
        }
        .into());
    }
    let (request, request_inline) = match replacement {
        Some(replacement) => {
            tx.delete(keys::request(number))?;
            keep_request(tx, number, replacement.inline.as_deref(), &replacement.objects);
            (replacement.request, replacement.inline.is_some())
        }
        None => (job.request, job.request_inline),
    };
    tx.emit(
        Some(number),
        What::Retried {
            generation: job.generation + 1,
            actor: actor.to_owned(),
            request,
            request_inline,
            replaced,
        },
    )?;
    Ok(Reply::Done)
}
