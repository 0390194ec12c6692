//! Checks a proving key once, when it is imported: every point, and that it belongs to its circuit.

mod params;
mod points;

use std::ops::ControlFlow;

use proofkeep_formats::zkey::Zkey;

use crate::backend::Backend;
use crate::control::Stopped;
use crate::curve::{Curve, G1, G2, read_point};
use crate::matrices::{Matrices, MatrixError, Mismatch};
use crate::verify::product_is_one;
use crate::vk::{UnfinishedSetup, VerifyingKey, VkError, check_point};
pub use params::{check_params_points, check_params_vk, params_point_count};
use points::{Form, Group, Section, check_sections};
pub use points::{PointFault, first_fault};
pub(crate) use points::{SLICE, decoded};

/// A proving key that must not be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The verifying key in it can't be trusted; among these, a setup that is unfinished.
    #[error(transparent)]
    VerifyingKey(#[from] VkError),
    /// A point is none.
    #[error(
        "point {index} of the key's {section} {fault}: the key is damaged or made to cheat, get it again"
    )]
    Point {
        /// Which vector of the key.
        section: &'static str,
        /// The first bad point in it, counted from 0.
        index: u64,
        /// What is wrong.
        fault: PointFault,
    },
    /// β or δ in G1 is not the same as in G2.
    #[error(
        "{name} of the key is not the same in G1 and in G2: the key is damaged or made to cheat, get it again"
    )]
    Unequal {
        /// `"β"` or `"δ"`, or the ratio of both.
        name: &'static str,
    },
    /// The key belongs to another circuit.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// Matrices of key or circuit can't be compiled.
    #[error(transparent)]
    Matrices(#[from] MatrixError),
    /// Stopped by the caller.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl CheckError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            CheckError::VerifyingKey(error) => error.code(),
            CheckError::Point { fault, .. } => fault.code(),
            CheckError::Unequal { .. } => "key-inconsistent",
            CheckError::Mismatch(_) => "circuit-mismatch",
            CheckError::Matrices(error) => error.code(),
            CheckError::Stopped(_) => "stopped",
        }
    }
}

/// The vectors of points that a key has, in the order in which they are checked.
fn zkey_sections<'z>(zkey: &Zkey<'z>) -> [Section<'z>; 5] {
    let section = |name, group, bytes| Section {
        name,
        group,
        bytes,
        form: Form::Limbs,
    };
    [
        section("section 5 (A)", Group::G1, zkey.a),
        section("section 6 (B in G1)", Group::G1, zkey.b1),
        section("section 7 (B in G2)", Group::G2, zkey.b2),
        section("section 8 (C)", Group::G1, zkey.c),
        section("section 9 (H)", Group::G1, zkey.h),
    ]
}

/// How many points [`check_points`] looks at.
pub fn point_count(zkey: &Zkey<'_>) -> u64 {
    zkey_sections(zkey).iter().map(Section::len).sum()
}

/// Checks the header's points and IC: on the curve, in the subgroup, not the identity, β and δ the same in both groups,
/// γ₂ ≠ δ₂. Takes a few milliseconds and one more for every twenty public signals.
///
/// # Errors
/// [`CheckError::VerifyingKey`] or [`CheckError::Unequal`].
pub fn check_vk(zkey: &Zkey<'_>) -> Result<VerifyingKey, CheckError> {
    check_vk_with(zkey, UnfinishedSetup::Refuse)
}

/// [`check_vk`], with a word on unfinished setups.
///
/// # Errors
/// As there.
pub fn check_vk_with(zkey: &Zkey<'_>, unfinished: UnfinishedSetup) -> Result<VerifyingKey, CheckError> {
    // Said before any point is looked at, which takes time.
    if zkey.is_unfinished() && unfinished == UnfinishedSetup::Refuse {
        return Err(VkError::SetupUnfinished.into());
    }
    let vk = VerifyingKey::from_zkey_with(zkey, unfinished)?;
    let (beta1, delta1) = (read_point::<G1>(zkey.beta1), read_point::<G1>(zkey.delta1));
    check_point::<G1>(&beta1, || "β₁".to_owned())?;
    check_point::<G1>(&delta1, || "δ₁".to_owned())?;
    let minus_one = G1::neg_affine(&G1::generator());
    for (name, in_g1, in_g2) in [("β", &beta1, &vk.beta2), ("δ", &delta1, &vk.delta2)] {
        if !product_is_one(&[(in_g1, &G2::generator()), (&minus_one, in_g2)]) {
            return Err(CheckError::Unequal { name });
        }
    }
    Ok(vk)
}

/// Checks every point of sections 5 to 9 from number `from` on: canonical, on the curve, in the subgroup. The identity
/// may occur (wires without an entry). On the backend's threads, in slices; after each, `progress` gets how many points
/// are done, of how many, and answers whether to go on. What it got last is where a later call can go on. A bad point is
/// missed with a chance below 2^-128: `subgroup.rs` has the proof.
///
/// # Errors
/// [`CheckError::Point`] or [`CheckError::Stopped`].
pub fn check_points(
    zkey: &Zkey<'_>,
    from: u64,
    backend: &dyn Backend,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<(), CheckError> {
    check_sections(&zkey_sections(zkey), from, backend, progress)
}

/// Checks that a key was made from a circuit: counts, and `A` and `B` row by row, input rows included.
pub fn check_circuit(zkey: &Zkey<'_>, circuit: &Matrices) -> Result<(), CheckError> {
    Ok(circuit.belongs(&Matrices::from_zkey(zkey)?)?)
}
