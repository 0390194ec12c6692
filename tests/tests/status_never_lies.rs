//! The status can't lie: while jobs run, every snapshot is one that the journal knows, and holds every invariant that it
//! shows; `GET /status` says the same; and in the end nothing is held any more.
//!
//! Polls go on until there were 2,000 of them while at least one job was in flight.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod status_support;

use std::path::Path;

use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{Daemon, Launch, PATIENCE, proofkeep, until, until_some};
use serde_json::{Value, json};
use status_support::ledger::Ledger;
use status_support::{Film, list, number, text};

const POLLS: usize = 2000;
const JOBS: usize = 4;
const PARTITIONS: usize = 4;

/// Polls while `submit` keeps four jobs in flight; `act` may do something to a job between two polls.
fn film(
    daemon: &Daemon,
    mut submit: impl FnMut(usize) -> Value,
    mut act: impl FnMut(&Film, &[String]),
) -> Film {
    let mut film = Film::default();
    let (mut flying, mut submitted, mut counted) = (Vec::<String>::new(), 0, 0);
    while counted < POLLS {
        while flying.len() < JOBS {
            let job = daemon.post("/v1/jobs", &submit(submitted)).expect(202).json();
            flying.push(text(&job, "id").to_owned());
            submitted += 1;
        }
        film.poll(daemon);
        let (_, picture) = film.pictures.last_key_value().unwrap();
        flying.retain(|id| list(picture, "jobs").iter().any(|job| text(job, "id") == id));
        counted += usize::from(!flying.is_empty());
        act(&film, &flying);
    }
    until_some("every job ends", || {
        film.poll(daemon);
        let (_, picture) = film.pictures.last_key_value().unwrap();
        list(picture, "jobs").is_empty().then_some(())
    });
    film
}

/// What the whole film must agree with, and what must be left in the end.
/// So many pairs of answers must have been of the same moment, so that they could be compared.
fn check(film: &Film, daemon: Daemon, data: &Path, what: &str, pairs: usize) {
    film.tell(what);
    let ledger = Ledger::read(&daemon, film.ids());
    ledger.check(film);
    let last = daemon.get("/v1/status").expect(200).json();
    ledger.check_counters(&last);
    until("what is granted in memory is keys and nothing else", || {
        let memory = daemon.get("/v1/status").expect(200).json()["memory"].clone();
        let keys: u64 = list(&memory, "keys").iter().map(|key| number(key, "bytes")).sum();
        number(&memory, "reserved_bytes") <= keys
    });
    assert!(film.busy > 0, "no snapshot shows a busy worker");
    assert!(
        film.compared >= pairs,
        "only {} pairs were taken in the same read",
        film.compared
    );
    assert!(daemon.terminate().success());
    // What no status shows, leases and indexes, is checked where it lies.
    let report = proofkeep([Path::new("fsck"), Path::new("--data-dir"), data]).expect(0);
    println!("fsck: {}", report.stdout.lines().last().unwrap_or_default());
}

#[test]
fn while_real_proofs_are_made() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let daemon = Daemon::start(
        &data,
        &[
            "--cpu-devices",
            "2,1",
            "--threads",
            "1",
            "--checkpoint-after",
            "0s",
        ],
    );
    let mut witnesses = Vec::new();
    for name in ["poseidon2", "filled"] {
        let files = ["r1cs", "zkey"].map(|file| (file, fixtures::read(name, &format!("circuit.{file}"))));
        let files: Vec<(&str, &[u8])> = files.iter().map(|(file, bytes)| (*file, &bytes[..])).collect();
        daemon.register(name, &files);
        witnesses.push((name, daemon.upload(&fixtures::read(name, "witness.wtns"))));
    }
    let submit = |count: usize| {
        let (circuit, witness) = &witnesses[count % 2];
        let inputs = vec![json!({ "witness": witness }); PARTITIONS];
        let priority = ["normal", "high", "low", "critical"][count % 4];
        json!({ "kind": "groth16", "circuit": circuit, "inputs": inputs, "priority": priority })
    };
    let film = film(&daemon, submit, |_, _| {});
    assert!(film.jobs.keys().all(|state| state != "failed"), "{:?}", film.jobs);
    // A fast prover changes something every few milliseconds, so few pairs of polls see the same.
    check(&film, daemon, &data, "groth16", POLLS / 100);
}

#[test]
fn while_everything_goes_wrong_that_can() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let daemon = Launch::test_build(&data)
        .args(["--cpu-devices", "2,1", "--checkpoint-after", "0s"])
        .start();
    let marks = |count: usize| {
        let marks = directory.path().join(format!("marks-{count}"));
        std::fs::create_dir(&marks).unwrap();
        marks
    };
    let submit = |count: usize| {
        let plain = json!({ "synth_ms": 8, "piece_ms": 3, "finish_ms": 6, "salt": count });
        let with = |member: &str, value: Value| {
            let mut script = plain.clone();
            script[member] = value;
            script
        };
        let (first, on_failure) = match count % 6 {
            0 => (plain.clone(), "continue"),
            1 => (
                with(
                    "fail",
                    json!({ "stage": "a", "class": "device_error", "times": 1 }),
                ),
                "continue",
            ),
            2 => (
                with("fail", json!({ "stage": "synth", "class": "unsatisfied" })),
                "continue",
            ),
            3 => (
                with("fail", json!({ "stage": "l", "class": "input_invalid" })),
                "stop",
            ),
            4 => (
                with("crash", json!({ "stage": "b1", "how": "abort", "times": 1 })),
                "continue",
            ),
            _ => (
                with(
                    "crash",
                    json!({ "stage": "finish", "how": "invalid_proof", "times": 1 }),
                ),
                "stop",
            ),
        };
        let inputs = vec![first, plain.clone(), plain.clone(), plain.clone()];
        json!({ "kind": "scripted", "inputs": inputs, "on_failure": on_failure, "marks": marks(count) })
    };
    // Every eleventh job is cancelled while it runs, again and again, and tried again when it has ended.
    let mut cancelled = std::collections::BTreeSet::new();
    let act = |film: &Film, flying: &[String]| {
        let (_, picture) = film.pictures.last_key_value().unwrap();
        for job in list(picture, "jobs")
            .iter()
            .filter(|job| job["state"] == "running")
        {
            let id = text(job, "id").to_owned();
            if flying.contains(&id) && film.polls.is_multiple_of(11) && cancelled.insert(id.clone()) {
                let _ = daemon.post(&format!("/v1/jobs/{id}/cancel"), &json!({}));
                break;
            }
        }
        for job in list(picture, "recent")
            .iter()
            .filter(|job| job["state"] == "cancelled")
        {
            if job["generation"] == 1 && film.polls.is_multiple_of(23) {
                let _ = daemon.post(&format!("/v1/jobs/{}/retry", text(job, "id")), &json!({}));
                break;
            }
        }
    };
    let film = film(&daemon, submit, act);
    for state in [
        "ready",
        "waiting",
        "synthesizing",
        "synthesized",
        "proving",
        "finishing",
        "proved",
        "failed",
        "cancelled",
    ] {
        assert!(
            film.partitions.contains_key(state),
            "no snapshot shows a partition that is {state}: {:?}",
            film.partitions
        );
    }
    for state in ["running", "stopping", "succeeded", "failed", "cancelled"] {
        assert!(
            film.jobs.contains_key(state),
            "no snapshot shows a job that is {state}: {:?}",
            film.jobs
        );
    }
    assert!(film.polls >= POLLS, "{} polls within {PATIENCE:?}", film.polls);
    check(&film, daemon, &data, "scripted", POLLS / 10);
}
