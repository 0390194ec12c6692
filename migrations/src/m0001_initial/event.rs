//! The journal's entries.

use serde::{Deserialize, Serialize};

use super::{
    CircuitFacts, Digest, Failure, JobState, OnFailure, Priority, ProcessId, SourceFiles, StopTarget, Token,
    Uuid,
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub number: u64,
    pub boot: u64,
    pub at: u64,
    pub job: Option<u64>,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Next {
    Ready,
    Waiting(u64),
    Failed,
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptEnd {
    pub partition: u32,
    pub attempt: u32,
    pub failure: Failure,
    pub next: Next,
    pub counted: bool,
    pub crashed: bool,
    pub alone: bool,
    pub drop_checkpoints: bool,
    pub process_peak_bytes: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Submitted {
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
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum What {
    Submitted(Submitted),
    Stopping {
        target: StopTarget,
        actor: String,
        failure: Option<Failure>,
    },
    Ended {
        state: JobState,
    },
    Retried {
        generation: u32,
        actor: String,
        request: Digest,
        request_inline: bool,
        replaced: Vec<u32>,
    },
    VerifyStarted,
    VerifyPassed {
        token: Token,
    },
    VerifyRefused {
        token: Token,
        partitions: Vec<u32>,
    },
    JoinRefused {
        token: Token,
        failure: Failure,
    },
    VerifyDropped {
        token: Token,
    },
    SynthStarted {
        partition: u32,
        attempt: u32,
        process: ProcessId,
        device: String,
        ticket_bytes: u64,
    },
    SynthEnded {
        token: Token,
        partition: u32,
        synth_ms: u64,
        witness: Digest,
        public: Digest,
    },
    ProveStarted {
        partition: u32,
        worker: u32,
    },
    Checkpointed {
        token: Token,
        partition: u32,
        witness: Digest,
        key: Digest,
        pieces: Vec<(String, u64)>,
    },
    ProveEnded {
        token: Token,
        partition: u32,
        gpu_ms: u64,
        reused: Vec<String>,
        saved_ms: u64,
    },
    ProofStored {
        token: Token,
        partition: u32,
        digest: Digest,
        process_peak_bytes: Option<u64>,
    },
    AttemptEnded(AttemptEnd),
    Woken {
        partition: u32,
    },
    StaleIgnored {
        token: Token,
        word: String,
    },
    BootOpened {
        version: String,
        devices: Vec<(String, u32)>,
    },
    BootClosed,
    ProcessStarted {
        process: ProcessId,
        device: String,
    },
    ProcessLost {
        process: ProcessId,
        device: String,
        cause: String,
        own_fault: bool,
    },
    DeviceSuspended {
        device: String,
        until: Option<u64>,
        reason: String,
    },
    DeviceResumed {
        device: String,
    },
    Paused {
        actor: String,
    },
    Resumed {
        actor: String,
    },
    Draining {
        actor: String,
    },
    ClockStepped {
        by_ms: i64,
    },
    Pruned {
        job: u64,
        id: Uuid,
    },
    CircuitAdded {
        circuit: Digest,
        name: String,
        files: SourceFiles,
        allow_unfinished: bool,
        local_setup: bool,
        facts: CircuitFacts,
        total: u64,
        actor: String,
    },
    CircuitNamed {
        name: String,
        circuit: Digest,
    },
    ImportStarted {
        circuit: Digest,
        process: ProcessId,
    },
    ImportProgressed {
        token: Token,
        circuit: Digest,
        done: u64,
    },
    ImportEnded {
        token: Token,
        circuit: Digest,
        facts: CircuitFacts,
        zkey: Option<Digest>,
        vk: Digest,
        matrices: Digest,
    },
    ImportFailed {
        token: Token,
        circuit: Digest,
        failure: Failure,
    },
    ImportInterrupted {
        token: Token,
        circuit: Digest,
        crashed: bool,
    },
    CircuitRemoved {
        circuit: Digest,
        actor: String,
    },
}
