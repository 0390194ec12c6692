//! The one function that ends an attempt without a proof, whatever the reason.

use super::verdict::{Verdict, decide};
use super::{Refusal, StepError, Transaction, limits, stop};
use crate::event::{AttemptEnd, Next, What};
use crate::records::{Failure, JobState, OnFailure, Partition, StopTarget};

/// Ends the open attempt of `partition`: closes it with its class, frees lease and worker, and says where the partition
/// goes. It doesn't move the job; the caller calls [`stop::settle`] when it is done, see [`end_and_settle`].
pub(super) fn end_attempt(
    tx: &mut Transaction<'_>,
    partition: &Partition,
    failure: Failure,
    own_fault: bool,
    process_peak_bytes: Option<u64>,
) -> Result<Next, StepError> {
    if !partition.state.is_open() {
        return Err(Refusal::PartitionState(partition.state).into());
    }
    let job = tx.job(partition.job)?;
    let Verdict {
        next,
        counted,
        crashed,
        alone,
        drop_checkpoints,
        failure,
    } = decide(&job, partition, limits::cut(&failure), own_fault, tx.context.now);
    tx.emit(
        Some(partition.job),
        What::AttemptEnded(AttemptEnd {
            partition: partition.index,
            attempt: partition.attempts,
            failure,
            next,
            counted,
            crashed,
            alone,
            drop_checkpoints,
            process_peak_bytes,
        }),
    )?;
    Ok(next)
}

/// The same, and moves the job on: one that stops at the first failure stops, one with nothing left ends.
pub(super) fn end_and_settle(
    tx: &mut Transaction<'_>,
    partition: &Partition,
    failure: Failure,
    own_fault: bool,
    process_peak_bytes: Option<u64>,
) -> Result<(), StepError> {
    let next = end_attempt(tx, partition, failure, own_fault, process_peak_bytes)?;
    let job = tx.job(partition.job)?;
    let stops = next == Next::Failed && job.on_failure == OnFailure::Stop;
    if stops && !matches!(job.state, JobState::Stopping(_)) {
        let failure = tx.partition(partition.job, partition.index)?.failure;
        return stop::begin(tx, partition.job, StopTarget::Failed, "proofkeep", failure);
    }
    stop::settle(tx, partition.job)
}
