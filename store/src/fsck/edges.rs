//! Invariant 9: the edges as STATES draws them, written from that page and not from the machine.

use crate::records::{JobState, PartitionState, StopTarget};

/// Whether a job may go from one state to the other in one event. `None`: before it was submitted.
#[must_use]
pub fn job_edge(from: Option<JobState>, to: JobState) -> bool {
    use JobState::{Cancelled, Expired, Failed, Queued, Running, Stopping, Succeeded, Verifying};
    match (from, to) {
        (None, Queued) => true,
        (None, _) => false,
        (Some(from), to) if from == to => true,
        (Some(Queued), Running | Verifying | Stopping(_)) => true,
        (Some(Running), Verifying | Stopping(_)) => true,
        (Some(Verifying), Succeeded | Stopping(_)) => true,
        (Some(Stopping(StopTarget::Cancelled)), Cancelled) => true,
        (Some(Stopping(StopTarget::Failed)), Failed) => true,
        (Some(Stopping(StopTarget::Expired)), Expired) => true,
        // A retry; of a job that succeeded only when a stored proof was found damaged, which leaves one to prove.
        (Some(Failed | Cancelled | Expired), Queued | Verifying) => true,
        (Some(Succeeded), Queued) => true,
        _ => false,
    }
}

/// Whether a partition may go from one state to the other in one event. `None`: before its job was submitted.
#[must_use]
pub fn partition_edge(from: Option<PartitionState>, to: PartitionState) -> bool {
    use PartitionState::{
        Cancelled, Failed, Finishing, Proved, Proving, Ready, Synthesized, Synthesizing, Waiting,
    };
    match (from, to) {
        (None, Ready) => true,
        (None, _) => false,
        (Some(from), to) if from == to => true,
        (Some(Ready), Synthesizing | Cancelled) => true,
        (Some(Waiting), Ready | Cancelled) => true,
        (Some(Synthesizing), Synthesized) => true,
        (Some(Synthesized), Proving) => true,
        (Some(Proving), Finishing) => true,
        (Some(Finishing), Proved) => true,
        (Some(Synthesizing | Synthesized | Proving | Finishing), Ready | Waiting | Failed | Cancelled) => {
            true
        }
        // The final check refused the stored proof.
        (Some(Proved), Failed) => true,
        // A retry; of a proved one when its input was replaced or its proof was found damaged.
        (Some(Proved | Failed | Cancelled), Ready) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_success_but_a_retry_and_nothing_enters_it_but_verifying() {
        for state in JobState::ALL {
            let enters = job_edge(Some(state), JobState::Succeeded);
            assert_eq!(
                enters,
                matches!(state, JobState::Verifying | JobState::Succeeded),
                "{state:?}"
            );
            let leaves = job_edge(Some(JobState::Succeeded), state);
            assert_eq!(
                leaves,
                matches!(state, JobState::Queued | JobState::Succeeded),
                "{state:?}"
            );
        }
    }

    #[test]
    fn a_partition_is_proved_from_finishing_alone() {
        for state in PartitionState::ALL {
            let enters = partition_edge(Some(state), PartitionState::Proved);
            assert_eq!(
                enters,
                matches!(state, PartitionState::Finishing | PartitionState::Proved),
                "{state:?}"
            );
        }
    }
}
