//! Inputs that make no witness, and calculators that never end: the signal, the template and the limit are named, and no
//! value is ever shown.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod bad_input_support;

use std::path::{Path, PathBuf};

use bad_input_support::wasm::calculator;
use bad_input_support::{JSON, Refused, Target, problem, refused_command};
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::proofkeep;
use serde_json::{Value, json};

/// A value that must not come back in any answer.
const SECRET: &str = "31337313373133731337";

fn arrays(weights: Value, values: Value) -> Value {
    json!({ "weights": weights, "values": values })
}

fn inputs() -> Vec<(&'static str, Value, &'static str, &'static [&'static str])> {
    let values = json!([[1, 2], [3, 4], [5, 6]]);
    let weights = json!([1, 2, 3]);
    let mut unknown = arrays(weights.clone(), values.clone());
    unknown["wieghts"] = json!([SECRET]);
    let r = "52435875175126190479447740508185965837690552500527637822603658699938581184513";
    vec![
        (
            "an unknown signal",
            unknown,
            "signal-unknown",
            &["wieghts", "weights", "values"],
        ),
        (
            "a missing signal",
            json!({ "weights": weights }),
            "signal-missing",
            &["values"],
        ),
        (
            "no signal at all",
            json!({}),
            "signal-missing",
            &["weights", "values"],
        ),
        (
            "too few values",
            arrays(weights.clone(), json!([[1, 2], [3, SECRET]])),
            "signal-length",
            &["values", "6", "4"],
        ),
        (
            "too many values",
            arrays(json!([1, 2, 3, SECRET]), values.clone()),
            "signal-length",
            &["weights", "3", "4"],
        ),
        (
            "a number for an array",
            arrays(json!(SECRET), values.clone()),
            "signal-length",
            &["weights", "3", "1"],
        ),
        (
            "r itself",
            arrays(json!([1, 2, r]), values.clone()),
            "signal-out-of-range",
            &["weights", "2", "below r"],
        ),
        (
            "a fraction",
            arrays(json!([1, 2, 0.5]), values.clone()),
            "signal-not-integer",
            &["weights", "2", "integer"],
        ),
        (
            "a word",
            arrays(json!([1, "twenty", 3]), values.clone()),
            "signal-not-integer",
            &["weights", "1", "integer"],
        ),
        (
            "null",
            arrays(json!([1, null, 3]), values.clone()),
            "signal-not-integer",
            &["weights", "1"],
        ),
        (
            "an assert that fails",
            arrays(json!([1, 2, SECRET]), values),
            "assert-failed",
            &["WeightedSum", "line 11"],
        ),
    ]
}

fn check(refused: &Refused, code: &str, parts: &[&str]) {
    refused.says(code, parts);
    assert!(
        !refused.detail.contains(SECRET),
        "a value is told: {}",
        refused.detail
    );
}

#[test]
fn an_input_that_does_not_fit_names_the_signal_over_http() {
    let target = Target::with_circuit("arrays", &[]);
    for (name, input, code, parts) in inputs() {
        println!("{name}");
        check(
            &target.refused_input("arrays", &json!({ "input": input })),
            code,
            parts,
        );
        let blob = target.upload(input.to_string().as_bytes());
        check(
            &target.refused_input("arrays", &json!({ "input_blob": blob })),
            code,
            parts,
        );
        // One call answers 422 itself, with the job that it was.
        let answer = target.send(
            "POST",
            "/v1/circuits/arrays/prove",
            &[JSON],
            Some(input.to_string().as_bytes()),
        );
        check(&problem(&answer, 422), code, parts);
        assert!(
            answer.json()["job"].is_string() && !answer.text().contains(SECRET),
            "{}",
            answer.text()
        );
    }
    for (text, code) in [
        ("{\"weights\": [1, 2", "malformed-json"),
        ("{\"weights\": 1, \"weights\": 2}", "signal-twice"),
        ("[1]", "malformed-json"),
    ] {
        println!("{text}");
        let blob = target.upload(text.as_bytes());
        target
            .refused_input("arrays", &json!({ "input_blob": blob }))
            .says(code, &[]);
    }
    assert!(!target.stderr().contains(SECRET), "a value is logged");
    target.check_unharmed();
}

#[test]
fn an_input_that_does_not_fit_names_the_signal_on_the_command_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let fixture = |file: &str| fixtures::path("arrays", file);
    for (name, input, code, parts) in inputs() {
        println!("{name}");
        let file = path("input.json");
        std::fs::write(&file, input.to_string()).unwrap();
        let word = Path::new;
        let (wasm, sym, key, witness) = (
            fixture("circuit.wasm"),
            fixture("circuit.sym"),
            fixture("circuit.zkey"),
            path("out.wtns"),
        );
        let refused = refused_command(&[
            word("wtns"),
            word("calculate"),
            &wasm,
            &file,
            &witness,
            word("--sym"),
            &sym,
        ]);
        check(&refused, code, parts);
        assert!(!witness.exists());
        let (proof, public) = (path("proof.json"), path("public.json"));
        let refused = refused_command(&[
            word("groth16"),
            word("fullprove"),
            &file,
            &wasm,
            &key,
            &proof,
            &public,
            word("--sym"),
            &sym,
        ]);
        check(&refused, code, parts);
        assert!(!proof.exists() && !public.exists());
    }
}

#[test]
fn a_witness_that_breaks_a_constraint_is_refused_before_it_is_proved_and_names_it() {
    let target = Target::with_circuit("multiplier", &[]);
    let bad = bad_input_support::file::File::fixture("multiplier", "witness.wtns")
        .with(|file| file.section(2)[32] ^= 1);
    let refused = target.refused_input("multiplier", &json!({ "witness": target.upload(&bad) }));
    refused.says("unsatisfied", &["constraint 0", "main.a", "main.b", "main.c"]);
    let directory = tempfile::tempdir().unwrap();
    let file: PathBuf = directory.path().join("bad.wtns");
    std::fs::write(&file, &bad).unwrap();
    let (r1cs, sym) = (
        fixtures::path("multiplier", "circuit.r1cs"),
        fixtures::path("multiplier", "circuit.sym"),
    );
    let words = ["wtns", "check", "--json", "--sym"].map(Path::new);
    let verdict = proofkeep(words.into_iter().chain([&*sym, &*r1cs, &*file]))
        .expect(1)
        .json();
    let signals = json!(["main.a", "main.b", "main.c"]);
    assert_eq!(
        verdict,
        json!({ "satisfied": false, "constraint": 0, "signals": signals })
    );
    // Proving it says the same, and writes nothing.
    let (key, proof) = (
        fixtures::path("multiplier", "circuit.zkey"),
        directory.path().join("proof.json"),
    );
    let words = ["groth16", "prove", "--r1cs"].map(Path::new);
    let refused = refused_command(
        &words
            .into_iter()
            .chain([&*r1cs, &*key, &*file, &*proof])
            .collect::<Vec<_>>(),
    );
    refused.says("unsatisfied", &["constraint 0"]);
    assert!(!proof.exists());
    target.check_unharmed();
}

#[test]
fn a_calculator_that_never_ends_ends_with_its_fuel() {
    let target = Target::start(&["--wasm-fuel", "3000000"]);
    let key = fixtures::read("multiplier", "circuit.zkey");
    let endless = "(loop br 0)";
    // One that loops when it is loaded is refused by the import, one that loops over an input by the job.
    target
        .refused_circuit(&[("zkey", &key), ("wasm", &calculator(endless, ""))])
        .says("fuel-exhausted", &["3000000", "loops"]);
    target.register("slow", &[("zkey", &key), ("wasm", &calculator("", endless))]);
    let refused = target.refused_input("slow", &json!({ "input": { "a": "3", "b": "11" } }));
    refused.says("fuel-exhausted", &["3000000", "loops", "limit"]);
    target.check_unharmed();
}

#[test]
fn a_calculator_that_wants_all_memory_or_is_none_is_refused() {
    let target = Target::start(&["--wasm-memory", "16MiB"]);
    let key = fixtures::read("multiplier", "circuit.zkey");
    let refused = |wasm: &[u8]| target.refused_circuit(&[("zkey", &key), ("wasm", wasm)]);
    refused(&calculator("(drop (memory.grow (i32.const 30000)))", "")).says("memory-limit", &["16777216"]);
    refused(b"#!/bin/sh\nexit 0\n").says("not-circom-wasm", &["circom"]);
    refused(b"\0asm\x01\0\0\0").says("not-circom-wasm", &["circom"]);
    refused(&fixtures::read("poseidon2", "circuit.wasm"))
        .says("circuit-mismatch", &["wires", "different circuits"]);
    refused(&calculator("unreachable", "")).says("wasm-trap", &[]);
    target.check_unharmed();
}
