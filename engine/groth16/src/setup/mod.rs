//! Keys: the first one of a ceremony, from powers of tau; keys for tests, from a seed; bellperson's parameters, from
//! randomness that is thrown away.

mod ceremony;
mod evaluate;
mod fixed_base;
mod insecure;
mod parameters;
mod progress;
mod toxic_waste;

use std::io;

use blstrs::Scalar;

use crate::control::Stopped;
use crate::curve::{Curve, points_as_bytes};
use crate::field::scalar_to_bytes;
use crate::matrices::MatrixError;

pub use ceremony::{CeremonyError, FirstKey, PtauPointFault, ceremony_setup};
pub(crate) use fixed_base::{batch as setup_batch, multiples_bytes, table_bytes};
pub use insecure::insecure_setup;
pub use parameters::{ParametersError, generate_parameters, parameter_points};
pub use toxic_waste::{ToxicWaste, ToxicWasteError};

/// A key that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The circuit can't be compiled.
    #[error(transparent)]
    Matrices(#[from] MatrixError),
    /// The key can't be written.
    #[error("the key could not be written: {0}")]
    Io(#[from] io::Error),
    /// Stopped by the caller.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// The points that [`insecure_setup`] makes, as its progress callback counts them.
pub fn made_points(wires: u64, domain: u64) -> u64 {
    // IC and C together, A, and B in either group have one for each wire; then H.
    4 * wires + domain
}

/// A point as a key holds it; `N` is [`Curve::AFFINE_BYTES`].
fn point_array<C: Curve, const N: usize>(point: &C::Affine) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(points_as_bytes::<C>(std::slice::from_ref(point)));
    out
}

/// `scalar·base`, in constant time.
fn multiple<C: Curve>(base: &C::Affine, scalar: &Scalar) -> C::Affine {
    C::to_affine(&C::mul(&C::to_point(base), &scalar_to_bytes(scalar)))
}
