//! The peers: snarkjs as a command, bellperson's verifier in this process.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

pub mod ptau;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use bellperson::groth16::{Proof, VerifyingKey, prepare_verifying_key, verify_proof};
use blstrs::{Bls12, G1Affine, G2Affine, Scalar};
use proofkeep_formats::json::{ProofJson, VkJson, public_from_json};
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{Ran, run};

/// Runs snarkjs in a directory; the words of `line` are its arguments.
///
/// # Panics
/// When it isn't installed.
pub fn snarkjs(directory: &Path, line: &str) -> Ran {
    let program = fixtures::circom().join("node_modules/.bin/snarkjs");
    assert!(
        program.exists(),
        "snarkjs is not installed: run `npm ci` in tests/fixtures/circom"
    );
    let mut command = Command::new("node");
    command
        .arg(program)
        .args(line.split_whitespace())
        .current_dir(directory)
        .stdin(Stdio::null());
    run(&mut command)
}

/// Whether snarkjs accepts a proof.
pub fn snarkjs_accepts(directory: &Path, files: &str) -> bool {
    let ran = snarkjs(directory, &format!("groth16 verify {files}"));
    let said_ok = ran.stdout.contains("OK!");
    assert_eq!(said_ok, ran.code == 0, "{}{}", ran.stdout, ran.stderr);
    said_ok
}

/// Whether bellperson accepts a proof, all three read from snarkjs's files.
pub fn bellperson_accepts(directory: &Path, key: &str, public: &str, proof: &str) -> bool {
    let read = |name: &str| fs::read(directory.join(name)).unwrap();
    let key = VkJson::from_json(&read(key)).unwrap();
    let key = VerifyingKey::<Bls12> {
        alpha_g1: g1(&key.alpha1),
        // Neither of the two is used to verify.
        beta_g1: g1(&key.alpha1),
        delta_g1: g1(&key.alpha1),
        beta_g2: g2(&key.beta2),
        gamma_g2: g2(&key.gamma2),
        delta_g2: g2(&key.delta2),
        ic: key.ic.iter().map(g1).collect(),
    };
    let proof = ProofJson::from_json(&read(proof)).unwrap();
    let proof = Proof {
        a: g1(&proof.a),
        b: g2(&proof.b),
        c: g1(&proof.c),
    };
    let public: Vec<Scalar> = public_from_json(&read(public))
        .unwrap()
        .iter()
        .map(|signal| Option::<Scalar>::from(Scalar::from_bytes_le(signal)).unwrap())
        .collect();
    verify_proof(&prepare_verifying_key(&key), &proof, &public).unwrap()
}

fn g1(bytes: &[u8; 96]) -> G1Affine {
    Option::<G1Affine>::from(G1Affine::from_uncompressed(bytes)).unwrap()
}

fn g2(bytes: &[u8; 192]) -> G2Affine {
    Option::<G2Affine>::from(G2Affine::from_uncompressed(bytes)).unwrap()
}
