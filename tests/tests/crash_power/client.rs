//! A caller whose every answer stands in the recording, after it came.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proofkeep_tests::harness::{Daemon, Http, until};
use proofkeep_tests::ledger::{Ledger, Said};
use proofkeep_tests::powercut::acknowledge;
use serde_json::{Value, json};
use uuid::Uuid;

pub struct Client {
    pub http: Http,
    log: PathBuf,
    salt: AtomicU64,
    /// What was said before needn't be said again.
    said: Mutex<BTreeSet<Vec<u8>>>,
}

impl Client {
    /// Of a daemon in one of its lives.
    pub fn new(daemon: &Daemon, log: &Path, life: u64) -> Self {
        Self {
            http: daemon.http(),
            log: log.to_path_buf(),
            salt: AtomicU64::new(life << 32),
            said: Mutex::default(),
        }
    }

    pub fn say(&self, said: &Said) {
        let said = serde_json::to_vec(said).unwrap();
        if self.said.lock().unwrap().insert(said.clone()) {
            acknowledge(&self.log, &said).unwrap();
        }
    }

    /// Everything that was said, by this client.
    pub fn said(&self) -> Vec<Vec<u8>> {
        self.said.lock().unwrap().iter().cloned().collect()
    }

    /// Another number each time.
    pub fn salt(&self) -> u64 {
        self.salt.fetch_add(1, Ordering::Relaxed)
    }

    /// A job of the scripted kind with nothing wrong, each piece of which takes no time.
    pub fn submit(&self, partitions: u32) -> Uuid {
        let salt = self.salt();
        let inputs = vec![json!({ "salt": salt }); partitions as usize];
        self.submit_body(
            &json!({ "kind": "scripted", "labels": {"salt": salt.to_string()}, "inputs": inputs }),
            true,
        )
    }

    /// Any job.
    pub fn submit_body(&self, body: &Value, innocent: bool) -> Uuid {
        let answer = self.http.post("/v1/jobs", body).expect(202).json();
        self.taken(&answer, innocent)
    }

    /// A job under an idempotency key.
    pub fn submit_as(&self, key: &str, body: &Value) -> Uuid {
        let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
        let text = body.to_string();
        let answer = self
            .http
            .send("POST", "/v1/jobs", &headers, Some(text.as_bytes()));
        assert!(matches!(answer.status, 200 | 202), "{}", answer.text());
        let id = self.taken(&answer.json(), true);
        let key = key.to_owned();
        self.say(&Said::Key { id, key });
        id
    }

    fn taken(&self, job: &Value, innocent: bool) -> Uuid {
        let id = Uuid::parse_str(job["id"].as_str().unwrap()).unwrap();
        let partitions = u32::try_from(job["summary"]["total"].as_u64().unwrap()).unwrap();
        self.say(&Said::Job {
            id,
            partitions,
            innocent,
        });
        id
    }

    pub fn cancel(&self, id: Uuid) {
        self.say(&Said::Asked(id));
        let answer = self
            .http
            .send("POST", &format!("/v1/jobs/{id}/cancel"), &[], None);
        assert_eq!(answer.status, 202, "{}", answer.text());
        self.say(&Said::Cancel(id));
    }

    pub fn retry(&self, id: Uuid) {
        let path = format!("/v1/jobs/{id}/retry");
        let job = self.http.send("POST", &path, &[], None).expect(202).json();
        let generation = job["generation"].as_u64().unwrap();
        assert!(generation > 1, "a retry opens another life: {job}");
        self.say(&Said::Retried { id, generation });
    }

    /// Uploads bytes; answers their name.
    pub fn upload(&self, bytes: &[u8]) -> String {
        let name = self.http.upload(bytes);
        self.say(&Said::Object(name.clone()));
        name
    }

    pub fn told_of(&self, job: &Value) {
        Ledger::told_of(job).iter().for_each(|said| self.say(said));
    }

    pub fn look(&self, id: Uuid) -> Value {
        let job = self.http.get(&format!("/v1/jobs/{id}")).expect(200).json();
        self.told_of(&job);
        job
    }

    pub fn wait_for_end(&self, id: Uuid) -> Value {
        let job = self.http.wait_for_end(&id.to_string());
        self.told_of(&job);
        job
    }

    /// Waits until no job is open any more.
    pub fn wait_for_all(&self) {
        until("all jobs have ended", || {
            std::thread::park_timeout(Duration::from_millis(100));
            let list = self.http.get("/v1/jobs?limit=1000").expect(200).json();
            let jobs = list["jobs"].as_array().unwrap();
            let ended = |job: &&Value| job["ended_at"].is_string();
            jobs.iter().filter(ended).for_each(|job| self.told_of(job));
            jobs.iter().all(|job| ended(&job))
        });
    }
}
