//! Proof kinds: what a request of a kind means, how its witness is made, proved and checked.
//!
//! A kind knows nothing of the queue. Its daemon side is cheap: it reads headers and verification keys. Its worker side
//! runs in a worker process, where a crash, a hang or an endless allocation costs that process and nothing else.

pub mod groth16;

use std::path::Path;
use std::sync::Arc;

use proofkeep_store::ids::Digest;
use proofkeep_store::records::{Circuit, Failure, FailureClass, OnFailure, Piece, Priority};

use crate::budget::AskedKey;
use crate::device::Threads;
use crate::lease::Lease;
use crate::problem::Problem;
use crate::protocol::CircuitFiles;
pub use crate::shelf::Shelf;

/// What a request of a kind gets when it doesn't say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// How urgent.
    pub priority: Priority,
    /// What one failed partition does.
    pub on_failure: OnFailure,
    /// Counted failures allowed.
    pub max_attempts: u32,
}

/// What the daemon lends a kind while it reads a request.
pub trait Desk {
    /// The circuit that a name or `sha256:…` points to.
    ///
    /// # Errors
    /// 404 when there is none.
    fn circuit(&self, name: &str) -> Result<Circuit, Problem>;

    /// Keeps bytes that stood inline in the request as an object; durable when it returns.
    ///
    /// # Errors
    /// 507 when the disk is full.
    fn keep(&self, bytes: &[u8]) -> Result<Digest, Problem>;

    /// The size of an object, or `None` when it isn't there.
    fn size(&self, object: Digest) -> Option<u64>;

    /// Opens an object to read its header.
    ///
    /// # Errors
    /// 422 `blob-missing` when it isn't there.
    fn open(&self, object: Digest) -> Result<std::fs::File, Problem>;

    /// Threads of the largest device, for memory formulas.
    fn threads(&self) -> u32;

    /// The most memory that a circom calculator may use.
    fn wasm_memory_bytes(&self) -> u64;

    /// Memory for proofs and keys, in bytes; a partition that needs more is refused at submit.
    fn memory_bytes(&self) -> u64 {
        u64::MAX
    }

    /// Whether new jobs may use keys that anyone can forge under.
    fn allow_insecure_setup(&self) -> bool {
        true
    }

    /// Whether a parameter file may have the name of a published one and another digest.
    fn allow_unofficial_params(&self) -> bool {
        false
    }
}

/// A request, checked and made canonical.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The kind's own fields in canonical form: keys sorted, defaults filled in, inlined values as digests.
    pub fields: serde_json::Map<String, serde_json::Value>,
    /// The circuit it pins.
    pub circuit: Option<Digest>,
    /// Partitions, 1 to 1,024.
    pub partitions: u32,
    /// Bytes of memory for the largest of them. The key of its circuit isn't included; one that lies elsewhere is, so that
    /// what doesn't fit is refused at submit.
    pub ticket_bytes: u64,
    /// Objects that it needs.
    pub objects: Vec<Digest>,
}

/// What a partition needs whose key lies elsewhere than among the circuits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Bytes of memory, its key not included.
    pub ticket_bytes: u64,
    /// Its key.
    pub key: AskedKey,
}

/// One synthesis, in a worker process.
pub struct SynthTask<'a> {
    /// The canonical request.
    pub request: &'a [u8],
    /// Which of its partitions.
    pub partition: u32,
    /// Its circuit.
    pub circuit: Option<&'a CircuitFiles>,
    /// Where objects lie.
    pub shelf: &'a Shelf,
    /// Where temporary files go.
    pub scratch: &'a Path,
    /// Threads of the processor for the checks of a synthesis.
    pub threads: &'a Threads,
    /// Limits of a circom calculator: memory in bytes, fuel.
    pub wasm: (u64, u64),
    /// The last proof was invalid.
    pub recheck: bool,
    /// Keys that are resident in this process.
    pub keys: &'a crate::params::Keys,
}

/// One key to load, in a worker process.
pub struct LoadTask<'a> {
    /// What names it in memory.
    pub key: Digest,
    /// What it is called where it lies.
    pub name: &'a str,
    /// The digest that its file must have.
    pub file: Option<&'a str>,
    /// Threads of the processor.
    pub threads: &'a Threads,
    /// Keys that are resident in this process.
    pub keys: &'a crate::params::Keys,
}

/// What a kind hears from, and tells, whoever watches its work.
pub trait Watch: Sync {
    /// Work goes on; called at least every 5 seconds.
    fn progress(&self, permille: u16);
    /// The work should end at the next edge.
    fn stopped(&self) -> Option<Failure>;
}

/// A witness that waits for its device, in the worker process.
pub trait Prepared: Send {
    /// Its digest.
    fn witness(&self) -> Digest;

    /// Public signals, 32 little-endian bytes each.
    fn public(&self) -> &[u8];

    /// The proving key that its pieces belong to.
    fn key(&self) -> Digest;

    /// Makes the pieces that are missing, on the device of the lease. Each finished one goes to `sink` at once.
    ///
    /// # Errors
    /// When the device fails, or the work was stopped.
    fn prove(
        &mut self,
        lease: &Lease,
        known: &[Piece],
        sink: &mut dyn FnMut(Piece),
        watch: &dyn Watch,
    ) -> Result<Proved, Failure>;

    /// Assembles and verifies; needs no device. Fresh blinding values each time.
    ///
    /// # Errors
    /// `invalid_proof` when the result doesn't verify.
    fn finish(self: Box<Self>, watch: &dyn Watch) -> Result<Vec<u8>, Failure>;
}

/// What the device stage came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proved {
    /// Pieces taken over from earlier attempts.
    pub reused: Vec<String>,
    /// What they had cost, in milliseconds.
    pub saved_ms: u64,
}

/// A proof kind.
pub trait Kind: Send + Sync + 'static {
    /// Its name in requests and answers.
    fn name(&self) -> &'static str;

    /// What a request gets when it doesn't say.
    fn defaults(&self) -> Defaults;

    /// Daemon side: reads and checks the kind's own fields of a request (those that `crate::request` doesn't know).
    ///
    /// # Errors
    /// 422 and the like, naming the field, what was expected and what was found.
    fn plan(
        &self,
        fields: serde_json::Map<String, serde_json::Value>,
        desk: &dyn Desk,
    ) -> Result<Plan, Problem>;

    /// Daemon side: what the largest partition of an accepted request needs, for kinds whose keys lie elsewhere than among
    /// the circuits. `None`: what the plan says. It may read files.
    fn needs(&self, _request: &[u8], _desk: &dyn Desk) -> Option<Needs> {
        None
    }

    /// Worker side: makes the witness of one partition and checks it.
    ///
    /// # Errors
    /// `input_invalid`, `unsatisfied` and the like; never with a value of the witness in the text.
    fn synthesize(&self, task: &SynthTask<'_>, watch: &dyn Watch) -> Result<Box<dyn Prepared>, Failure>;

    /// Worker side: makes a key resident that lies elsewhere than among the circuits, for kinds that have such keys.
    ///
    /// # Errors
    /// `params_mismatch` when it isn't the one that was named.
    fn load(&self, task: &LoadTask<'_>, watch: &dyn Watch) -> Result<(), Failure> {
        let _ = watch;
        let detail = format!("kind {} has no key {:?}", self.name(), task.name);
        Err(Failure::coded(
            FailureClass::ParamsMismatch,
            "unknown-key",
            detail,
        ))
    }

    /// Daemon side: checks one proof (192 bytes) against its public signals, as its consumer would. `vk` is the
    /// circuit's verification key object, if the kind has one. Milliseconds.
    ///
    /// # Errors
    /// `invalid_proof` with the reason.
    fn verify(&self, vk: Option<&[u8]>, public: &[u8], proof: &[u8]) -> Result<(), Failure>;

    /// Daemon side: the verification key of a job that has no circuit, for kinds that keep their keys elsewhere; `request`
    /// reads the canonical request.
    ///
    /// # Errors
    /// `params_mismatch` when it isn't the one that the job was submitted for.
    fn verification_key(
        &self,
        request: &mut dyn FnMut() -> Result<Vec<u8>, Failure>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let _ = request;
        Ok(None)
    }

    /// Daemon side: checks the whole of a job whose partitions were each verified already. Most kinds have nothing to
    /// add.
    ///
    /// # Errors
    /// `join_invalid` with the reason.
    fn verify_joined(&self, request: &[u8], proofs: &[Vec<u8>]) -> Result<(), Failure> {
        let _ = (request, proofs);
        Ok(())
    }
}

/// The kinds of this build, by name.
#[derive(Clone, Default)]
pub struct Kinds(Vec<Arc<dyn Kind>>);

impl Kinds {
    /// No kinds.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// With one more.
    #[must_use]
    pub fn with(mut self, kind: impl Kind) -> Self {
        self.0.push(Arc::new(kind));
        self
    }

    /// The kind of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Kind>> {
        self.0.iter().find(|kind| kind.name() == name)
    }

    /// Every name.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|kind| kind.name()).collect()
    }
}
