//! The released binary with circom's circuits.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use proofkeep_formats::r1cs::R1cs;
use proofkeep_formats::zkey::Zkey;
use proofkeep_groth16::backend::BlstBackend;
use proofkeep_groth16::proof::Proof;
use proofkeep_groth16::setup::insecure_setup;
use proofkeep_groth16::verify::verify;
use proofkeep_groth16::vk::VerifyingKey;
use proofkeep_store::ids::Digest;
use proofkeep_store::records::StoredProof;
use proofkeep_store::{Store, query};
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{Http, Launch};
use proofkeep_tests::kill::Row;
use proofkeep_tests::ledger::Said;
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::client;
use super::scene::{Shared, Steps, Workload};
use super::storm::wait_for;

pub struct Real;

struct Files {
    r1cs: Vec<u8>,
    zkey: Vec<u8>,
    wasm: Vec<u8>,
    sym: Vec<u8>,
    witness: Vec<u8>,
}

impl Files {
    /// With the key of its own ceremony, or one made here.
    fn of(fixture: &str) -> Self {
        let r1cs = fixtures::read(fixture, "circuit.r1cs");
        let ceremony = fixtures::path(fixture, "circuit.zkey");
        let zkey = if ceremony.is_file() {
            std::fs::read(ceremony).unwrap()
        } else {
            let parsed = R1cs::parse(&r1cs).unwrap();
            let mut go_on = |_, _| ControlFlow::Continue(());
            let out = Cursor::new(Vec::new());
            insecure_setup(&parsed, b"kill", out, &BlstBackend::new(2).unwrap(), &mut go_on)
                .unwrap()
                .into_inner()
        };
        let read = |file| fixtures::read(fixture, file);
        Self {
            zkey,
            wasm: read("circuit.wasm"),
            sym: read("circuit.sym"),
            witness: read("witness.wtns"),
            r1cs,
        }
    }
}

static SMALL: LazyLock<Files> = LazyLock::new(|| Files::of("multiplier"));
static MIDDLE: LazyLock<Files> = LazyLock::new(|| Files::of("poseidon2"));
static LARGE: LazyLock<Files> = LazyLock::new(|| Files::of("sha256_rounds4"));

/// Registers a circuit, if it isn't there yet; `with` says which files besides the key.
fn register(http: &Http, shared: &Shared, name: &str, files: &Files, with: u8) -> Option<()> {
    let shown = http.try_send("GET", &format!("/v1/circuits/{name}"), &[], None)?;
    if shown.status == 200 {
        return Some(());
    }
    let mut body = json!({ "zkey": client::upload(http, shared, &files.zkey)? });
    let others = [("r1cs", &files.r1cs), ("wasm", &files.wasm), ("sym", &files.sym)];
    for (bit, (member, bytes)) in others.into_iter().enumerate() {
        if with & (1 << bit) != 0 {
            body[member] = client::upload(http, shared, bytes)?.into();
        }
    }
    let sent = body.to_string();
    let json = [("Content-Type", "application/json")];
    let answer = http.try_send(
        "PUT",
        &format!("/v1/circuits/{name}"),
        &json,
        Some(sent.as_bytes()),
    )?;
    match answer.status {
        200..=202 => {
            let digest = answer.json()["digest"].as_str().unwrap().to_owned();
            shared.ledger.note(Said::Circuit {
                name: name.to_owned(),
                digest,
            });
        }
        429 | 503 => {}
        _ => panic!("{name}: {}", answer.text()),
    }
    Some(())
}

/// Waits until a circuit is ready.
fn ready(http: &Http, shared: &Shared, name: &str) -> Option<()> {
    loop {
        let shown = http.try_send("GET", &format!("/v1/circuits/{name}"), &[], None)?;
        let state = if shown.status == 200 {
            shown.json()
        } else {
            return Some(());
        };
        match state["state"].as_str() {
            Some("ready") => {
                shared.ledger.note(Said::Ready {
                    name: name.to_owned(),
                });
                return Some(());
            }
            Some("importing") => std::thread::park_timeout(Duration::from_millis(2)),
            _ => panic!("{state}"),
        }
    }
}

fn job(circuit: &str, witnesses: &[String]) -> Value {
    let inputs: Vec<Value> = witnesses
        .iter()
        .map(|witness| json!({ "witness": witness }))
        .collect();
    json!({ "kind": "groth16", "circuit": circuit, "inputs": inputs })
}

impl Workload for Real {
    fn launch(&self, data: &Path) -> Launch {
        let slots = ["--cpu-devices", "2", "--threads", "1", "--memory", "4GiB"];
        Launch::new(data)
            .args(slots)
            .args(["--checkpoint-after", "0ms", "--grace", "5s"])
    }

    fn small_job(&self, http: &Http, shared: &Shared, steps: &mut Steps) -> Option<()> {
        if !steps.registered {
            register(http, shared, "another", &SMALL, 5)?;
            ready(http, shared, "another")?;
            steps.registered = true;
        }
        let witness = client::upload(http, shared, &SMALL.witness)?;
        if steps.job.is_none() {
            let body = job("another", &[witness.clone(), witness.clone()]);
            steps.job = client::submit(http, shared, "small", &body, true)?;
        }
        if steps.doomed.is_none() {
            let body = job("another", &vec![witness; 12]);
            steps.doomed = client::submit(http, shared, "doomed", &body, true)?;
        }
        if !steps.cancelled {
            // It may be faster than the cancel.
            client::cancel(http, shared, steps.doomed?)?;
            steps.cancelled = true;
        }
        client::wait_for_end(http, shared, steps.job?)?;
        client::wait_for_end(http, shared, steps.doomed?)?;
        Some(())
    }

    fn prepare(&self, http: &Http, shared: &Shared) -> Option<()> {
        for (name, files) in [("small", &*SMALL), ("middle", &*MIDDLE), ("large", &*LARGE)] {
            register(http, shared, name, files, 1)?;
            client::upload(http, shared, &files.witness)?;
        }
        ready(http, shared, "small")
    }

    fn act(&self, http: &Http, shared: &Shared, rng: &mut ChaCha8Rng) -> Option<()> {
        let active = client::active(http)?;
        if active.len() >= 4 {
            return client::meddle(http, shared, &active, rng);
        }
        match rng.gen_range(0..10) {
            0..5 => {
                let (name, files) =
                    [("small", &*SMALL), ("middle", &*MIDDLE), ("large", &*LARGE)][rng.gen_range(0..3)];
                let witness = client::upload(http, shared, &files.witness)?;
                let body = job(name, &vec![witness; rng.gen_range(1..4)]);
                client::submit(http, shared, &client::key(rng), &body, true)?;
            }
            5 => {
                client::upload(http, shared, &client::noise(rng))?;
            }
            _ => client::meddle(http, shared, &active, rng)?,
        }
        Some(())
    }

    fn provoke(&self, row: Row, http: &Http, shared: &Shared, rng: &mut ChaCha8Rng) -> Option<()> {
        if row == Row::Import {
            // Another set of files is another circuit, with an import of its own.
            let with = rng.gen_range(0..8);
            let files = if rng.gen_bool(0.5) { &*LARGE } else { &*MIDDLE };
            return register(
                http,
                shared,
                &format!("import-{}-{with}", files.r1cs.len()),
                files,
                with,
            );
        }
        let (name, files, count) = match row {
            Row::Job("verifying") => ("small", &*SMALL, 16),
            Row::Partition("finishing" | "synthesizing") => ("middle", &*MIDDLE, 4),
            _ => ("large", &*LARGE, 3),
        };
        let mut witnesses = vec![client::upload(http, shared, &files.witness)?; count];
        let innocent = row != Row::Partition("failed");
        if !innocent {
            // The last value is another one, so that some constraint doesn't hold.
            let mut wrong = files.witness.clone();
            let value = wrong.len() - 32;
            wrong[value] ^= 1;
            witnesses[0] = client::upload(http, shared, &wrong)?;
        }
        let mut body = job(name, &witnesses);
        body["priority"] = "critical".into();
        let id = client::submit(http, shared, &client::key(rng), &body, innocent)?;
        if let (Row::Job("stopping") | Row::Partition("cancelled"), Some(id)) = (row, id) {
            wait_for(Row::Partition("proving"), http, Duration::from_secs(1));
            client::cancel(http, shared, id)?;
        }
        Some(())
    }

    fn aims(&self) -> Vec<Row> {
        let jobs = ["running", "verifying", "stopping"].map(Row::Job);
        let partitions = [
            "synthesizing",
            "synthesized",
            "proving",
            "finishing",
            "proved",
            "failed",
            "cancelled",
        ];
        jobs.into_iter()
            .chain(partitions.map(Row::Partition))
            .chain([Row::Import, Row::Import])
            .collect()
    }

    fn verify(&self, store: &Store, proof: &StoredProof) {
        static KEYS: Mutex<BTreeMap<Digest, Arc<VerifyingKey>>> = Mutex::new(BTreeMap::new());
        let circuit = store.read(|view| {
            let job = query::job_by_number(view, proof.job)?;
            job.and_then(|job| job.circuit)
                .map(|digest| query::circuit(view, digest))
                .transpose()
        });
        let file = circuit.unwrap().flatten().unwrap().files.zkey.unwrap();
        let key = Arc::clone(KEYS.lock().unwrap().entry(file).or_insert_with(|| {
            let bytes = store.objects().read_verified(file).unwrap();
            Arc::new(VerifyingKey::from_zkey(&Zkey::parse(&bytes).unwrap()).unwrap())
        }));
        let public = store.objects().read_verified(proof.public).unwrap();
        let public: Vec<[u8; 32]> = public.as_chunks::<32>().0.to_vec();
        verify(&key, &public, &Proof::from_bytes(&proof.bytes).unwrap()).unwrap();
    }
}
