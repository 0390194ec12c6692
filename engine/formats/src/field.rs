//! The two fields of BLS12-381 as bytes: canonical checks, names of primes, decimal text.

use num_bigint::BigUint;

/// The order r of the groups, little-endian. Wires and coefficients are numbers below it.
pub const R_LE: [u8; 32] = [
    0x01, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xfe, 0x5b, 0xfe, 0xff, 0x02, 0xa4, 0xbd, 0x53, 0x05,
    0xd8, 0xa1, 0x09, 0x08, 0xd8, 0x39, 0x33, 0x48, 0x7d, 0x9d, 0x29, 0x53, 0xa7, 0xed, 0x73,
];

/// The modulus q of the base field, little-endian. Coordinates of points are numbers below it.
pub const Q_LE: [u8; 48] = [
    0xab, 0xaa, 0xff, 0xff, 0xff, 0xff, 0xfe, 0xb9, 0xff, 0xff, 0x53, 0xb1, 0xfe, 0xff, 0xab, 0x1e, 0x24,
    0xf6, 0xb0, 0xf6, 0xa0, 0xd2, 0x30, 0x67, 0xbf, 0x12, 0x85, 0xf3, 0x84, 0x4b, 0x77, 0x64, 0xd7, 0xac,
    0x4b, 0x43, 0xb6, 0xa7, 0x1b, 0x4b, 0x9a, 0xe6, 0x7f, 0x39, 0xea, 0x11, 0x01, 0x1a,
];

/// The name used for the one curve that is supported.
pub const CURVE: &str = "BLS12-381";

/// The name used for the field of its coordinates.
pub const BASE_FIELD: &str = "BLS12-381 (base field)";

/// Primes that circom and snarkjs know, in hexadecimal, so that an error can name what a file was made for.
const KNOWN: [(&str, &str); 9] = [
    (
        CURVE,
        "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001",
    ),
    (
        "BN254",
        "30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001",
    ),
    (
        "BLS12-377",
        "12ab655e9a2ca55660b44d1e5c37b00159aa76fed00000010a11800000000001",
    ),
    ("Goldilocks", "ffffffff00000001"),
    (
        "Pallas",
        "40000000000000000000000000000000224698fc094cf91b992d30ed00000001",
    ),
    (
        "Vesta",
        "40000000000000000000000000000000224698fc0994a8dd8c46eb2100000001",
    ),
    (
        "secq256r1",
        "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff",
    ),
    (
        "BN254 (base field, also Grumpkin)",
        "30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47",
    ),
    (
        BASE_FIELD,
        "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab",
    ),
];

/// Whether little-endian `value` is below r.
pub fn is_canonical_r(value: &[u8; 32]) -> bool {
    below(value, &R_LE)
}

/// Whether little-endian `value` is below q. Montgomery form must be below q too.
pub fn is_canonical_q(value: &[u8; 48]) -> bool {
    below(value, &Q_LE)
}

/// Whether big-endian `value` is below q.
pub fn is_canonical_q_big_endian(value: &[u8; 48]) -> bool {
    value.iter().lt(Q_LE.iter().rev())
}

fn below(value: &[u8], modulus: &[u8]) -> bool {
    value.iter().rev().lt(modulus.iter().rev())
}

/// The name of a prime given as little-endian bytes of any length, or its hexadecimal form when it has none here.
pub fn prime_name(prime: &[u8]) -> String {
    // Longer than any field in use: don't print a page of digits.
    if prime.len() > 96 {
        return format!("a field of {} bytes", prime.len());
    }
    let number = format!("{:x}", BigUint::from_bytes_le(prime));
    KNOWN.iter().find(|(_, hex)| *hex == number).map_or_else(
        || format!("the unknown prime 0x{number}"),
        |(name, _)| (*name).to_owned(),
    )
}

/// Why a decimal number was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// Not only digits, or none at all.
    #[error("a field element is written with decimal digits only, without a sign")]
    NotDecimal,
    /// Zeros in front: the same number could be written in two ways.
    #[error("a field element is written without leading zeros")]
    LeadingZero,
    /// Not below the modulus.
    #[error("a field element must be below the modulus")]
    TooLarge,
}

/// Reads a number below r: digits only, no sign, no leading zeros. Little-endian.
pub fn r_from_decimal(text: &str) -> Result<[u8; 32], DecimalError> {
    from_decimal(text, &R_LE)
}

/// Reads a number below q: digits only, no sign, no leading zeros. Little-endian.
pub fn q_from_decimal(text: &str) -> Result<[u8; 48], DecimalError> {
    from_decimal(text, &Q_LE)
}

/// Writes a little-endian number of any length in decimal.
pub fn to_decimal(value: &[u8]) -> String {
    BigUint::from_bytes_le(value).to_string()
}

fn from_decimal<const N: usize>(text: &str, modulus: &[u8; N]) -> Result<[u8; N], DecimalError> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(DecimalError::NotDecimal);
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(DecimalError::LeadingZero);
    }
    // 5/2 digits a byte is more than log10(256), so longer text can't be below the modulus. Asked first, since
    // conversion takes time quadratic in the length.
    if text.len() > N * 5 / 2 {
        return Err(DecimalError::TooLarge);
    }
    let number = BigUint::parse_bytes(text.as_bytes(), 10).ok_or(DecimalError::NotDecimal)?;
    let bytes = number.to_bytes_le();
    let mut value = [0; N];
    value
        .get_mut(..bytes.len())
        .ok_or(DecimalError::TooLarge)?
        .copy_from_slice(&bytes);
    if below(&value, modulus) {
        Ok(value)
    } else {
        Err(DecimalError::TooLarge)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    const R: &str = "52435875175126190479447740508185965837690552500527637822603658699938581184513";
    const Q: &str = "4002409555221667393417789825735904156556882819939007885332058136124031650490837864442687629129015664037894272559787";

    #[test]
    fn the_moduli_are_those_of_bls12_381() {
        assert_eq!(to_decimal(&R_LE), R);
        assert_eq!(to_decimal(&Q_LE), Q);
        assert_eq!(prime_name(&R_LE), "BLS12-381");
        assert_eq!(prime_name(&Q_LE), "BLS12-381 (base field)");
    }

    #[test]
    fn known_primes_are_named_and_others_are_printed() {
        let bn254 = BigUint::parse_bytes(
            b"21888242871839275222246405745257275088548364400416034343698204186575808495617",
            10,
        )
        .unwrap();
        assert_eq!(prime_name(&bn254.to_bytes_le()), "BN254");
        assert_eq!(prime_name(&[7, 0, 0]), "the unknown prime 0x7");
        assert_eq!(prime_name(&[1; 4096]), "a field of 4096 bytes");
    }

    #[test]
    fn canonical_means_below_the_modulus() {
        let mut below = R_LE;
        below[0] = 0;
        assert!(is_canonical_r(&below));
        assert!(!is_canonical_r(&R_LE));
        assert!(!is_canonical_r(&[0xff; 32]));
        let mut below = Q_LE;
        below[0] -= 1;
        assert!(is_canonical_q(&below));
        assert!(!is_canonical_q(&Q_LE));
        let big_endian = |mut value: [u8; 48]| {
            value.reverse();
            is_canonical_q_big_endian(&value)
        };
        assert!(big_endian(below) && !big_endian(Q_LE) && !big_endian([0xff; 48]));
    }

    #[test]
    fn decimal_text_is_strict() {
        assert_eq!(r_from_decimal("0").unwrap(), [0; 32]);
        let mut last = R_LE;
        last[0] = 0;
        let text = to_decimal(&last);
        assert_eq!(r_from_decimal(&text).unwrap(), last);
        assert_eq!(r_from_decimal(R), Err(DecimalError::TooLarge));
        assert_eq!(q_from_decimal(Q), Err(DecimalError::TooLarge));
        assert_eq!(r_from_decimal(&"9".repeat(79)), Err(DecimalError::TooLarge));
        assert_eq!(r_from_decimal(&"9".repeat(100_000)), Err(DecimalError::TooLarge));
        assert_eq!(r_from_decimal("01"), Err(DecimalError::LeadingZero));
        for text in ["", "-1", "+1", "0x1", " 1", "1_0", "١"] {
            assert_eq!(r_from_decimal(text), Err(DecimalError::NotDecimal), "{text:?}");
        }
    }
}
