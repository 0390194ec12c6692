//! Kind `groth16`: proofs of circom's circuits over BLS12-381, from witnesses or from inputs.

mod failure;
pub(crate) mod headers;
mod import;
mod input;
mod key;
pub(crate) mod key_file;
mod local_setup;
pub(crate) mod plan;
mod prepared;
mod synthesis;
mod vks;

use proofkeep_formats::json::VkJson;
use proofkeep_groth16::proof::Proof;
use proofkeep_groth16::verify::verify;
use proofkeep_groth16::vk::{UnfinishedSetup, VerifyingKey};
use proofkeep_store::records::{Failure, FailureClass, OnFailure, Priority};
use serde_json::{Map, Value};

pub use import::{Imported, import, import_bytes};
pub use key::ResidentKey;
pub use key_file::BELLPERSON;
pub use local_setup::{INSECURE_LOCAL, local_setup_bytes};
pub use prepared::{Check, Ready};

use super::{Defaults, Desk, Kind, Plan, Prepared, SynthTask, Watch};
use crate::problem::Problem;

/// The kind's name in requests.
pub const NAME: &str = "groth16";

/// Proofs of circom's circuits.
#[derive(Debug, Default)]
pub struct Groth16 {
    vks: vks::Parsed,
}

impl Groth16 {
    /// The kind.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Kind for Groth16 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn defaults(&self) -> Defaults {
        Defaults {
            priority: Priority::Normal,
            on_failure: OnFailure::Continue,
            max_attempts: 3,
        }
    }

    fn plan(&self, fields: Map<String, Value>, desk: &dyn Desk) -> Result<Plan, Problem> {
        plan::plan(fields, desk)
    }

    fn synthesize(&self, task: &SynthTask<'_>, watch: &dyn Watch) -> Result<Box<dyn Prepared>, Failure> {
        synthesis::synthesize(task, watch).map(|prepared| Box::new(prepared) as Box<dyn Prepared>)
    }

    fn verify(&self, vk: Option<&[u8]>, public: &[u8], proof: &[u8]) -> Result<(), Failure> {
        let vk = vk.ok_or_else(|| {
            Failure::coded(
                FailureClass::InvalidProof,
                "vk-missing",
                "a groth16 proof is verified with a verification key, and none is there; is the circuit imported?",
            )
        })?;
        let vk = self.vks.get(vk)?;
        verify_bytes(&vk, public, proof)
    }
}

/// Reads a verification key as the import wrote it (snarkjs's `verification_key.json`). An import writes the key of an
/// unfinished setup only where its circuit allows it, so that isn't asked again.
fn read_vk(bytes: &[u8]) -> Result<VerifyingKey, Failure> {
    let unreadable = |code: &str, detail: String| Failure::coded(FailureClass::InvalidProof, code, detail);
    let json = VkJson::from_json(bytes).map_err(|error| unreadable(error.code(), error.to_string()))?;
    VerifyingKey::from_json_with(&json, UnfinishedSetup::Accept)
        .map_err(|error| unreadable(error.code(), error.to_string()))
}

/// Verifies 192 bytes against 32 little-endian bytes for each public signal.
fn verify_bytes(vk: &VerifyingKey, public: &[u8], proof: &[u8]) -> Result<(), Failure> {
    let invalid = |code: &str, detail: String| Failure::coded(FailureClass::InvalidProof, code, detail);
    let (signals, rest) = public.as_chunks::<32>();
    if !rest.is_empty() {
        let detail = format!(
            "the public signals take {} bytes, expected a multiple of 32",
            public.len()
        );
        return Err(invalid("public-length", detail));
    }
    let proof = Proof::from_bytes(proof).map_err(|error| invalid(error.code(), error.to_string()))?;
    verify(vk, signals, &proof).map_err(|error| invalid(error.code(), error.to_string()))
}
