//! Circuits.

use serde::{Deserialize, Serialize};

use super::{Digest, Failure, Token};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceFiles {
    pub r1cs: Option<Digest>,
    pub zkey: Option<Digest>,
    pub wasm: Option<Digest>,
    pub sym: Option<Digest>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CircuitFacts {
    pub constraints: u64,
    pub wires: u64,
    pub public: u32,
    pub domain_log2: u32,
    pub key_bytes: u64,
    pub insecure: bool,
    pub setup: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportState {
    pub done: u64,
    pub total: u64,
    pub token: Option<Token>,
    pub deaths: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CircuitState {
    Importing(ImportState),
    Ready,
    Failed(Failure),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Circuit {
    pub digest: Digest,
    pub name: String,
    pub files: SourceFiles,
    pub allow_unfinished: bool,
    pub local_setup: bool,
    pub facts: CircuitFacts,
    pub state: CircuitState,
    pub vk: Option<Digest>,
    pub matrices: Option<Digest>,
    pub actor: String,
    pub added_at: u64,
    pub ready_at: Option<u64>,
}
