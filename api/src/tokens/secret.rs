//! The secret itself: never in a log, an error or a file of the daemon.

use std::fmt;

use rand::RngCore as _;
use rand::rngs::OsRng;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroize as _;

use super::TokenError;

/// In front of the digits, so that people and scanners of repositories know what they have before them.
const PREFIX: &str = "pk_";

/// 32 random bytes that open the door.
#[derive(Clone)]
#[cfg_attr(test, derive(PartialEq, Eq))]
pub(crate) struct Secret([u8; 32]);

impl Secret {
    /// A new one.
    pub fn random() -> Result<Self, TokenError> {
        let mut bytes = [0; 32];
        OsRng
            .try_fill_bytes(&mut bytes)
            .map_err(|error| TokenError::Random(error.to_string()))?;
        Ok(Self(bytes))
    }

    /// What somebody sent or has in a file; `None` if it can't be one.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX)?;
        let mut bytes = [0; 32];
        hex::decode_to_slice(digits, &mut bytes).ok()?;
        Some(Self(bytes))
    }

    /// What its holder is given, once.
    pub fn show(&self) -> String {
        format!("{PREFIX}{}", hex::encode(self.0))
    }

    /// What is kept.
    pub fn hash(&self) -> Hash {
        Hash(Sha256::digest(self.0).into())
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// SHA-256 of a secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Hash([u8; 32]);

impl Hash {
    /// Whether it is the other, in a time that doesn't say how far they agree.
    pub fn same(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// As the file has it.
    pub fn hex(&self) -> String {
        hex::encode(self.0)
    }

    /// From the file.
    pub fn parse(digits: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(digits, &mut bytes).ok()?;
        Some(Self(bytes))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash(…)")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_shown_is_read_again_and_nothing_else_is() {
        let secret = Secret::random().unwrap();
        let shown = secret.show();
        assert_eq!(shown.len(), 3 + 64);
        assert_eq!(Secret::parse(&shown), Some(secret));
        for bad in [
            "",
            "pk_",
            &shown[3..],
            &shown[..66],
            &format!("{shown}0"),
            &shown.replace("pk_", "PK_"),
        ] {
            assert_eq!(Secret::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn hashes_differ_by_any_bit() {
        let secret = Secret::random().unwrap();
        let mut other = secret.clone();
        other.0[31] ^= 1;
        assert!(secret.hash().same(&secret.hash()));
        assert!(!secret.hash().same(&other.hash()));
        assert_eq!(Hash::parse(&secret.hash().hex()), Some(secret.hash()));
    }
}
