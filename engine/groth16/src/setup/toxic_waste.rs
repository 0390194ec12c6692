//! The randomness that a set of parameters is made from.

use std::fmt;

use blst::{blst_p1_affine, blst_p2_affine};
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use ff::Field;
use group::Group;
use rand::{CryptoRng, RngCore};

use crate::curve::{Curve, G1, G2};
use crate::field::wipe;

/// τ, α, β, γ, δ and the two generators. **Whoever knows the scalars can forge proofs**: they are wiped when dropped, and
/// neither shown nor written.
pub struct ToxicWaste {
    pub(super) g1: blst_p1_affine,
    pub(super) g2: blst_p2_affine,
    pub(super) scalars: ToxicScalars,
}

/// The secret part.
pub(super) struct ToxicScalars {
    pub alpha: Scalar,
    pub beta: Scalar,
    pub gamma: Scalar,
    pub delta: Scalar,
    pub tau: Scalar,
}

impl Drop for ToxicScalars {
    fn drop(&mut self) {
        for scalar in [
            &mut self.alpha,
            &mut self.beta,
            &mut self.gamma,
            &mut self.delta,
            &mut self.tau,
        ] {
            wipe(std::slice::from_mut(scalar));
        }
    }
}

impl fmt::Debug for ToxicWaste {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToxicWaste").finish_non_exhaustive()
    }
}

/// Randomness that makes no parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToxicWasteError {
    /// A scalar is zero.
    #[error("one of τ, α, β, γ and δ is zero: draw them again")]
    Zero,
    /// A generator generates nothing.
    #[error("a generator is the identity or outside the prime-order subgroup: draw it again")]
    Generator,
}

impl ToxicWaste {
    /// Drawn from a generator in the order in which bellperson's `generate_random_parameters` draws, so that the same
    /// numbers make the same parameters.
    ///
    /// # Errors
    /// With a chance of about 2^-250.
    pub fn random(rng: &mut (impl RngCore + CryptoRng)) -> Result<Self, ToxicWasteError> {
        let g1 = G1Projective::random(&mut *rng).into();
        let g2 = G2Projective::random(&mut *rng).into();
        let mut scalars = [(); 5].map(|()| Scalar::random(&mut *rng));
        let waste = Self::new(&g1, &g2, scalars);
        wipe(&mut scalars);
        waste
    }

    /// From generators and `[α, β, γ, δ, τ]`.
    ///
    /// # Errors
    /// Scalars that are zero, or points that aren't of order `r`.
    pub fn new(g1: &G1Affine, g2: &G2Affine, mut scalars: [Scalar; 5]) -> Result<Self, ToxicWasteError> {
        let [alpha, beta, gamma, delta, tau] = scalars;
        let waste = ToxicWaste {
            g1: *g1.as_ref(),
            g2: *g2.as_ref(),
            scalars: ToxicScalars {
                alpha,
                beta,
                gamma,
                delta,
                tau,
            },
        };
        let any_zero = scalars.iter().any(Scalar::is_zero_vartime);
        wipe(&mut scalars);
        if any_zero {
            return Err(ToxicWasteError::Zero);
        }
        if generates::<G1>(&waste.g1) && generates::<G2>(&waste.g2) {
            Ok(waste)
        } else {
            Err(ToxicWasteError::Generator)
        }
    }
}

fn generates<C: Curve>(point: &C::Affine) -> bool {
    !C::is_identity(point) && C::on_curve(point) && C::in_subgroup(point)
}
