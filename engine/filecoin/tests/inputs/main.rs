//! Inputs as clients send them: every encoding is read, and what is malformed is refused with its field.
#![cfg(feature = "published")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod porep;
mod post;
mod snap;

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use filecoin_proofs::SectorShapeBase;
use serde_json::{Map, Value};

/// The tree shape of 2 KiB sectors.
type Tree = SectorShapeBase;

/// A file of `tests/fixtures/filecoin`.
fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/filecoin")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json(name: &str) -> Value {
    serde_json::from_slice(&fixture(name)).unwrap()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => panic!("no object: {other}"),
    }
}

/// As Go writes `[][]byte`.
fn as_go<T: serde::Serialize>(all: &[T]) -> Vec<u8> {
    let texts: Vec<String> = all
        .iter()
        .map(|one| STANDARD.encode(bincode::serialize(one).unwrap()))
        .collect();
    serde_json::to_vec(&texts).unwrap()
}
