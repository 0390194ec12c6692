//! `verification_key.json`.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::point::{RawG1, RawG2, g1_from_json, g1_to_json, g2_from_json, g2_to_json};
use super::{PROTOCOL, SNARKJS_CURVE, read, write};
use crate::{FileKind, FormatError};

const FILE: FileKind = FileKind::VerificationKeyJson;

/// A verification key, points uncompressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VkJson {
    /// The number of public signals.
    pub n_public: u32,
    /// α in G1.
    pub alpha1: [u8; 96],
    /// β in G2.
    pub beta2: [u8; 192],
    /// γ in G2.
    pub gamma2: [u8; 192],
    /// δ in G2.
    pub delta2: [u8; 192],
    /// A point for the constant and one for each public signal.
    pub ic: Vec<[u8; 96]>,
}

/// `vk_alphabeta_12`, the pairing of α and β, is read past and not written: it follows from the rest, and
/// `snarkjs groth16 verify` doesn't use it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    protocol: String,
    curve: String,
    #[serde(rename = "nPublic")]
    n_public: u32,
    vk_alpha_1: RawG1,
    vk_beta_2: RawG2,
    vk_gamma_2: RawG2,
    vk_delta_2: RawG2,
    #[serde(default, skip_serializing)]
    #[expect(dead_code, reason = "only read past")]
    vk_alphabeta_12: Option<IgnoredAny>,
    #[serde(rename = "IC")]
    ic: Vec<RawG1>,
}

impl VkJson {
    /// Reads `verification_key.json`. Whether the points lie on the curve is not checked.
    ///
    /// # Errors
    ///
    /// Another proof system or curve, unknown or missing fields, a number of points in IC other than public signals
    /// plus one, coordinates that aren't strict decimals below q, points that aren't affine.
    pub fn from_json(bytes: &[u8]) -> Result<Self, FormatError> {
        let raw: Raw = read(FILE, bytes)?;
        check_count(raw.n_public, raw.ic.len())?;
        Ok(VkJson {
            n_public: raw.n_public,
            alpha1: g1_from_json(FILE, "vk_alpha_1", &raw.vk_alpha_1)?,
            beta2: g2_from_json(FILE, "vk_beta_2", &raw.vk_beta_2)?,
            gamma2: g2_from_json(FILE, "vk_gamma_2", &raw.vk_gamma_2)?,
            delta2: g2_from_json(FILE, "vk_delta_2", &raw.vk_delta_2)?,
            ic: raw
                .ic
                .iter()
                .map(|point| g1_from_json(FILE, "IC", point))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Writes `verification_key.json` in a form that snarkjs reads.
    ///
    /// # Errors
    ///
    /// A number of points in IC other than public signals plus one, a coordinate that isn't below q, a compressed
    /// point.
    pub fn to_json(&self) -> Result<String, FormatError> {
        check_count(self.n_public, self.ic.len())?;
        Ok(write(&Raw {
            protocol: PROTOCOL.to_owned(),
            curve: SNARKJS_CURVE.to_owned(),
            n_public: self.n_public,
            vk_alpha_1: g1_to_json(FILE, "vk_alpha_1", &self.alpha1)?,
            vk_beta_2: g2_to_json(FILE, "vk_beta_2", &self.beta2)?,
            vk_gamma_2: g2_to_json(FILE, "vk_gamma_2", &self.gamma2)?,
            vk_delta_2: g2_to_json(FILE, "vk_delta_2", &self.delta2)?,
            vk_alphabeta_12: None,
            ic: self
                .ic
                .iter()
                .map(|point| g1_to_json(FILE, "IC", point))
                .collect::<Result<_, _>>()?,
        }))
    }
}

fn check_count(n_public: u32, points: usize) -> Result<(), FormatError> {
    let expected = u64::from(n_public) + 1;
    if points as u64 == expected {
        return Ok(());
    }
    Err(FormatError::BadCount {
        file: FILE,
        what: "the number of points in \"IC\"",
        expected: format!("{expected} (nPublic + 1)"),
        found: points as u64,
    })
}
