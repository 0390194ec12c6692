//! The final check of a job.

use super::job::put;
use crate::event::{Event, What};
use crate::keys;
use crate::machine::{StepError, Transaction};
use crate::records::{Failure, FailureClass, Lease, PartitionState, Subject};

pub(super) fn apply(tx: &mut Transaction<'_>, event: &Event) -> Result<(), StepError> {
    let Some(number) = event.job else { return Ok(()) };
    let mut job = tx.job(number)?;
    if matches!(event.what, What::VerifyStarted) {
        let token = tx.token(event.boot, event.number, 0);
        tx.grant(&Lease {
            token,
            subject: Subject::Verify { job: number },
            process: None,
            worker: None,
            granted_at: event.at,
        });
        job.verifying = Some(token);
        job.tally.leases += 1;
        return put(tx, event, job);
    }
    if let Some(token) = event.what.token()
        && tx.end_lease(token)?
    {
        job.tally.leases = job.tally.leases.saturating_sub(1);
    }
    job.verifying = None;
    if let What::VerifyRefused { partitions, .. } = &event.what {
        for index in partitions {
            let mut partition = tx.partition(number, *index)?;
            if partition.state != PartitionState::Proved {
                continue;
            }
            if let Some(bytes) = tx.get(&keys::proof(number, *index))? {
                tx.set(keys::quarantine(number, *index), bytes);
                tx.delete(keys::proof(number, *index))?;
            }
            partition.state = PartitionState::Failed;
            partition.failure = Some(invalid_stored_proof());
            partition.recheck = true;
            tx.put_partition(&job, &partition)?;
            job.tally.proved -= 1;
            job.tally.failed += 1;
        }
    }
    put(tx, event, job)
}

/// What a partition is told whose stored proof the final check refused.
pub(in crate::machine) fn invalid_stored_proof() -> Failure {
    Failure::coded(
        FailureClass::InvalidProof,
        "stored-proof-invalid",
        "the final check refused its stored proof, which was put into quarantine; retry proves it again",
    )
}
