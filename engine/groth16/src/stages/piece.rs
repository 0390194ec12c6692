//! The pieces of a proof: one point for each multi-scalar multiplication, independent of `r` and `s`.
//!
//! A piece is a checkpoint: whoever has all pieces can make any number of proofs of the same statement. Pieces tell
//! something about the witness, so they are secrets: they are never shown, and deleted once the proof is stored.

use std::fmt;

use blst::{blst_p1_affine, blst_p2_affine};

use crate::curve::{Curve, G1, G2};

/// Which multi-scalar multiplication, in the order in which they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Piece {
    /// The quotient over the H bases.
    H,
    /// The private wires over the L bases.
    L,
    /// All wires over the A bases.
    A,
    /// All wires over the B bases in G1.
    B1,
    /// All wires over the B bases in G2.
    B2,
}

impl Piece {
    /// All pieces in their order.
    pub const ALL: [Piece; 5] = [Piece::H, Piece::L, Piece::A, Piece::B1, Piece::B2];

    /// The name in records and messages.
    pub fn name(self) -> &'static str {
        match self {
            Piece::H => "H",
            Piece::L => "L",
            Piece::A => "A",
            Piece::B1 => "B1",
            Piece::B2 => "B2",
        }
    }

    /// The piece of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Piece::ALL.into_iter().find(|piece| piece.name() == name)
    }

    /// Bytes of the finished piece: 48, or 96 for `B2`.
    pub fn bytes(self) -> usize {
        match self {
            Piece::B2 => 96,
            _ => 48,
        }
    }
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Point {
    G1(blst_p1_affine),
    G2(blst_p2_affine),
}

/// A finished piece. Its point is not shown by `Debug`.
#[derive(Clone, Copy, PartialEq)]
pub struct PieceResult {
    pub(super) piece: Piece,
    pub(super) point: Point,
}

impl fmt::Debug for PieceResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PieceResult")
            .field("piece", &self.piece)
            .finish_non_exhaustive()
    }
}

/// Bytes that are no finished piece. Says nothing about the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the stored result of piece {piece} is not a point of the right group; drop it and compute the piece again"
)]
pub struct PieceError {
    /// Which piece.
    pub piece: Piece,
}

impl PieceResult {
    /// Which piece this is.
    pub fn piece(&self) -> Piece {
        self.piece
    }

    /// The point, compressed: [`Piece::bytes`] bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        match &self.point {
            Point::G1(point) => G1::compress(point),
            Point::G2(point) => G2::compress(point),
        }
    }

    /// Reads a stored piece; the point must be on the curve and in the subgroup.
    pub fn from_bytes(piece: Piece, bytes: &[u8]) -> Result<Self, PieceError> {
        let error = PieceError { piece };
        if bytes.len() != piece.bytes() {
            return Err(error);
        }
        let point = match piece {
            Piece::B2 => G2::decode(bytes).filter(G2::in_subgroup).map(Point::G2),
            _ => G1::decode(bytes).filter(G1::in_subgroup).map(Point::G1),
        };
        Ok(PieceResult {
            piece,
            point: point.ok_or(error)?,
        })
    }
}
