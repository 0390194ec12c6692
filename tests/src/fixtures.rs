//! The circom fixtures, and keys for those that have none.

use std::fs;
use std::path::{Path, PathBuf};

use blstrs::Scalar;
use ff::Field as _;
use proofkeep_formats::r1cs::R1csBuilder;
use proofkeep_formats::wtns;

/// `tests/fixtures/circom`.
#[must_use]
pub fn circom() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/circom")
}

/// A file of a fixture.
#[must_use]
pub fn path(fixture: &str, file: &str) -> PathBuf {
    circom().join(fixture).join(file)
}

/// The bytes of a file of a fixture; `circuit.r1cs` and `witness.wtns` are unpacked where they are kept compressed.
///
/// # Panics
/// When it isn't there.
#[must_use]
pub fn read(fixture: &str, file: &str) -> Vec<u8> {
    let plain = path(fixture, file);
    if plain.is_file() {
        return fs::read(&plain).unwrap_or_else(|error| panic!("{}: {error}", plain.display()));
    }
    let packed = path(fixture, &format!("{file}.gz"));
    let bytes = fs::read(&packed).unwrap_or_else(|error| panic!("{}: {error}", packed.display()));
    let mut unpacked = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut unpacked)
        .unwrap_or_else(|error| panic!("{}: {error}", packed.display()));
    unpacked
}

/// A circuit that fills the domain of `2^log2` points exactly, as `.r1cs`, and a witness of it, as `.wtns`: one private
/// number, squared again and again until the last square is the one public output.
///
/// # Panics
/// When `log2` isn't 2 or more.
#[must_use]
pub fn squares(log2: u32) -> (Vec<u8>, Vec<u8>) {
    assert!(log2 >= 2, "the smallest domain has four points");
    // One row for the constant and one for the public signal.
    let count = (1u32 << log2) - 2;
    let mut one = [0; 32];
    one[0] = 1;
    // The wires: the constant, the output, then the number and its squares but the last.
    let mut circuit = R1csBuilder::new(count + 2, 1, 0, 1);
    let mut value = Scalar::from(3u64);
    let mut values = vec![one, one, value.to_bytes_le()];
    for step in 0..count {
        let (from, to) = (2 + step, if step + 1 == count { 1 } else { 3 + step });
        circuit.constraint(&[(from, one)], &[(from, one)], &[(to, one)]);
        value = value.square();
        match to {
            1 => values[1] = value.to_bytes_le(),
            _ => values.push(value.to_bytes_le()),
        }
    }
    (circuit.build(), wtns::write(&values))
}
