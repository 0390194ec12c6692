//! What the HTTP tests share: a daemon on a directory of its own, with circuits and a job.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::ops::Deref;

use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{Answer, Daemon};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The header of a JSON body.
pub const JSON: (&str, &str) = ("content-type", "application/json");

/// A daemon, and the directory that goes with it.
pub struct Server {
    daemon: Option<Daemon>,
    pub directory: TempDir,
}

impl Server {
    /// Starts one with more arguments for `serve`.
    pub fn start(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let daemon = Some(Daemon::start(&directory.path().join("data"), arguments));
        Self { daemon, directory }
    }

    /// With the circuit `multiplier` registered under its name.
    pub fn with_multiplier(arguments: &[&str]) -> Self {
        let server = Self::start(arguments);
        server.register_fixture("multiplier");
        server
    }

    /// Registers a fixture that has a key.
    pub fn register_fixture(&self, name: &str) -> Value {
        let files = ["r1cs", "zkey", "wasm", "sym"]
            .map(|file| (file, fixtures::read(name, &format!("circuit.{file}"))));
        let files: Vec<(&str, &[u8])> = files.iter().map(|(file, bytes)| (*file, &bytes[..])).collect();
        self.register(name, &files)
    }

    /// Submits a job and waits until it ended.
    pub fn finish(&self, body: &Value) -> Value {
        let job = self.post("/v1/jobs", body).expect(202).json();
        self.wait_for_end(job["id"].as_str().unwrap())
    }

    /// Takes the daemon out, to end it in some way.
    pub fn take(&mut self) -> Daemon {
        self.daemon.take().unwrap()
    }

    /// Starts another daemon on the same directory.
    pub fn restart(&mut self, arguments: &[&str]) {
        self.daemon = Some(Daemon::start(&self.directory.path().join("data"), arguments));
    }
}

impl Deref for Server {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        self.daemon.as_ref().unwrap()
    }
}

/// A job of `multiplier` with one input `{a, b}` each.
pub fn products(pairs: &[(u32, u32)]) -> Value {
    let inputs: Vec<Value> = pairs
        .iter()
        .map(|(a, b)| json!({ "input": { "a": a.to_string(), "b": b } }))
        .collect();
    json!({ "kind": "groth16", "circuit": "multiplier", "inputs": inputs })
}

/// The id of a job as the daemon shows it.
pub fn id(job: &Value) -> &str {
    job["id"].as_str().unwrap_or_else(|| panic!("no id: {job}"))
}

/// Asserts that an answer is a whole problem with that status and code; returns its detail.
#[track_caller]
pub fn problem(answer: &Answer, status: u16, code: &str) -> String {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json"),
        "{}",
        answer.text()
    );
    let body = answer.json();
    assert_eq!(body["code"], code, "{body}");
    assert_eq!(body["status"], status, "{body}");
    assert_eq!(body["type"], format!("urn:proofkeep:problem:{code}"), "{body}");
    for member in ["title", "detail", "instance"] {
        assert!(
            body[member].as_str().is_some_and(|text| !text.is_empty()),
            "{member}: {body}"
        );
    }
    assert!(body["retryable"].is_boolean(), "{body}");
    body["detail"].as_str().unwrap().to_owned()
}
