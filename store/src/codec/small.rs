//! Values that are one number, one digest or plain bytes. Index entries that say everything in their key are empty.

use proofkeep_migrations::LATEST;

use super::envelope::{Damage, RecordKind, open, seal};
use crate::ids::Digest;

/// A number as a value: sequences, counters, job numbers in indexes.
#[must_use]
pub fn number(value: u64) -> Vec<u8> {
    seal(RecordKind::Number, LATEST, &value.to_le_bytes())
}

/// Reads a [`number`].
///
/// # Errors
/// When it is damaged.
pub fn read_number(value: &[u8]) -> Result<u64, Damage> {
    let (_, payload) = open(RecordKind::Number, value)?;
    let payload = payload.try_into().map_err(|_| wrong_size(8, payload))?;
    Ok(u64::from_le_bytes(payload))
}

/// A digest as a value.
#[must_use]
pub fn digest(value: Digest) -> Vec<u8> {
    seal(RecordKind::Digest, LATEST, &value.0)
}

/// Reads a [`digest()`].
///
/// # Errors
/// When it is damaged.
pub fn read_digest(value: &[u8]) -> Result<Digest, Damage> {
    let (_, payload) = open(RecordKind::Digest, value)?;
    Ok(Digest(payload.try_into().map_err(|_| wrong_size(32, payload))?))
}

/// Bytes as a value, such as a canonical request of at most 2 KiB.
#[must_use]
pub fn bytes(value: &[u8]) -> Vec<u8> {
    seal(RecordKind::Bytes, LATEST, value)
}

/// Reads [`bytes`].
///
/// # Errors
/// When they are damaged.
pub fn read_bytes(value: &[u8]) -> Result<Vec<u8>, Damage> {
    open(RecordKind::Bytes, value).map(|(_, payload)| payload.to_vec())
}

fn wrong_size(expected: usize, payload: &[u8]) -> Damage {
    Damage::Payload(format!("expected {expected} bytes, found {}", payload.len()))
}
