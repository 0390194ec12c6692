//! Proofs, public signals and verification keys as `snarkjs groth16` writes and reads them.
//!
//! Coordinates are decimal strings; a point of G1 is `[x, y, z]`, one of G2 is `[[x0, x1], [y0, y1], [z0, z1]]` with
//! x = x0 + x1·u. Here a point is bytes in the uncompressed encoding of ZCash: big-endian x‖y, for G2 x1‖x0‖y1‖y0;
//! the identity is `0x40` and zeros. What snarkjs wrote comes out again byte for byte.

mod point;
mod proof;
mod public;
mod vkey;

pub use proof::ProofJson;
pub use public::{public_from_json, public_to_json};
pub use vkey::VkJson;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::field::CURVE;
use crate::{FileKind, FormatError};

const PROTOCOL: &str = "groth16";
/// snarkjs's name for BLS12-381.
const SNARKJS_CURVE: &str = "bls12381";

fn malformed(file: FileKind, message: impl Into<String>) -> FormatError {
    FormatError::MalformedJson {
        file,
        message: message.into(),
    }
}

/// Reads JSON of one shape, after a look at what it says about itself: a PLONK proof or one over BN254 is named as
/// such, and not refused for a field that happens to differ.
fn read<T: DeserializeOwned>(file: FileKind, bytes: &[u8]) -> Result<T, FormatError> {
    #[derive(Deserialize)]
    struct About {
        protocol: Option<String>,
        curve: Option<String>,
    }

    // A struct could be read from a list as well, and what came of it would be nonsense.
    if let Some(other) = bytes.trim_ascii_start().first().filter(|first| **first != b'{') {
        let found = match other {
            b'[' => "a list",
            b'"' => "a text",
            b'-' | b'0'..=b'9' => "a number",
            _ => return parse(file, bytes),
        };
        return Err(malformed(file, format!("expected an object, found {found}")));
    }
    let about: About = parse(file, bytes)?;
    match about.protocol.as_deref() {
        Some(PROTOCOL) => {}
        Some(found) => {
            return Err(FormatError::NotGroth16 {
                file,
                found: shorten(found),
            });
        }
        None => return Err(malformed(file, "\"protocol\" is missing; it must be \"groth16\"")),
    }
    match about.curve.as_deref() {
        Some(SNARKJS_CURVE) => {}
        Some("bn128") => {
            return Err(FormatError::WrongPrime {
                file,
                expected: CURVE,
                found: "BN254 (bn128)".to_owned(),
            });
        }
        Some(found) => {
            return Err(FormatError::WrongPrime {
                file,
                expected: CURVE,
                found: shorten(found),
            });
        }
        None => return Err(malformed(file, "\"curve\" is missing; it must be \"bls12381\"")),
    }
    parse(file, bytes)
}

fn parse<T: DeserializeOwned>(file: FileKind, bytes: &[u8]) -> Result<T, FormatError> {
    serde_json::from_slice(bytes).map_err(|error| not_read(file, &error))
}

/// What serde_json couldn't read: no JSON at all, or JSON of another shape.
fn not_read(file: FileKind, error: &serde_json::Error) -> FormatError {
    let text = shorten(&error.to_string());
    malformed(
        file,
        if error.is_syntax() || error.is_eof() {
            format!("this is no JSON: {text}")
        } else {
            text
        },
    )
}

/// Text from a file, short enough for an error message.
fn shorten(text: &str) -> String {
    const MOST: usize = 160;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Writes JSON with snarkjs's indentation of one space.
fn write<T: Serialize>(value: &T) -> String {
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
    // Only strings, numbers and lists of them are written, into memory: neither step can fail.
    let written = value.serialize(&mut serializer);
    debug_assert!(written.is_ok());
    String::from_utf8(out).unwrap_or_default()
}
