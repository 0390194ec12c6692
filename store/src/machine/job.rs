//! What is asked of a whole job: cancel, expire, fail, wake.

use super::{Refusal, Reply, StepError, Transaction, limits, stop};
use crate::event::What;
use crate::ids::JobNumber;
use crate::machine::verdict::BACK_OFF_LIMIT_MS;
use crate::records::{Failure, JobState, PartitionState, StopTarget};

pub(super) fn cancel(tx: &mut Transaction<'_>, number: JobNumber, actor: &str) -> Result<Reply, StepError> {
    limits::actor(actor)?;
    let job = tx.job(number)?;
    match job.state {
        JobState::Cancelled | JobState::Stopping(_) => Ok(Reply::Unchanged),
        state if state.is_terminal() => Err(Refusal::JobState(state).into()),
        _ => {
            stop::begin(tx, number, StopTarget::Cancelled, actor, None)?;
            Ok(Reply::Done)
        }
    }
}

pub(super) fn expire(tx: &mut Transaction<'_>, number: JobNumber) -> Result<Reply, StepError> {
    let job = tx.job(number)?;
    if !job.state.grants() {
        return Err(Refusal::JobState(job.state).into());
    }
    match job.deadline {
        Some(at) if at <= tx.context.now => {
            stop::begin(tx, number, StopTarget::Expired, "proofkeep", None)?;
            Ok(Reply::Done)
        }
        _ => Err(Refusal::NotDue.into()),
    }
}

pub(super) fn fail(
    tx: &mut Transaction<'_>,
    number: JobNumber,
    failure: &Failure,
) -> Result<Reply, StepError> {
    let job = tx.job(number)?;
    if matches!(job.state, JobState::Stopping(_)) {
        return Ok(Reply::Unchanged);
    }
    stop::begin(tx, number, StopTarget::Failed, "proofkeep", Some(failure.clone()))?;
    Ok(Reply::Done)
}

/// Ends every back-off of the job that is due, and every one that lies further ahead than a back-off can: the clock
/// went back since.
pub(super) fn wake(tx: &mut Transaction<'_>, number: JobNumber) -> Result<Reply, StepError> {
    let job = tx.job(number)?;
    if !job.state.grants() {
        return Err(Refusal::JobState(job.state).into());
    }
    let now = tx.context.now;
    let mut woken = false;
    for index in 0..job.partitions {
        let partition = tx.partition(number, index)?;
        let due = partition
            .wake_at
            .is_some_and(|at| at <= now || at > now.after(BACK_OFF_LIMIT_MS));
        if partition.state == PartitionState::Waiting && due {
            tx.emit(Some(number), What::Woken { partition: index })?;
            woken = true;
        }
    }
    if woken {
        Ok(Reply::Done)
    } else {
        Err(Refusal::NotDue.into())
    }
}
