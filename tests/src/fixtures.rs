//! The circom fixtures, and keys for those that have none.

use std::fs;
use std::path::{Path, PathBuf};

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
