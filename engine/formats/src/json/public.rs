//! `public.json`: the public signals, outputs first, as a list of decimal strings.

use super::{malformed, parse, write};
use crate::field::{DecimalError, is_canonical_r, r_from_decimal, to_decimal};
use crate::{FileKind, FormatError};

const FILE: FileKind = FileKind::PublicJson;

/// Reads `public.json`: little-endian numbers below r.
///
/// # Errors
///
/// Anything but a list of strict decimal strings, and a number that isn't below r.
pub fn public_from_json(bytes: &[u8]) -> Result<Vec<[u8; 32]>, FormatError> {
    let texts: Vec<String> = parse(FILE, bytes)?;
    let signal = |(index, text): (usize, &String)| {
        r_from_decimal(text).map_err(|error| match error {
            DecimalError::TooLarge => FormatError::NonCanonical {
                file: FILE,
                what: "signal",
                index: index as u64,
            },
            other => malformed(FILE, format!("signal {index}: {other}")),
        })
    };
    texts.iter().enumerate().map(signal).collect()
}

/// Writes `public.json` as snarkjs does.
///
/// # Errors
///
/// A number that isn't below r.
pub fn public_to_json(signals: &[[u8; 32]]) -> Result<String, FormatError> {
    if let Some(index) = signals.iter().position(|signal| !is_canonical_r(signal)) {
        return Err(FormatError::NonCanonical {
            file: FILE,
            what: "signal",
            index: index as u64,
        });
    }
    let texts: Vec<String> = signals.iter().map(|signal| to_decimal(signal)).collect();
    Ok(write(&texts))
}
