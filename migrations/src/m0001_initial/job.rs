//! Jobs and their generations.

use serde::{Deserialize, Serialize};

use super::{Digest, Failure, Token, Uuid};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Priority {
    Low,
    Normal,
    High,
    Critical,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum OnFailure {
    Continue,
    Stop,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StopTarget {
    Cancelled,
    Failed,
    Expired,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum JobState {
    Queued,
    Running,
    Verifying,
    Stopping(StopTarget),
    Succeeded,
    Failed,
    Cancelled,
    Expired,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    pub proved: u32,
    pub failed: u32,
    pub cancelled: u32,
    pub leases: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub number: u64,
    pub id: Uuid,
    pub kind: String,
    pub circuit: Option<Digest>,
    pub request: Digest,
    pub request_inline: bool,
    pub idempotency_key: Option<String>,
    pub actor: String,
    pub labels: Vec<(String, String)>,
    pub priority: Priority,
    pub max_attempts: u32,
    pub on_failure: OnFailure,
    pub partitions: u32,
    pub ticket_bytes: u64,
    pub deadline: Option<u64>,
    pub created_at: u64,
    pub generation: u32,
    pub state: JobState,
    pub tally: Tally,
    pub verifying: Option<Token>,
    pub journal: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Generation {
    pub job: u64,
    pub number: u32,
    pub actor: String,
    pub opened_at: u64,
    pub opened_in: u64,
    pub started_at: Option<u64>,
    pub ended_at: Option<u64>,
    pub ended: Option<JobState>,
    pub failure: Option<Failure>,
}
