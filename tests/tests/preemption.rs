//! Urgent jobs amid long ones, through the real daemon: they wait no longer than one edge (a multiplication of a proof),
//! what gave way goes on from its checkpoints and nothing is counted against it; a cancelled job frees its slot at the
//! next edge.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http_support;

use std::path::Path;
use std::time::Duration;

use http_support::{id, products};
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{Daemon, Launch, until_some_within};
use serde_json::{Value, json};

/// Points of the long circuit's domain, as a power of two: seconds for a proof on one thread of the portable arithmetic.
const LONG: u32 = 15;
/// How long a step may take on a loaded machine before it counts as hanging.
const LOADED: Duration = Duration::from_secs(900);
/// A try that is overtaken by the end of the proof that was to give way is repeated.
const TRIES: usize = 20;

/// A daemon with a small and a long circuit.
fn server(data: &Path, arguments: &[&str]) -> Daemon {
    let server = Launch::new(data)
        .args(["--threads", "1", "--checkpoint-after", "0ms"])
        .args(arguments)
        .env("PROOFKEEP_BACKEND", "blst")
        .start();
    let small =
        ["r1cs", "zkey", "wasm"].map(|file| (file, fixtures::read("multiplier", &format!("circuit.{file}"))));
    let small: Vec<(&str, &[u8])> = small.iter().map(|(file, bytes)| (*file, &bytes[..])).collect();
    server.register("multiplier", &small);
    let r1cs = server.upload(&fixtures::squares(LONG).0);
    let body = json!({ "r1cs": r1cs, "setup": "insecure-local" });
    let answer = server.put("/v1/circuits/long", &body);
    assert!((200..203).contains(&answer.status), "{}", answer.text());
    until_some_within(LOADED, "the long circuit is ready", || {
        let circuit = server.get("/v1/circuits/long").expect(200).json();
        (circuit["state"] == "ready").then_some(())
    });
    server
}

/// A job of so many long partitions; one attempt each, so that anything that counts against one fails it.
fn long(server: &Daemon, partitions: usize) -> String {
    let input = json!({ "witness": server.upload(&fixtures::squares(LONG).1) });
    let body = json!({
        "kind": "groth16", "circuit": "long", "inputs": vec![input; partitions], "max_attempts": 1, "priority": "low",
    });
    id(&server.post("/v1/jobs", &body).expect(202).json()).to_owned()
}

/// A small critical job, from a witness: a calculator would take more memory than the rest of it.
fn urgent(server: &Daemon) -> Value {
    let input = json!({ "witness": server.upload(&fixtures::read("multiplier", "witness.wtns")) });
    json!({ "kind": "groth16", "circuit": "multiplier", "inputs": [input], "priority": "critical" })
}

/// Submits a job and waits until it ended.
fn finish(server: &Daemon, body: &Value) -> Value {
    let job = server.post("/v1/jobs", body).expect(202).json();
    ended(server, id(&job))
}

/// Waits until a job ended: a proof on one thread of the portable arithmetic takes its time on a loaded machine.
fn ended(server: &Daemon, job: &str) -> Value {
    until_some_within(LOADED, "the job ends", || {
        let path = format!("/v1/jobs/{job}");
        let answer = server.send("GET", &path, &[("Prefer", "wait=30")], None);
        let job = answer.expect(200).json();
        let state = job["state"].as_str();
        matches!(state, Some("succeeded" | "failed" | "cancelled")).then_some(job)
    })
}

fn shown(server: &Daemon, job: &str) -> Value {
    server.get(&format!("/v1/jobs/{job}")).expect(200).json()
}

fn in_state<'a>(job: &'a Value, state: &str) -> Vec<&'a Value> {
    let all = job["partitions"].as_array().unwrap().iter();
    all.filter(|partition| partition["state"] == state).collect()
}

/// Pieces of the partition that are durable.
fn pieces(partition: &Value) -> usize {
    partition["checkpoint"].as_array().map_or(0, Vec::len)
}

fn events(server: &Daemon, job: &str) -> Vec<Value> {
    let path = format!("/v1/jobs/{job}/events?limit=1000");
    server.get(&path).expect(200).json()["events"]
        .as_array()
        .unwrap()
        .clone()
}

fn numbers(events: &[Value], name: &str) -> Vec<u64> {
    let named = events.iter().filter(|event| event["event"] == name);
    named.map(|event| event["number"].as_u64().unwrap()).collect()
}

/// Attempts of all partitions that ended so.
fn outcomes(job: &Value, outcome: &str) -> usize {
    let partitions = job["partitions"].as_array().unwrap().iter();
    let attempts = partitions.flat_map(|partition| partition["attempts"].as_array().unwrap());
    attempts.filter(|attempt| attempt["outcome"] == outcome).count()
}

#[test]
fn a_critical_job_amid_a_long_one_waits_no_longer_than_one_edge() {
    let data = tempfile::tempdir().unwrap();
    let server = server(data.path(), &["--cpu-devices", "1"]);
    for _ in 0..TRIES {
        let slow = long(&server, 4);
        // As many ahead as may be, and a proof in its middle.
        let full = until_some_within(LOADED, "a proof is in its middle", || {
            let job = shown(&server, &slow);
            assert_eq!(in_state(&job, "failed").len(), 0, "{job}");
            if job["summary"]["proved"].as_u64() > Some(1) {
                return Some(false);
            }
            let middle = in_state(&job, "proving")
                .iter()
                .any(|one| (1..3).contains(&pieces(one)));
            (middle && in_state(&job, "synthesized").len() == 2).then_some(true)
        });
        if !full {
            ended(&server, &slow);
            continue;
        }
        let quick = finish(&server, &urgent(&server));
        assert_eq!(quick["state"], "succeeded", "{quick}");
        let (ours, theirs) = (events(&server, id(&quick)), events(&server, &slow));
        let started = numbers(&ours, "synth_started")[0];
        let (ready, proved) = (numbers(&ours, "synth_ended")[0], numbers(&ours, "gpu_started")[0]);
        let submitted = numbers(&ours, "submitted")[0];
        let others = numbers(&theirs, "gpu_started");
        let between = |from: u64, to: u64| others.iter().filter(|at| (from..to).contains(*at)).count();
        let job = ended(&server, &slow);
        // Nothing was counted: each partition had one attempt to spend.
        assert_eq!(job["state"], "succeeded", "{job}");
        assert_eq!(job["summary"]["proved"], 4, "{job}");
        // The proof may have ended by itself just then, and the next been decided already; then this shows nothing.
        let begun = between(submitted, started) + between(ready, proved);
        if begun > 0 || outcomes(&job, "preempted") < 2 {
            continue;
        }
        // One witness gave way to the critical one's, one proof to its proof; that one went on from its pieces.
        let gave_way = |partition: &&Value| {
            let attempts = partition["attempts"].as_array().unwrap();
            let ended = attempts
                .iter()
                .position(|attempt| attempt["outcome"] == "preempted" && attempt["stage"] == "prove");
            ended.is_some_and(|place| {
                attempts[place + 1..].iter().any(|attempt| {
                    attempt["reused"]
                        .as_array()
                        .is_some_and(|reused| !reused.is_empty())
                })
            })
        };
        let partitions = job["partitions"].as_array().unwrap();
        assert_eq!(partitions.iter().filter(gave_way).count(), 1, "{job}");
        return;
    }
    panic!(
        "in {TRIES} tries no proof in its middle gave way to a critical job, or less urgent ones were begun before it"
    );
}

#[test]
fn a_cancelled_job_frees_its_slot_at_the_next_edge() {
    let data = tempfile::tempdir().unwrap();
    let server = server(data.path(), &["--cpu-devices", "1"]);
    for _ in 0..TRIES {
        let slow = long(&server, 3);
        let middle = until_some_within(LOADED, "a proof is in its middle", || {
            let job = shown(&server, &slow);
            let middle = in_state(&job, "proving")
                .iter()
                .any(|one| (1..3).contains(&pieces(one)));
            (middle || job["summary"]["proved"].as_u64() > Some(1)).then_some(middle)
        });
        server
            .post(&format!("/v1/jobs/{slow}/cancel"), &json!({}))
            .expect(202);
        let job = ended(&server, &slow);
        if !middle || outcomes(&job, "cancelled") == 0 {
            continue;
        }
        assert_eq!(job["state"], "cancelled", "{job}");
        let all = events(&server, &slow);
        let asked = numbers(&all, "stopping")[0];
        let later = |name: &str| numbers(&all, name).iter().filter(|at| **at > asked).count();
        assert_eq!((later("gpu_started"), later("gpu_ended")), (0, 0), "{all:?}");
        assert!(
            later("checkpointed") <= 1,
            "more than the piece in work was made: {all:?}"
        );
        // The slot is free for others.
        assert_eq!(finish(&server, &products(&[(5, 7)]))["state"], "succeeded");
        return;
    }
    panic!("in {TRIES} tries no proof was in its middle when its job was cancelled");
}
