//! Each parser, fuzzed for `PROOFKEEP_FUZZ_ITERS` mutants (20,000 if unset, never fewer than 2,000), divided by what
//! one mutant costs.
//!
//! The seed is drawn anew each time and printed; `PROOFKEEP_FUZZ_SEED` sets it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::hash::{BuildHasher, RandomState};

use proofkeep_fuzz::alloc::Counting;
use proofkeep_fuzz::{Limit, Shape, all, find, replay, run};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const USUAL: u64 = 20_000;
const FLOOR: u64 = 2_000;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} must be a number, and is {text:?}")),
    )
}

fn fuzz(name: &str) {
    let target = find(name).unwrap();
    let iterations = number("PROOFKEEP_FUZZ_ITERS").unwrap_or(USUAL).max(FLOOR) / target.cost;
    let seed = number("PROOFKEEP_FUZZ_SEED").unwrap_or_else(|| RandomState::new().hash_one(name));
    eprintln!("{name}: {iterations} mutants of PROOFKEEP_FUZZ_SEED={seed}");
    let report =
        run(target, seed, Limit::Iterations(iterations)).unwrap_or_else(|failure| panic!("{failure}"));
    eprintln!("{name}: {report:?}");
    assert_eq!(report.iterations, iterations);
    // A fuzzer whose inputs all fail the first check, or all pass, tests nothing.
    assert!(report.accepted > 0, "{name} accepted nothing");
    let least = match (name, target.shape) {
        ("sym" | "matrices-file", _) => 1,
        ("record" | "frames-to-worker" | "frames-from-worker", _) => 5,
        (_, Shape::Container) => 4,
        _ => 2,
    };
    assert!(
        report.refused.len() >= least,
        "{name} gave only the codes {:?}",
        report.refused
    );
}

#[test]
fn r1cs_keeps_its_promises() {
    fuzz("r1cs");
}

#[test]
fn wtns_keeps_its_promises() {
    fuzz("wtns");
}

#[test]
fn zkey_keeps_its_promises() {
    fuzz("zkey");
}

#[test]
fn ptau_keeps_its_promises() {
    fuzz("ptau");
}

#[test]
fn params_keeps_its_promises() {
    fuzz("params");
}

#[test]
fn params_key_keeps_its_promises() {
    fuzz("params-key");
}

#[test]
fn proof_json_keeps_its_promises() {
    fuzz("proof-json");
}

#[test]
fn public_json_keeps_its_promises() {
    fuzz("public-json");
}

#[test]
fn vkey_json_keeps_its_promises() {
    fuzz("vkey-json");
}

#[test]
fn sym_keeps_its_promises() {
    fuzz("sym");
}

#[test]
fn r1cs_matrices_keeps_its_promises() {
    fuzz("r1cs-matrices");
}

#[test]
fn zkey_matrices_keeps_its_promises() {
    fuzz("zkey-matrices");
}

#[test]
fn matrices_file_keeps_its_promises() {
    fuzz("matrices-file");
}

#[test]
fn proof_bytes_keeps_its_promises() {
    fuzz("proof-bytes");
}

#[test]
fn vk_bytes_keeps_its_promises() {
    fuzz("vk-bytes");
}

#[test]
fn input_json_keeps_its_promises() {
    fuzz("input-json");
}

#[test]
fn circuit_wasm_keeps_its_promises() {
    fuzz("circuit-wasm");
}

#[test]
fn record_keeps_its_promises() {
    fuzz("record");
}

#[test]
fn dump_keeps_its_promises() {
    fuzz("dump");
}

#[test]
fn frames_to_worker_keep_their_promises() {
    fuzz("frames-to-worker");
}

#[test]
fn frames_from_worker_keep_their_promises() {
    fuzz("frames-from-worker");
}

#[test]
fn every_target_has_a_test_here() {
    let source = include_str!("parsers.rs");
    for target in all() {
        assert!(
            source.contains(&format!("fuzz(\"{}\");", target.name)),
            "{}",
            target.name
        );
    }
}

/// `PROOFKEEP_FUZZ_REPLAY=target:seed:iteration` repeats what a failure printed.
#[test]
fn replay_of_a_failure() {
    let Ok(text) = std::env::var("PROOFKEEP_FUZZ_REPLAY") else {
        return;
    };
    let parts: Vec<&str> = text.split(':').collect();
    let [name, seed, iteration] = parts[..] else {
        panic!("expected target:seed:iteration, found {text:?}")
    };
    let (seed, iteration) = (seed.parse().unwrap(), iteration.parse().unwrap());
    if let Err(failure) = replay(find(name).expect("a target"), seed, iteration) {
        panic!("{failure}\n{}", failure.input.escape_ascii());
    }
}
