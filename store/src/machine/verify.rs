//! The final check of a job whose partitions are all proved.

use super::apply::invalid_stored_proof;
use super::{Refusal, Reply, StepError, Transaction, VerifyVerdict, limits, stop};
use crate::event::What;
use crate::ids::{JobNumber, Token};
use crate::records::{Job, JobState, StopTarget, Subject};

/// Partitions that one verdict refuses, as many as fit one transaction. The job fails all the same, and the final check of
/// its next life finds the others.
const MAX_REFUSED: usize = 512;

pub(super) fn start(tx: &mut Transaction<'_>, number: JobNumber) -> Result<Reply, StepError> {
    tx.open_boot()?;
    let job = tx.job(number)?;
    if job.state != JobState::Verifying {
        return Err(Refusal::JobState(job.state).into());
    }
    if job.verifying.is_some() {
        return Ok(Reply::Unchanged);
    }
    tx.check_side_leases()?;
    let token = tx.next_token(0);
    tx.emit(Some(number), What::VerifyStarted)?;
    Ok(Reply::Granted { token, attempt: 0 })
}

pub(super) fn end(
    tx: &mut Transaction<'_>,
    token: Token,
    verdict: &VerifyVerdict,
) -> Result<Reply, StepError> {
    let Some(job) = current(tx, token)? else {
        return tx.stale(token, "verify_end");
    };
    let number = Some(job.number);
    if job.state != JobState::Verifying {
        tx.emit(number, What::VerifyDropped { token })?;
        stop::settle(tx, job.number)?;
        return Ok(Reply::Done);
    }
    match verdict {
        VerifyVerdict::Passed => {
            tx.emit(number, What::VerifyPassed { token })?;
            tx.emit(
                number,
                What::Ended {
                    state: JobState::Succeeded,
                },
            )?;
        }
        VerifyVerdict::BadPartitions(partitions) => {
            if partitions.is_empty() || partitions.iter().any(|index| *index >= job.partitions) {
                return Err(Refusal::OutOfLimits {
                    field: "partitions",
                    expected: format!("1 to {} partitions of the job", job.partitions),
                    found: format!("{partitions:?}"),
                }
                .into());
            }
            let mut partitions = partitions.clone();
            partitions.sort_unstable();
            partitions.dedup();
            partitions.truncate(MAX_REFUSED);
            tx.emit(number, What::VerifyRefused { token, partitions })?;
            let failure = Some(invalid_stored_proof());
            stop::begin(tx, job.number, StopTarget::Failed, "proofkeep", failure)?;
        }
        VerifyVerdict::JoinInvalid(failure) => {
            tx.emit(
                number,
                What::JoinRefused {
                    token,
                    failure: limits::cut(failure),
                },
            )?;
            stop::begin(
                tx,
                job.number,
                StopTarget::Failed,
                "proofkeep",
                Some(failure.clone()),
            )?;
        }
    }
    Ok(Reply::Done)
}

pub(super) fn drop_lease(tx: &mut Transaction<'_>, token: Token) -> Result<Reply, StepError> {
    let Some(job) = current(tx, token)? else {
        return tx.stale(token, "verify_drop");
    };
    tx.emit(Some(job.number), What::VerifyDropped { token })?;
    stop::settle(tx, job.number)?;
    Ok(Reply::Done)
}

fn current(tx: &Transaction<'_>, token: Token) -> Result<Option<Job>, StepError> {
    match tx.lease(token)?.map(|lease| lease.subject) {
        Some(Subject::Verify { job }) => Ok(Some(tx.job(job)?)),
        _ => Ok(None),
    }
}
