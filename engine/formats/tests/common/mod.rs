//! The circom fixtures of this repository, and bytes to break.
#![allow(clippy::unwrap_used, clippy::expect_used, dead_code)]

use std::io::Read;
use std::path::PathBuf;

/// Fixtures with a key and a proof.
pub const WITH_KEY: [&str; 4] = ["multiplier", "arrays", "filled", "poseidon2"];
/// Larger fixtures: compressed, without a key.
pub const LARGE: [&str; 3] = ["sha256_rounds4", "sha256_rounds16", "sha256"];

/// Reads a file of a fixture, decompressing it if only `file.gz` is there.
pub fn fixture(name: &str, file: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/circom")
        .join(name)
        .join(file);
    if let Ok(bytes) = std::fs::read(&path) {
        return bytes;
    }
    let mut packed = path.into_os_string();
    packed.push(".gz");
    let packed = std::fs::File::open(&packed).unwrap_or_else(|error| panic!("{packed:?}: {error}"));
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed)
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

/// The position and length of the body of section `id`.
pub fn section(bytes: &[u8], id: u32) -> (usize, usize) {
    let mut at = 12;
    while at < bytes.len() {
        let length = u64::from_le_bytes(bytes[at + 4..at + 12].try_into().unwrap()) as usize;
        if bytes[at..at + 4] == id.to_le_bytes() {
            return (at + 12, length);
        }
        at += 12 + length;
    }
    panic!("no section {id}");
}

/// The file with section `id` taken out.
pub fn without_section(bytes: &[u8], id: u32) -> Vec<u8> {
    let (at, length) = section(bytes, id);
    let mut out = [&bytes[..at - 12], &bytes[at + length..]].concat();
    out[8] -= 1;
    out
}

/// The file with section `id` once more at its end.
pub fn with_section_twice(bytes: &[u8], id: u32) -> Vec<u8> {
    let (at, length) = section(bytes, id);
    let mut out = [bytes, &bytes[at - 12..at + length]].concat();
    out[8] += 1;
    out
}

/// The file with `value` written at `offset` of section `id`.
pub fn patched(bytes: &[u8], id: u32, offset: usize, value: &[u8]) -> Vec<u8> {
    let (at, _) = section(bytes, id);
    let mut out = bytes.to_vec();
    out[at + offset..at + offset + value.len()].copy_from_slice(value);
    out
}

/// BN254's group order, little-endian: the prime circom uses when it is told nothing.
pub fn bn254() -> [u8; 32] {
    let hex = "30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001";
    let mut prime = [0; 32];
    for (i, byte) in prime.iter_mut().rev().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap();
    }
    prime
}
