//! Checks a proving key once, when it is imported: every point, and that it belongs to its circuit.

use std::ops::{ControlFlow, Range};

use proofkeep_formats::field::is_canonical_q;
use proofkeep_formats::zkey::Zkey;
use rand::rngs::OsRng;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;

use crate::backend::Backend;
use crate::control::Stopped;
use crate::curve::{Curve, G1, G2, bytes_as_points, points_as_bytes, read_point};
use crate::matrices::{Matrices, MatrixError, Mismatch};
use crate::quotient::on_threads;
use crate::subgroup::all_in_subgroup;
use crate::sums::SumsOn;
use crate::verify::product_is_one;
use crate::vk::{UnfinishedSetup, VerifyingKey, VkError, check_point};

/// Points checked at once, between two calls of the progress callback: at most about two seconds of one thread. More would
/// cost little less for each point, and take more memory.
pub(crate) const SLICE: u64 = 1 << 17;

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
        /// `"β"` or `"δ"`.
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

/// What is wrong with a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointFault {
    /// A coordinate is not below the base field's order.
    NonCanonical,
    /// The coordinates don't satisfy the curve equation.
    OffCurve,
    /// The point is not of order `r`.
    OutsideSubgroup,
}

impl PointFault {
    pub(crate) fn code(self) -> &'static str {
        match self {
            PointFault::NonCanonical => "non-canonical",
            PointFault::OffCurve => "point-off-curve",
            PointFault::OutsideSubgroup => "point-outside-subgroup",
        }
    }
}

impl std::fmt::Display for PointFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            PointFault::NonCanonical => {
                "has a coordinate that is not below the order of BLS12-381's base field"
            }
            PointFault::OffCurve => "is not on the curve",
            PointFault::OutsideSubgroup => "is outside the prime-order subgroup",
        })
    }
}

/// The first of the points that is not canonical, not on the curve or not in the subgroup, the identity passing; a point
/// outside the subgroup is missed with a chance below 2^-128. Takes a few bytes for each point beside them.
pub fn first_fault<C: SumsOn>(points: &[C::Affine], backend: &dyn Backend) -> Option<(usize, PointFault)> {
    let mut off_curve = None;
    on_threads(backend, || {
        off_curve = points
            .par_iter()
            .with_min_len(64)
            .enumerate()
            .find_map_first(|(index, point)| Some((index, equation_fault::<C>(point)?)));
    });
    // Sums are of points on the curve only.
    let points = &points[..off_curve.map_or(points.len(), |(index, _)| index)];
    if all_in_subgroup::<C>(points, backend, &mut fresh_random()) {
        return off_curve;
    }
    let mut outside = None;
    on_threads(backend, || {
        outside = points
            .par_iter()
            .with_min_len(8)
            .position_first(|point| !C::in_subgroup(point));
    });
    outside
        .map(|index| (index, PointFault::OutsideSubgroup))
        .or(off_curve)
}

/// What is wrong with the coordinates of a point, if anything.
fn equation_fault<C: Curve>(point: &C::Affine) -> Option<PointFault> {
    let bytes = points_as_bytes::<C>(std::slice::from_ref(point));
    if !bytes.as_chunks::<48>().0.iter().all(is_canonical_q) {
        Some(PointFault::NonCanonical)
    } else if !C::on_curve(point) {
        Some(PointFault::OffCurve)
    } else {
        None
    }
}

fn fresh_random() -> ChaCha20Rng {
    let mut seed = [0; 32];
    OsRng.fill_bytes(&mut seed);
    ChaCha20Rng::from_seed(seed)
}

/// The first bad point of a range of a section.
fn first_fault_in<C: SumsOn>(
    section: &[u8],
    range: Range<u64>,
    backend: &dyn Backend,
) -> Option<(u64, PointFault)> {
    let size = C::AFFINE_BYTES;
    let bytes = &section[range.start as usize * size..range.end as usize * size];
    let found = match bytes_as_points::<C>(bytes) {
        Some(points) => first_fault::<C>(points, backend),
        None => {
            let points: Vec<C::Affine> = bytes.chunks_exact(size).map(read_point::<C>).collect();
            first_fault::<C>(&points, backend)
        }
    };
    found.map(|(index, fault)| (range.start + index as u64, fault))
}

/// The vectors of points that a key has, in the order in which they are checked.
fn sections<'z>(zkey: &Zkey<'z>) -> [(&'static str, &'z [u8], usize); 5] {
    [
        ("section 5 (A)", zkey.a, G1::AFFINE_BYTES),
        ("section 6 (B in G1)", zkey.b1, G1::AFFINE_BYTES),
        ("section 7 (B in G2)", zkey.b2, G2::AFFINE_BYTES),
        ("section 8 (C)", zkey.c, G1::AFFINE_BYTES),
        ("section 9 (H)", zkey.h, G1::AFFINE_BYTES),
    ]
}

/// How many points [`check_points`] looks at.
pub fn point_count(zkey: &Zkey<'_>) -> u64 {
    sections(zkey)
        .iter()
        .map(|(_, bytes, size)| (bytes.len() / size) as u64)
        .sum()
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
    let minus_one = G1::to_affine(&G1::neg(&G1::to_point(&G1::generator())));
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
pub fn check_points(
    zkey: &Zkey<'_>,
    from: u64,
    backend: &dyn Backend,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<(), CheckError> {
    let total = point_count(zkey);
    let mut first = 0;
    for (name, bytes, size) in sections(zkey) {
        let count = (bytes.len() / size) as u64;
        let mut start = from.saturating_sub(first).min(count);
        while start < count {
            let end = count.min(start + SLICE);
            let found = if size == G2::AFFINE_BYTES {
                first_fault_in::<G2>(bytes, start..end, backend)
            } else {
                first_fault_in::<G1>(bytes, start..end, backend)
            };
            if let Some((index, fault)) = found {
                return Err(CheckError::Point {
                    section: name,
                    index,
                    fault,
                });
            }
            start = end;
            if progress(first + end, total).is_break() && first + end < total {
                return Err(Stopped.into());
            }
        }
        first += count;
    }
    Ok(())
}

/// Checks that a key was made from a circuit: counts, and `A` and `B` row by row, input rows included.
pub fn check_circuit(zkey: &Zkey<'_>, circuit: &Matrices) -> Result<(), CheckError> {
    Ok(circuit.belongs(&Matrices::from_zkey(zkey)?)?)
}
