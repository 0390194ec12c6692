//! How a job stops, whatever the reason.

use super::end::end_attempt;
use super::{Refusal, StepError, Transaction, limits};
use crate::event::What;
use crate::ids::JobNumber;
use crate::records::{Failure, FailureClass, JobState, PartitionState, StopTarget};

/// Sends a job that hasn't ended and isn't stopping towards `target`. Grants nothing new from here on; partitions that
/// hold no lease are cancelled at once; with no lease left the job ends in this transaction.
pub(super) fn begin(
    tx: &mut Transaction<'_>,
    number: JobNumber,
    target: StopTarget,
    actor: &str,
    failure: Option<Failure>,
) -> Result<(), StepError> {
    let job = tx.job(number)?;
    if job.state.is_terminal() || matches!(job.state, JobState::Stopping(_)) {
        return Err(Refusal::JobState(job.state).into());
    }
    tx.emit(
        Some(number),
        What::Stopping {
            target,
            actor: actor.to_owned(),
            failure: failure.as_ref().map(limits::cut),
        },
    )?;
    for partition in tx.open_partitions()? {
        if partition.job == number && partition.state == PartitionState::Synthesized {
            let failure = Failure::new(
                FailureClass::Cancelled,
                "the job was stopped before it was proved",
            );
            end_attempt(tx, &partition, failure, false, None)?;
        }
    }
    settle(tx, number)
}

/// Moves a job on after something of it ended: a stopping one with no lease left ends; one whose last partition was
/// given up stops. Whatever ends a lease of a job calls this.
pub(super) fn settle(tx: &mut Transaction<'_>, number: JobNumber) -> Result<(), StepError> {
    let job = tx.job(number)?;
    let tally = job.tally;
    match job.state {
        JobState::Stopping(target) if tally.leases == 0 => {
            if target == StopTarget::Failed && !tx.rules.failed_jobs_end {
                return Ok(());
            }
            tx.emit(Some(number), What::Ended { state: target.into() })?;
            Ok(())
        }
        JobState::Queued | JobState::Running
            if tally.failed > 0 && tally.proved + tally.failed + tally.cancelled == job.partitions =>
        {
            let failure = first_failure(tx, &job)?;
            begin(tx, number, StopTarget::Failed, "proofkeep", failure)
        }
        _ => Ok(()),
    }
}

/// The failure of the lowest partition that was given up.
fn first_failure(tx: &Transaction<'_>, job: &crate::records::Job) -> Result<Option<Failure>, StepError> {
    for index in 0..job.partitions {
        if let Some(failure) = tx.partition(job.number, index)?.failure {
            return Ok(Some(failure));
        }
    }
    Ok(None)
}
