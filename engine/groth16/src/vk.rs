//! The verifying key: four points and one for the constant and each public signal.

use std::fmt;

use blst::{blst_p1_affine, blst_p2_affine};
use proofkeep_formats::json::VkJson;
use proofkeep_formats::zkey::Zkey;
use sha2::{Digest, Sha256};

use crate::curve::{Curve, G1, G2, read_point};

/// A verifying key whose points are all on the curve, in the subgroup, and none the identity. γ₂ ≠ δ₂, unless whoever
/// read it accepted an unfinished setup in so many words.
#[derive(Clone, PartialEq)]
pub struct VerifyingKey {
    pub(crate) alpha1: blst_p1_affine,
    pub(crate) beta2: blst_p2_affine,
    pub(crate) gamma2: blst_p2_affine,
    pub(crate) delta2: blst_p2_affine,
    pub(crate) ic: Vec<blst_p1_affine>,
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyingKey")
            .field("public", &self.public())
            .finish_non_exhaustive()
    }
}

/// What becomes of a key with γ₂ = δ₂: nobody has contributed to its setup, and anyone can forge proofs under it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnfinishedSetup {
    /// It is an error, [`VkError::SetupUnfinished`].
    #[default]
    Refuse,
    /// It is taken like any other. Its proofs prove nothing to anybody: for tests of what comes before the ceremony.
    Accept,
}

impl UnfinishedSetup {
    /// Accepts such keys if `allowed`.
    pub fn accept_if(allowed: bool) -> Self {
        if allowed {
            UnfinishedSetup::Accept
        } else {
            UnfinishedSetup::Refuse
        }
    }
}

/// How the points of a key or proof are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// ZCash's compressed points: 48 and 96 bytes.
    Compressed,
    /// ZCash's uncompressed points: 96 and 192 bytes.
    Uncompressed,
}

/// A verifying key that can't be trusted or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VkError {
    /// The bytes end too early, or go on too long.
    #[error("a verifying key of {found} bytes, expected {expected}")]
    Length {
        /// By the counts.
        expected: usize,
        /// What is there.
        found: usize,
    },
    /// A point's bytes are not a canonical encoding of a point on the curve.
    #[error("{point} of the verifying key is not a point on BLS12-381")]
    NotOnCurve {
        /// Which.
        point: String,
    },
    /// A point is not of order `r`.
    #[error("{point} of the verifying key is outside the prime-order subgroup")]
    NotInSubgroup {
        /// Which.
        point: String,
    },
    /// A point is the identity, with which statements or inputs would not count.
    #[error("{point} of the verifying key is the identity, with such a key proofs mean nothing")]
    Identity {
        /// Which.
        point: String,
    },
    /// γ₂ = δ₂: nobody has contributed to the setup, and anyone can forge proofs.
    #[error(
        "the setup of this key is unfinished: γ₂ equals δ₂, so anyone can forge proofs under it; \
         make at least one contribution (snarkjs zkey contribute) and use the key that comes out"
    )]
    SetupUnfinished,
}

impl VkError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            VkError::Length { .. } => "truncated",
            VkError::NotOnCurve { .. } => "point-off-curve",
            VkError::NotInSubgroup { .. } => "point-outside-subgroup",
            VkError::Identity { .. } => "point-at-infinity",
            VkError::SetupUnfinished => "setup-unfinished",
        }
    }
}

/// Checks one point and names it in the error.
pub(crate) fn check_point<C: Curve>(point: &C::Affine, name: impl Fn() -> String) -> Result<(), VkError> {
    if C::is_identity(point) {
        Err(VkError::Identity { point: name() })
    } else if !C::on_curve(point) {
        Err(VkError::NotOnCurve { point: name() })
    } else if !C::in_subgroup(point) {
        Err(VkError::NotInSubgroup { point: name() })
    } else {
        Ok(())
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
    encoding: Encoding,
}

impl Reader<'_> {
    fn take(&mut self, length: usize) -> Result<&[u8], VkError> {
        let short = VkError::Length {
            expected: self.offset + length,
            found: self.bytes.len(),
        };
        let part = self.bytes.get(self.offset..self.offset + length).ok_or(short)?;
        self.offset += length;
        Ok(part)
    }

    fn point<C: Curve>(&mut self, name: &str) -> Result<C::Affine, VkError> {
        let length = match self.encoding {
            Encoding::Compressed => C::AFFINE_BYTES / 2,
            Encoding::Uncompressed => C::AFFINE_BYTES,
        };
        C::decode(self.take(length)?).ok_or_else(|| VkError::NotOnCurve {
            point: name.to_owned(),
        })
    }
}

impl VerifyingKey {
    /// Checks every point; see [`VerifyingKey`] for what is promised afterwards.
    pub(crate) fn validated(self, unfinished: UnfinishedSetup) -> Result<Self, VkError> {
        check_point::<G1>(&self.alpha1, || "α₁".to_owned())?;
        check_point::<G2>(&self.beta2, || "β₂".to_owned())?;
        check_point::<G2>(&self.gamma2, || "γ₂".to_owned())?;
        check_point::<G2>(&self.delta2, || "δ₂".to_owned())?;
        for (index, point) in self.ic.iter().enumerate() {
            check_point::<G1>(point, || format!("IC[{index}]"))?;
        }
        if self.is_unfinished() && unfinished == UnfinishedSetup::Refuse {
            return Err(VkError::SetupUnfinished);
        }
        Ok(self)
    }

    /// Whether γ₂ = δ₂: only where [`UnfinishedSetup::Accept`] was asked for.
    pub fn is_unfinished(&self) -> bool {
        self.gamma2 == self.delta2
    }

    /// The verifying key within a proving key file.
    ///
    /// # Errors
    /// A point that isn't one, or an unfinished setup.
    pub fn from_zkey(zkey: &Zkey<'_>) -> Result<Self, VkError> {
        Self::from_zkey_with(zkey, UnfinishedSetup::Refuse)
    }

    /// [`VerifyingKey::from_zkey`], with a word on unfinished setups.
    ///
    /// # Errors
    /// As there.
    pub fn from_zkey_with(zkey: &Zkey<'_>, unfinished: UnfinishedSetup) -> Result<Self, VkError> {
        VerifyingKey {
            alpha1: read_point::<G1>(zkey.alpha1),
            beta2: read_point::<G2>(zkey.beta2),
            gamma2: read_point::<G2>(zkey.gamma2),
            delta2: read_point::<G2>(zkey.delta2),
            ic: zkey
                .ic
                .chunks_exact(G1::AFFINE_BYTES)
                .map(read_point::<G1>)
                .collect(),
        }
        .validated(unfinished)
    }

    /// The same from the two parts of a `.zkey` that hold it, as they lie there: the header's points α₁ β₁ β₂ γ₂ δ₁ δ₂,
    /// and IC. `None` if their lengths can't be right.
    ///
    /// # Errors
    /// As there.
    pub fn from_zkey_parts(
        header: &[u8],
        ic: &[u8],
        unfinished: UnfinishedSetup,
    ) -> Option<Result<Self, VkError>> {
        let (g1, g2) = (G1::AFFINE_BYTES, G2::AFFINE_BYTES);
        if header.len() != 3 * g1 + 3 * g2 || ic.is_empty() || !ic.len().is_multiple_of(g1) {
            return None;
        }
        let (alpha1, rest) = header.split_at(g1);
        let (_beta1, rest) = rest.split_at(g1);
        let (beta2, rest) = rest.split_at(g2);
        let (gamma2, rest) = rest.split_at(g2);
        let delta2 = &rest[g1..];
        let key = VerifyingKey {
            alpha1: read_point::<G1>(alpha1),
            beta2: read_point::<G2>(beta2),
            gamma2: read_point::<G2>(gamma2),
            delta2: read_point::<G2>(delta2),
            ic: ic.chunks_exact(g1).map(read_point::<G1>).collect(),
        };
        Some(key.validated(unfinished))
    }

    /// From snarkjs's `verification_key.json`.
    ///
    /// # Errors
    /// A point that isn't one, or an unfinished setup.
    pub fn from_json(json: &VkJson) -> Result<Self, VkError> {
        Self::from_json_with(json, UnfinishedSetup::Refuse)
    }

    /// [`VerifyingKey::from_json`], with a word on unfinished setups.
    ///
    /// # Errors
    /// As there.
    pub fn from_json_with(json: &VkJson, unfinished: UnfinishedSetup) -> Result<Self, VkError> {
        let mut bytes = [&json.alpha1[..], &json.beta2, &json.gamma2, &json.delta2].concat();
        bytes.extend_from_slice(&(json.ic.len() as u32).to_be_bytes());
        bytes.extend_from_slice(json.ic.as_flattened());
        Self::read(&bytes, Encoding::Uncompressed, unfinished)
    }

    /// As snarkjs's `verification_key.json`.
    pub fn to_json(&self) -> VkJson {
        VkJson {
            n_public: self.public() as u32,
            alpha1: serialized::<G1, 96>(&self.alpha1),
            beta2: serialized::<G2, 192>(&self.beta2),
            gamma2: serialized::<G2, 192>(&self.gamma2),
            delta2: serialized::<G2, 192>(&self.delta2),
            ic: self.ic.iter().map(serialized::<G1, 96>).collect(),
        }
    }

    /// Reads `α₁ ‖ β₂ ‖ γ₂ ‖ δ₂ ‖ count ‖ IC`, the count of IC in four bytes, big-endian, all points in one encoding.
    ///
    /// # Errors
    /// Too few or too many bytes, a point that isn't one, or an unfinished setup.
    pub fn from_bytes(bytes: &[u8], encoding: Encoding) -> Result<Self, VkError> {
        Self::read(bytes, encoding, UnfinishedSetup::Refuse)
    }

    fn read(bytes: &[u8], encoding: Encoding, unfinished: UnfinishedSetup) -> Result<Self, VkError> {
        let mut reader = Reader {
            bytes,
            offset: 0,
            encoding,
        };
        let alpha1 = reader.point::<G1>("α₁")?;
        let (beta2, gamma2) = (reader.point::<G2>("β₂")?, reader.point::<G2>("γ₂")?);
        let delta2 = reader.point::<G2>("δ₂")?;
        let ic = read_ic(&mut reader)?;
        VerifyingKey {
            alpha1,
            beta2,
            gamma2,
            delta2,
            ic,
        }
        .validated(unfinished)
    }

    /// Writes what [`VerifyingKey::from_bytes`] reads.
    pub fn to_bytes(&self, encoding: Encoding) -> Vec<u8> {
        let g1 = |point: &blst_p1_affine| encode::<G1>(point, encoding);
        let g2 = |point: &blst_p2_affine| encode::<G2>(point, encoding);
        let mut bytes = [
            g1(&self.alpha1),
            g2(&self.beta2),
            g2(&self.gamma2),
            g2(&self.delta2),
        ]
        .concat();
        bytes.extend_from_slice(&(self.ic.len() as u32).to_be_bytes());
        self.ic.iter().for_each(|point| bytes.extend(g1(point)));
        bytes
    }

    /// Reads bellperson's and bellman's form (Filecoin's `.vk` files): `α₁ β₁ β₂ γ₂ δ₁ δ₂ count IC`, uncompressed.
    pub fn from_bellperson_bytes(bytes: &[u8]) -> Result<Self, VkError> {
        Self::from_bellperson_bytes_with(bytes, UnfinishedSetup::Refuse)
    }

    /// [`VerifyingKey::from_bellperson_bytes`], with a word on unfinished setups.
    ///
    /// # Errors
    /// Too few or too many bytes, a point that isn't one, or an unfinished setup.
    pub fn from_bellperson_bytes_with(bytes: &[u8], unfinished: UnfinishedSetup) -> Result<Self, VkError> {
        let mut reader = Reader {
            bytes,
            offset: 0,
            encoding: Encoding::Uncompressed,
        };
        let (alpha1, _beta1) = (reader.point::<G1>("α₁")?, reader.point::<G1>("β₁")?);
        let (beta2, gamma2) = (reader.point::<G2>("β₂")?, reader.point::<G2>("γ₂")?);
        let (_delta1, delta2) = (reader.point::<G1>("δ₁")?, reader.point::<G2>("δ₂")?);
        let ic = read_ic(&mut reader)?;
        VerifyingKey {
            alpha1,
            beta2,
            gamma2,
            delta2,
            ic,
        }
        .validated(unfinished)
    }

    /// How many public signals a proof has.
    pub fn public(&self) -> usize {
        self.ic.len() - 1
    }

    /// SHA-256 of the uncompressed bytes: the name of the key.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.to_bytes(Encoding::Uncompressed)).into()
    }
}

fn read_ic(reader: &mut Reader<'_>) -> Result<Vec<blst_p1_affine>, VkError> {
    let count = reader
        .take(4)?
        .iter()
        .fold(0usize, |count, byte| count << 8 | usize::from(*byte));
    let size = match reader.encoding {
        Encoding::Compressed => G1::AFFINE_BYTES / 2,
        Encoding::Uncompressed => G1::AFFINE_BYTES,
    };
    // The constant has a point in every key, so an empty list is short by one.
    let expected = reader.offset.saturating_add(count.max(1).saturating_mul(size));
    if expected != reader.bytes.len() {
        return Err(VkError::Length {
            expected,
            found: reader.bytes.len(),
        });
    }
    (0..count)
        .map(|index| reader.point::<G1>(&format!("IC[{index}]")))
        .collect()
}

pub(crate) fn encode<C: Curve>(point: &C::Affine, encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Compressed => C::compress(point),
        Encoding::Uncompressed => C::serialize(point),
    }
}

pub(crate) fn serialized<C: Curve, const N: usize>(point: &C::Affine) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&C::serialize(point));
    out
}
