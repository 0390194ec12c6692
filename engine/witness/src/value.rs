//! Integers as an `input.json` writes them, to canonical field elements.

use std::sync::LazyLock;

use num_bigint::BigUint;
use proofkeep_formats::field::R_LE;

static R: LazyLock<BigUint> = LazyLock::new(|| BigUint::from_bytes_le(&R_LE));

/// Decimal digits of r; a longer number without leading zeros can't be below it.
const MAX_DECIMAL: usize = 77;
/// Hexadecimal digits of r.
const MAX_HEX: usize = 64;

/// Why a text is no field element.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadValue {
    /// Not the digits of an integer.
    NotAnInteger,
    /// An integer, of r or more in absolute value.
    OutOfRange,
}

/// Reads a decimal integer with an optional `-`, or `0x` and hexadecimal digits, as 32
/// little-endian bytes below r. A negative number -v is r - v.
///
/// Numbers too long to be in range are refused by their length, so that a text of megabytes
/// costs no more than reading it.
pub(crate) fn parse(text: &str) -> Result<[u8; 32], BadValue> {
    let (negative, digits, radix, max) = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) => (false, digits, 16, MAX_HEX),
        None => match text.strip_prefix('-') {
            Some(digits) => (true, digits, 10, MAX_DECIMAL),
            None => (false, text, 10, MAX_DECIMAL),
        },
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(BadValue::NotAnInteger);
    }
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Ok([0; 32]);
    }
    if significant.len() > max {
        return Err(BadValue::OutOfRange);
    }
    let magnitude = BigUint::parse_bytes(significant.as_bytes(), radix).ok_or(BadValue::NotAnInteger)?;
    if magnitude >= *R {
        return Err(BadValue::OutOfRange);
    }
    let element = if negative { &*R - magnitude } else { magnitude };
    let mut bytes = [0; 32];
    for (to, from) in bytes.iter_mut().zip(element.to_bytes_le()) {
        *to = from;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn decimal(text: &str) -> String {
        BigUint::from_bytes_le(&parse(text).unwrap()).to_string()
    }

    #[test]
    fn digits_of_every_accepted_form() {
        let r = R.to_string();
        let last = (&*R - 1u8).to_string();
        assert_eq!(decimal("0"), "0");
        assert_eq!(decimal("-0"), "0");
        assert_eq!(decimal("007"), "7");
        assert_eq!(decimal("0x1F"), "31");
        assert_eq!(decimal("-1"), last);
        assert_eq!(decimal(&last), last);
        assert_eq!(decimal(&format!("-{last}")), "1");
        assert_eq!(decimal(&format!("0x{:x}", &*R - 1u8)), last);
        assert_eq!(parse(&r), Err(BadValue::OutOfRange));
        assert_eq!(parse(&format!("-{r}")), Err(BadValue::OutOfRange));
        assert_eq!(parse(&"9".repeat(78)), Err(BadValue::OutOfRange));
        assert_eq!(parse(&"f".repeat(65)), Err(BadValue::NotAnInteger));
        assert_eq!(parse(&format!("0x{}", "f".repeat(65))), Err(BadValue::OutOfRange));
    }

    #[test]
    fn what_is_no_integer() {
        for text in [
            "", "-", "+1", "--1", "0x", "-0x1", "0b1", "1.0", "1e3", " 1", "1 ", "1_000", "١", "NaN",
        ] {
            assert_eq!(parse(text), Err(BadValue::NotAnInteger), "{text:?}");
        }
    }
}
