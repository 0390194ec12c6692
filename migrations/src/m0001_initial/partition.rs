//! Partitions, checkpoints, and stored proofs.

use serde::{Deserialize, Serialize};

use super::{Digest, Failure, ProcessId, Stage, Token};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PartitionState {
    Ready,
    Waiting,
    Synthesizing,
    Synthesized,
    Proving,
    Finishing,
    Proved,
    Failed,
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Poison {
    pub stage: Stage,
    pub deaths: u32,
    pub deaths_alone: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Partition {
    pub job: u64,
    pub index: u32,
    pub state: PartitionState,
    pub attempts: u32,
    pub counted: u32,
    pub token: Option<Token>,
    pub process: Option<ProcessId>,
    pub worker: Option<u32>,
    pub wake_at: Option<u64>,
    pub alone: bool,
    pub out_of_memory: u32,
    pub poison: Option<Poison>,
    pub avoid_device: Option<String>,
    pub recheck: bool,
    pub failure: Option<Failure>,
}

/// No `Debug`: the bytes reveal things about a witness.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Piece {
    pub name: String,
    pub bytes: Vec<u8>,
    pub millis: u64,
    pub attempt: u32,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub job: u64,
    pub partition: u32,
    pub witness: Digest,
    pub key: Digest,
    pub pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredProof {
    pub job: u64,
    pub partition: u32,
    pub attempt: u32,
    pub digest: Digest,
    pub bytes: Vec<u8>,
    pub public: Digest,
    pub stored_at: u64,
}
