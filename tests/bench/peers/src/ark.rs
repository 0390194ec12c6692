//! The same key and witness as ark-groth16 takes them, with its matrices made beforehand.

use std::sync::Arc;

use ark_bls12_381::{Bls12_381, Fq, Fq2, Fr, G1Affine, G2Affine};
use ark_ff::PrimeField;
use ark_groth16::{Groth16, ProvingKey, VerifyingKey};
use ark_relations::r1cs::ConstraintMatrices;
use ark_serialize::CanonicalSerialize;
use bellperson::groth16::Parameters;
use blstrs::{Bls12, Scalar};

use crate::system::{System, Terms};

/// A point of blstrs as one of ark's.
pub fn g1(point: &blstrs::G1Affine) -> G1Affine {
    let bytes = point.to_uncompressed();
    let coordinate = |at: usize| Fq::from_be_bytes_mod_order(&bytes[at..at + 48]);
    G1Affine::new_unchecked(coordinate(0), coordinate(48))
}

/// The same in G2; blstrs writes the imaginary part of a coordinate first.
pub fn g2(point: &blstrs::G2Affine) -> G2Affine {
    let bytes = point.to_uncompressed();
    let coordinate = |at: usize| {
        let part = |at: usize| Fq::from_be_bytes_mod_order(&bytes[at..at + 48]);
        Fq2::new(part(at + 48), part(at))
    };
    G2Affine::new_unchecked(coordinate(0), coordinate(96))
}

/// A scalar of blstrs as one of ark's.
pub fn scalar(value: &Scalar) -> Fr {
    Fr::from_le_bytes_mod_order(&value.to_bytes_le())
}

/// ark keeps a point for every wire, bellperson only for those that stand in the matrix.
fn spread<P, Q: Copy>(points: &[P], used: &[bool], identity: Q, convert: impl Fn(&P) -> Q) -> Vec<Q> {
    let mut points = points.iter();
    used.iter()
        .map(|used| {
            if *used {
                points.next().map_or(identity, &convert)
            } else {
                identity
            }
        })
        .collect()
}

/// Everything that it proves with.
pub struct Ark {
    key: ProvingKey<Bls12_381>,
    matrices: ConstraintMatrices<Fr>,
    witness: Vec<Fr>,
}

impl Ark {
    /// From bellperson's parameters.
    pub fn new(system: &Arc<System>, parameters: &Parameters<Bls12>) -> Self {
        let wires = system.values.len();
        let matrix = |which: usize| -> Vec<Vec<(Fr, usize)>> {
            let row = |terms: &Terms| {
                terms
                    .iter()
                    .map(|(wire, coefficient)| (scalar(coefficient), *wire as usize))
                    .collect()
            };
            system.rows.iter().map(|rows| row(&rows[which])).collect()
        };
        let used = |which: usize, inputs: bool| {
            let mut used = vec![false; wires];
            for (wire, coefficient) in system.rows.iter().flat_map(|row| &row[which]) {
                used[*wire as usize] |= *coefficient != Scalar::from(0);
            }
            if inputs {
                used[..=system.public].fill(true);
            }
            used
        };
        let (in_a, in_b) = (used(0, true), used(1, false));
        let vk = &parameters.vk;
        let all = |points: &[blstrs::G1Affine]| points.iter().map(g1).collect();
        let (a, b, c) = (matrix(0), matrix(1), matrix(2));
        let count = |matrix: &[Vec<(Fr, usize)>]| matrix.iter().map(Vec::len).sum();
        Self {
            key: ProvingKey {
                vk: VerifyingKey {
                    alpha_g1: g1(&vk.alpha_g1),
                    beta_g2: g2(&vk.beta_g2),
                    gamma_g2: g2(&vk.gamma_g2),
                    delta_g2: g2(&vk.delta_g2),
                    gamma_abc_g1: all(&vk.ic),
                },
                beta_g1: g1(&vk.beta_g1),
                delta_g1: g1(&vk.delta_g1),
                a_query: spread(&parameters.a, &in_a, G1Affine::identity(), g1),
                b_g1_query: spread(&parameters.b_g1, &in_b, G1Affine::identity(), g1),
                b_g2_query: spread(&parameters.b_g2, &in_b, G2Affine::identity(), g2),
                h_query: all(&parameters.h),
                l_query: all(&parameters.l),
            },
            matrices: ConstraintMatrices {
                num_instance_variables: system.public + 1,
                num_witness_variables: wires - system.public - 1,
                num_constraints: system.rows.len(),
                a_num_non_zero: count(&a),
                b_num_non_zero: count(&b),
                c_num_non_zero: count(&c),
                a,
                b,
                c,
            },
            witness: system.values.iter().map(scalar).collect(),
        }
    }

    /// A proof with these blinding factors, in the 192 bytes that all write.
    pub fn prove(&self, r: &Scalar, s: &Scalar) -> Vec<u8> {
        let proof = Groth16::<Bls12_381>::create_proof_with_reduction_and_matrices(
            &self.key,
            scalar(r),
            scalar(s),
            &self.matrices,
            self.matrices.num_instance_variables,
            self.matrices.num_constraints,
            &self.witness,
        )
        .unwrap();
        let mut bytes = Vec::new();
        proof.serialize_compressed(&mut bytes).unwrap();
        bytes
    }
}
