//! What the tests check the arithmetic with: the same straight-line code on other words.

pub(crate) mod interval;
pub(crate) mod plain;

#[cfg(target_arch = "x86_64")]
mod bounds;
pub(crate) mod fields;
#[cfg(target_arch = "x86_64")]
pub(crate) mod vectors;
