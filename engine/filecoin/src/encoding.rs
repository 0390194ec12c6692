//! Vanilla proofs as they are sent: bincode as the published Rust crates write it, their JSON, and JSON arrays of base64
//! as Go writes `[][]byte`, each of which is bincode.
//!
//! A decoder reads what is there, and nothing is allocated for what only a count promises.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bincode::Options as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::invalid::Invalid;

/// Whether these bytes are JSON: they begin as a list or an object does, and hold no zero where a count of bincode would.
#[must_use]
pub fn is_json(bytes: &[u8]) -> bool {
    let start = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(start, Some(b'[' | b'{')) && !bytes.iter().take(8).any(|byte| *byte == 0)
}

/// Reads a list of proofs in any encoding; `field` names it.
///
/// # Errors
/// `undecodable` with the reader's words.
pub fn list<T: DeserializeOwned>(field: &str, bytes: &[u8]) -> Result<Vec<T>, Invalid> {
    if !is_json(bytes) {
        return from_bincode(field, bytes);
    }
    if !is_of_strings(bytes) {
        return from_json(field, bytes);
    }
    let texts: Vec<String> = from_json(field, bytes)?;
    let mut all = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let place = format!("{field}[{index}]");
        let bytes = from_base64(&place, text)?;
        all.push(one(&place, &bytes)?);
    }
    Ok(all)
}

/// Reads one proof, bincode or JSON.
///
/// # Errors
/// As [`list`].
pub fn one<T: DeserializeOwned>(field: &str, bytes: &[u8]) -> Result<T, Invalid> {
    if is_json(bytes) {
        from_json(field, bytes)
    } else {
        from_bincode(field, bytes)
    }
}

/// Reads JSON.
///
/// # Errors
/// `undecodable`.
pub fn from_json<'a, T: Deserialize<'a>>(field: &str, bytes: &'a [u8]) -> Result<T, Invalid> {
    serde_json::from_slice(bytes).map_err(|error| undecodable(field, &format!("JSON ({error})")))
}

/// Reads bincode 1 with fixed integers, all of it.
///
/// # Errors
/// `undecodable`.
pub fn from_bincode<T: DeserializeOwned>(field: &str, bytes: &[u8]) -> Result<T, Invalid> {
    bincode::DefaultOptions::new()
        .with_fixint_encoding()
        .with_limit(bytes.len() as u64)
        .deserialize(bytes)
        .map_err(|error| {
            let found = format!("{} bytes that are none ({error})", bytes.len());
            undecodable(field, &found)
        })
}

/// Writes what [`from_bincode`] reads.
///
/// # Errors
/// `undecodable`; the published types don't fail.
pub fn to_bincode(field: &str, value: &impl Serialize) -> Result<Vec<u8>, Invalid> {
    bincode::serialize(value).map_err(|error| undecodable(field, &error.to_string()))
}

/// Reads base64 with padding.
///
/// # Errors
/// `undecodable`.
pub fn from_base64(field: &str, text: &str) -> Result<Vec<u8>, Invalid> {
    STANDARD
        .decode(text)
        .map_err(|error| undecodable(field, &format!("text that is no base64 ({error})")))
}

fn undecodable(field: &str, found: &str) -> Invalid {
    let expected = "vanilla proofs of this kind and sector size: bincode, JSON, or a JSON array of base64";
    Invalid::new("undecodable", field, expected, found)
}

/// The list's first element is a string.
fn is_of_strings(bytes: &[u8]) -> bool {
    let mut rest = bytes.iter().filter(|byte| !byte.is_ascii_whitespace());
    rest.next() == Some(&b'[') && rest.next() == Some(&b'"')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_list_is_the_same_in_every_encoding() {
        let all: Vec<(u64, Vec<u8>)> = vec![(1, vec![2, 3]), (4, vec![])];
        let go: Vec<String> = all
            .iter()
            .map(|one| STANDARD.encode(bincode::serialize(one).unwrap()))
            .collect();
        for bytes in [
            bincode::serialize(&all).unwrap(),
            serde_json::to_vec(&all).unwrap(),
            serde_json::to_vec_pretty(&go).unwrap(),
        ] {
            assert_eq!(list::<(u64, Vec<u8>)>("x", &bytes).unwrap(), all);
        }
        // 91 is '['.
        let many = vec![7u8; 91];
        assert_eq!(
            list::<u8>("x", &bincode::serialize(&many).unwrap()).unwrap(),
            many
        );
    }

    #[test]
    fn what_is_cut_off_or_goes_on_is_refused() {
        let bytes = bincode::serialize(&vec![1u64, 2]).unwrap();
        for bad in [
            &bytes[..23],
            &[&bytes[..], &[0]].concat(),
            &[0xff; 8],
            b"[1,",
            b"[\"*\"]",
            b"",
        ] {
            let refused = list::<u64>("x", bad).unwrap_err();
            assert_eq!(refused.code, "undecodable");
        }
    }
}
