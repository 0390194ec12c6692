//! The proving key in the one form that the prover works on, whatever it was made from.

mod bellperson;
mod params;
mod zkey;

use std::fmt;
use std::sync::Arc;

use blst::{blst_p1_affine, blst_p2_affine};

use proofkeep_formats::count;

use crate::bases::BaseSet;
use crate::check::CheckError;
use crate::curve::{G1, G2};
use crate::domain::Domain;
use crate::matrices::{Csr, Matrices, MatrixError};
use crate::quotient::HBasis;
use crate::vk::{VerifyingKey, VkError};
pub use params::{ReadParamsError, check_params_circuit};

/// A proving key that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file is broken, or of another curve or proof system.
    #[error(transparent)]
    Format(#[from] proofkeep_formats::FormatError),
    /// The verifying key in it can't be trusted.
    #[error(transparent)]
    VerifyingKey(#[from] VkError),
    /// The matrices can't be compiled.
    #[error(transparent)]
    Matrices(#[from] MatrixError),
    /// A point can't be used.
    #[error(transparent)]
    Check(Box<CheckError>),
    /// A vector of the key has another length than the circuit asks for.
    #[error(
        "the key has {} {what}, the circuit asks for {expected}: it belongs to another circuit",
        count(*.found, "point")
    )]
    Points {
        /// Which vector.
        what: &'static str,
        /// By the circuit.
        expected: usize,
        /// By the key.
        found: usize,
    },
}

impl KeyError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            KeyError::Format(error) => error.code(),
            KeyError::VerifyingKey(error) => error.code(),
            KeyError::Matrices(error) => error.code(),
            KeyError::Check(error) => error.code(),
            KeyError::Points { .. } => "circuit-mismatch",
        }
    }
}

impl From<CheckError> for KeyError {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::VerifyingKey(error) => KeyError::VerifyingKey(error),
            other => KeyError::Check(Box::new(other)),
        }
    }
}

/// The wires of a matrix's columns that are not empty: bellperson leaves the points of the others out.
fn in_matrix(matrix: &Csr, wires: usize) -> Vec<u32> {
    (0u32..)
        .zip(matrix.columns(wires))
        .filter(|(_, used)| *used)
        .map(|(wire, _)| wire)
        .collect()
}

fn expect(what: &'static str, expected: usize, found: usize) -> Result<(), KeyError> {
    if expected == found {
        Ok(())
    } else {
        Err(KeyError::Points {
            what,
            expected,
            found,
        })
    }
}

/// Everything a proof needs but the witness. Base points are those of the wires with an entry in the matrix; points in
/// a mapped file are read in place where their alignment permits.
pub struct ProvingKey {
    pub(crate) matrices: Arc<Matrices>,
    pub(crate) domain: Arc<Domain>,
    pub(crate) h_basis: HBasis,
    pub(crate) vk: VerifyingKey,
    pub(crate) beta1: blst_p1_affine,
    pub(crate) delta1: blst_p1_affine,
    pub(crate) h: BaseSet<G1>,
    pub(crate) l: BaseSet<G1>,
    pub(crate) a: BaseSet<G1>,
    pub(crate) b1: BaseSet<G1>,
    pub(crate) b2: BaseSet<G2>,
}

impl fmt::Debug for ProvingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProvingKey")
            .field("wires", &self.matrices.wires())
            .field("public", &self.matrices.public())
            .field("log2", &self.domain.log2())
            .field("root", &self.domain.root())
            .field("h_basis", &self.h_basis)
            .finish_non_exhaustive()
    }
}

impl ProvingKey {
    /// The key that verifies what this one proves.
    pub fn vk(&self) -> &VerifyingKey {
        &self.vk
    }

    /// The compiled constraint system.
    pub fn matrices(&self) -> &Matrices {
        &self.matrices
    }

    /// The evaluation domain.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// What the H bases are.
    pub fn h_basis(&self) -> HBasis {
        self.h_basis
    }

    /// Bytes that the key holds beside the mapped file.
    pub fn owned_bytes(&self) -> u64 {
        let sets = [&self.h, &self.l, &self.a, &self.b1];
        sets.iter().map(|set| set.owned_bytes()).sum::<u64>()
            + self.b2.owned_bytes()
            + self.matrices.bytes()
            + 64 * self.domain.size() as u64
    }

    pub(crate) fn delta2(&self) -> &blst_p2_affine {
        &self.vk.delta2
    }
}
