//! A proof in stages that can be resumed:
//! `matrices × witness → quotient → pieces H, L, A, B1, B2 → assemble (fresh r, s) → verify`.
//!
//! A restart with the pieces that are known repeats at most the one that was in work; without `H` among the missing
//! ones, not even the quotient.

mod assemble;
mod piece;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

pub use assemble::AssembleError;
use piece::Point;
pub use piece::{Piece, PieceError, PieceResult};

use proofkeep_formats::count;

use crate::backend::Backend;
use crate::control::{Control, Stopped};
use crate::curve::{Curve, G1, G2};
use crate::field::{ScalarBytes, as_bytes, wipe};
use crate::key::ProvingKey;
use crate::matrices::Products;
use crate::quotient::on_threads;
use crate::witness::Witness;

/// A witness that can't be proved, or work that was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProveError {
    /// The witness is of another circuit.
    #[error(
        "the witness has {}, the circuit has {expected}: it was made for another circuit",
        count(*.found, "wire")
    )]
    Wires {
        /// By the key.
        expected: usize,
        /// By the witness.
        found: usize,
    },
    /// A constraint does not hold.
    #[error("the witness does not satisfy constraint {constraint} of the circuit (counted from 0)")]
    Unsatisfied {
        /// The first such constraint.
        constraint: usize,
    },
    /// Stopped by the caller.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl ProveError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            ProveError::Wires { .. } => "witness-length",
            ProveError::Unsatisfied { .. } => "unsatisfied",
            ProveError::Stopped(_) => "stopped",
        }
    }
}

/// Makes proofs under one key on one backend.
#[derive(Debug)]
pub struct Prover<'k, B> {
    key: &'k ProvingKey,
    backend: B,
}

impl<'k, B: Backend> Prover<'k, B> {
    /// A prover for this key.
    pub fn new(key: &'k ProvingKey, backend: B) -> Self {
        Prover { key, backend }
    }

    /// The backend it works on.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// The key it proves under.
    pub fn key(&self) -> &'k ProvingKey {
        self.key
    }

    /// Refuses a witness of another circuit, and, where the key's matrices know `C`, one that breaks a constraint.
    ///
    /// What is computed for that is of use to [`prove_checked`](Self::prove_checked).
    pub fn check_witness(&self, witness: &Witness<'_>) -> Result<Products, ProveError> {
        self.check_wires(witness)?;
        let mut products = Err(0);
        on_threads(&self.backend, || {
            products = self.key.matrices().products(witness);
        });
        products.map_err(|constraint| ProveError::Unsatisfied { constraint })
    }

    fn check_wires(&self, witness: &Witness<'_>) -> Result<(), ProveError> {
        let (expected, found) = (self.key.matrices().wires() as usize, witness.wires());
        if expected == found {
            Ok(())
        } else {
            Err(ProveError::Wires { expected, found })
        }
    }

    /// Computes the pieces that are not among the `known`, in the order of [`Piece::ALL`], and returns all five.
    ///
    /// The witness is checked first. `on_piece` gets every new piece and the time it took (the quotient's counts for
    /// `H`) as soon as it is finished, and may stop the work there. `control` is asked within the pieces too.
    pub fn prove_pieces(
        &self,
        witness: &Witness<'_>,
        known: &[PieceResult],
        on_piece: &mut dyn FnMut(PieceResult, Duration) -> ControlFlow<()>,
        control: &dyn Control,
    ) -> Result<Vec<PieceResult>, ProveError> {
        let products = self.check_witness(witness)?;
        self.prove_checked(witness, products, known, on_piece, control)
    }

    /// The same for a witness that was checked already, and what that computed. With the products of another witness the
    /// pieces make no valid proof.
    ///
    /// # Panics
    /// If the products are those of a circuit of another size.
    pub fn prove_checked(
        &self,
        witness: &Witness<'_>,
        mut products: Products,
        known: &[PieceResult],
        on_piece: &mut dyn FnMut(PieceResult, Duration) -> ControlFlow<()>,
        control: &dyn Control,
    ) -> Result<Vec<PieceResult>, ProveError> {
        self.check_wires(witness)?;
        assert_eq!(
            products.domain(),
            self.key.domain().size(),
            "products of another circuit"
        );
        if known.iter().any(|result| result.piece == Piece::H) {
            // Nobody else takes them.
            products.forget();
        }
        let mut pieces = Vec::with_capacity(Piece::ALL.len());
        for piece in Piece::ALL {
            if let Some(result) = known.iter().find(|result| result.piece == piece) {
                pieces.push(*result);
                continue;
            }
            let start = Instant::now();
            let result = self.piece(witness, piece, &mut products, control)?;
            pieces.push(result);
            let stop = on_piece(result, start.elapsed()).is_break();
            if stop && pieces.len() < Piece::ALL.len() {
                return Err(Stopped.into());
            }
        }
        Ok(pieces)
    }

    fn piece(
        &self,
        witness: &Witness<'_>,
        piece: Piece,
        products: &mut Products,
        control: &dyn Control,
    ) -> Result<PieceResult, Stopped> {
        let (key, backend, values) = (self.key, &self.backend, witness.values());
        let g1 = |bases, scalars: &[ScalarBytes]| {
            Ok(Point::G1(G1::to_affine(
                &backend.msm_g1(bases, scalars, control)?,
            )))
        };
        let point = match piece {
            Piece::H => {
                let mut scalars = self.quotient(products, control)?;
                let point = g1(&key.h, as_bytes(&scalars));
                wipe(&mut scalars);
                point?
            }
            Piece::L => g1(&key.l, values)?,
            Piece::A => g1(&key.a, values)?,
            Piece::B1 => g1(&key.b1, values)?,
            Piece::B2 => Point::G2(G2::to_affine(&backend.msm_g2(&key.b2, values, control)?)),
        };
        Ok(PieceResult { piece, point })
    }

    /// From `A·w` and `B·w` the scalars of the H bases as plain limbs.
    fn quotient(
        &self,
        products: &mut Products,
        control: &dyn Control,
    ) -> Result<Vec<blstrs::Scalar>, Stopped> {
        let (a, b) = products.take();
        self.backend
            .quotient(self.key.domain(), a, b, self.key.h_basis(), control)
    }
}
