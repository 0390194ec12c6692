//! The device-shaped seam: transforms and multi-scalar multiplications behind one small trait.

mod blst;
mod choice;
#[cfg(target_arch = "x86_64")]
mod ifma;

use ::blst::{blst_p1, blst_p1_affine, blst_p2, blst_p2_affine};
use blstrs::Scalar;
use rayon::prelude::*;

use crate::bases::BaseSet;
use crate::control::{Control, Stopped};
use crate::curve::{Curve, G1, G2};
use crate::domain::Domain;
use crate::field::ScalarBytes;
use crate::quotient::{HBasis, on_threads, quotient};
use crate::sums::Groups;

pub use self::blst::BlstBackend;
pub use choice::{BackendError, CpuBackend, SETTING};
#[cfg(target_arch = "x86_64")]
pub use ifma::IfmaBackend;

/// What a device does for the prover. Everything else is done by the processor, on [`Backend::on_threads`].
pub trait Backend: Sync {
    /// What it computes with, in a word.
    fn name(&self) -> &'static str;

    /// How many threads of the processor the backend may use.
    fn threads(&self) -> usize;

    /// Runs `work` once, with rayon's parallel iterators on the backend's own threads.
    fn on_threads(&self, work: &mut (dyn FnMut() + Send));

    /// See [`Domain::interpolate`].
    fn interpolate(&self, domain: &Domain, values: &mut [Scalar]) {
        self.on_threads(&mut || domain.interpolate(values));
    }

    /// See [`Domain::evaluate`].
    fn evaluate(&self, domain: &Domain, coefficients: &mut [Scalar]) {
        self.on_threads(&mut || domain.evaluate(coefficients));
    }

    /// The scalars of the H bases as canonical limbs, from the values of `A·w` and `B·w` over the domain, whose memory is
    /// used; what is not returned is wiped. `control` is asked after each of six transforms.
    fn quotient(
        &self,
        domain: &Domain,
        a: Vec<Scalar>,
        b: Vec<Scalar>,
        basis: HBasis,
        control: &dyn Control,
    ) -> Result<Vec<Scalar>, Stopped> {
        quotient(self, domain, a, b, basis, control)
    }

    /// `Σ scalars[wire(k)]·point(k)` over G1. Scalars are canonical, little-endian, one for every wire that the bases
    /// name. `control` is asked between slices of at most about a second.
    fn msm_g1(
        &self,
        bases: &BaseSet<G1>,
        scalars: &[ScalarBytes],
        control: &dyn Control,
    ) -> Result<blst_p1, Stopped>;

    /// The same over G2.
    fn msm_g2(
        &self,
        bases: &BaseSet<G2>,
        scalars: &[ScalarBytes],
        control: &dyn Control,
    ) -> Result<blst_p2, Stopped>;

    /// `out` takes the sum of each group of points, the identity for a group of none. Points are on the curve and none
    /// is the identity; they may be outside the prime-order subgroup, equal or opposite. Not constant-time.
    fn sums_g1(&self, points: &[blst_p1_affine], groups: &Groups, out: &mut [blst_p1_affine]);

    /// The same in G2.
    fn sums_g2(&self, points: &[blst_p2_affine], groups: &Groups, out: &mut [blst_p2_affine]);

    /// The first point that is neither on the curve nor the identity; coordinates are below the base field's order.
    fn first_off_curve_g1(&self, points: &[blst_p1_affine]) -> Option<usize> {
        first_off_curve::<G1, _>(self, points)
    }

    /// The same in G2.
    fn first_off_curve_g2(&self, points: &[blst_p2_affine]) -> Option<usize> {
        first_off_curve::<G2, _>(self, points)
    }
}

/// The same with blst's arithmetic.
fn first_off_curve<C: Curve, B: Backend + ?Sized>(backend: &B, points: &[C::Affine]) -> Option<usize> {
    let mut first = None;
    on_threads(backend, || {
        first = points
            .par_iter()
            .with_min_len(64)
            .position_first(|point| !C::on_curve(point));
    });
    first
}
