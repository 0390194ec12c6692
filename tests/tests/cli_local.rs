//! The commands that work without a daemon, on snarkjs's own files.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cli_support;

use cli_support::Desk;

/// The fixtures with a key from snarkjs's own ceremony.
const SMALL: [&str; 4] = ["multiplier", "arrays", "filled", "poseidon2"];

#[test]
fn proves_what_snarkjs_made_and_verifies_what_snarkjs_proved() {
    for fixture in SMALL {
        let desk = Desk::new();
        desk.take(
            fixture,
            &[
                "circuit.zkey",
                "circuit.r1cs",
                "circuit.wasm",
                "input.json",
                "witness.wtns",
            ],
        );
        desk.take(fixture, &["vkey.json", "proof.json", "public.json"]);
        let line = desk
            .run("verify vkey.json public.json proof.json")
            .expect(0)
            .stdout;
        assert_eq!(line, "valid\n", "{fixture}");
        let public = desk.read("public.json");

        desk.run("groth16 prove circuit.zkey witness.wtns --r1cs circuit.r1cs")
            .expect(0);
        desk.run("groth16 verify vkey.json public.json proof.json")
            .expect(0);
        assert_eq!(
            desk.read("public.json"),
            public,
            "{fixture}: the public signals are snarkjs's, byte for byte"
        );

        desk.run("groth16 fullprove input.json circuit.wasm circuit.zkey p.json s.json")
            .expect(0);
        desk.run("groth16 verify vkey.json s.json p.json").expect(0);
    }
}

#[test]
fn a_proof_of_other_signals_is_invalid_and_says_so_with_exit_code_1() {
    let desk = Desk::new();
    desk.take("multiplier", &["vkey.json", "proof.json", "public.json"]);
    desk.write("other.json", br#"["1","2"]"#);
    let ran = desk
        .run("verify vkey.json other.json proof.json --json")
        .expect(1);
    let answer = ran.json();
    assert_eq!(answer["valid"], false);
    assert_eq!(answer["code"], "proof-invalid");
}

#[test]
fn a_key_that_nobody_contributed_to_is_taken_only_when_asked() {
    let desk = Desk::new();
    desk.take("multiplier", &["circuit.wasm", "input.json", "witness.wtns"]);
    desk.write(
        "circuit.zkey",
        include_bytes!("../../engine/groth16/tests/fixtures/multiplier_0000.zkey"),
    );
    for line in [
        "zkey export verificationkey circuit.zkey",
        "groth16 prove circuit.zkey witness.wtns",
        "groth16 fullprove input.json circuit.wasm circuit.zkey",
        "groth16 verify verification_key.json public.json proof.json",
        "verify verification_key.json public.json proof.json",
    ] {
        let refused = desk.run(line);
        assert!(refused.code != 0, "{line}: {refused:?}");
        assert!(refused.stderr.contains("contribute"), "{line}: {refused:?}");
        desk.run(&format!("{line} --allow-unfinished-setup")).expect(0);
    }
}

#[test]
fn the_verification_key_is_the_one_that_snarkjs_exports() {
    for fixture in SMALL {
        let desk = Desk::new();
        desk.take(fixture, &["circuit.zkey", "vkey.json"]);
        desk.run("zkey export verificationkey circuit.zkey").expect(0);
        let ours: serde_json::Value = serde_json::from_slice(&desk.read("verification_key.json")).unwrap();
        let mut theirs: serde_json::Value = serde_json::from_slice(&desk.read("vkey.json")).unwrap();
        // A pairing that follows from the rest.
        theirs.as_object_mut().unwrap().remove("vk_alphabeta_12");
        assert_eq!(ours, theirs, "{fixture}");
    }
}

#[test]
fn a_witness_is_the_one_that_snarkjs_calculates_and_satisfies_its_circuit() {
    for fixture in SMALL.into_iter().chain(["sha256_rounds4"]) {
        let desk = Desk::new();
        desk.take(
            fixture,
            &[
                "circuit.wasm",
                "circuit.sym",
                "circuit.r1cs",
                "input.json",
                "witness.wtns",
            ],
        );
        desk.run("wtns calculate circuit.wasm input.json ours.wtns --sym circuit.sym")
            .expect(0);
        assert_eq!(desk.read("ours.wtns"), desk.read("witness.wtns"), "{fixture}");
        desk.run("wtns check circuit.r1cs ours.wtns").expect(0);
        let info = desk.run("r1cs info circuit.r1cs --json").expect(0).json();
        assert_eq!(info["curve"], "bls12381");
    }
}

#[test]
fn a_witness_that_breaks_a_constraint_is_named_by_constraint_and_signals_never_by_value() {
    let desk = Desk::new();
    desk.take(
        "multiplier",
        &["circuit.zkey", "circuit.r1cs", "circuit.sym", "witness.wtns"],
    );
    let mut bytes = desk.read("witness.wtns");
    let last = bytes.len() - 32;
    bytes[last] ^= 1;
    desk.write("bad.wtns", &bytes);
    let answer = desk
        .run("wtns check circuit.r1cs bad.wtns --sym circuit.sym --json")
        .expect(1)
        .json();
    assert_eq!(answer["satisfied"], false);
    assert_eq!(answer["constraint"], 0);
    assert!(answer["signals"].to_string().contains("main."), "{answer}");

    let ran = desk
        .run("groth16 prove circuit.zkey bad.wtns --r1cs circuit.r1cs")
        .expect(1);
    assert!(
        ran.stderr.contains("constraint 0") && ran.stderr.contains("(unsatisfied)"),
        "{}",
        ran.stderr
    );
    let ran = desk.run("groth16 prove circuit.zkey bad.wtns").expect(1);
    assert!(ran.stderr.contains("--r1cs"), "{}", ran.stderr);
    assert!(
        !desk.path().join("proof.json").exists(),
        "no proof is written that doesn't verify"
    );
}

#[test]
fn a_witness_is_only_for_its_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let desk = Desk::new();
    desk.take("multiplier", &["circuit.wasm", "input.json"]);
    desk.run("wtns calculate circuit.wasm input.json").expect(0);
    let mode = std::fs::metadata(desk.path().join("witness.wtns"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

#[test]
fn an_insecure_key_says_what_it_is_and_is_the_same_for_the_same_seed() {
    let desk = Desk::new();
    desk.take("sha256_rounds4", &["circuit.r1cs", "witness.wtns"]);
    let ran = desk
        .run("circuit setup circuit.r1cs a.zkey --insecure --seed one")
        .expect(0);
    assert!(
        ran.stderr.contains("forge") && ran.stderr.contains("tests only"),
        "{}",
        ran.stderr
    );
    desk.run("groth16 setup circuit.r1cs b.zkey --insecure --seed one")
        .expect(0);
    assert!(desk.read("a.zkey") == desk.read("b.zkey"), "one seed, one key");
    desk.run("groth16 setup circuit.r1cs c.zkey --insecure").expect(0);
    desk.run("groth16 setup circuit.r1cs d.zkey --insecure").expect(0);
    assert!(
        desk.read("c.zkey") != desk.read("d.zkey"),
        "no seed, another key each time"
    );
    desk.run("groth16 prove a.zkey witness.wtns --r1cs circuit.r1cs")
        .expect(0);
    desk.run("zkey export verificationkey a.zkey a.json").expect(0);
    desk.run("zkey export verificationkey c.zkey c.json").expect(0);
    desk.run("groth16 verify a.json public.json proof.json").expect(0);
    desk.run("groth16 verify c.json public.json proof.json").expect(1);
}

#[test]
fn a_key_is_never_made_from_a_seed_without_the_word_insecure_nor_from_both() {
    let desk = Desk::new();
    desk.take("multiplier", &["circuit.r1cs"]);
    desk.take("powers", &["pot.ptau"]);
    let ran = desk.run("groth16 setup circuit.r1cs circuit.zkey").expect(2);
    assert!(
        ran.stderr.contains("--insecure") && ran.stderr.contains("forge"),
        "{}",
        ran.stderr
    );
    for line in [
        "groth16 setup circuit.r1cs pot.ptau circuit.zkey --insecure",
        "groth16 setup circuit.r1cs pot.ptau --insecure",
        "groth16 setup circuit.r1cs pot.ptau circuit.zkey --seed s",
        "groth16 setup circuit.r1cs other.zkey circuit.zkey --insecure",
    ] {
        let ran = desk.run(line).expect(2);
        assert!(ran.stderr.contains("--insecure"), "{}", ran.stderr);
    }
    for name in ["circuit.zkey", "circuit_0000.zkey"] {
        assert!(!desk.path().join(name).exists(), "{name}");
    }
}

#[test]
fn errors_name_the_file_and_are_json_on_stderr_when_asked_for() {
    let desk = Desk::new();
    desk.take("multiplier", &["circuit.wasm"]);
    desk.write("input.json", br#"{"a": 1, "nothing": 2}"#);
    let ran = desk
        .run("wtns calculate circuit.wasm input.json --json")
        .expect(1);
    assert_eq!(ran.stdout, "");
    let error: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(error["error"]["code"], "signal-unknown");
    assert!(
        error["error"]["detail"]
            .as_str()
            .unwrap()
            .starts_with("input.json: "),
        "{error}"
    );
    let ran = desk.run("r1cs info missing.r1cs").expect(1);
    assert!(
        ran.stderr.contains("missing.r1cs can't be read"),
        "{}",
        ran.stderr
    );
}

#[test]
fn unknown_words_are_usage_errors_and_help_is_none() {
    let desk = Desk::new();
    desk.run("prove-it").expect(2);
    desk.run("groth16 prove").expect(2);
    let help = desk.run("--help").expect(0);
    for word in ["demo", "serve", "prove", "submit", "history", "fsck", "groth16"] {
        assert!(help.stdout.contains(word), "{word} is not in\n{}", help.stdout);
    }
    assert_eq!(
        desk.run("--version").expect(0).stdout.split(' ').next(),
        Some("proofkeep")
    );
}

#[test]
fn nobody_at_the_address_is_exit_code_5() {
    let desk = Desk::new();
    for line in ["ls", "status", "show 1", "circuit ls"] {
        let ran = desk.run(&format!("{line} --server http://127.0.0.1:1")).expect(5);
        assert!(ran.stderr.contains("proofkeep serve"), "{}", ran.stderr);
    }
    desk.run("ls --server https://127.0.0.1:1").expect(5);
    desk.run("ls --server ftp://127.0.0.1:1").expect(2);
}

#[test]
fn a_configuration_that_cannot_be_read_is_a_usage_error_that_names_the_line() {
    let desk = Desk::new();
    desk.write("proofkeep.toml", b"max_jobs = 7\nmemmory = \"1GiB\"\n");
    let ran = desk.run("serve --data-dir data").expect(2);
    assert!(
        ran.stderr.contains("line 2") && ran.stderr.contains("memmory"),
        "{}",
        ran.stderr
    );
    desk.write("proofkeep.toml", b"max_jobs = 7\n");
    let ran = desk.run("serve --data-dir data --listen 0.0.0.0:0").expect(2);
    assert!(ran.stderr.contains("loopback"), "{}", ran.stderr);
    desk.run("serve --data-dir data --memory lots").expect(2);
}
