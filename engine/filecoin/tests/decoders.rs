//! The decoders of vanilla proofs and everything that checks them, fuzzed for `PROOFKEEP_FUZZ_ITERS` mutants divided by
//! what one costs (20,000 if unset, never fewer than 2,000): whatever is sent is answered, without a panic and without
//! more memory than a multiple of it.
//!
//! The seed is drawn anew each time and printed; `PROOFKEEP_FUZZ_SEED` sets it.
#![cfg(feature = "published")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;

use filecoin_proofs::SectorShapeBase;
use proofkeep_filecoin::invalid::Invalid;
use proofkeep_filecoin::porep::Asked;
use proofkeep_filecoin::post::Post;
use proofkeep_filecoin::snap::Update;
use proofkeep_fuzz::alloc::Counting;
use proofkeep_fuzz::{Limit, Outcome, Shape, Target, run};
use serde_json::{Map, Value, json};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The tree shape of 2 KiB sectors.
type Tree = SectorShapeBase;

const USUAL: u64 = 20_000;
const FLOOR: u64 = 2_000;
/// Checking a vanilla proof takes thousands of hashes.
const COST: u64 = 20;
/// Constants of hash functions and graphs, which the published code makes once.
const SLACK: usize = 96 << 20;
/// A small element of a list takes more room than its bytes.
const BYTES_PER_BYTE: usize = 64;

fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/filecoin")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn meta(name: &str) -> Value {
    serde_json::from_slice(&fixture(name)).unwrap()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => panic!("no object: {other}"),
    }
}

fn outcome<T>(result: Result<T, Invalid>) -> Outcome {
    result
        .map(drop)
        .map_err(|invalid| (invalid.code, invalid.to_string()))
}

fn porep(bytes: &[u8]) -> Outcome {
    let meta = meta("porep-2k-p2/meta.json");
    let mut fields = object(json!({
        "registered_proof": meta["registered_seal_proof"],
        "partitions": meta["porep_partitions"],
        "prover_id": meta["prover_id"],
        "sector_number": meta["sector_id"],
    }));
    let asked = Asked::take(&mut fields).unwrap();
    outcome(asked.sector_size(bytes).and_then(|_| asked.read::<Tree>(bytes)))
}

fn post(directory: &str, winning: bool, bytes: &[u8]) -> Outcome {
    let meta = meta(&format!("{directory}/post-meta.json"));
    let mut fields = object(json!({
        "sector_size": "2KiB",
        "prover_id": meta["prover_id"],
        "randomness": meta["randomness"],
    }));
    if !winning {
        fields.remove("sector_size");
        fields.insert("registered_proof".to_owned(), "StackedDrgWindow2KiBV1".into());
    }
    outcome(Post::take(&mut fields, winning).unwrap().read::<Tree>(bytes))
}

fn window(bytes: &[u8]) -> Outcome {
    post("window-2k-3sectors", false, bytes)
}

fn winning(bytes: &[u8]) -> Outcome {
    post("winning-2k", true, bytes)
}

fn update(bytes: &[u8]) -> Outcome {
    let meta = meta("snap-2k/snap-meta.json");
    let mut fields = object(json!({
        "sector_size": "2KiB",
        "comm_r_old": meta["comm_r_old"],
        "comm_r_new": meta["comm_r_new"],
        "comm_d_new": meta["comm_d_new"],
    }));
    outcome(Update::take(&mut fields).unwrap().read::<Tree>(bytes))
}

const fn target(
    name: &'static str,
    shape: Shape,
    made: fn() -> Vec<Vec<u8>>,
    parse: fn(&[u8]) -> Outcome,
) -> Target {
    Target {
        made,
        cost: COST,
        bytes_per_byte: BYTES_PER_BYTE,
        slack: SLACK,
        ..Target::new(name, "", shape, parse)
    }
}

static TARGETS: [Target; 8] = [
    target(
        "filecoin-c1",
        Shape::Bytes,
        || {
            vec![
                fixture("porep-2k-p2/c1.bincode"),
                fixture("porep-2k-p2/c1-api.bincode"),
            ]
        },
        porep,
    ),
    target(
        "filecoin-c1-json",
        Shape::Text,
        || {
            vec![
                fixture("porep-2k-p2/c1.json"),
                fixture("porep-2k-p2/c1-lotus.json"),
            ]
        },
        porep,
    ),
    target(
        "filecoin-window",
        Shape::Bytes,
        || vec![fixture("window-2k-3sectors/vanilla.bincode")],
        window,
    ),
    target(
        "filecoin-window-json",
        Shape::Text,
        || vec![fixture("window-2k-3sectors/vanilla.json")],
        window,
    ),
    target(
        "filecoin-winning",
        Shape::Bytes,
        || vec![fixture("winning-2k/vanilla.bincode")],
        winning,
    ),
    target(
        "filecoin-winning-json",
        Shape::Text,
        || vec![fixture("winning-2k/vanilla.json")],
        winning,
    ),
    target(
        "filecoin-update",
        Shape::Bytes,
        || vec![fixture("snap-2k/vanilla.bincode")],
        update,
    ),
    target(
        "filecoin-update-json",
        Shape::Text,
        || vec![fixture("snap-2k/vanilla.json")],
        update,
    ),
];

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} must be a number, and is {text:?}")))
}

#[test]
fn the_decoders_of_vanilla_proofs_keep_their_promises() {
    for target in &TARGETS {
        let iterations = number("PROOFKEEP_FUZZ_ITERS").unwrap_or(USUAL).max(FLOOR) / target.cost;
        let seed = number("PROOFKEEP_FUZZ_SEED").unwrap_or_else(|| RandomState::new().hash_one(target.name));
        eprintln!(
            "{}: {iterations} mutants of PROOFKEEP_FUZZ_SEED={seed}",
            target.name
        );
        let report =
            run(target, seed, Limit::Iterations(iterations)).unwrap_or_else(|failure| panic!("{failure}"));
        eprintln!("{}: {report:?}", target.name);
        assert_eq!(report.iterations, iterations);
        // The seeds are proofs, and not every mutant fails at the same check.
        assert!(report.accepted > 0, "{} accepted nothing", target.name);
        assert!(report.refused.len() >= 2, "only the codes {:?}", report.refused);
    }
}
