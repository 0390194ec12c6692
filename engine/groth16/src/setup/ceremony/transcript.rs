//! The circuit's hash: BLAKE2b over the key's points and the differences of powers of tau behind the quotient's.
//!
//! Points are hashed uncompressed as ZCash writes them, but the identity as zeros; counts are big-endian.

use blake2b_simd::State;
use proofkeep_formats::ptau::Ptau;
use proofkeep_formats::zkey::{KeyPoints, ZkeyHeader};
use rayon::prelude::*;

use super::error::CeremonyError;
use super::past_end;
use crate::backend::Backend;
use crate::curve::{Curve, G1, G2, read_point};
use crate::quotient::on_threads;

/// snarkjs reads powers of tau in pieces of this many points, the last one not cut to what is asked for: a domain
/// larger than a piece has one difference more in its hash than there are.
const PIECE: usize = 1 << 14;
/// Differences hashed at once.
const BATCH: usize = 4096;

/// The hash under way.
#[derive(Default)]
pub(super) struct Transcript {
    state: State,
}

impl Transcript {
    /// The six points of the header.
    pub fn header(&mut self, points: &KeyPoints) {
        self.points::<G1>(&[read_point::<G1>(&points.alpha1), read_point::<G1>(&points.beta1)]);
        self.points::<G2>(&[read_point::<G2>(&points.beta2), read_point::<G2>(&points.gamma2)]);
        self.points::<G1>(&[read_point::<G1>(&points.delta1)]);
        self.points::<G2>(&[read_point::<G2>(&points.delta2)]);
    }

    /// How many points follow.
    pub fn count(&mut self, points: u32) {
        self.state.update(&points.to_be_bytes());
    }

    pub fn points<C: Curve>(&mut self, points: &[C::Affine]) {
        for point in points {
            if C::is_identity(point) {
                self.state.update(&vec![0; C::AFFINE_BYTES]);
            } else {
                self.state.update(&C::serialize(point));
            }
        }
    }

    /// τ^(n+i) − τ^i for i from 0 to n − 2, and one more for a domain of more than one piece.
    pub fn quotient(
        &mut self,
        ptau: &Ptau<'_>,
        header: &ZkeyHeader,
        backend: &dyn Backend,
    ) -> Result<(), CeremonyError> {
        let size = header.domain as usize;
        self.count(header.domain - 1);
        let all = if size > PIECE { size } else { size - 1 };
        let (low, high) = ptau.tau_g1.split_at(size * G1::AFFINE_BYTES);
        let there = (high.len() / G1::AFFINE_BYTES).min(all);
        for start in (0..there).step_by(BATCH) {
            let range = start * G1::AFFINE_BYTES..there.min(start + BATCH) * G1::AFFINE_BYTES;
            let mut differences = Vec::new();
            on_threads(backend, || {
                differences = subtract(&high[range.clone()], &low[range.clone()])
            });
            self.points::<G1>(&differences);
        }
        if there < all {
            let behind = ptau.behind_tau_g1.ok_or(CeremonyError::NothingBehind)?;
            let last = low.last_chunk().ok_or(CeremonyError::NothingBehind)?;
            self.state.update(&past_end::difference(behind, last));
        }
        Ok(())
    }

    pub fn finish(&self) -> [u8; 64] {
        *self.state.finalize().as_array()
    }
}

fn subtract(left: &[u8], right: &[u8]) -> Vec<<G1 as Curve>::Affine> {
    const TASK: usize = 256 * G1::AFFINE_BYTES;
    left.par_chunks(TASK)
        .zip(right.par_chunks(TASK))
        .flat_map_iter(|(left, right)| {
            let points = |bytes: &'_ [u8]| {
                let points: Vec<_> = bytes
                    .chunks_exact(G1::AFFINE_BYTES)
                    .map(|bytes| G1::to_point(&read_point::<G1>(bytes)))
                    .collect();
                points
            };
            let sums: Vec<_> = points(left)
                .iter()
                .zip(&points(right))
                .map(|(left, right)| G1::add(left, &G1::neg(right)))
                .collect();
            G1::batch_to_affine(&sums)
        })
        .collect()
}
