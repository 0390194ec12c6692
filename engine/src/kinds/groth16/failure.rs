//! Errors of the crates below as failures of an attempt or an import.

use proofkeep_formats::FormatError;
use proofkeep_groth16::check::CheckError;
use proofkeep_groth16::key::KeyError;
use proofkeep_groth16::stages::{AssembleError, ProveError};
use proofkeep_store::records::{Failure, FailureClass};
use proofkeep_witness::WitnessError;

use crate::kinds::Watch;

/// The input's own fault.
pub(super) fn input(error: &FormatError) -> Failure {
    Failure::coded(FailureClass::InputInvalid, error.code(), error.to_string())
}

/// The calculator found no witness: the input's fault, or its limits'; or it was stopped.
pub(super) fn calculator(error: &WitnessError, watch: &dyn Watch) -> Failure {
    if *error == WitnessError::Stopped {
        return stopped(watch);
    }
    Failure::coded(FailureClass::InputInvalid, error.code(), error.to_string())
}

/// A resident key can't be made from files that an import once accepted.
pub(super) fn key(error: &KeyError) -> Failure {
    Failure::coded(FailureClass::ParamsMismatch, error.code(), error.to_string())
}

/// The circuit is refused for good.
pub(super) fn circuit(code: &str, detail: impl Into<String>) -> Failure {
    Failure::coded(FailureClass::CircuitFailed, code, detail)
}

/// A check of an import failed, or was stopped.
pub(super) fn check(error: &CheckError, watch: &dyn Watch) -> Failure {
    match error {
        CheckError::Stopped(_) => stopped(watch),
        other => circuit(other.code(), other.to_string()),
    }
}

/// The device stage failed, or was stopped.
pub(super) fn prove(error: &ProveError, watch: &dyn Watch) -> Failure {
    let class = match error {
        ProveError::Stopped(_) => return stopped(watch),
        ProveError::Wires { .. } => FailureClass::InputInvalid,
        ProveError::Unsatisfied { .. } => FailureClass::Unsatisfied,
    };
    Failure::coded(class, error.code(), error.to_string())
}

/// The pieces make no proof.
pub(super) fn assemble(error: &AssembleError) -> Failure {
    match error {
        AssembleError::Missing { .. } | AssembleError::NoRandomness | AssembleError::NonCanonical => {
            Failure::coded(FailureClass::DeviceError, "assemble", error.to_string())
        }
        AssembleError::Degenerate(_) => Failure::new(FailureClass::InvalidProof, error.to_string()),
    }
}

/// The reason for which the work was stopped.
pub(super) fn stopped(watch: &dyn Watch) -> Failure {
    watch.stopped().unwrap_or_else(|| {
        Failure::new(
            FailureClass::Interrupted,
            "the work was stopped before it was finished",
        )
    })
}
