//! The test build, whose kind takes as long in each state as it is told to.

use std::path::Path;
use std::time::Duration;

use proofkeep_scripted::proof_of;
use proofkeep_store::Store;
use proofkeep_store::records::{PartitionState, StoredProof};
use proofkeep_tests::harness::{Http, Launch};
use proofkeep_tests::kill::Row;
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::client;
use super::scene::{Shared, Steps, Workload};
use super::storm::wait_for;

pub struct Scripted;

/// More memory than a worker process has resident, so that a SIGKILL is not taken for the kernel's.
const TICKET: u64 = 256 << 20;

fn job(shared: &Shared, rng: &mut ChaCha8Rng, inputs: &[Value]) -> Value {
    let marks = shared.marks.join(format!("{:016x}", rng.r#gen::<u64>()));
    std::fs::create_dir(&marks).unwrap();
    json!({ "kind": "scripted", "marks": marks, "ticket_bytes": TICKET, "inputs": inputs })
}

fn any_input(rng: &mut ChaCha8Rng) -> Value {
    let mut input = json!({
        "synth_ms": rng.gen_range(0..30), "piece_ms": rng.gen_range(0..15), "finish_ms": rng.gen_range(0..25),
        "salt": rng.r#gen::<u32>(),
    });
    let stages = ["synth", "prove", "h", "l", "a", "b1", "b2", "finish"];
    let stage = stages[rng.gen_range(0..stages.len())];
    match rng.gen_range(0..12) {
        0 => input["fail"] = json!({ "stage": stage, "class": "device_error", "times": 1 }),
        1 => input["crash"] = json!({ "stage": stage, "how": "abort", "times": 1 }),
        _ => {}
    }
    input
}

/// A job in whose first partition something goes on for long in one stage.
fn long(stage: &str, rng: &mut ChaCha8Rng) -> Value {
    let mut input = json!({ "synth_ms": 2, "piece_ms": 2, "finish_ms": 2, "salt": rng.r#gen::<u32>() });
    input[stage] = 120.into();
    input
}

impl Workload for Scripted {
    fn launch(&self, data: &Path) -> Launch {
        let slots = ["--cpu-devices", "2", "--threads", "1", "--memory", "8GiB"];
        Launch::test_build(data)
            .args(slots)
            .args(["--checkpoint-after", "0ms", "--grace", "5s"])
    }

    fn small_job(&self, http: &Http, shared: &Shared, steps: &mut Steps) -> Option<()> {
        client::upload(http, shared, b"an upload of its own")?;
        let input = json!({ "synth_ms": 1, "piece_ms": 1, "finish_ms": 1 });
        let body = json!({ "kind": "scripted", "ticket_bytes": TICKET, "inputs": [input, input] });
        if steps.job.is_none() {
            steps.job = client::submit(http, shared, "small", &body, true)?;
        }
        let slow = json!({ "synth_ms": 3000, "piece_ms": 1 });
        let body = json!({ "kind": "scripted", "ticket_bytes": TICKET, "inputs": [slow, slow, slow] });
        if steps.doomed.is_none() {
            steps.doomed = client::submit(http, shared, "doomed", &body, true)?;
        }
        if !steps.cancelled {
            steps.cancelled = client::cancel(http, shared, steps.doomed?)?;
        }
        client::wait_for_end(http, shared, steps.job?)?;
        client::wait_for_end(http, shared, steps.doomed?)?;
        Some(())
    }

    fn prepare(&self, _: &Http, _: &Shared) -> Option<()> {
        Some(())
    }

    fn act(&self, http: &Http, shared: &Shared, rng: &mut ChaCha8Rng) -> Option<()> {
        let active = client::active(http)?;
        if active.len() >= 5 {
            return client::meddle(http, shared, &active, rng);
        }
        match rng.gen_range(0..10) {
            0..6 => {
                let inputs: Vec<Value> = (0..rng.gen_range(1..5)).map(|_| any_input(rng)).collect();
                client::submit(http, shared, &client::key(rng), &job(shared, rng, &inputs), true)?;
            }
            6 => {
                // One partition kills its process each time; its neighbours must not suffer for it.
                let mut inputs = [any_input(rng), any_input(rng)];
                inputs[0]["crash"] = json!({ "stage": "a", "how": "abort" });
                client::submit(http, shared, &client::key(rng), &job(shared, rng, &inputs), false)?;
            }
            7 => {
                client::upload(http, shared, &client::noise(rng))?;
            }
            _ => client::meddle(http, shared, &active, rng)?,
        }
        Some(())
    }

    fn provoke(&self, row: Row, http: &Http, shared: &Shared, rng: &mut ChaCha8Rng) -> Option<()> {
        let mut innocent = true;
        let inputs: Vec<Value> = match row {
            Row::Job("stopping") | Row::Partition("cancelled") => {
                // It goes on after it was asked to stop, until its process is killed.
                let mut inputs = vec![long("synth_ms", rng); 4];
                inputs[0]["crash"] = json!({ "stage": "synth", "how": "deaf", "times": 1 });
                inputs
            }
            Row::Partition("waiting") => {
                let mut inputs = vec![long("piece_ms", rng); 2];
                inputs[0]["fail"] = json!({ "stage": "synth", "class": "device_error", "times": 1 });
                inputs
            }
            Row::Partition("failed") => {
                innocent = false;
                let mut inputs = vec![long("piece_ms", rng); 3];
                inputs[0]["fail"] = json!({ "stage": "synth", "class": "unsatisfied" });
                inputs
            }
            Row::Job("verifying") => vec![json!({ "salt": rng.r#gen::<u32>() }); 20],
            Row::Partition("synthesizing") => vec![long("synth_ms", rng); 3],
            Row::Partition("finishing") => vec![long("finish_ms", rng); 3],
            _ => vec![long("piece_ms", rng); 3],
        };
        let mut body = job(shared, rng, &inputs);
        body["priority"] = "critical".into();
        let id = client::submit(http, shared, &client::key(rng), &body, innocent)?;
        if let (Row::Job("stopping") | Row::Partition("cancelled"), Some(id)) = (row, id) {
            wait_for(Row::Partition("synthesizing"), http, Duration::from_secs(1));
            client::cancel(http, shared, id)?;
        }
        Some(())
    }

    fn aims(&self) -> Vec<Row> {
        let jobs = ["queued", "running", "verifying", "stopping"].map(Row::Job);
        jobs.into_iter()
            .chain(PartitionState::ALL.map(|state| Row::Partition(state.name())))
            .collect()
    }

    fn verify(&self, store: &Store, proof: &StoredProof) {
        let public = store.objects().read_verified(proof.public).unwrap();
        assert_eq!(proof.bytes, proof_of(&public), "{proof:?}");
    }
}
