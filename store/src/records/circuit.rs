//! A registered circuit: immutable by digest; a name points to the latest.

use super::Failure;
use crate::ids::{Digest, Millis, Token};

/// The files a circuit is made of, each an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceFiles {
    /// Circom's constraint system.
    pub r1cs: Option<Digest>,
    /// snarkjs' proving key.
    pub zkey: Option<Digest>,
    /// Circom's witness calculator.
    pub wasm: Option<Digest>,
    /// Circom's signal names.
    pub sym: Option<Digest>,
}

/// What is known about a circuit before it is imported (from headers) and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CircuitFacts {
    /// Constraints; 0 if no `.r1cs` was given.
    pub constraints: u64,
    /// Wires, the constant one included.
    pub wires: u64,
    /// Public signals.
    pub public: u32,
    /// The FFT domain is 2 to this power.
    pub domain_log2: u32,
    /// Bytes of the proving key when it is resident.
    pub key_bytes: u64,
    /// Anyone who knows the seed can forge: a locally made key, or one without a phase-2 contribution.
    pub insecure: bool,
    /// Where the key comes from, as canonical JSON for the answers (`setup {kind, contributions, …}`), ≤ 1 KiB.
    pub setup: String,
}

/// The state of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportState {
    /// Points checked so far; a restart goes on there.
    pub done: u64,
    /// Points in all.
    pub total: u64,
    /// The lease, while somebody works on it.
    pub token: Option<Token>,
    /// Worker processes that died importing it, in a row.
    pub deaths: u32,
}

/// Whether a circuit can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CircuitState {
    /// Its key is being checked; jobs may be submitted.
    Importing(ImportState),
    /// It can prove.
    Ready,
    /// It never will; its jobs end `failed(circuit_failed)`.
    Failed(Failure),
}

/// A circuit, named by the digest of its canonical description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circuit {
    /// Its digest.
    pub digest: Digest,
    /// The name it was first registered under.
    pub name: String,
    /// Its files.
    pub files: SourceFiles,
    /// The operator allowed a key without a phase-2 contribution.
    pub allow_unfinished: bool,
    /// The daemon makes the key itself, from fresh randomness and the `.r1cs`; `files.zkey` is set when the import ends.
    pub local_setup: bool,
    /// What is known of it.
    pub facts: CircuitFacts,
    /// Whether it can be used.
    pub state: CircuitState,
    /// The object with its verification key, once imported.
    pub vk: Option<Digest>,
    /// The object with its compiled matrices, once imported.
    pub matrices: Option<Digest>,
    /// Who registered it.
    pub actor: String,
    /// When it was registered.
    pub added_at: Millis,
    /// When its import ended.
    pub ready_at: Option<Millis>,
}
