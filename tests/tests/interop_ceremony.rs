//! Keys from snarkjs's own ceremony: both sides prove with them, and each accepts what the other proved.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cli_support;
mod interop_support;

use cli_support::Desk;
use interop_support::{bellperson_accepts, snarkjs, snarkjs_accepts};
use proofkeep_tests::harness::Daemon;

/// Domains of 2^2, 2^4, 2^8 (which `filled` fills exactly) and 2^10.
const FIXTURES: [&str; 4] = ["multiplier", "arrays", "filled", "poseidon2"];

#[test]
fn snarkjs_and_bellperson_accept_proofs_of_the_command_line_and_we_accept_snarkjs_s() {
    for fixture in FIXTURES {
        let desk = Desk::new();
        desk.take(
            fixture,
            &[
                "circuit.zkey",
                "circuit.r1cs",
                "circuit.wasm",
                "input.json",
                "witness.wtns",
                "vkey.json",
            ],
        );
        desk.run("groth16 prove circuit.zkey witness.wtns --r1cs circuit.r1cs")
            .expect(0);
        assert!(
            snarkjs_accepts(desk.path(), "vkey.json public.json proof.json"),
            "{fixture}"
        );
        assert!(
            bellperson_accepts(desk.path(), "vkey.json", "public.json", "proof.json"),
            "{fixture}"
        );

        snarkjs(
            desk.path(),
            "groth16 prove circuit.zkey witness.wtns theirs.json signals.json",
        )
        .expect(0);
        desk.run("verify vkey.json signals.json theirs.json").expect(0);

        desk.write("other.json", &other_signals(&desk.read("public.json")));
        assert!(
            !snarkjs_accepts(desk.path(), "vkey.json other.json proof.json"),
            "{fixture}"
        );
        assert!(
            !bellperson_accepts(desk.path(), "vkey.json", "other.json", "proof.json"),
            "{fixture}"
        );
        desk.run("verify vkey.json other.json theirs.json").expect(1);
    }
}

#[test]
fn snarkjs_and_bellperson_accept_proofs_that_came_over_http() {
    let desk = Desk::new();
    let daemon = Daemon::start(&desk.path().join("data"), &[]);
    for fixture in FIXTURES {
        desk.take(
            fixture,
            &["circuit.zkey", "circuit.r1cs", "circuit.wasm", "input.json"],
        );
        let files = "--zkey circuit.zkey --r1cs circuit.r1cs --wasm circuit.wasm";
        desk.ask(&daemon, &format!("circuit add {fixture} {files}"))
            .expect(0);
        desk.ask(&daemon, &format!("prove {fixture} input.json"))
            .expect(0);
        let key = daemon.get(&format!("/v1/circuits/{fixture}/vk")).expect(200);
        desk.write("vk.json", &key.body);
        assert!(
            snarkjs_accepts(desk.path(), "vk.json public.json proof.json"),
            "{fixture}"
        );
        assert!(
            bellperson_accepts(desk.path(), "vk.json", "public.json", "proof.json"),
            "{fixture}"
        );
    }
}

/// The same list with another first number.
fn other_signals(public: &[u8]) -> Vec<u8> {
    let mut signals: Vec<String> = serde_json::from_slice(public).unwrap();
    signals[0] = if signals[0] == "7" { "8" } else { "7" }.to_owned();
    serde_json::to_vec(&signals).unwrap()
}
