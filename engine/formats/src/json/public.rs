//! `public.json`: the public signals, outputs first, as a list of decimal strings.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use super::{malformed, not_read, write};
use crate::field::{DecimalError, is_canonical_r, r_from_decimal, to_decimal};
use crate::{FileKind, FormatError};

const FILE: FileKind = FileKind::PublicJson;

/// Reads `public.json`: little-endian numbers below r.
///
/// # Errors
///
/// Anything but a list of strict decimal strings, and a number that isn't below r.
pub fn public_from_json(bytes: &[u8]) -> Result<Vec<[u8; 32]>, FormatError> {
    // The shortest signal is `"1",`, so this is no more than eleven bytes for each byte of text.
    let commas = bytes.iter().filter(|byte| **byte == b',').count();
    let visitor = Signals {
        capacity: (commas + 1).min(bytes.len() / 3),
    };
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let read = json
        .deserialize_seq(visitor)
        .and_then(|signals| json.end().map(|()| signals));
    match read {
        Ok(Ok(signals)) => Ok(signals),
        Ok(Err((index, DecimalError::TooLarge))) => Err(FormatError::NonCanonical {
            file: FILE,
            what: "signal",
            index,
        }),
        Ok(Err((index, other))) => Err(malformed(FILE, format!("signal {index}: {other}"))),
        Err(error) => Err(not_read(FILE, &error)),
    }
}

/// A number that was read, without the text it was read from.
struct Signal(Result<[u8; 32], DecimalError>);

impl<'de> Deserialize<'de> for Signal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Signal;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number in decimal, as a string")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Signal, E> {
                Ok(Signal(r_from_decimal(text)))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

struct Signals {
    capacity: usize,
}

impl<'de> Visitor<'de> for Signals {
    /// The signals, or the first one that is none.
    type Value = Result<Vec<[u8; 32]>, (u64, DecimalError)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of public signals")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut signals = Vec::with_capacity(self.capacity);
        let mut fault = None;
        while let Some(Signal(signal)) = list.next_element()? {
            match signal {
                Ok(value) => signals.push(value),
                Err(error) => {
                    fault.get_or_insert((signals.len() as u64, error));
                }
            }
        }
        Ok(fault.map_or(Ok(signals), Err))
    }
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
