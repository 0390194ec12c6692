//! Proofs and public signals in the forms that they are asked for.
//!
//! | format | A | B | C | coordinates of G2 |
//! | --- | --- | --- | --- | --- |
//! | `snarkjs` | `pi_a` | `pi_b` | `pi_c` | `[x.c0, x.c1]`, `[y.c0, y.c1]`, decimal |
//! | `bytes`, `hex` | 0..48 | 48..144 | 144..192 | `x.c1 ‖ x.c0`, big-endian, flags in the top three bits |
//! | `uncompressed` | 0..96 | 96..288 | 288..384 | `x.c1 ‖ x.c0 ‖ y.c1 ‖ y.c0`, big-endian |
//!
//! Bytes are ZCash's encoding of BLS12-381 points. Public signals are 32 bytes each, in the order of the circuit's public
//! signals: `bytes-be` big-endian, `bytes-le` little-endian; `json` is an array of decimal strings.

use proofkeep_formats::json::public_to_json;
use proofkeep_groth16::proof::Proof;
use proofkeep_groth16::vk::Encoding;
use serde_json::Value;

/// How proofs go out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ProofFormat {
    /// snarkjs's `proof.json`.
    #[default]
    Snarkjs,
    /// 192 bytes, points compressed as ZCash does.
    Bytes,
    /// The same in hex.
    Hex,
    /// 384 bytes: A 96, B 192, C 96, uncompressed.
    Uncompressed,
}

/// How public signals go out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PublicFormat {
    /// snarkjs's `public.json`: decimal strings.
    #[default]
    Json,
    /// 32 bytes each, big-endian.
    BytesBe,
    /// 32 bytes each, little-endian.
    BytesLe,
}

impl ProofFormat {
    /// The names, for the text about another one.
    pub const NAMES: &'static str = "snarkjs, bytes, hex or uncompressed";

    /// Reads a name.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "snarkjs" => Some(Self::Snarkjs),
            "bytes" => Some(Self::Bytes),
            "hex" => Some(Self::Hex),
            "uncompressed" => Some(Self::Uncompressed),
            _ => None,
        }
    }

    /// Several of them are one after the other, not an array of JSON.
    pub fn is_binary(self) -> bool {
        matches!(self, Self::Bytes | Self::Uncompressed)
    }
}

impl PublicFormat {
    /// The names, for the text about another one.
    pub const NAMES: &'static str = "json, bytes-be or bytes-le";

    /// Reads a name.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "json" => Some(Self::Json),
            "bytes-be" => Some(Self::BytesBe),
            "bytes-le" => Some(Self::BytesLe),
            _ => None,
        }
    }

    /// Several of them are one after the other, not an array of JSON.
    pub fn is_binary(self) -> bool {
        self != Self::Json
    }
}

/// A proof as JSON: snarkjs's object, or hex. `Err`: the stored bytes are no proof.
pub(crate) fn proof_json(bytes: &[u8], format: ProofFormat) -> Result<Value, String> {
    if format == ProofFormat::Hex {
        return Ok(hex::encode(bytes).into());
    }
    let proof = Proof::from_bytes(bytes).map_err(|error| error.to_string())?;
    let text = proof.to_json().to_json().map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// A proof as bytes. `Err`: the stored bytes are no proof.
pub(crate) fn proof_bytes(bytes: &[u8], format: ProofFormat) -> Result<Vec<u8>, String> {
    if format == ProofFormat::Uncompressed {
        let proof = Proof::from_bytes(bytes).map_err(|error| error.to_string())?;
        return Ok(proof.to_bytes(Encoding::Uncompressed));
    }
    Ok(bytes.to_vec())
}

/// Public signals as an array of decimal strings. `Err`: the stored bytes are no signals.
pub(crate) fn public_json(bytes: &[u8]) -> Result<Value, String> {
    let (signals, rest) = bytes.as_chunks::<32>();
    if !rest.is_empty() {
        return Err(format!(
            "the public signals take {} bytes, expected a multiple of 32",
            bytes.len()
        ));
    }
    let text = public_to_json(signals).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// Public signals as bytes.
pub(crate) fn public_bytes(bytes: &[u8], format: PublicFormat) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if format == PublicFormat::BytesBe {
        bytes.chunks_exact_mut(32).for_each(<[u8]>::reverse);
    }
    bytes
}
