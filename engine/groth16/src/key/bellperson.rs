//! Proving keys from bellperson's parameters in memory.

use std::sync::Arc;

use bellperson::groth16::Parameters;
use blst::{blst_p1_affine, blst_p2_affine};
use blstrs::{Bls12, G1Affine, G2Affine};

use super::{KeyError, ProvingKey, expect, in_matrix};
use crate::bases::BaseSet;
use crate::domain::Domain;
use crate::field::Root;
use crate::matrices::{Matrices, MatrixError};
use crate::quotient::HBasis;
use crate::vk::{UnfinishedSetup, VerifyingKey};

fn g1(points: &[G1Affine]) -> Vec<blst_p1_affine> {
    points.iter().map(|point| *point.as_ref()).collect()
}

fn g2(points: &[G2Affine]) -> Vec<blst_p2_affine> {
    points.iter().map(|point| *point.as_ref()).collect()
}

impl ProvingKey {
    /// Makes a key from parameters and the matrices of the circuit that they were made for. The points are copied; they
    /// are taken as they are, only the verifying key is checked.
    pub fn from_bellperson(
        parameters: &Parameters<Bls12>,
        matrices: Arc<Matrices>,
    ) -> Result<Self, KeyError> {
        let domain = Domain::new(matrices.log2(), Root::Bellperson).ok_or(MatrixError::TooLarge)?;
        let vk = &parameters.vk;
        let (beta1, delta1) = (*vk.beta_g1.as_ref(), *vk.delta_g1.as_ref());
        let vk = VerifyingKey {
            alpha1: *vk.alpha_g1.as_ref(),
            beta2: *vk.beta_g2.as_ref(),
            gamma2: *vk.gamma_g2.as_ref(),
            delta2: *vk.delta_g2.as_ref(),
            ic: g1(&vk.ic),
        }
        .validated(UnfinishedSetup::Refuse)?;
        let (all, public) = (matrices.wires() as usize, matrices.public() as usize);
        expect("in IC", public + 1, vk.ic.len())?;
        expect("in H", domain.size() - 1, parameters.h.len())?;
        expect("in L", all - public - 1, parameters.l.len())?;
        let (in_a, in_b) = (in_matrix(matrices.a(), all), in_matrix(matrices.b(), all));
        expect("in A", in_a.len(), parameters.a.len())?;
        expect("in B (G1)", in_b.len(), parameters.b_g1.len())?;
        expect("in B (G2)", in_b.len(), parameters.b_g2.len())?;
        Ok(ProvingKey {
            domain: Arc::new(domain),
            h_basis: HBasis::Powers,
            vk,
            beta1,
            delta1,
            h: BaseSet::full(g1(&parameters.h)),
            l: BaseSet::with_wires(
                g1(&parameters.l),
                (matrices.public() + 1..matrices.wires()).collect(),
            ),
            a: BaseSet::with_wires(g1(&parameters.a), in_a),
            b1: BaseSet::with_wires(g1(&parameters.b_g1), in_b.clone()),
            b2: BaseSet::with_wires(g2(&parameters.b_g2), in_b),
            matrices,
        })
    }
}
