//! What the regression tests share: a daemon of the test build, whose kind does what its request says.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::ops::Deref;
use std::path::{Path, PathBuf};

use proofkeep_tests::harness::{Answer, Daemon, Http, Launch, proofkeep, until_some};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A daemon with the kind `scripted`.
pub struct Scripted {
    daemon: Option<Daemon>,
    arguments: Vec<String>,
    pub directory: TempDir,
}

impl Deref for Scripted {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        self.daemon.as_ref().unwrap()
    }
}

impl Scripted {
    /// Starts one.
    pub fn start(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("marks")).unwrap();
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let mut scripted = Self {
            daemon: None,
            arguments,
            directory,
        };
        scripted.start_again();
        scripted
    }

    /// Starts it again on what is there.
    pub fn start_again(&mut self) {
        self.daemon = Some(Launch::test_build(&self.data()).args(&self.arguments).start());
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.daemon.take().unwrap().kill();
    }

    /// `kill -9`, and starts it again.
    pub fn crash(&mut self) {
        self.kill();
        self.start_again();
    }

    /// SIGTERM, and starts it again.
    pub fn restart(&mut self) {
        self.stop();
        self.start_again();
    }

    /// SIGTERM.
    pub fn stop(&mut self) {
        assert!(self.daemon.take().unwrap().terminate().success());
    }

    /// A file that a script can wait for; it isn't there yet.
    pub fn gate(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A job's body; failures are counted in a directory of its own.
    pub fn body(&self, inputs: &[Value]) -> Value {
        json!({ "kind": "scripted", "inputs": inputs, "marks": self.directory.path().join("marks") })
    }

    /// Submits under a key.
    pub fn keyed(&self, key: &str, body: &Value) -> Answer {
        keyed(self, key, body)
    }

    /// Submits without a key; the job's id.
    pub fn submit(&self, body: &Value) -> String {
        id(&self.post("/v1/jobs", body).expect(202).json())
    }

    /// Waits until the partition of a job is in a state.
    pub fn until_partition(&self, job: &str, index: usize, state: &str) -> Value {
        until_some(&format!("partition {index} is {state}"), || {
            let shown = self.get(&format!("/v1/jobs/{job}")).expect(200).json();
            (shown["partitions"][index]["state"] == state).then_some(shown)
        })
    }

    /// Where the data is.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Ends it, and checks what it leaves.
    pub fn check(mut self) {
        self.stop();
        let _ = proofkeep([Path::new("fsck"), Path::new("--data-dir"), &self.data()]).expect(0);
    }
}

/// Submits under a key.
pub fn keyed(http: &Http, key: &str, body: &Value) -> Answer {
    let headers = [("content-type", "application/json"), ("idempotency-key", key)];
    http.send("POST", "/v1/jobs", &headers, Some(body.to_string().as_bytes()))
}

/// The id of a job as the daemon shows it.
pub fn id(job: &Value) -> String {
    job["id"]
        .as_str()
        .unwrap_or_else(|| panic!("no id: {job}"))
        .to_owned()
}

/// The attempts of a partition as (number, outcome, error class).
pub fn attempts(job: &Value, index: usize) -> Vec<(u64, String, Option<String>)> {
    let attempts = job["partitions"][index]["attempts"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    attempts
        .map(|attempt| {
            let outcome = text(&attempt["outcome"]).unwrap_or_else(|| "open".to_owned());
            (
                attempt["number"].as_u64().unwrap(),
                outcome,
                text(&attempt["error"]["class"]),
            )
        })
        .collect()
}
