//! A cancel of a PoRep ends it in the middle of whatever it is in, and what it held is free.

use std::time::Duration;

use proofkeep_tests::harness::{Daemon, until_some_within};
use serde_json::Value;

use super::support::{daemon, parameters, porep_request, post_request, submit, succeeded};

/// How long a step may take on a slow machine before it counts as hanging.
const LONG: Duration = Duration::from_secs(600);

/// Submits a PoRep, cancels it as soon as a partition is in that state, and waits for its end.
fn cancelled_while(daemon: &Daemon, state: &str) -> Value {
    let job = submit(daemon, porep_request(), "vanilla_proof", "porep-2k-p2/c1.json");
    let path = format!("/v1/jobs/{job}");
    until_some_within(LONG, state, || {
        let shown = daemon.get(&path).expect(200).json();
        let partitions = shown["partitions"].as_array().unwrap();
        partitions.iter().any(|one| one["state"] == state).then_some(())
    });
    let _ = daemon
        .send("POST", &format!("{path}/cancel"), &[], None)
        .expect(202);
    daemon.wait_for_end(&job)
}

/// Bytes that are promised, and of those the keys'.
fn reserved(daemon: &Daemon) -> (u64, u64) {
    let memory = daemon.get("/v1/status").expect(200).json()["memory"].clone();
    let keys = memory["keys"].as_array().unwrap().iter();
    let keys = keys.map(|key| key["bytes"].as_u64().unwrap()).sum();
    (memory["reserved_bytes"].as_u64().unwrap(), keys)
}

#[test]
fn a_cancelled_porep_ends_within_its_synthesis_or_its_proof_and_what_it_held_is_free() {
    let data = tempfile::tempdir().unwrap();
    let daemon = daemon(data.path(), parameters());
    let workers = daemon.workers();
    for (state, stage) in [("synthesizing", "synth"), ("proving", "prove")] {
        let job = cancelled_while(&daemon, state);
        assert_eq!(job["state"], "cancelled", "{job}");
        let partitions = job["partitions"].as_array().unwrap();
        let ends: Vec<(&str, &str)> = partitions
            .iter()
            .flat_map(|one| one["attempts"].as_array().unwrap())
            .map(|one| (one["stage"].as_str().unwrap(), one["outcome"].as_str().unwrap()))
            .collect();
        assert!(ends.contains(&(stage, "cancelled")), "{state}: {ends:?}");
        until_some_within(LONG, "the cancelled job's memory is free", || {
            let (reserved, keys) = reserved(&daemon);
            (reserved == keys).then_some(())
        });
    }
    // It was no crash: the same process goes on with the next job.
    let winning = post_request("winning-2k");
    succeeded(
        &daemon,
        &submit(&daemon, winning, "vanilla_proofs", "winning-2k/vanilla.bincode"),
    );
    assert_eq!(daemon.workers(), workers);
    assert!(daemon.terminate().success());
}
