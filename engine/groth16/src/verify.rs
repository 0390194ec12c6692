//! Verification: `e(A, B) = e(α, β)·e(Σ inputᵢ·ICᵢ, γ)·e(C, δ)` (Groth 2016, section 3.2).

use blst::{blst_fp12, blst_p1_affine, blst_p2_affine};
use proofkeep_formats::field::is_canonical_r;

use crate::bases::BaseSet;
use crate::curve::{Curve, G1, G2};
use crate::field::ScalarBytes;
use crate::msm::msm_on_this_thread;
use proofkeep_formats::count;

use crate::proof::Proof;
use crate::vk::VerifyingKey;

/// A proof that is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The circuit has another number of public signals.
    #[error(
        "the verifying key is for {}, found {found}: they are of another circuit",
        count(*.expected, "public signal")
    )]
    PublicCount {
        /// By the key.
        expected: usize,
        /// What was given.
        found: usize,
    },
    /// A public signal is not below `r`; accepting it would let one statement be written in several ways.
    #[error("public signal {index} is not below the order of BLS12-381's scalar field")]
    NonCanonical {
        /// The first such signal.
        index: usize,
    },
    /// The equation does not hold.
    #[error("the proof does not hold for these public signals under this verifying key")]
    Rejected,
}

impl VerifyError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            VerifyError::PublicCount { .. } => "bad-count",
            VerifyError::NonCanonical { .. } => "non-canonical",
            VerifyError::Rejected => "proof-invalid",
        }
    }
}

/// Accepts a proof of the public signals (little-endian, in their order, without the constant), or says why not.
///
/// The points of key and proof were checked when they were made: on the curve, in the subgroup, not the identity.
pub fn verify(vk: &VerifyingKey, public: &[ScalarBytes], proof: &Proof) -> Result<(), VerifyError> {
    if public.len() != vk.public() {
        return Err(VerifyError::PublicCount {
            expected: vk.public(),
            found: public.len(),
        });
    }
    if let Some(index) = public.iter().position(|value| !is_canonical_r(value)) {
        return Err(VerifyError::NonCanonical { index });
    }
    let [constant, signals @ ..] = &vk.ic[..] else {
        return Err(VerifyError::Rejected);
    };
    let sum = msm_on_this_thread(&BaseSet::<G1>::full(signals.to_vec()), public);
    let inputs = G1::to_affine(&G1::add_affine(&sum, constant));
    let minus_a = G1::to_affine(&G1::neg(&G1::to_point(&proof.a)));

    let mut pairs = vec![
        (&minus_a, &proof.b),
        (&vk.alpha1, &vk.beta2),
        (&proof.c, &vk.delta2),
    ];
    // The pairing with the identity is one.
    if !G1::is_identity(&inputs) {
        pairs.push((&inputs, &vk.gamma2));
    }
    if product_is_one(&pairs) {
        Ok(())
    } else {
        Err(VerifyError::Rejected)
    }
}

/// Whether the product of the pairings is one. No point is the identity.
pub(crate) fn product_is_one(pairs: &[(&blst_p1_affine, &blst_p2_affine)]) -> bool {
    debug_assert!(
        pairs
            .iter()
            .all(|(p, q)| !G1::is_identity(p) && !G2::is_identity(q))
    );
    let ps: Vec<*const blst_p1_affine> = pairs.iter().map(|(p, _)| *p as *const _).collect();
    let qs: Vec<*const blst_p2_affine> = pairs.iter().map(|(_, q)| *q as *const _).collect();
    let mut product = blst_fp12::default();
    let mut result = blst_fp12::default();
    // SAFETY: both lists hold as many valid pointers as there are pairs.
    unsafe {
        blst::blst_miller_loop_n(&mut product, qs.as_ptr(), ps.as_ptr(), pairs.len());
        blst::blst_final_exp(&mut result, &product);
        blst::blst_fp12_is_one(&result)
    }
}
