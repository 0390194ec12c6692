//! What the I/O tests share: a store in a temporary directory and commands to give it.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

use proofkeep_store::clock::Clock;
use proofkeep_store::ids::{Digest, JobNumber};
use proofkeep_store::machine::{Command, Machine, Reply, Rules, Submit};
use proofkeep_store::records::{OnFailure, Priority};
use proofkeep_store::{CommitError, Committed, Handle, Limits, Options, Store};
use uuid::Uuid;

/// Opens the store at `path`, making it if it isn't there.
pub fn open(path: &Path) -> Store {
    Store::open(
        path,
        &Options {
            create: true,
            cache_bytes: 16 << 20,
            ..Options::default()
        },
    )
    .expect("the store opens")
}

/// Starts its commit thread.
pub fn start(store: &Store) -> Handle {
    start_with(store, Limits::default())
}

/// Starts its commit thread with limits.
pub fn start_with(store: &Store, limits: Limits) -> Handle {
    store
        .start(Machine { rules: Rules::ALL }, Clock::start(), limits)
        .expect("the commit thread starts")
}

/// Starts the commit thread and opens a boot with one device.
pub fn boot(store: &Store) -> Handle {
    let handle = start(store);
    let command = Command::BootOpen {
        version: "test".into(),
        devices: vec![("cpu:0".into(), 2)],
    };
    handle.commit_blocking(command).expect("the boot opens");
    handle
}

/// A job with so many partitions.
pub fn submit(partitions: u32) -> Submit {
    let request = b"{\"test\":true}".to_vec();
    Submit {
        id: Uuid::now_v7(),
        kind: "test".into(),
        circuit: None,
        request: Digest::of(&request),
        inline: Some(request),
        objects: Vec::new(),
        idempotency_key: None,
        actor: "tester".into(),
        labels: Vec::new(),
        priority: Priority::Normal,
        max_attempts: 3,
        on_failure: OnFailure::Continue,
        partitions,
        ticket_bytes: 1 << 20,
        budget_bytes: 1 << 30,
        deadline: None,
    }
}

/// Submits it and returns its number.
pub fn submitted(outcome: Result<Committed, CommitError>) -> JobNumber {
    match outcome.expect("the job is accepted").reply {
        Reply::Submitted { job, .. } => job,
        other => panic!("expected a submitted job, found {other:?}"),
    }
}
