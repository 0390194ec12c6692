//! Values of 32 bytes and miners, as requests write them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofkeep_formats::field::is_canonical_r;
use serde_json::{Map, Value};

use crate::invalid::Invalid;

/// How a 32-byte value is written.
const WRITTEN: &str = "32 bytes as 64 hex digits or 44 characters of base64";

/// Takes a value of 32 bytes out of a request: 64 hex digits, or 44 characters of base64 as Go writes `[]byte`.
///
/// # Errors
/// When it is missing or something else.
pub fn bytes32(fields: &mut Map<String, Value>, name: &str) -> Result<[u8; 32], Invalid> {
    let value = fields.remove(name);
    let text = match &value {
        Some(Value::String(text)) => text,
        other => return Err(Invalid::field(name, WRITTEN, other.as_ref())),
    };
    let read = match text.len() {
        64 => hex::decode(text).ok(),
        44 => STANDARD.decode(text).ok(),
        _ => None,
    };
    read.and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| Invalid::field(name, WRITTEN, value.as_ref()))
}

/// The same, for an element of the scalar field: its number, little-endian, is below the field's order.
///
/// # Errors
/// `non-canonical` when it isn't.
pub fn element(fields: &mut Map<String, Value>, name: &str) -> Result<[u8; 32], Invalid> {
    let value = bytes32(fields, name)?;
    check_element(name, &value)?;
    Ok(value)
}

/// The same, for a commitment: an element of the field that isn't zero.
///
/// # Errors
/// `zero-commitment` when it is zero.
pub fn commitment(fields: &mut Map<String, Value>, name: &str) -> Result<[u8; 32], Invalid> {
    let value = element(fields, name)?;
    check_commitment(name, &value)?;
    Ok(value)
}

/// Refuses what is no element of the scalar field.
///
/// # Errors
/// `non-canonical`.
pub fn check_element(name: &str, value: &[u8; 32]) -> Result<(), Invalid> {
    if is_canonical_r(value) {
        return Ok(());
    }
    Err(Invalid::new(
        "non-canonical",
        name,
        "a little-endian number below the order of BLS12-381's scalar field (clear the two top bits of the last byte)",
        "a larger one",
    ))
}

/// Refuses what is no commitment.
///
/// # Errors
/// `non-canonical`, `zero-commitment`.
pub fn check_commitment(name: &str, value: &[u8; 32]) -> Result<(), Invalid> {
    check_element(name, value)?;
    if *value == [0; 32] {
        return Err(Invalid::new("zero-commitment", name, "a commitment", "32 zeros"));
    }
    Ok(())
}

/// Takes the prover out of a request: `miner_id` as 1000, "1000", "f01000" or "t01000"; or `prover_id`, 32 bytes, for
/// what was sealed under no miner's id.
///
/// # Errors
/// When there is neither, both, or something else.
pub fn prover(fields: &mut Map<String, Value>) -> Result<[u8; 32], Invalid> {
    const EXPECTED: &str = "a miner's id, as in 1000, \"f01000\" or \"t01000\"";
    if fields.contains_key("prover_id") {
        if let Some(miner) = fields.get("miner_id") {
            let expected = "either miner_id or prover_id, here are both";
            return Err(Invalid::field("miner_id", expected, Some(miner)));
        }
        return element(fields, "prover_id");
    }
    let value = fields.remove("miner_id");
    let id = match &value {
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(text)) => {
            let digits = text.strip_prefix("f0").or_else(|| text.strip_prefix("t0"));
            let digits = digits.unwrap_or(text);
            let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            all.then(|| digits.parse().ok()).flatten()
        }
        _ => None,
    };
    id.filter(|id| i64::try_from(*id).is_ok())
        .map(prover_of_miner)
        .ok_or_else(|| Invalid::field("miner_id", EXPECTED, value.as_ref()))
}

/// A miner's prover id: the payload of its id address, an unsigned LEB128 number, with zeros up to 32 bytes.
#[must_use]
pub fn prover_of_miner(mut id: u64) -> [u8; 32] {
    let mut prover = [0; 32];
    for byte in &mut prover {
        *byte = (id & 0x7f) as u8;
        id >>= 7;
        if id == 0 {
            break;
        }
        *byte |= 0x80;
    }
    prover
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    #[test]
    fn miners_in_every_form_are_one_prover() {
        for id in [json!(1000), json!("1000"), json!("f01000"), json!("t01000")] {
            let prover = prover(&mut object(json!({ "miner_id": id }))).unwrap();
            assert_eq!(prover[..3], [0xe8, 0x07, 0]);
            assert_eq!(prover[3..], [0; 29]);
        }
        for id in [
            json!(-1),
            json!("f1abc"),
            json!(""),
            json!("f0"),
            json!(1.5),
            json!(u64::MAX),
            json!(null),
        ] {
            let refused = prover(&mut object(json!({ "miner_id": id }))).unwrap_err();
            assert_eq!(refused.field, "miner_id", "{id}");
        }
        assert!(prover(&mut object(json!({"miner_id": 1, "prover_id": "00".repeat(32)}))).is_err());
        assert_eq!(prover(&mut object(json!({}))).unwrap_err().found, "nothing");
    }

    #[test]
    fn values_are_hex_or_base64_and_canonical() {
        let mut bytes = [7; 32];
        for text in [hex::encode(bytes), STANDARD.encode(bytes)] {
            assert_eq!(element(&mut object(json!({ "x": text })), "x").unwrap(), bytes);
        }
        bytes[31] = 0xff;
        let refused = element(&mut object(json!({"x": hex::encode(bytes)})), "x").unwrap_err();
        assert_eq!((refused.code, refused.field.as_str()), ("non-canonical", "x"));
        let refused = commitment(&mut object(json!({"x": "00".repeat(32)})), "x").unwrap_err();
        assert_eq!(refused.code, "zero-commitment");
        for text in ["", "zz", &"00".repeat(31), &"é".repeat(32)] {
            assert!(bytes32(&mut object(json!({ "x": text })), "x").is_err(), "{text}");
        }
    }
}
