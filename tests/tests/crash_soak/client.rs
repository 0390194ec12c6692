//! What clients do: they note every answer.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{Answer, Daemon, Http, sha256_name};
use proofkeep_tests::ledger::{Ledger, Said};
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Shared, pass};

/// More than a worker process has resident, so that a SIGKILL is not taken for the kernel's.
const TICKET: u64 = 256 << 20;
/// Jobs that haven't ended; more are not submitted.
const ACTIVE: usize = 12;
const JSON: (&str, &str) = ("Content-Type", "application/json");

/// Registers the circuit and uploads its witness.
pub(crate) fn prepare(daemon: &Daemon, shared: &Shared) {
    let files =
        ["circuit.zkey", "circuit.r1cs", "witness.wtns"].map(|file| fixtures::read("multiplier", file));
    let circuit = daemon.register("multiplier", &[("zkey", &files[0]), ("r1cs", &files[1])]);
    let witness = daemon.upload(&files[2]);
    shared.ledger.note(Said::Object(witness));
    let digest = circuit["digest"].as_str().unwrap().to_owned();
    let name = "multiplier".to_owned();
    shared.ledger.note(Said::Circuit {
        name: name.clone(),
        digest,
    });
    shared.ledger.note(Said::Ready { name });
}

/// Until it is over.
pub(crate) fn run(shared: &Shared, mut rng: ChaCha8Rng) {
    let mut slow: Vec<(TcpStream, Instant)> = Vec::new();
    while !shared.over.load(Ordering::Acquire) {
        slow.retain(|(_, until)| Instant::now() < *until);
        let Some((http, _)) = shared.reach() else {
            pass(Duration::from_millis(20), &shared.over);
            continue;
        };
        let client = Client { shared, http: &http };
        if client.act(&mut rng, &mut slow).is_none() {
            // It died meanwhile, or starts.
            pass(Duration::from_millis(20), &shared.over);
        }
        pass(Duration::from_millis(rng.gen_range(0..60)), &shared.over);
    }
}

struct Client<'a> {
    shared: &'a Shared,
    http: &'a Http,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Client<'_> {
    /// One thing; `None` when the daemon died.
    fn act(&self, rng: &mut ChaCha8Rng, slow: &mut Vec<(TcpStream, Instant)>) -> Option<()> {
        let active = self.active()?;
        match rng.gen_range(0..100) {
            0..45 if active.len() < ACTIVE => self.submit(rng),
            45..60 if active.len() < ACTIVE => {
                let witness = sha256_name(&fixtures::read("multiplier", "witness.wtns"));
                let count = rng.gen_range(1..3);
                let inputs = vec![json!({ "witness": witness }); count];
                self.send(
                    rng,
                    &json!({ "kind": "groth16", "circuit": "multiplier", "inputs": inputs }),
                    true,
                )
            }
            60..65 => self.upload(rng),
            65..68 => self.cut_off(rng),
            68..70 if slow.len() < 3 => {
                slow.extend(self.slow(rng, &active));
                Some(())
            }
            70..74 => self.cancel(rng, &active),
            74..78 => self.retry(),
            _ if active.is_empty() => Some(()),
            _ => self.look(active[rng.gen_range(0..active.len())]).map(drop),
        }
    }

    fn submit(&self, rng: &mut ChaCha8Rng) -> Option<()> {
        let mut inputs: Vec<Value> = (0..rng.gen_range(1..6)).map(|_| input(rng)).collect();
        // A few kill their process each time; its neighbours must not suffer for it.
        let innocent = !rng.gen_bool(0.01);
        if !innocent {
            inputs[0]["crash"] = json!({ "stage": "a", "how": "abort" });
        }
        let marks = self
            .shared
            .root
            .join(format!("marks/{:016x}", rng.r#gen::<u64>()));
        std::fs::create_dir_all(&marks).unwrap();
        let body = json!({ "kind": "scripted", "marks": marks, "ticket_bytes": TICKET, "inputs": inputs });
        self.send(rng, &body, innocent)
    }

    fn send(&self, rng: &mut ChaCha8Rng, body: &Value, innocent: bool) -> Option<()> {
        let key = format!("key-{:016x}", rng.r#gen::<u64>());
        let headers = [JSON, ("Idempotency-Key", key.as_str())];
        let sent = body.to_string();
        let answer = self
            .http
            .try_send("POST", "/v1/jobs", &headers, Some(sent.as_bytes()))?;
        if !taken(&answer, &[200, 202]) {
            return Some(());
        }
        let id = Uuid::parse_str(answer.json()["id"].as_str().unwrap()).unwrap();
        let partitions = u32::try_from(body["inputs"].as_array().unwrap().len()).unwrap();
        let said = Said::Job {
            id,
            partitions,
            innocent,
        };
        self.shared.ledger.note(said);
        self.shared.ledger.note(Said::Key { id, key });
        count(&self.shared.did.submitted);
        Some(())
    }

    fn upload(&self, rng: &mut ChaCha8Rng) -> Option<()> {
        let mut bytes = vec![0; rng.gen_range(1..30_000)];
        rng.fill(&mut bytes[..]);
        let name = sha256_name(&bytes);
        let headers = [("Content-Type", "application/octet-stream")];
        let answer = self
            .http
            .try_send("PUT", &format!("/v1/blobs/{name}"), &headers, Some(&bytes))?;
        if taken(&answer, &[200, 201]) {
            self.shared.ledger.note(Said::Object(name));
            count(&self.shared.did.uploads);
        }
        Some(())
    }

    /// An upload that ends in the middle.
    fn cut_off(&self, rng: &mut ChaCha8Rng) -> Option<()> {
        let mut stream = self.connect()?;
        let head = "POST /v1/blobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/octet-stream\r\n\
                    content-length: 100000\r\n\r\n";
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(&vec![7; rng.gen_range(1..90_000)]).ok()?;
        count(&self.shared.did.cut_off);
        Some(())
    }

    /// Asks for more than all buffers hold, and reads nothing of it for a while.
    fn slow(&self, rng: &mut ChaCha8Rng, active: &[Uuid]) -> Option<(TcpStream, Instant)> {
        let mut stream = self.connect()?;
        stream.set_nonblocking(true).ok()?;
        let path = active
            .first()
            .map_or_else(|| "/v1/status".to_owned(), |id| format!("/v1/jobs/{id}"));
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        for _ in 0..2000 {
            if stream.write_all(request.as_bytes()).is_err() {
                break;
            }
        }
        count(&self.shared.did.slow);
        Some((
            stream,
            Instant::now() + Duration::from_millis(rng.gen_range(500..6000)),
        ))
    }

    fn connect(&self) -> Option<TcpStream> {
        TcpStream::connect(self.http.base().trim_start_matches("http://")).ok()
    }

    fn cancel(&self, rng: &mut ChaCha8Rng, active: &[Uuid]) -> Option<()> {
        if active.is_empty() {
            return Some(());
        }
        let id = active[rng.gen_range(0..active.len())];
        // One whose submit was never answered is nobody's.
        if self.shared.ledger.jobs().iter().all(|(known, _)| *known != id) {
            return Some(());
        }
        self.shared.ledger.note(Said::Asked(id));
        let answer = self
            .http
            .try_send("POST", &format!("/v1/jobs/{id}/cancel"), &[], None)?;
        if taken(&answer, &[202, 404, 409, 410]) && answer.status == 202 {
            self.shared.ledger.note(Said::Cancel(id));
            count(&self.shared.did.cancelled);
        }
        Some(())
    }

    /// Retries a job that failed; only those that kill their process do.
    fn retry(&self) -> Option<()> {
        let answer = self
            .http
            .try_send("GET", "/v1/jobs?state=failed&limit=10", &[], None)?;
        if !taken(&answer, &[200]) {
            return Some(());
        }
        let page = answer.json();
        let first = page["jobs"]
            .as_array()
            .unwrap()
            .iter()
            .find(|job| job["generation"] == 1);
        let Some(id) = first.and_then(|job| Uuid::parse_str(job["id"].as_str()?).ok()) else {
            return Some(());
        };
        let answer = self
            .http
            .try_send("POST", &format!("/v1/jobs/{id}/retry"), &[JSON], Some(b"{}"))?;
        if taken(&answer, &[200, 202, 404, 409, 410]) && answer.status < 300 {
            let generation = answer.json()["generation"].as_u64().unwrap();
            if self.shared.ledger.jobs().iter().any(|(known, _)| *known == id) {
                self.shared.ledger.note(Said::Retried { id, generation });
            }
            count(&self.shared.did.retried);
        }
        Some(())
    }

    fn look(&self, id: Uuid) -> Option<Value> {
        let answer = self
            .http
            .try_send("GET", &format!("/v1/jobs/{id}"), &[("Prefer", "wait=1")], None)?;
        if !taken(&answer, &[200, 404, 410]) || answer.status != 200 {
            return Some(Value::Null);
        }
        let job = answer.json();
        if self.shared.ledger.jobs().iter().any(|(known, _)| *known == id) {
            Ledger::told_of(&job)
                .into_iter()
                .for_each(|said| self.shared.ledger.note(said));
        }
        Some(job)
    }

    /// The jobs that haven't ended.
    fn active(&self) -> Option<Vec<Uuid>> {
        let answer = self
            .http
            .try_send("GET", "/v1/jobs?state=active&limit=100", &[], None)?;
        if !taken(&answer, &[200]) {
            return Some(Vec::new());
        }
        let page = answer.json();
        let ids = page["jobs"].as_array().unwrap().iter();
        Some(
            ids.map(|job| Uuid::parse_str(job["id"].as_str().unwrap()).unwrap())
                .collect(),
        )
    }
}

/// A partition that ends well, sooner or later.
fn input(rng: &mut ChaCha8Rng) -> Value {
    let mut input = json!({
        "synth_ms": rng.gen_range(0..30), "piece_ms": rng.gen_range(0..15), "finish_ms": rng.gen_range(0..20),
        "salt": rng.r#gen::<u32>(),
    });
    let stages = ["synth", "prove", "h", "l", "a", "b1", "b2", "finish"];
    let stage = stages[rng.gen_range(0..stages.len())];
    match rng.gen_range(0..30) {
        0 => input["fail"] = json!({ "stage": stage, "class": "device_error", "times": 1 }),
        1 => input["crash"] = json!({ "stage": stage, "how": "abort", "times": 1 }),
        _ => {}
    }
    input
}

/// Whether an answer is one of these; the only others there may be say that it starts, stops, or has too much to do.
fn taken(answer: &Answer, expected: &[u16]) -> bool {
    let busy = matches!(answer.status, 429 | 503);
    assert!(
        busy || expected.contains(&answer.status),
        "{}: {}",
        answer.status,
        answer.text()
    );
    !busy
}
