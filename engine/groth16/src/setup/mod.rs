//! Keys: the first one of a ceremony, from powers of tau, and keys for tests, from a seed.

mod ceremony;
mod fixed_base;
mod insecure;

use std::io;

use crate::control::Stopped;
use crate::curve::{Curve, points_as_bytes};
use crate::matrices::MatrixError;

pub use ceremony::{CeremonyError, FirstKey, PtauPointFault, ceremony_setup};
pub use insecure::insecure_setup;

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

/// A point as a key holds it; `N` is [`Curve::AFFINE_BYTES`].
fn point_array<C: Curve, const N: usize>(point: &C::Affine) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(points_as_bytes::<C>(std::slice::from_ref(point)));
    out
}
