//! An expired job is opened again like any other that ended without success. Deadlines can't be set over HTTP yet, so the
//! test writes the job into the directory with the daemon's own store and request code, and lets a daemon find it there.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod regressions_support;

use std::fs::File;
use std::path::Path;

use proofkeep_engine::kinds::{Desk, Kinds};
use proofkeep_engine::problem::Problem;
use proofkeep_engine::request::{Asker, submit};
use proofkeep_store::clock::Clock;
use proofkeep_store::ids::{Digest, Millis};
use proofkeep_store::machine::{Command, Machine, Reply, Rules};
use proofkeep_store::records::Circuit;
use proofkeep_store::{Limits, Options, Store};
use regressions_support::{Scripted, id};
use serde_json::{Value, json};

/// The scripted kind asks for nothing of a desk.
struct Bare;

impl Desk for Bare {
    fn circuit(&self, _: &str) -> Result<Circuit, Problem> {
        Err(Problem::input("none", "there are no circuits here"))
    }

    fn keep(&self, _: &[u8]) -> Result<Digest, Problem> {
        Err(Problem::input("none", "nothing is kept here"))
    }

    fn size(&self, _: Digest) -> Option<u64> {
        None
    }

    fn open(&self, _: Digest) -> Result<File, Problem> {
        Err(Problem::input("none", "there are no objects here"))
    }

    fn threads(&self) -> u32 {
        1
    }

    fn wasm_memory_bytes(&self) -> u64 {
        0
    }
}

/// Leaves a directory in which a job under that key has expired; its id.
fn leave_an_expired_job(data: &Path, key: &str, body: &Value) -> String {
    let kinds = Kinds::none().with(proofkeep_scripted::Scripted);
    let asker = Asker {
        actor: "local".to_owned(),
        idempotency_key: Some(key.to_owned()),
    };
    let (mut submit, _) = submit(body.to_string().as_bytes(), asker, &kinds, &Bare).unwrap();
    submit.deadline = Some(Millis(1));
    let store = Store::open(data, &Options::default()).unwrap();
    let handle = store
        .start(Machine { rules: Rules::ALL }, Clock::start(), Limits::default())
        .unwrap();
    let commit = |command| handle.commit_blocking(command).unwrap().reply;
    commit(Command::BootOpen {
        version: "test".to_owned(),
        devices: Vec::new(),
    });
    let Reply::Submitted { job, id, .. } = commit(Command::Submit(submit)) else {
        panic!("it was not taken")
    };
    commit(Command::Expire { job });
    commit(Command::BootClose);
    handle.stop();
    id.to_string()
}

#[test]
fn an_expired_job_is_opened_again() {
    let mut server = Scripted::start(&[]);
    let body = server.body(&[json!({}), json!({ "salt": 1 })]);
    server.stop();
    std::fs::remove_dir_all(server.data()).unwrap();
    let expired = leave_an_expired_job(&server.data(), "k", &body);
    server.start_again();
    let shown = server.get(&format!("/v1/jobs/{expired}")).expect(200).json();
    assert_eq!(
        (shown["state"].as_str(), shown["generation"].as_u64()),
        (Some("expired"), Some(1)),
        "{shown}"
    );
    let mut other = body.clone();
    other["priority"] = json!("low");
    assert_eq!(
        server.keyed("k", &other).expect(422).code(),
        "idempotency-mismatch"
    );
    let again = server.keyed("k", &body).expect(202).json();
    assert_eq!(
        (id(&again), again["generation"].as_u64()),
        (expired.clone(), Some(2)),
        "{again}"
    );
    assert_eq!(server.wait_for_end(&expired)["state"], "succeeded");
    server.check();
}
