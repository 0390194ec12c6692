//! How a shape becomes bytes: bincode 1.3, little-endian, variable-length integers, trailing bytes rejected.
//!
//! These options are part of every schema; a schema that needs others brings its own module.

use bincode::Options as _;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// No payload is longer than this, so that damaged lengths can't ask for memory.
const LIMIT: u64 = 1 << 16;

fn options() -> impl bincode::Options {
    bincode::DefaultOptions::new()
        .with_little_endian()
        .with_varint_encoding()
        .reject_trailing_bytes()
}

/// The bytes of a shape.
#[must_use]
#[expect(
    clippy::expect_used,
    reason = "with no size limit, writing derived shapes into memory has no way to fail"
)]
pub fn encode<T: Serialize>(shape: &T) -> Vec<u8> {
    options()
        .serialize(shape)
        .expect("derived shapes always serialize")
}

/// Reads a shape from exactly these bytes.
///
/// # Errors
/// When the bytes are not that shape, or something follows them; the text says what was wrong.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    options()
        .with_limit(LIMIT)
        .deserialize(bytes)
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn trailing_bytes_are_rejected() {
        let mut bytes = encode(&7_u64);
        assert_eq!(decode::<u64>(&bytes), Ok(7));
        bytes.push(0);
        assert!(decode::<u64>(&bytes).is_err());
    }

    #[test]
    fn a_length_without_its_bytes_is_rejected() {
        let huge = encode(&u64::MAX);
        assert!(decode::<Vec<u64>>(&huge).is_err());
    }
}
