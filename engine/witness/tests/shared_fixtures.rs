//! The project's circom fixtures: snarkjs's witness, byte for byte, from the same input.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::io::Read;
use std::path::PathBuf;

use proofkeep_witness::{Calculator, Limits};

fn file(circuit: &str, name: &str) -> Vec<u8> {
    let path: PathBuf = [
        env!("CARGO_MANIFEST_DIR"),
        "../../tests/fixtures/circom",
        circuit,
        name,
    ]
    .iter()
    .collect();
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A `.wtns` as snarkjs writes it: the values follow 76 bytes of headers.
fn agrees(circuit: &str, wtns: &[u8]) {
    let calculator = Calculator::new(&file(circuit, "circuit.wasm"), Limits::default())
        .unwrap()
        .with_sym(&file(circuit, "circuit.sym"))
        .unwrap();
    let named: usize = calculator.inputs().unwrap().iter().map(|input| input.size).sum();
    assert_eq!(
        named,
        calculator.input_size(),
        "{circuit}: the .sym names every input"
    );
    let witness = calculator.calculate(&file(circuit, "input.json")).unwrap();
    assert!(witness.concat() == wtns[76..], "{circuit}");
}

#[test]
fn small_circuits() {
    for circuit in ["multiplier", "arrays", "filled", "poseidon2"] {
        agrees(circuit, &file(circuit, "witness.wtns"));
    }
}

#[test]
fn sha256() {
    for circuit in ["sha256_rounds4", "sha256_rounds16", "sha256"] {
        let mut wtns = Vec::new();
        let packed = file(circuit, "witness.wtns.gz");
        flate2::read::GzDecoder::new(packed.as_slice())
            .read_to_end(&mut wtns)
            .unwrap();
        agrees(circuit, &wtns);
    }
}
