//! Every domain from 2^2 to 2^15, each filled exactly, with keys from `setup --insecure`, which snarkjs reads.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cli_support;
mod interop_support;

use cli_support::Desk;
use interop_support::{bellperson_accepts, snarkjs, snarkjs_accepts};
use proofkeep_tests::fixtures::squares;

#[test]
fn both_verifiers_accept_a_proof_of_every_domain_from_4_to_32768_points() {
    for log2 in 2..=15 {
        let desk = Desk::new();
        let (r1cs, wtns) = squares(log2);
        desk.write("circuit.r1cs", &r1cs);
        desk.write("witness.wtns", &wtns);
        let info = desk.run("r1cs info circuit.r1cs --json").expect(0).json();
        assert_eq!(info["domain_log2"], log2, "{info}");
        desk.run("groth16 setup circuit.r1cs circuit.zkey --insecure --seed s")
            .expect(0);
        desk.run("groth16 prove circuit.zkey witness.wtns --r1cs circuit.r1cs")
            .expect(0);
        desk.run("zkey export verificationkey circuit.zkey vkey.json")
            .expect(0);
        assert!(
            bellperson_accepts(desk.path(), "vkey.json", "public.json", "proof.json"),
            "2^{log2}"
        );
        assert!(
            snarkjs_accepts(desk.path(), "vkey.json public.json proof.json"),
            "2^{log2}"
        );
    }
}

#[test]
fn snarkjs_reads_our_key_of_a_real_sha256_and_proves_with_it() {
    let desk = Desk::new();
    desk.take(
        "sha256",
        &["circuit.r1cs", "circuit.wasm", "input.json", "witness.wtns"],
    );
    desk.run("circuit setup circuit.r1cs circuit.zkey --insecure --seed s")
        .expect(0);
    desk.run("groth16 fullprove input.json circuit.wasm circuit.zkey --r1cs circuit.r1cs")
        .expect(0);
    snarkjs(
        desk.path(),
        "zkey export verificationkey circuit.zkey theirs_vkey.json",
    )
    .expect(0);
    desk.run("zkey export verificationkey circuit.zkey vkey.json")
        .expect(0);
    let ours: serde_json::Value = serde_json::from_slice(&desk.read("vkey.json")).unwrap();
    let mut theirs: serde_json::Value = serde_json::from_slice(&desk.read("theirs_vkey.json")).unwrap();
    theirs.as_object_mut().unwrap().remove("vk_alphabeta_12");
    assert_eq!(ours, theirs);
    assert!(snarkjs_accepts(
        desk.path(),
        "theirs_vkey.json public.json proof.json"
    ));
    assert!(bellperson_accepts(
        desk.path(),
        "vkey.json",
        "public.json",
        "proof.json"
    ));

    snarkjs(
        desk.path(),
        "groth16 prove circuit.zkey witness.wtns theirs.json signals.json",
    )
    .expect(0);
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(&desk.read("signals.json")).unwrap(),
        serde_json::from_slice::<serde_json::Value>(&desk.read("public.json")).unwrap()
    );
    desk.run("verify vkey.json signals.json theirs.json").expect(0);
    assert!(bellperson_accepts(
        desk.path(),
        "vkey.json",
        "signals.json",
        "theirs.json"
    ));
}
