//! From pieces to a proof: fresh `r` and `s` blind it (Groth 2016, section 3.2).

use blst::{blst_p1, blst_p2};
use blstrs::Scalar;
use ff::Field;
use rand::RngCore;
use rand::rngs::OsRng;
use zeroize::Zeroizing;

use super::{Piece, PieceResult, Point, Prover};
use crate::backend::Backend;
use crate::curve::{Curve, G1, G2};
use crate::field::{ScalarBytes, scalar_to_bytes};
use crate::proof::{Proof, ProofError};

/// Pieces that make no proof.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssembleError {
    /// A piece is missing.
    #[error("piece {piece} of the proof is missing; compute it first")]
    Missing {
        /// Which.
        piece: Piece,
    },
    /// A blinding factor is not below `r`.
    #[error("a blinding factor is not below the order of BLS12-381's scalar field")]
    NonCanonical,
    /// A point of the proof came out as the identity, which no verifier accepts.
    #[error("the pieces make no valid proof: {0}")]
    Degenerate(#[from] ProofError),
    /// The operating system gave no randomness.
    #[error("the operating system gave no random numbers for the blinding factors")]
    NoRandomness,
}

fn g1(pieces: &[PieceResult], piece: Piece) -> Result<blst_p1, AssembleError> {
    pieces
        .iter()
        .find_map(|result| match result {
            PieceResult {
                piece: found,
                point: Point::G1(point),
            } if *found == piece => Some(G1::to_point(point)),
            _ => None,
        })
        .ok_or(AssembleError::Missing { piece })
}

fn g2(pieces: &[PieceResult], piece: Piece) -> Result<blst_p2, AssembleError> {
    pieces
        .iter()
        .find_map(|result| match result {
            PieceResult {
                piece: found,
                point: Point::G2(point),
            } if *found == piece => Some(G2::to_point(point)),
            _ => None,
        })
        .ok_or(AssembleError::Missing { piece })
}

impl<B: Backend> Prover<'_, B> {
    /// The proof with these blinding factors, canonical little-endian. Only for tests against other provers: a factor
    /// that is known or used twice gives the witness away.
    pub fn assemble(
        &self,
        pieces: &[PieceResult],
        r: &ScalarBytes,
        s: &ScalarBytes,
    ) -> Result<Proof, AssembleError> {
        let key = self.key();
        let product = {
            let read = |bytes| {
                Option::<Scalar>::from(Scalar::from_bytes_le(bytes)).ok_or(AssembleError::NonCanonical)
            };
            Zeroizing::new(scalar_to_bytes(&(read(r)? * read(s)?)))
        };
        let (delta1, delta2) = (G1::to_point(&key.delta1), G2::to_point(key.delta2()));
        // A = α + Σ A + r·δ, B = β + Σ B + s·δ, C = H + L + s·A + r·B₁ − r·s·δ.
        let a = G1::add_affine(&g1(pieces, Piece::A)?, &key.vk.alpha1);
        let a = G1::add(&a, &G1::mul(&delta1, r));
        let b1 = G1::add_affine(&g1(pieces, Piece::B1)?, &key.beta1);
        let b1 = G1::add(&b1, &G1::mul(&delta1, s));
        let b2 = G2::add_affine(&g2(pieces, Piece::B2)?, &key.vk.beta2);
        let b2 = G2::add(&b2, &G2::mul(&delta2, s));
        let c = G1::add(&g1(pieces, Piece::H)?, &g1(pieces, Piece::L)?);
        let c = G1::add(&c, &G1::mul(&a, s));
        let c = G1::add(&c, &G1::mul(&b1, r));
        let c = G1::add(&c, &G1::neg(&G1::mul(&delta1, &product)));
        Ok(Proof::new(
            G1::to_affine(&a),
            G2::to_affine(&b2),
            G1::to_affine(&c),
        )?)
    }

    /// The proof with fresh blinding factors from the operating system, which are wiped afterwards.
    pub fn assemble_random(&self, pieces: &[PieceResult]) -> Result<Proof, AssembleError> {
        let (r, s) = (blinding_factor()?, blinding_factor()?);
        self.assemble(pieces, &r, &s)
    }
}

fn blinding_factor() -> Result<Zeroizing<ScalarBytes>, AssembleError> {
    let mut factor = Zeroizing::new([0u8; 32]);
    loop {
        OsRng
            .try_fill_bytes(&mut factor[..])
            .map_err(|_| AssembleError::NoRandomness)?;
        // r has 255 bits: with the top bit cleared, nine of ten numbers are below it.
        factor[31] &= 0x7f;
        let canonical =
            Option::<Scalar>::from(Scalar::from_bytes_le(&factor)).is_some_and(|f| !f.is_zero_vartime());
        if canonical {
            return Ok(factor);
        }
    }
}
