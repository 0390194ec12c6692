//! What the tests of backups share: a daemon of the test build with a scripted job for every taste, clients that write
//! down what they are told, and the commands on what was saved.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use proofkeep_store::{Options, Store};
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{Http, Launch, Ran, command, proofkeep, run, sha256_name};
use proofkeep_tests::ledger::{Ledger, Said};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use uuid::Uuid;

pub const JSON: (&str, &str) = ("Content-Type", "application/json");
pub const BYTES: (&str, &str) = ("Content-Type", "application/octet-stream");

/// The test build on a data directory.
pub fn launch(data: &Path) -> Launch {
    Launch::test_build(data).args([
        "--cpu-devices",
        "2",
        "--threads",
        "1",
        "--memory",
        "8GiB",
        "--checkpoint-after",
        "0ms",
        "--grace",
        "5s",
    ])
}

/// A circuit that is registered, and its witness.
pub fn register(http: &Http) -> Vec<u8> {
    let zkey = fixtures::read("poseidon2", "circuit.zkey");
    http.register("poseidon2", &[("zkey", &zkey)]);
    fixtures::read("poseidon2", "witness.wtns")
}

/// Submits a `groth16` job of this witness; answers its id.
pub fn prove(http: &Http, ledger: &Ledger, witness: &[u8]) -> Uuid {
    let name = http.upload(witness);
    let body = json!({ "kind": "groth16", "circuit": "poseidon2", "inputs": [{ "witness": name }] });
    let answer = http.post("/v1/jobs", &body);
    assert!(matches!(answer.status, 201 | 202), "{}", answer.text());
    taken(ledger, &answer.json(), 1)
}

/// Submits a scripted job.
pub fn submit(http: &Http, ledger: &Ledger, inputs: &[Value]) -> Option<Uuid> {
    let body = json!({ "kind": "scripted", "ticket_bytes": 1 << 20, "inputs": inputs });
    let answer = http.try_send("POST", "/v1/jobs", &[JSON], Some(body.to_string().as_bytes()))?;
    if !matches!(answer.status, 201 | 202) {
        assert!(matches!(answer.status, 429 | 503), "{}", answer.text());
        return None;
    }
    Some(taken(ledger, &answer.json(), inputs.len()))
}

fn taken(ledger: &Ledger, job: &Value, partitions: usize) -> Uuid {
    let id = Uuid::parse_str(job["id"].as_str().unwrap()).unwrap();
    ledger.note(Said::Job {
        id,
        partitions: partitions as u32,
        innocent: true,
    });
    id
}

/// What the clients of a test may do.
#[derive(Default)]
pub struct Pace {
    /// Each of them may have submitted so many jobs, so that what is left over can be finished.
    pub jobs: AtomicUsize,
    /// They end.
    pub done: AtomicBool,
}

/// Submits, uploads, cancels and looks until it is told to end, with every answer written down.
pub fn client(http: &Http, ledger: &Ledger, seed: u64, pace: &Pace) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut jobs = Vec::new();
    let mut submitted = 0;
    while !pace.done.load(Ordering::Relaxed) {
        match rng.gen_range(0..10) {
            0..4 if submitted < pace.jobs.load(Ordering::Relaxed) => {
                submitted += 1;
                let inputs: Vec<Value> = (0..rng.gen_range(1..6))
                    .map(|_| json!({ "piece_ms": rng.gen_range(0..4), "salt": rng.r#gen::<u32>() }))
                    .collect();
                jobs.extend(submit(http, ledger, &inputs));
            }
            4 => {
                let mut bytes = vec![0; rng.gen_range(1..60_000)];
                rng.fill(&mut bytes[..]);
                let name = sha256_name(&bytes);
                let answer = http.try_send("PUT", &format!("/v1/blobs/{name}"), &[BYTES], Some(&bytes));
                if answer.is_some_and(|answer| matches!(answer.status, 200 | 201)) {
                    ledger.note(Said::Object(name));
                }
            }
            6 => {
                if let Some(id) = jobs.pop() {
                    ledger.note(Said::Asked(id));
                    let answer = http.try_send("POST", &format!("/v1/jobs/{id}/cancel"), &[], None);
                    if answer.is_some_and(|answer| answer.status == 202) {
                        ledger.note(Said::Cancel(id));
                    }
                }
            }
            _ => {
                let Some(id) = jobs.get(rng.gen_range(0..jobs.len().max(1))) else {
                    continue;
                };
                let answer = http.try_send("GET", &format!("/v1/jobs/{id}"), &[], None);
                if let Some(answer) = answer.filter(|answer| answer.status == 200) {
                    Ledger::told_of(&answer.json())
                        .into_iter()
                        .for_each(|said| ledger.note(said));
                }
            }
        }
    }
}

/// Runs `proofkeep backup` on a data directory, whoever has it.
pub fn backup(data: &Path, target: &Path) -> Ran {
    proofkeep([
        "backup".as_ref(),
        "--json".as_ref(),
        "--data-dir".as_ref(),
        data.as_os_str(),
        target.as_os_str(),
    ])
}

/// Restores a backup beside it; answers the new data directory.
pub fn restore(target: &Path) -> PathBuf {
    let path = target.with_extension("restored");
    let ran = proofkeep([
        "restore".as_ref(),
        "--json".as_ref(),
        target.as_os_str(),
        "--data-dir".as_ref(),
        path.as_os_str(),
    ])
    .expect(0);
    assert_eq!(ran.json()["missing"], json!([]), "{}", ran.stdout);
    path
}

/// `fsck` of a data directory that nobody uses.
pub fn fsck(data: &Path) {
    let mut fsck = command(["fsck", "--data-dir"]);
    run(fsck.arg(data)).expect(0);
}

/// The store in a data directory that nobody uses.
pub fn open(data: &Path) -> Store {
    let options = Options {
        create: false,
        ..Options::default()
    };
    Store::open(data, &options).unwrap()
}

/// Nothing of what was written down is lost in that store.
pub fn assert_kept(data: &Path, ledger: &Ledger) {
    let losses = ledger.losses(&open(data)).unwrap();
    assert!(losses.is_empty(), "{}", losses.join("\n"));
}
