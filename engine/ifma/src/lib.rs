//! Arithmetic of BLS12-381 on eight elements at once, with the AVX-512 instructions `vpmadd52luq` and `vpmadd52huq`
//! (IFMA), which multiply eight pairs of 52-bit numbers.
//!
//! * [`Ifma::detect`] gives a token on processors that have the instructions; everything asks for it.
//! * [`quotient`]: the transforms of a proof.
//! * [`Adder`]: sums of many groups of points; [`first_off_curve`]: the curve's equation.
//! * [`msm()`]: multi-scalar multiplication in [`G1`] and [`G2`], on blst's points in place.
//!
//! Everything here is **not constant-time**: which instructions run, and which memory is read, depends on scalars. So
//! it is for a prover on a machine that strangers don't share; who runs on the same core can learn of the witness. The
//! other backend, blst's multi-scalar multiplication, isn't constant-time either.
//!
//! `unsafe` is confined to this crate: vectors are read from plain memory, blst is called, and code for the
//! instructions is entered.

#[macro_use]
mod straight;

mod fp;
mod fr;
mod modulus;

#[cfg(test)]
mod check;
#[cfg(target_arch = "x86_64")]
mod group;
#[cfg(target_arch = "x86_64")]
mod lanes;
#[cfg(target_arch = "x86_64")]
mod msm;
#[cfg(target_arch = "x86_64")]
mod ntt;
#[cfg(target_arch = "x86_64")]
pub mod rate;
#[cfg(target_arch = "x86_64")]
mod scalar;
#[cfg(target_arch = "x86_64")]
mod sums;
#[cfg(target_arch = "x86_64")]
mod word;

#[cfg(target_arch = "x86_64")]
pub use group::{G1, G2, Group, NEGATIVE};
#[cfg(target_arch = "x86_64")]
pub use msm::{Terms, memory, msm};
#[cfg(target_arch = "x86_64")]
pub use ntt::{Basis, Domain, quotient};
#[cfg(target_arch = "x86_64")]
pub use sums::{Adder, first_off_curve};

/// Proof that the processor has the instructions.
#[derive(Clone, Copy, Debug)]
pub struct Ifma(());

impl Ifma {
    /// `None` where the processor lacks one of the instructions that the code here is made of: AVX-512 F, DQ, BW, VL,
    /// IFMA and VBMI2, and BMI2. Intel's servers have them since Ice Lake, AMD's since Zen 4.
    pub fn detect() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        let found = word::detected();
        #[cfg(not(target_arch = "x86_64"))]
        let found = false;
        found.then_some(Ifma(()))
    }
}
