//! The file of a proving key, in either format: snarkjs's `.zkey`, or bellperson's parameters.
//!
//! One record names both: what a file is, its first bytes say.

use std::ops::ControlFlow;

use proofkeep_formats::params::Params;
use proofkeep_formats::zkey::{ContributionKind, Zkey};
use proofkeep_groth16::backend::Backend;
use proofkeep_groth16::check::{
    CheckError, check_circuit, check_params_points, check_params_vk, check_points, check_vk_with,
    params_point_count, point_count,
};
use proofkeep_groth16::key::check_params_circuit;
use proofkeep_groth16::matrices::Matrices;
use proofkeep_groth16::vk::{UnfinishedSetup, VerifyingKey};
use proofkeep_store::records::Failure;
use serde_json::{Value, json};

use super::{failure, local_setup};
use crate::kinds::Watch;

/// The format in descriptions of a setup; a `.zkey` names none.
pub const BELLPERSON: &str = "bellperson";

/// Whether a key file is a `.zkey`. Parameters begin with a point, whose first bits those letters can't be.
pub(super) fn is_zkey(bytes: &[u8]) -> bool {
    bytes.starts_with(b"zkey")
}

/// A key file that lies in memory.
pub(super) enum KeyFile<'a> {
    /// snarkjs's.
    Zkey(Zkey<'a>),
    /// bellperson's.
    Params(Params<'a>),
}

impl<'a> KeyFile<'a> {
    /// Finds its sections or lists.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Failure> {
        let parsed = match is_zkey(bytes) {
            true => Zkey::parse(bytes).map(Self::Zkey),
            false => Params::parse(bytes).map(Self::Params),
        };
        parsed.map_err(|error| failure::circuit(error.code(), error.to_string()))
    }

    /// Checks the points of the verifying key.
    pub fn check_vk(&self, unfinished: UnfinishedSetup) -> Result<VerifyingKey, CheckError> {
        match self {
            Self::Zkey(zkey) => check_vk_with(zkey, unfinished),
            Self::Params(params) => check_params_vk(params, unfinished),
        }
    }

    /// The matrices of its circuit: those of the `.r1cs`, held against the key, or those in the `.zkey`.
    pub fn matrices(&self, circuit: Option<Matrices>, watch: &dyn Watch) -> Result<Matrices, Failure> {
        match (self, circuit) {
            (Self::Zkey(zkey), Some(circuit)) => {
                check_circuit(zkey, &circuit).map_err(|error| failure::check(&error, watch))?;
                Ok(circuit)
            }
            (Self::Zkey(zkey), None) => {
                Matrices::from_zkey(zkey).map_err(|error| failure::circuit(error.code(), error.to_string()))
            }
            (Self::Params(params), Some(circuit)) => {
                check_params_circuit(params, &circuit)
                    .map_err(|error| failure::circuit(error.code(), error.to_string()))?;
                Ok(circuit)
            }
            (Self::Params(_), None) => Err(failure::circuit(
                "r1cs-missing",
                "parameters don't hold their circuit; register them with the .r1cs",
            )),
        }
    }

    /// Wires, the constant one among them.
    pub fn wires(&self) -> u64 {
        match self {
            Self::Zkey(zkey) => zkey.header.wires.into(),
            Self::Params(params) => params.wires(),
        }
    }

    /// How many points [`Self::check_points`] looks at.
    pub fn point_count(&self) -> u64 {
        match self {
            Self::Zkey(zkey) => point_count(zkey),
            Self::Params(params) => params_point_count(params),
        }
    }

    /// Checks every point from number `from` on.
    pub fn check_points(
        &self,
        from: u64,
        backend: &dyn Backend,
        progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<(), CheckError> {
        match self {
            Self::Zkey(zkey) => check_points(zkey, from, backend, progress),
            Self::Params(params) => check_params_points(params, from, backend, progress),
        }
    }

    /// Where the key comes from, and whether anyone may be able to forge under it.
    pub fn setup(&self, vk: &VerifyingKey) -> (Value, bool) {
        match self {
            Self::Zkey(zkey) => of_zkey(zkey),
            Self::Params(_) => (of_params(vk.is_unfinished()), true),
        }
    }
}

/// A parameter file doesn't say who made it, so whoever did may be able to forge.
pub(crate) fn of_params(unfinished: bool) -> Value {
    let kind = if unfinished { "unfinished" } else { "unknown" };
    json!({ "kind": kind, "format": BELLPERSON })
}

/// What the contributions in a `.zkey` say.
fn of_zkey(zkey: &Zkey<'_>) -> (Value, bool) {
    let section = zkey.contributions.as_ref();
    if zkey.is_unfinished() {
        let setup = json!({
            "kind": "unfinished",
            "contributions": section.map_or(0, |section| section.list.len()),
            "circuit_hash": section.map(|section| hex::encode(section.circuit_hash)),
        });
        return (setup, true);
    }
    let Some(section) = section else {
        return (json!({"kind": "unknown", "contributions": 0}), true);
    };
    if section.list.is_empty() {
        // No contribution and yet γ₂ ≠ δ₂: whoever made it chose δ, as our own `setup --insecure` does.
        return (
            json!({"kind": local_setup::INSECURE_LOCAL, "contributions": 0}),
            true,
        );
    }
    let beacon = section
        .list
        .iter()
        .any(|one| !matches!(one.kind, ContributionKind::Contribution));
    let setup = json!({
        "kind": "phase2",
        "contributions": section.list.len(),
        "circuit_hash": hex::encode(section.circuit_hash),
        "beacon": beacon,
    });
    (setup, false)
}
