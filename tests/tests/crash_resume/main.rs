//! Resuming inside a proof: the daemon is killed between the multiplications (MSMs) of a real proof, and the next life
//! makes only those that weren't durable. A stored piece that is wrong costs one attempt, never the proof.
//!
//! ```text
//! cargo nextest run --cargo-profile release -p proofkeep-tests --test crash_resume --no-capture
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod forge;

use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::Path;

use proofkeep_formats::r1cs::R1cs;
use proofkeep_groth16::backend::BlstBackend;
use proofkeep_groth16::setup::insecure_setup;
use proofkeep_store::ids::JobNumber;
use proofkeep_store::query::{self, Found};
use proofkeep_store::records::Checkpoint;
use proofkeep_store::{Options, Store};
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{Daemon, proofkeep};
use proofkeep_tests::kill::copy;
use serde_json::{Value, json};
use uuid::Uuid;

/// A proof has so many pieces.
const PIECES: usize = 5;

#[test]
fn a_killed_proof_goes_on_where_it_was_and_a_wrong_piece_is_dropped() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let daemon = start(&data);
    let r1cs = fixtures::read("sha256", "circuit.r1cs");
    let zkey = key(&r1cs);
    daemon.register("sha256", &[("r1cs", &r1cs), ("zkey", &zkey)]);
    let witness = daemon.upload(&fixtures::read("sha256", "witness.wtns"));
    drop((r1cs, zkey));

    let mut daemon = daemon;
    for pieces in [1, 1, 2] {
        daemon = kill_after(daemon, &data, root.path(), &witness, pieces);
    }
    corrupt_one(daemon, &data, root.path(), &witness);
}

fn start(data: &Path) -> Daemon {
    Daemon::start(
        data,
        &[
            "--cpu-devices",
            "1",
            "--threads",
            "1",
            "--checkpoint-after",
            "0ms",
        ],
    )
}

fn key(r1cs: &[u8]) -> Vec<u8> {
    let parsed = R1cs::parse(r1cs).unwrap();
    let mut go_on = |_, _| ControlFlow::Continue(());
    let backend = BlstBackend::new(2).unwrap();
    insecure_setup(&parsed, b"resume", Cursor::new(Vec::new()), &backend, &mut go_on)
        .unwrap()
        .into_inner()
}

fn submit(daemon: &Daemon, witness: &str) -> String {
    let body = json!({ "kind": "groth16", "circuit": "sha256", "inputs": [{ "witness": witness }] });
    daemon.post("/v1/jobs", &body).expect(202).json()["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Submits a proof and kills the daemon once so many pieces are durable; answers the job and what is durable then. A
/// proof that was faster is left alone, and another one is submitted.
fn kill_a_proof(
    mut daemon: Daemon,
    data: &Path,
    root: &Path,
    witness: &str,
    pieces: usize,
) -> (String, Checkpoint) {
    for _ in 0..50 {
        let id = submit(&daemon, witness);
        if !is_hit(&daemon, &id, pieces) {
            continue;
        }
        drop(daemon.kill());
        let scratch = root.join("copy");
        if scratch.exists() {
            std::fs::remove_dir_all(&scratch).unwrap();
        }
        copy(data, &scratch).unwrap();
        let options = Options {
            create: false,
            ..Options::default()
        };
        let store = Store::open(&scratch, &options).unwrap();
        let number = number(&store, &id);
        let checkpoint = store.read(|view| query::checkpoint(view, number, 0)).unwrap();
        drop(store);
        // The kill comes a moment after the look: all pieces, or the proof itself, may be there by then.
        if let Some(checkpoint) = checkpoint.filter(|made| (pieces..PIECES).contains(&made.pieces.len())) {
            return (id, checkpoint);
        }
        daemon = start(data);
        assert_eq!(daemon.wait_for_end(&id)["state"], "succeeded");
    }
    panic!("no proof was hit between two pieces");
}

/// Waits until so many pieces are durable; `false` if the proof was faster.
fn is_hit(daemon: &Daemon, id: &str, pieces: usize) -> bool {
    loop {
        let mut job = daemon.get(&format!("/v1/jobs/{id}")).expect(200).json();
        let partition = job["partitions"][0].take();
        if partition["state"] == "proved" {
            return false;
        }
        let made = partition["checkpoint"].as_array().map_or(0, Vec::len);
        if (pieces..PIECES).contains(&made) {
            return true;
        }
    }
}

fn number(store: &Store, id: &str) -> JobNumber {
    match store
        .read(|view| query::find(view, Uuid::parse_str(id).unwrap()))
        .unwrap()
    {
        Found::Job(number) => number,
        other => panic!("{id}: {other:?}"),
    }
}

fn names(value: &Value) -> Vec<String> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect()
}

/// Kills a proof after so many pieces; the next life makes the others, each once, and says what it took over.
fn kill_after(daemon: Daemon, data: &Path, root: &Path, witness: &str, pieces: usize) -> Daemon {
    let (id, checkpoint) = kill_a_proof(daemon, data, root, witness, pieces);
    let mut durable: Vec<String> = checkpoint.pieces.iter().map(|piece| piece.name.clone()).collect();
    let cost: u64 = checkpoint.pieces.iter().map(|piece| piece.millis).sum();
    durable.sort();

    let daemon = start(data);
    let job = daemon.wait_for_end(&id);
    assert_eq!(job["state"], "succeeded", "{job}");
    let attempts = job["partitions"][0]["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 2, "{job}");
    assert_eq!(attempts[0]["outcome"], "interrupted");
    // `show` says what was reused, and what that had cost.
    let mut reused = names(&attempts[1]["reused"]);
    reused.sort();
    assert_eq!(reused, durable);
    assert_eq!(attempts[1]["saved_ms"], cost);
    let shown = proofkeep(["show", &id, "--server", daemon.url()]);
    assert!(
        shown.stdout.contains(&format!("(saved {cost} ms)")),
        "{}",
        shown.stdout
    );

    // The journal says the same, and that no piece was made twice: one, the piece under way, is what a kill can cost.
    let events = daemon
        .get(&format!("/v1/jobs/{id}/events?limit=1000"))
        .expect(200)
        .json();
    let of = |name: &str| -> Vec<Value> {
        events["events"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|event| event["event"] == name)
            .cloned()
            .collect()
    };
    let ended = of("gpu_ended");
    assert_eq!(
        (ended.len(), &ended[0]["saved_ms"]),
        (1, &json!(cost)),
        "{events}"
    );
    let mut made: Vec<String> = Vec::new();
    for event in of("checkpointed") {
        made.extend(
            event["pieces"]
                .as_array()
                .unwrap()
                .iter()
                .map(|piece| piece["piece"].as_str().unwrap().to_owned()),
        );
    }
    let all = made.len();
    made.sort();
    made.dedup();
    assert_eq!(made.len(), all, "a piece was made twice: {events}");
    assert!(
        durable.iter().all(|piece| made.contains(piece)) && all <= PIECES,
        "{made:?}"
    );

    // And so does the boot.
    let boot = daemon.get("/v1/status").json()["boot"].clone();
    assert_eq!(boot["clean"], false, "{boot}");
    let expected = json!({
        "interrupted": 1, "partitions_kept": 0, "checkpoints_reused": durable.len(), "saved_ms": cost,
    });
    assert_eq!(boot["recovered"], expected);
    eprintln!(
        "killed with {durable:?} durable: {} of {PIECES} pieces reused, {cost} ms saved",
        durable.len()
    );
    daemon
}

/// One stored piece becomes another point of the same group: its attempt ends `invalid_proof`, all pieces are dropped,
/// and the next attempt succeeds.
fn corrupt_one(daemon: Daemon, data: &Path, root: &Path, witness: &str) {
    let (id, checkpoint) = kill_a_proof(daemon, data, root, witness, 2);
    let piece = forge::another_point(data, &checkpoint);

    let daemon = start(data);
    let job = daemon.wait_for_end(&id);
    assert_eq!(job["state"], "succeeded", "{job}");
    let attempts = job["partitions"][0]["attempts"].as_array().unwrap();
    let outcomes: Vec<&str> = attempts
        .iter()
        .map(|attempt| attempt["outcome"].as_str().unwrap())
        .collect();
    // The first was killed, the second is the forger's.
    assert_eq!(
        outcomes,
        ["interrupted", "interrupted", "invalid_proof", "ok"],
        "{job}"
    );
    assert!(names(&attempts[2]["reused"]).contains(&piece), "{job}");
    assert!(names(&attempts[3]["reused"]).is_empty(), "{job}");
    assert!(daemon.terminate().success());
    eprintln!("piece {piece} was another point: {outcomes:?}");
}
