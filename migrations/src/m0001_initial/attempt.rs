//! Attempts and failures.

use serde::{Deserialize, Serialize};

use super::{Digest, ProcessId};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptRef {
    pub job: u64,
    pub partition: u32,
    pub number: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Stage {
    Synth,
    Prove,
    Finish,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FailureClass {
    InputInvalid,
    Unsatisfied,
    ParamsMismatch,
    InputMissing,
    CircuitFailed,
    JoinInvalid,
    OutOfMemory,
    DeviceError,
    InvalidProof,
    TimedOut,
    Stalled,
    Interrupted,
    Shutdown,
    DeviceUnavailable,
    Preempted,
    Poison,
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    pub class: FailureClass,
    pub code: String,
    pub detail: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    Ok,
    Ended(Failure),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    pub of: AttemptRef,
    pub generation: u32,
    pub opened_in: u64,
    pub closed_in: Option<u64>,
    pub process: ProcessId,
    pub device: String,
    pub worker: Option<u32>,
    pub stage: Stage,
    pub outcome: Option<Outcome>,
    pub started_at: u64,
    pub ended_at: Option<u64>,
    pub synth_ms: Option<u64>,
    pub gpu_started_at: Option<u64>,
    pub gpu_ms: Option<u64>,
    pub ticket_bytes: u64,
    pub process_peak_bytes: Option<u64>,
    pub witness: Option<Digest>,
    pub public: Option<Digest>,
    pub reused: Vec<String>,
    pub saved_ms: u64,
}
