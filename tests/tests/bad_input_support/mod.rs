//! What the tests of bad input share: a daemon that is watched, files that are broken in one place, and what an answer
//! must say.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

pub mod file;
pub mod wasm;

use std::ops::Deref;
use std::path::{Path, PathBuf};

use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{Answer, Daemon, proofkeep};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The header of bytes.
pub const BYTES: (&str, &str) = ("content-type", "application/octet-stream");
/// The header of JSON.
pub const JSON: (&str, &str) = ("content-type", "application/json");

/// A daemon that gets bad input.
pub struct Target {
    daemon: Daemon,
    pub directory: TempDir,
}

impl Deref for Target {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.daemon
    }
}

impl Target {
    /// A new one.
    pub fn start(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let daemon = Daemon::start(&directory.path().join("data"), arguments);
        Self { daemon, directory }
    }

    /// With a circuit.
    pub fn with_circuit(name: &str, arguments: &[&str]) -> Self {
        let target = Self::start(arguments);
        target.register_fixture(name);
        target
    }

    /// Registers a fixture that has a key.
    pub fn register_fixture(&self, name: &str) {
        let files = ["r1cs", "zkey", "wasm", "sym"]
            .map(|file| (file, fixtures::read(name, &format!("circuit.{file}"))));
        let files: Vec<(&str, &[u8])> = files.iter().map(|(file, bytes)| (*file, &bytes[..])).collect();
        self.register(name, &files);
    }

    /// Registers files and answers the refusal: at once, or by the import.
    pub fn refused_circuit(&self, files: &[(&str, &[u8])]) -> Refused {
        let body: serde_json::Map<String, Value> = files
            .iter()
            .map(|(member, bytes)| ((*member).to_owned(), self.upload(bytes).into()))
            .collect();
        let headers = [JSON, ("prefer", "wait=60")];
        let answer = self.send(
            "PUT",
            "/v1/circuits/bad",
            &headers,
            Some(Value::Object(body).to_string().as_bytes()),
        );
        if answer.status == 422 {
            let refused = problem(&answer, 422);
            assert_eq!(
                self.get("/v1/circuits/bad").status,
                404,
                "it was refused and is there: {}",
                refused.detail
            );
            return refused;
        }
        let circuit = answer.expect(201).json();
        assert_eq!(circuit["state"], "failed", "{circuit}");
        let refused = Refused::of_error(&circuit["error"]);
        // The name is free again for a better try, and jobs are told why.
        let body = json!({ "kind": "groth16", "circuit": "bad", "inputs": [{ "witness": "sha256:00" }] });
        assert_eq!(problem(&self.post("/v1/jobs", &body), 422).code, refused.code);
        let _ = self.send("DELETE", "/v1/circuits/bad", &[], None).expect(204);
        refused
    }

    /// Submits one input and answers the refusal: at once, or as the job's error.
    pub fn refused_input(&self, circuit: &str, input: &Value) -> Refused {
        let body = json!({ "kind": "groth16", "circuit": circuit, "inputs": [input] });
        let headers = [JSON, ("prefer", "wait=120")];
        let answer = self.send("POST", "/v1/jobs", &headers, Some(body.to_string().as_bytes()));
        if answer.status == 422 {
            return problem(&answer, 422);
        }
        let job = answer.expect(201).json();
        assert_eq!(job["state"], "failed", "{job}");
        let partition = &job["partitions"][0];
        assert_eq!(
            partition["attempts"].as_array().unwrap().len(),
            1,
            "bad input is not tried again: {partition}"
        );
        Refused::of_error(&partition["error"])
    }

    /// After all that: it answers, nothing runs, nothing half is left, and it still proves.
    pub fn check_unharmed(self) {
        assert_eq!(self.get("/livez").status, 200);
        let status = self.get("/v1/status").expect(200).json();
        assert_eq!(status["jobs"], json!([]), "{status}");
        assert!(
            status["workers"]
                .as_array()
                .unwrap()
                .iter()
                .all(|worker| worker["state"] == "idle"),
            "{status}"
        );
        assert_eq!(files_below(&self.data().join("tmp")), 0);
        let name = "multiplier";
        if self.get(&format!("/v1/circuits/{name}")).status == 404 {
            self.register_fixture(name);
        }
        let witness = self.upload(&fixtures::read(name, "witness.wtns"));
        let body = json!({ "kind": "groth16", "circuit": name, "inputs": [{ "witness": witness }] });
        let job = self.post("/v1/jobs", &body).expect(202).json();
        assert_eq!(
            self.wait_for_end(job["id"].as_str().unwrap())["state"],
            "succeeded"
        );
        let data = self.data();
        let Self { daemon, directory } = self;
        assert!(daemon.terminate().success());
        let _ = proofkeep([Path::new("fsck"), Path::new("--data-dir"), &data]).expect(0);
        drop(directory);
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }
}

/// What somebody was told.
#[derive(Clone, Debug)]
pub struct Refused {
    pub code: String,
    pub detail: String,
}

impl Refused {
    fn of_error(error: &Value) -> Self {
        let member = |name: &str| {
            error[name]
                .as_str()
                .unwrap_or_else(|| panic!("no {name}: {error}"))
                .to_owned()
        };
        Self {
            code: member("code"),
            detail: member("detail"),
        }
    }

    /// Asserts the code, and that the text says these things.
    #[track_caller]
    pub fn says(&self, code: &str, parts: &[&str]) {
        assert_eq!(self.code, code, "{}", self.detail);
        for part in parts {
            assert!(self.detail.contains(part), "{part:?} is not in {:?}", self.detail);
        }
    }
}

/// A whole problem with that status.
#[track_caller]
pub fn problem(answer: &Answer, status: u16) -> Refused {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json"),
        "{}",
        answer.text()
    );
    let body = answer.json();
    assert_eq!(body["status"], status, "{body}");
    Refused::of_error(&body)
}

/// What the command line says: exit code 1, nothing on stdout, one JSON error on stderr.
#[track_caller]
pub fn refused_command(arguments: &[&Path]) -> Refused {
    let json = Path::new("--json");
    let ran = proofkeep(arguments.iter().copied().chain([json])).expect(1);
    assert_eq!(ran.stdout, "", "data was written");
    let last = ran.stderr.lines().last().unwrap_or_default();
    let error: Value = serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {}", ran.stderr));
    Refused::of_error(&error["error"])
}

/// How many files lie below a directory.
pub fn files_below(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .map(|path| if path.is_dir() { files_below(&path) } else { 1 })
        .sum()
}
