//! A client of a daemon whose disk refuses something once: it asks again when it is refused, and writes down every answer
//! that it gets, and every one that it shouldn't have got.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use proofkeep_tests::harness::{Answer, Http, sha256_name};
use proofkeep_tests::ledger::{Ledger, Said};
use serde_json::Value;
use uuid::Uuid;

const JSON: (&str, &str) = ("Content-Type", "application/json");
const BYTES: (&str, &str) = ("Content-Type", "application/octet-stream");
/// How often a refused request is sent again.
const TRIES: u32 = 6;
/// What must happen happens within this, however slow the machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// What clients were told.
pub struct Book {
    pub ledger: Ledger,
    pub wrong: Mutex<Vec<String>>,
}

impl Book {
    pub fn new() -> Self {
        Self {
            ledger: Ledger::of_a_store_that_prunes(),
            wrong: Mutex::default(),
        }
    }

    /// Another one that goes on from here.
    pub fn fork(&self) -> Self {
        let fork = Self::new();
        self.ledger
            .said()
            .into_iter()
            .for_each(|said| fork.ledger.note(said));
        fork
    }

    pub fn wrong(&self, what: impl Into<String>) {
        self.wrong.lock().unwrap().push(what.into());
    }
}

pub struct Client<'a> {
    pub http: Http,
    pub book: &'a Book,
}

impl Client<'_> {
    /// Asks until the answer is one of `good`; `None`: the daemon is gone, `Some(None)`: it goes on refusing.
    fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
        good: &[u16],
    ) -> Option<Option<Answer>> {
        for _ in 0..TRIES {
            let answer = self.http.try_send(method, path, headers, body)?;
            if good.contains(&answer.status) {
                return Some(Some(answer));
            }
            if !is_refusal(&answer) {
                let text: String = answer.text().chars().take(400).collect();
                self.book
                    .wrong(format!("{method} {path}: {} {text}", answer.status));
                return Some(None);
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        Some(None)
    }

    pub fn upload(&self, bytes: &[u8]) -> Option<Option<String>> {
        let name = sha256_name(bytes);
        let path = format!("/v1/blobs/{name}");
        let answer = self.ask("PUT", &path, &[BYTES], Some(bytes), &[200, 201])?;
        Some(answer.map(|_| {
            self.book.ledger.note(Said::Object(name.clone()));
            name
        }))
    }

    /// Registers a circuit and waits until it is imported.
    pub fn register(&self, name: &str, body: &Value) -> Option<Option<()>> {
        let path = format!("/v1/circuits/{name}");
        let body = body.to_string();
        let Some(answer) = self.ask("PUT", &path, &[JSON], Some(body.as_bytes()), &[200, 201, 202])? else {
            return Some(None);
        };
        let digest = answer.json()["digest"].as_str().unwrap().to_owned();
        self.book.ledger.note(Said::Circuit {
            name: name.to_owned(),
            digest,
        });
        let deadline = Instant::now() + PATIENCE;
        loop {
            let Some(answer) = self.ask("GET", &path, &[], None, &[200])? else {
                return Some(None);
            };
            match answer.json()["state"].as_str() {
                Some("ready") => {
                    self.book.ledger.note(Said::Ready {
                        name: name.to_owned(),
                    });
                    return Some(Some(()));
                }
                Some("importing") if Instant::now() < deadline => {
                    std::thread::park_timeout(Duration::from_millis(5));
                }
                _ => {
                    self.book.wrong(format!("the import: {}", answer.text()));
                    return Some(None);
                }
            }
        }
    }

    pub fn submit(&self, key: &str, body: &Value, innocent: bool) -> Option<Option<Uuid>> {
        let headers = [JSON, ("Idempotency-Key", key)];
        let sent = body.to_string();
        let answer = self.ask(
            "POST",
            "/v1/jobs",
            &headers,
            Some(sent.as_bytes()),
            &[200, 201, 202],
        )?;
        Some(answer.map(|answer| {
            let id = id_of(&answer.json());
            let partitions = body["inputs"].as_array().unwrap().len() as u32;
            self.book.ledger.note(Said::Job {
                id,
                partitions,
                innocent,
            });
            id
        }))
    }

    pub fn cancel(&self, id: Uuid) -> Option<()> {
        self.book.ledger.note(Said::Asked(id));
        let path = format!("/v1/jobs/{id}/cancel");
        // It may have ended, or be forgotten.
        if let Some(answer) = self.ask("POST", &path, &[], None, &[202, 409, 410])?
            && answer.status == 202
        {
            self.book.ledger.note(Said::Cancel(id));
        }
        Some(())
    }

    /// Waits until a job has ended; its state, `pruned` if it is forgotten.
    pub fn end(&self, id: Uuid) -> Option<Option<String>> {
        let job = self.ended(id)?;
        Some(job.map(|job| match job["state"].as_str() {
            Some(state) => state.to_owned(),
            None => "pruned".to_owned(),
        }))
    }

    /// The same, and what is shown of it.
    fn ended(&self, id: Uuid) -> Option<Option<Value>> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let path = format!("/v1/jobs/{id}");
            let Some(answer) = self.ask("GET", &path, &[("Prefer", "wait=5")], None, &[200, 410])? else {
                return Some(None);
            };
            if answer.status == 410 {
                return Some(Some(Value::Null));
            }
            let job = answer.json();
            if job["ended_at"].is_string() {
                return Some(Some(job));
            }
            if Instant::now() > deadline {
                self.book.wrong(format!("it doesn't end: {job}"));
                return Some(None);
            }
        }
    }

    /// Waits until a job has ended that never changes afterwards, and writes down how.
    pub fn end_for_good(&self, id: Uuid) -> Option<Option<String>> {
        let job = self.ended(id)?;
        let told = job.as_ref().map(Ledger::told_of).unwrap_or_default();
        told.into_iter().for_each(|said| self.book.ledger.note(said));
        Some(job.and_then(|job| job["state"].as_str().map(str::to_owned)))
    }

    pub fn retry(&self, id: Uuid, body: &Value) -> Option<Option<()>> {
        let path = format!("/v1/jobs/{id}/retry");
        let body = body.to_string();
        let answer = self.ask("POST", &path, &[JSON], Some(body.as_bytes()), &[202, 409, 410])?;
        Some(answer.map(|_| ()))
    }

    /// The proof of a job that succeeded, if it is still there.
    pub fn proof(&self, id: Uuid) -> Option<()> {
        self.ask("GET", &format!("/v1/jobs/{id}/proof"), &[], None, &[200, 410])?;
        Some(())
    }
}

/// A refusal says with a code and a sentence that something can't be had now.
fn is_refusal(answer: &Answer) -> bool {
    let problem: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let code = problem["code"].as_str().unwrap_or_default();
    let said = !problem["detail"].as_str().unwrap_or_default().is_empty();
    said && match answer.status {
        429 | 503 | 507 => true,
        // The disk refused; not a panic and nothing that nobody thought of.
        500 => code == "io",
        _ => false,
    }
}

pub fn id_of(job: &Value) -> Uuid {
    Uuid::parse_str(job["id"].as_str().unwrap()).unwrap()
}
