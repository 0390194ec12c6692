//! Proving keys from bellperson's parameter files.

use std::sync::Arc;

use proofkeep_formats::params::Params;

use super::{KeyError, ProvingKey, expect, in_matrix};
use crate::bases::BaseSet;
use crate::check::{CheckError, check_params_vk, decoded};
use crate::curve::{Curve, G1, G2};
use crate::domain::Domain;
use crate::field::Root;
use crate::matrices::{Matrices, MatrixError};
use crate::quotient::HBasis;
use crate::vk::UnfinishedSetup;

impl ProvingKey {
    /// Makes a key from the bytes of a parameter file, mapped or in memory, and the matrices of the circuit that it was
    /// made for.
    ///
    /// The file holds points as big-endian numbers, which no arithmetic works on, so they are converted into memory, as
    /// many bytes as the file has. The verifying key is checked, and that coordinates are canonical; check the points
    /// once with [`crate::check::check_params_points`]. Runs on the current rayon pool.
    ///
    /// # Errors
    /// A file that is broken, belongs to another circuit than the matrices, or comes from an unfinished setup.
    pub fn from_params(
        bytes: &[u8],
        matrices: Arc<Matrices>,
        unfinished: UnfinishedSetup,
    ) -> Result<Self, KeyError> {
        let params = Params::parse(bytes)?;
        let log2 = matrices.log2();
        let [in_a, in_b] = wires_with_points(&params, &matrices)?;
        let vk = check_params_vk(&params, unfinished)?;
        Ok(ProvingKey {
            domain: Arc::new(Domain::new(log2, Root::Bellperson).ok_or(MatrixError::TooLarge)?),
            h_basis: HBasis::Powers,
            vk,
            // Checked with the verifying key.
            beta1: G1::from_coordinates(params.beta1),
            delta1: G1::from_coordinates(params.delta1),
            h: BaseSet::full(points::<G1>("list H", params.h)?),
            l: BaseSet::with_wires(
                points::<G1>("list L", params.l)?,
                (matrices.public() + 1..matrices.wires()).collect(),
            ),
            a: BaseSet::with_wires(points::<G1>("list A", params.a)?, in_a),
            b1: BaseSet::with_wires(points::<G1>("list B in G1", params.b1)?, in_b.clone()),
            b2: BaseSet::with_wires(points::<G2>("list B in G2", params.b2)?, in_b),
            matrices,
        })
    }
}

/// Holds the counts of a parameter file against the circuit that it is said to be of. The file holds no matrices, so
/// more can't be: parameters of another circuit with the same counts make proofs that don't verify.
///
/// # Errors
/// [`KeyError::Points`].
pub fn check_params_circuit(params: &Params<'_>, matrices: &Matrices) -> Result<(), KeyError> {
    wires_with_points(params, matrices).map(drop)
}

/// The wires that have a point in the lists A and B.
fn wires_with_points(params: &Params<'_>, matrices: &Matrices) -> Result<[Vec<u32>; 2], KeyError> {
    let (all, public) = (matrices.wires() as usize, matrices.public() as usize);
    let count = |list: &[u8], size: usize| list.len() / size;
    expect("in IC", public + 1, count(params.ic, G1::AFFINE_BYTES))?;
    expect(
        "in H",
        (1 << matrices.log2()) - 1,
        count(params.h, G1::AFFINE_BYTES),
    )?;
    expect("in L", all - public - 1, count(params.l, G1::AFFINE_BYTES))?;
    let (in_a, in_b) = (in_matrix(matrices.a(), all), in_matrix(matrices.b(), all));
    expect("in A", in_a.len(), count(params.a, G1::AFFINE_BYTES))?;
    expect("in B", in_b.len(), count(params.b1, G1::AFFINE_BYTES))?;
    Ok([in_a, in_b])
}

fn points<C: Curve>(section: &'static str, bytes: &[u8]) -> Result<Vec<C::Affine>, KeyError> {
    match decoded::<C>(bytes) {
        (points, None) => Ok(points),
        (points, Some(fault)) => Err(KeyError::Check(Box::new(CheckError::Point {
            section,
            index: points.len() as u64,
            fault,
        }))),
    }
}
