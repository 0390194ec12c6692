//! `proof.json`.

use serde::{Deserialize, Serialize};

use super::point::{RawG1, RawG2, g1_from_json, g1_to_json, g2_from_json, g2_to_json};
use super::{PROTOCOL, SNARKJS_CURVE, read, write};
use crate::{FileKind, FormatError};

const FILE: FileKind = FileKind::ProofJson;

/// A Groth16 proof: three points, uncompressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofJson {
    /// A in G1.
    pub a: [u8; 96],
    /// B in G2.
    pub b: [u8; 192],
    /// C in G1.
    pub c: [u8; 96],
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    pi_a: RawG1,
    pi_b: RawG2,
    pi_c: RawG1,
    protocol: String,
    curve: String,
}

impl ProofJson {
    /// Reads `proof.json`. Whether the points lie on the curve is not checked.
    ///
    /// # Errors
    ///
    /// Another proof system or curve, unknown or missing fields, coordinates that aren't strict decimals below q,
    /// points that aren't affine.
    pub fn from_json(bytes: &[u8]) -> Result<Self, FormatError> {
        let raw: Raw = read(FILE, bytes)?;
        Ok(ProofJson {
            a: g1_from_json(FILE, "pi_a", &raw.pi_a)?,
            b: g2_from_json(FILE, "pi_b", &raw.pi_b)?,
            c: g1_from_json(FILE, "pi_c", &raw.pi_c)?,
        })
    }

    /// Writes `proof.json` as snarkjs does.
    ///
    /// # Errors
    ///
    /// A coordinate that isn't below q, or a compressed point.
    pub fn to_json(&self) -> Result<String, FormatError> {
        Ok(write(&Raw {
            pi_a: g1_to_json(FILE, "pi_a", &self.a)?,
            pi_b: g2_to_json(FILE, "pi_b", &self.b)?,
            pi_c: g1_to_json(FILE, "pi_c", &self.c)?,
            protocol: PROTOCOL.to_owned(),
            curve: SNARKJS_CURVE.to_owned(),
        }))
    }
}
