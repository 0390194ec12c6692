//! A proof: `A` and `C` in G1, `B` in G2.

use blst::{blst_p1_affine, blst_p2_affine};
use proofkeep_formats::json::ProofJson;

use crate::curve::{Curve, G1, G2};
use crate::vk::{Encoding, VkError, check_point, encode, serialized};

/// Three points that are on the curve, in the subgroup, and not the identity.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    pub(crate) a: blst_p1_affine,
    pub(crate) b: blst_p2_affine,
    pub(crate) c: blst_p1_affine,
}

/// Bytes that are no proof.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// Neither compressed nor uncompressed.
    #[error("a proof of {found} bytes, expected 192 (compressed points) or 384 (uncompressed)")]
    Length {
        /// What is there.
        found: usize,
    },
    /// Not a canonical encoding of a point on the curve.
    #[error("{point} of the proof is not a canonical encoding of a point on BLS12-381")]
    NotOnCurve {
        /// Which.
        point: char,
    },
    /// A point is not of order `r`.
    #[error("{point} of the proof is outside the prime-order subgroup")]
    NotInSubgroup {
        /// Which.
        point: char,
    },
    /// A point is the identity.
    #[error("{point} of the proof is the identity")]
    Identity {
        /// Which.
        point: char,
    },
}

impl ProofError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            ProofError::Length { .. } => "truncated",
            ProofError::NotOnCurve { .. } => "point-off-curve",
            ProofError::NotInSubgroup { .. } => "point-outside-subgroup",
            ProofError::Identity { .. } => "point-at-infinity",
        }
    }
}

fn read<C: Curve>(bytes: &[u8], point: char) -> Result<C::Affine, ProofError> {
    let affine = C::decode(bytes).ok_or(ProofError::NotOnCurve { point })?;
    check::<C>(&affine, point)?;
    Ok(affine)
}

fn check<C: Curve>(affine: &C::Affine, point: char) -> Result<(), ProofError> {
    check_point::<C>(affine, String::new).map_err(|error| match error {
        VkError::Identity { .. } => ProofError::Identity { point },
        VkError::NotInSubgroup { .. } => ProofError::NotInSubgroup { point },
        _ => ProofError::NotOnCurve { point },
    })
}

impl Proof {
    /// Checks three points.
    pub(crate) fn new(a: blst_p1_affine, b: blst_p2_affine, c: blst_p1_affine) -> Result<Self, ProofError> {
        check::<G1>(&a, 'A')?;
        check::<G2>(&b, 'B')?;
        check::<G1>(&c, 'C')?;
        Ok(Proof { a, b, c })
    }

    /// Reads `A ‖ B ‖ C`, 192 bytes of compressed or 384 of uncompressed points (ZCash's encoding), and checks them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ProofError> {
        let unit = match bytes.len() {
            192 => 48,
            384 => 96,
            found => return Err(ProofError::Length { found }),
        };
        Ok(Proof {
            a: read::<G1>(&bytes[..unit], 'A')?,
            b: read::<G2>(&bytes[unit..3 * unit], 'B')?,
            c: read::<G1>(&bytes[3 * unit..], 'C')?,
        })
    }

    /// `A ‖ B ‖ C`: 192 or 384 bytes.
    pub fn to_bytes(&self, encoding: Encoding) -> Vec<u8> {
        [
            encode::<G1>(&self.a, encoding),
            encode::<G2>(&self.b, encoding),
            encode::<G1>(&self.c, encoding),
        ]
        .concat()
    }

    /// Reads snarkjs's `proof.json` and checks the points.
    pub fn from_json(json: &ProofJson) -> Result<Self, ProofError> {
        Self::from_bytes(&[&json.a[..], &json.b, &json.c].concat())
    }

    /// As snarkjs's `proof.json`.
    pub fn to_json(&self) -> ProofJson {
        ProofJson {
            a: serialized::<G1, 96>(&self.a),
            b: serialized::<G2, 192>(&self.b),
            c: serialized::<G1, 96>(&self.c),
        }
    }
}
