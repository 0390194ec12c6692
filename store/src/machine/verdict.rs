//! What a failure class means for its partition: retried or not, counted or not, alone or not.

use super::limits;
use crate::event::Next;
use crate::ids::Millis;
use crate::records::{Failure, FailureClass, Job, JobState, Partition};

/// The longest back-off, in milliseconds.
pub const BACK_OFF_LIMIT_MS: u64 = 30 * 60 * 1000;

/// Deaths in a row after which a partition runs alone; as many while alone park it.
///
/// *In a row* means: in whatever stage, with no progress between them. Progress is to come further than every earlier
/// attempt of this generation (`apply::partition`): the first witness, a piece that was never saved, the first time that
/// the device is left. There are at most [`MOST_PROGRESS`] such moments in a generation, and no more than three deaths
/// before each of them, so whoever kills its process in whatever pattern is parked after [`MOST_DEATHS`] at the latest;
/// one that alternates between two stages and makes no progress after its fifth. A count that any passed stage cleared
/// would let it go on for ever.
///
/// Nobody is parked for a neighbour: only deaths while alone park, and while a partition is alone nothing else is in its
/// process from its grant to its end or to its progress.
const DEATHS: u32 = 2;

/// Moments at which a partition can come further than before: a witness, each piece, and the end on the device.
const MOST_PROGRESS: u32 = 2 + limits::MAX_PIECES as u32;

/// Processes that one partition can kill in one generation, with any pattern, failures that are counted apart: each of
/// those drops the count too, and there are `max_attempts` of them.
pub const MOST_DEATHS: u32 = (2 * DEATHS - 1) * (1 + MOST_PROGRESS) + 1;

/// How long a partition waits after its `failures`-th counted failure: 1 s, 4 s, 16 s, … up to 30 minutes.
#[must_use]
pub fn back_off_ms(failures: u32) -> u64 {
    4u64.checked_pow(failures.saturating_sub(1))
        .and_then(|factor| factor.checked_mul(1000))
        .map_or(BACK_OFF_LIMIT_MS, |wait| wait.min(BACK_OFF_LIMIT_MS))
}

/// Everything that is decided about the end of an attempt.
pub(super) struct Verdict {
    pub next: Next,
    pub counted: bool,
    pub crashed: bool,
    pub alone: bool,
    pub drop_checkpoints: bool,
    pub failure: Failure,
}

/// Decides the end of the open attempt of `partition`. `own_fault`: its process died by its own fault.
pub(super) fn decide(
    job: &Job,
    partition: &Partition,
    failure: Failure,
    own_fault: bool,
    now: Millis,
) -> Verdict {
    let class = failure.class;
    let drop_checkpoints = class == FailureClass::InvalidProof;
    let crashed = own_fault && partition.state.is_open();
    let mut verdict = Verdict {
        next: Next::Ready,
        counted: false,
        crashed,
        alone: false,
        drop_checkpoints,
        failure,
    };
    if matches!(job.state, JobState::Stopping(_)) {
        verdict.next = Next::Cancelled;
        return verdict;
    }
    match class {
        FailureClass::InputInvalid
        | FailureClass::Unsatisfied
        | FailureClass::ParamsMismatch
        | FailureClass::InputMissing
        | FailureClass::CircuitFailed
        | FailureClass::JoinInvalid
        | FailureClass::Poison => {
            verdict.counted = true;
            verdict.next = Next::Failed;
        }
        FailureClass::OutOfMemory => {
            // Whoever was at work when a neighbour took all the memory ends so too: the first time is nobody's fault.
            verdict.alone = true;
            if partition.out_of_memory > 0 {
                verdict.counted = true;
                verdict.next = Next::Failed;
            }
        }
        FailureClass::DeviceError
        | FailureClass::InvalidProof
        | FailureClass::TimedOut
        | FailureClass::Stalled => {
            verdict.counted = true;
            verdict.next = if used_up(job, partition) {
                Next::Failed
            } else {
                Next::Waiting(now.after(back_off_ms(partition.counted + 1)))
            };
        }
        FailureClass::Interrupted
        | FailureClass::Shutdown
        | FailureClass::DeviceUnavailable
        | FailureClass::Preempted
        | FailureClass::Cancelled => {}
    }
    if crashed && verdict.next != Next::Failed {
        count_death(partition, &mut verdict);
    }
    verdict
}

/// This failure would be the last that the job allows.
fn used_up(job: &Job, partition: &Partition) -> bool {
    partition.counted + 1 >= job.max_attempts
}

fn count_death(partition: &Partition, verdict: &mut Verdict) {
    let (deaths, deaths_alone) = partition
        .poison
        .map_or((0, 0), |poison| (poison.deaths, poison.deaths_alone));
    if partition.alone {
        if deaths_alone + 1 >= DEATHS {
            verdict.next = Next::Failed;
            verdict.failure = Failure::coded(
                FailureClass::Poison,
                "crashes-its-worker",
                format!(
                    "crashes its worker: the process died by its own fault {} times in a row and the partition came no \
                     further, at last in stage {}, the last {DEATHS} times while it worked on nothing else ({}); check \
                     the input and the circuit",
                    deaths + deaths_alone + 1,
                    partition.state.suspected().map_or("none", |stage| stage.name()),
                    verdict.failure.detail,
                ),
            );
        }
    } else if deaths + 1 >= DEATHS {
        verdict.alone = true;
    }
}
