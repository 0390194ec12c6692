//! The contract as data: for every state and every command, what may come of it.
//!
//! Written by hand from the design's page on states, not from the handlers; a test drives the machine into every state,
//! tries every command there, and holds what happens against this table in both directions: nothing else happens, and
//! everything that is written here does. The diagrams in `ARCHITECTURE.md` are drawn from it.
//!
//! What is not listed: a command that names a lease is [`Outcome::Stale`], since no such lease is in force; another one
//! is [`Outcome::Refused`]; one of [`ELSEWHERE`] touches no job at all.

use super::CommandName;
use crate::records::{JobState, PartitionState, StopTarget};

/// What came of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome<S> {
    /// It goes there.
    To(S),
    /// It happened and the state stays.
    Stays,
    /// It had happened already; nothing was written.
    Unchanged,
    /// Its lease is not in force.
    Stale,
    /// A guard said no.
    Refused,
    /// The record is gone.
    Gone,
}

/// What of its job a partition's row depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The job is queued or running.
    Going,
    /// The job is in its final check.
    Verifying,
    /// The job is stopping.
    Stopping,
    /// The job has ended.
    Ended,
}

impl Phase {
    /// The phase of a job in this state.
    #[must_use]
    pub fn of(job: JobState) -> Self {
        match job {
            JobState::Queued | JobState::Running => Self::Going,
            JobState::Verifying => Self::Verifying,
            JobState::Stopping(_) => Self::Stopping,
            JobState::Succeeded | JobState::Failed | JobState::Cancelled | JobState::Expired => Self::Ended,
        }
    }
}

/// One cell: in this state this command comes to one of these.
#[derive(Clone, Copy, Debug)]
pub struct Cell<F: 'static, S: 'static> {
    /// The state before.
    pub from: F,
    /// The command.
    pub command: CommandName,
    /// Everything that it may come to.
    pub outcomes: &'static [Outcome<S>],
}

/// Commands that touch neither a job nor a partition.
pub const ELSEWHERE: &[CommandName] = &[
    CommandName::ProcessStart,
    CommandName::DeviceSuspend,
    CommandName::DeviceResume,
    CommandName::Pause,
    CommandName::Resume,
    CommandName::Drain,
    CommandName::BootClose,
    CommandName::ClockStep,
    CommandName::CircuitAdd,
    CommandName::CircuitRemove,
    CommandName::ImportStart,
    CommandName::ImportProgress,
    CommandName::ImportEnd,
    CommandName::ImportFailed,
];

/// Commands that name a lease of a partition or of a final check.
pub const UNDER_A_LEASE: &[CommandName] = &[
    CommandName::VerifyEnd,
    CommandName::VerifyDrop,
    CommandName::SynthEnd,
    CommandName::Checkpoint,
    CommandName::GpuEnd,
    CommandName::ProofStored,
    CommandName::AttemptFailed,
];

/// Every combination of phase and partition state that there is.
pub const PARTITION_STATES: &[(Phase, PartitionState)] = &[
    (Phase::Going, PartitionState::Ready),
    (Phase::Going, PartitionState::Waiting),
    (Phase::Going, PartitionState::Synthesizing),
    (Phase::Going, PartitionState::Synthesized),
    (Phase::Going, PartitionState::Proving),
    (Phase::Going, PartitionState::Finishing),
    (Phase::Going, PartitionState::Proved),
    (Phase::Going, PartitionState::Failed),
    (Phase::Verifying, PartitionState::Proved),
    (Phase::Stopping, PartitionState::Synthesizing),
    (Phase::Stopping, PartitionState::Proving),
    (Phase::Stopping, PartitionState::Finishing),
    (Phase::Stopping, PartitionState::Proved),
    (Phase::Stopping, PartitionState::Failed),
    (Phase::Stopping, PartitionState::Cancelled),
    (Phase::Ended, PartitionState::Proved),
    (Phase::Ended, PartitionState::Failed),
    (Phase::Ended, PartitionState::Cancelled),
];

/// What may come of `command` for a job in `state`; `None` for commands that touch no job.
#[must_use]
pub fn job(state: JobState, command: CommandName) -> Option<&'static [Outcome<JobState>]> {
    if ELSEWHERE.contains(&command) {
        return None;
    }
    let cell = JOB
        .iter()
        .find(|cell| cell.from == state && cell.command == command);
    Some(cell.map_or_else(|| unlisted(command), |cell| cell.outcomes))
}

/// What may come of `command` for a partition in `state` of a job in `phase`; `None` for commands that touch none.
#[must_use]
pub fn partition(
    phase: Phase,
    state: PartitionState,
    command: CommandName,
) -> Option<&'static [Outcome<PartitionState>]> {
    if ELSEWHERE.contains(&command) {
        return None;
    }
    let cell = PARTITION
        .iter()
        .find(|cell| cell.from == (phase, state) && cell.command == command);
    Some(cell.map_or_else(|| unlisted(command), |cell| cell.outcomes))
}

fn unlisted<S>(command: CommandName) -> &'static [Outcome<S>] {
    if UNDER_A_LEASE.contains(&command) {
        &[Stale]
    } else {
        &[Refused]
    }
}

macro_rules! cells {
    ($($from:expr => { $($command:ident: $($outcome:expr),+;)+ })+) => {
        &[$($(Cell { from: $from, command: CommandName::$command, outcomes: &[$($outcome),+] }),+),+]
    };
}

use Outcome::{Gone, Refused, Stale, Stays, To, Unchanged};

const CANCELLING: JobState = JobState::Stopping(StopTarget::Cancelled);
const FAILING: JobState = JobState::Stopping(StopTarget::Failed);
const EXPIRING: JobState = JobState::Stopping(StopTarget::Expired);

/// The cells of jobs that are neither refused nor stale.
pub const JOB: &[Cell<JobState, JobState>] = {
    use JobState::{Cancelled, Expired, Failed, Queued, Running, Succeeded, Verifying};
    cells! {
        Queued => {
            Submit: Unchanged;
            Cancel: To(Cancelled);
            Expire: To(Expired), Refused;
            FailJob: To(Failed);
            SynthStart: To(Running), Refused;
            ProcessLost: Stays;
            BootOpen: Stays;
        }
        Running => {
            Submit: Unchanged;
            Cancel: To(CANCELLING), To(Cancelled);
            Expire: To(EXPIRING), To(Expired), Refused;
            FailJob: To(FAILING), To(Failed);
            Wake: Stays, Refused;
            SynthStart: Stays, Refused;
            SynthEnd: Stays, Refused, Stale;
            GiveBack: Stays, Refused;
            GpuStart: Stays, Refused;
            Checkpoint: Stays, Refused, Stale;
            GpuEnd: Stays, Unchanged, Refused, Stale;
            ProofStored: Stays, To(Verifying), To(Failed), Refused, Stale;
            AttemptFailed: Stays, To(FAILING), To(Failed), Stale;
            ProcessLost: Stays, To(FAILING), To(Failed);
            BootOpen: Stays;
        }
        Verifying => {
            Submit: Unchanged;
            Cancel: To(CANCELLING), To(Cancelled);
            FailJob: To(FAILING), To(Failed);
            VerifyStart: Stays, Unchanged;
            VerifyEnd: To(Succeeded), To(Failed), Stale;
            VerifyDrop: Stays, Stale;
            ProcessLost: Stays;
            BootOpen: Stays;
        }
        CANCELLING => {
            Submit: Unchanged;
            Cancel: Unchanged;
            FailJob: Unchanged;
            VerifyEnd: To(Cancelled), Stale;
            VerifyDrop: To(Cancelled), Stale;
            SynthEnd: Stays, To(Cancelled), Refused, Stale;
            Checkpoint: Unchanged, Refused, Stale;
            GpuEnd: Stays, Unchanged, Refused, Stale;
            ProofStored: Stays, To(Cancelled), Refused, Stale;
            AttemptFailed: Stays, To(Cancelled), Stale;
            ProcessLost: Stays, To(Cancelled);
            BootOpen: To(Cancelled);
        }
        FAILING => {
            Submit: Unchanged;
            Cancel: Unchanged;
            FailJob: Unchanged;
            VerifyEnd: To(Failed), Stale;
            VerifyDrop: To(Failed), Stale;
            SynthEnd: Stays, To(Failed), Refused, Stale;
            Checkpoint: Unchanged, Refused, Stale;
            GpuEnd: Stays, Unchanged, Refused, Stale;
            ProofStored: Stays, To(Failed), Refused, Stale;
            AttemptFailed: Stays, To(Failed), Stale;
            ProcessLost: Stays, To(Failed);
            BootOpen: To(Failed);
        }
        EXPIRING => {
            Submit: Unchanged;
            Cancel: Unchanged;
            FailJob: Unchanged;
            SynthEnd: Stays, To(Expired), Refused, Stale;
            Checkpoint: Unchanged, Refused, Stale;
            GpuEnd: Stays, Unchanged, Refused, Stale;
            ProofStored: Stays, To(Expired), Refused, Stale;
            AttemptFailed: Stays, To(Expired), Stale;
            ProcessLost: Stays, To(Expired);
            BootOpen: To(Expired);
        }
        Succeeded => {
            Submit: Unchanged;
            Retry: To(Queued), Refused;
            Prune: Gone;
            ProcessLost: Stays;
            BootOpen: Stays;
        }
        Failed => {
            Submit: To(Queued), To(Verifying);
            Retry: To(Queued), To(Verifying);
            Prune: Gone;
            ProcessLost: Stays;
            BootOpen: Stays;
        }
        Cancelled => {
            Submit: To(Queued), To(Verifying);
            Cancel: Unchanged;
            Retry: To(Queued), To(Verifying);
            Prune: Gone;
            ProcessLost: Stays;
            BootOpen: Stays;
        }
        Expired => {
            Submit: To(Queued), To(Verifying);
            Retry: To(Queued), To(Verifying);
            Prune: Gone;
            ProcessLost: Stays;
            BootOpen: Stays;
        }
    }
};

/// The cells of partitions that are neither refused nor stale.
pub const PARTITION: &[Cell<(Phase, PartitionState), PartitionState>] = {
    use PartitionState::{
        Cancelled, Failed, Finishing, Proved, Proving, Ready, Synthesized, Synthesizing, Waiting,
    };
    use Phase::{Ended, Going, Stopping, Verifying};
    cells! {
        (Going, Ready) => {
            Submit: Unchanged;
            Cancel: To(Cancelled);
            Expire: To(Cancelled), Refused;
            FailJob: To(Cancelled);
            Wake: Stays, Refused;
            SynthStart: To(Synthesizing), Refused;
            ProcessLost: Stays, To(Cancelled);
            BootOpen: Stays;
        }
        (Going, Waiting) => {
            Submit: Unchanged;
            Cancel: To(Cancelled);
            Expire: To(Cancelled), Refused;
            FailJob: To(Cancelled);
            Wake: To(Ready), Refused;
            ProcessLost: Stays, To(Cancelled);
            BootOpen: Stays;
        }
        (Going, Synthesizing) => {
            Submit: Unchanged;
            Cancel: Stays;
            Expire: Stays, Refused;
            FailJob: Stays;
            Wake: Stays, Refused;
            SynthEnd: To(Synthesized);
            Checkpoint: Refused;
            GpuEnd: Refused;
            ProofStored: Refused;
            AttemptFailed: To(Ready), To(Waiting), To(Failed);
            ProcessLost: Stays, To(Ready), To(Waiting), To(Failed), To(Cancelled);
            BootOpen: To(Ready);
        }
        (Going, Synthesized) => {
            Submit: Unchanged;
            Cancel: To(Cancelled);
            Expire: To(Cancelled), Refused;
            FailJob: To(Cancelled);
            Wake: Stays, Refused;
            GiveBack: To(Ready);
            GpuStart: To(Proving);
            ProcessLost: To(Ready), To(Cancelled);
            BootOpen: To(Ready);
        }
        (Going, Proving) => {
            Submit: Unchanged;
            Cancel: Stays;
            Expire: Stays, Refused;
            FailJob: Stays;
            Wake: Stays, Refused;
            SynthEnd: Refused;
            Checkpoint: Stays;
            GpuEnd: To(Finishing);
            ProofStored: Refused;
            AttemptFailed: To(Ready), To(Waiting), To(Failed);
            ProcessLost: To(Ready), To(Waiting), To(Failed), To(Cancelled);
            BootOpen: To(Ready);
        }
        (Going, Finishing) => {
            Submit: Unchanged;
            Cancel: Stays;
            Expire: Stays, Refused;
            FailJob: Stays;
            Wake: Stays, Refused;
            SynthEnd: Refused;
            Checkpoint: Refused;
            GpuEnd: Unchanged;
            ProofStored: To(Proved);
            AttemptFailed: To(Ready), To(Waiting), To(Failed);
            ProcessLost: To(Ready), To(Waiting), To(Failed), To(Cancelled);
            BootOpen: To(Ready);
        }
        (Going, Proved) => {
            Submit: Unchanged;
            Cancel: Stays;
            Expire: Stays, Refused;
            FailJob: Stays;
            Wake: Stays, Refused;
            ProcessLost: Stays;
            BootOpen: Stays;
        }
        (Going, Failed) => {
            Submit: Unchanged;
            Cancel: Stays;
            Expire: Stays, Refused;
            FailJob: Stays;
            Wake: Stays, Refused;
            ProcessLost: Stays;
            BootOpen: Stays;
        }
        (Verifying, Proved) => {
            Submit: Unchanged;
            Cancel: Stays;
            FailJob: Stays;
            VerifyStart: Stays, Unchanged;
            VerifyEnd: Stays, To(Failed), Stale;
            VerifyDrop: Stays, Stale;
            ProcessLost: Stays;
            BootOpen: Stays;
        }
        (Stopping, Synthesizing) => {
            Submit: Unchanged;
            Cancel: Unchanged;
            FailJob: Unchanged;
            SynthEnd: To(Cancelled);
            Checkpoint: Refused;
            GpuEnd: Refused;
            ProofStored: Refused;
            AttemptFailed: To(Cancelled);
            ProcessLost: Stays, To(Cancelled);
            BootOpen: To(Cancelled);
        }
        (Stopping, Proving) => {
            Submit: Unchanged;
            Cancel: Unchanged;
            FailJob: Unchanged;
            SynthEnd: Refused;
            Checkpoint: Unchanged;
            GpuEnd: To(Finishing);
            ProofStored: Refused;
            AttemptFailed: To(Cancelled);
            ProcessLost: To(Cancelled);
            BootOpen: To(Cancelled);
        }
        (Stopping, Finishing) => {
            Submit: Unchanged;
            Cancel: Unchanged;
            FailJob: Unchanged;
            SynthEnd: Refused;
            Checkpoint: Refused;
            GpuEnd: Unchanged;
            ProofStored: To(Proved);
            AttemptFailed: To(Cancelled);
            ProcessLost: To(Cancelled);
            BootOpen: To(Cancelled);
        }
        (Stopping, Proved) => {
            Submit: Unchanged;
            Cancel: Unchanged;
            FailJob: Unchanged;
            VerifyEnd: Stays, Stale;
            VerifyDrop: Stays, Stale;
            ProcessLost: Stays;
            BootOpen: Stays;
        }
        (Stopping, Failed) => {
            Submit: Unchanged;
            Cancel: Unchanged;
            FailJob: Unchanged;
            ProcessLost: Stays;
            BootOpen: Stays;
        }
        (Stopping, Cancelled) => {
            Submit: Unchanged;
            Cancel: Unchanged;
            FailJob: Unchanged;
            ProcessLost: Stays;
            BootOpen: Stays;
        }
        (Ended, Proved) => {
            Submit: Stays, Unchanged;
            Cancel: Unchanged, Refused;
            Retry: Stays, To(Ready), Refused;
            Prune: Gone;
            ProcessLost: Stays;
            BootOpen: Stays;
        }
        (Ended, Failed) => {
            Submit: To(Ready);
            Cancel: Unchanged, Refused;
            Retry: To(Ready);
            Prune: Gone;
            ProcessLost: Stays;
            BootOpen: Stays;
        }
        (Ended, Cancelled) => {
            Submit: To(Ready);
            Cancel: Unchanged, Refused;
            Retry: To(Ready);
            Prune: Gone;
            ProcessLost: Stays;
            BootOpen: Stays;
        }
    }
};
