//! What a user submitted, and its lives.

use uuid::Uuid;

use super::Failure;
use crate::ids::{BootNumber, Digest, JobNumber, JournalNumber, Millis, Token};

/// How urgent a job is; within one priority the older job comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// When nothing else waits.
    Low,
    /// What most jobs are.
    Normal,
    /// Before normal ones.
    High,
    /// Before everything; may take a slot from another.
    Critical,
}

impl Priority {
    /// Every priority, least urgent first.
    pub const ALL: [Self; 4] = [Self::Low, Self::Normal, Self::High, Self::Critical];

    /// The name in requests and answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// What one failed partition does to its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// The others are proved first, then the job ends `failed`.
    Continue,
    /// The job stops at once.
    Stop,
}

impl OnFailure {
    /// The name in requests and answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Stop => "stop",
        }
    }
}

/// Where a stopping job is going.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StopTarget {
    /// Somebody asked for it.
    Cancelled,
    /// A partition, the circuit or the join failed.
    Failed,
    /// The deadline passed.
    Expired,
}

/// Where a job is. `queued → running → verifying → succeeded`, and `stopping(target) → target` from the first three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobState {
    /// Nothing has been started.
    Queued,
    /// At least one partition was started.
    Running,
    /// All partitions are proved; the whole is being checked.
    Verifying,
    /// Grants nothing new; waits for its last lease to end.
    Stopping(StopTarget),
    /// Proved and verified.
    Succeeded,
    /// Ended without a proof of the whole.
    Failed,
    /// Ended because somebody asked.
    Cancelled,
    /// Ended because its deadline passed.
    Expired,
}

impl JobState {
    /// Every state, for tables and tests.
    pub const ALL: [Self; 10] = [
        Self::Queued,
        Self::Running,
        Self::Verifying,
        Self::Stopping(StopTarget::Cancelled),
        Self::Stopping(StopTarget::Failed),
        Self::Stopping(StopTarget::Expired),
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
        Self::Expired,
    ];

    /// Nothing changes any more, retries and pruning excepted.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Succeeded | Self::Failed | Self::Cancelled | Self::Expired
        )
    }

    /// New work may be granted.
    #[must_use]
    pub fn grants(self) -> bool {
        matches!(self, Self::Queued | Self::Running)
    }

    /// The name in answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Verifying => "verifying",
            Self::Stopping(_) => "stopping",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }
}

/// How many partitions of a job are where. The one derived fact that is stored; `fsck` recounts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// With a stored, verified proof.
    pub proved: u32,
    /// Given up.
    pub failed: u32,
    /// Cancelled with their job.
    pub cancelled: u32,
    /// Leases in force for this job: one for each partition in a stage, one while the whole is verified.
    pub leases: u32,
}

/// A job: one kind, one request, one result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its place in the order.
    pub number: JobNumber,
    /// Its name for users, a UUID version 7.
    pub id: Uuid,
    /// The proof kind's name.
    pub kind: String,
    /// The circuit, pinned by digest at submit.
    pub circuit: Option<Digest>,
    /// The digest of the canonical request; its bytes are inline (`request/…`) or an object.
    pub request: Digest,
    /// The canonical request is at most 2 KiB and lies in the store itself.
    pub request_inline: bool,
    /// The client's key for safe repeats.
    pub idempotency_key: Option<String>,
    /// Who submitted it.
    pub actor: String,
    /// At most 16; together at most 1 KiB.
    pub labels: Vec<(String, String)>,
    /// How urgent.
    pub priority: Priority,
    /// Counted failures a partition may have within one generation before it is given up; at least 1.
    pub max_attempts: u32,
    /// What one failed partition does.
    pub on_failure: OnFailure,
    /// Partitions, 1 to 1,024.
    pub partitions: u32,
    /// Bytes of memory that the largest partition asks for.
    pub ticket_bytes: u64,
    /// When it expires, if it ever does.
    pub deadline: Option<Millis>,
    /// When it was submitted.
    pub created_at: Millis,
    /// The current life, from 1.
    pub generation: u32,
    /// Where it is.
    pub state: JobState,
    /// Partitions by state.
    pub tally: Tally,
    /// The lease of the final check, while there is one.
    pub verifying: Option<Token>,
    /// The last event that touched this job.
    pub journal: JournalNumber,
}

/// One life of a job; a retry opens the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Whose.
    pub job: JobNumber,
    /// From 1.
    pub number: u32,
    /// Who opened it.
    pub actor: String,
    /// When it was submitted or retried.
    pub opened_at: Millis,
    /// The boot that opened it.
    pub opened_in: BootNumber,
    /// When its first partition was started.
    pub started_at: Option<Millis>,
    /// When it ended.
    pub ended_at: Option<Millis>,
    /// How it ended; a terminal state.
    pub ended: Option<JobState>,
    /// Why it ended without success.
    pub failure: Option<Failure>,
}
