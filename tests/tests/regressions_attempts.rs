//! Faults of other systems that show in attempts: what died leaves a row, what was queued stays, what was wrong is said.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod regressions_support;

use regressions_support::{Scripted, attempts};
use serde_json::{Value, json};

fn classes(job: &Value, index: usize) -> Vec<String> {
    attempts(job, index)
        .into_iter()
        .map(|(_, outcome, class)| class.unwrap_or(outcome))
        .collect()
}

/// An attempt left no row when its process died (Curio).
#[test]
fn an_attempt_whose_process_dies_leaves_its_row() {
    let server = Scripted::start(&["--cpu-devices", "1"]);
    let body = server.body(&[
        json!({ "crash": { "stage": "l", "how": "kill", "times": 1 } }),
        json!({ "synth_ms": 5 }),
    ]);
    let ended = server.wait_for_end(&server.submit(&body));
    assert_eq!(ended["state"], "succeeded", "{ended}");
    let rows = attempts(&ended, 0);
    assert!(rows.len() >= 2, "{ended}");
    for (place, (number, _, class)) in rows.iter().enumerate() {
        assert_eq!(*number, place as u64 + 1, "a number is missing: {ended}");
        let last = place + 1 == rows.len();
        assert_eq!(class.as_deref(), (!last).then_some("interrupted"), "{ended}");
    }
    let row = &ended["partitions"][0]["attempts"][0];
    assert!(
        row["ended_at"].is_string() && row["device"] == "cpu:0" && row["process"].is_string(),
        "{row}"
    );
    server.check();
}

/// The same when the daemon itself dies; the row says which boot opened it and which closed it.
#[test]
fn an_attempt_that_a_dead_daemon_held_is_closed_by_the_next_boot() {
    let mut server = Scripted::start(&["--checkpoint-after", "0s"]);
    let gate = server.gate("go");
    let body = server.body(&[json!({ "gate": { "stage": "b2", "file": gate }, "piece_ms": 5 })]);
    let job = server.submit(&body);
    let checkpointed = |shown: &Value| {
        shown["partitions"][0]["checkpoint"]
            .as_array()
            .is_some_and(|pieces| pieces.len() >= 3)
    };
    proofkeep_tests::harness::until("pieces are saved", || {
        checkpointed(&server.get(&format!("/v1/jobs/{job}")).json())
    });
    server.crash();
    std::fs::write(&gate, "").unwrap();
    let ended = server.wait_for_end(&job);
    assert_eq!(classes(&ended, 0), ["interrupted", "ok"], "{ended}");
    let rows = ended["partitions"][0]["attempts"].as_array().unwrap();
    assert_eq!(
        (rows[0]["boot"].as_u64(), rows[0]["closed_in"].as_u64()),
        (Some(1), Some(2)),
        "{ended}"
    );
    assert!(rows[1]["reused"].as_array().unwrap().len() >= 3, "{ended}");
    server.check();
}

/// Task tables were emptied by an unclean stop (Bento).
#[test]
fn jobs_that_wait_are_there_after_an_unclean_stop() {
    let mut server = Scripted::start(&["--cpu-devices", "1"]);
    let gate = server.gate("go");
    let first = server.submit(&server.body(&[json!({ "gate": { "stage": "synth", "file": gate } })]));
    let script = |salt: u64| json!({ "salt": salt });
    let waiting: Vec<String> = (0..12)
        .map(|number| server.submit(&server.body(&[script(number), script(number + 100)])))
        .collect();
    server.crash();
    let listed = server.get("/v1/jobs?limit=100").json()["jobs"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(listed, 13);
    std::fs::write(&gate, "").unwrap();
    for job in waiting.iter().chain([&first]) {
        assert_eq!(server.wait_for_end(job)["state"], "succeeded");
    }
    server.check();
}

/// Time-outs never spent the retry budget, so a job that always times out was tried for ever (Aztec).
#[test]
fn timeouts_spend_the_retry_budget() {
    let server = Scripted::start(&[]);
    let mut body = server.body(&[
        json!({ "fail": { "stage": "prove", "class": "timed_out" } }),
        json!({}),
    ]);
    body["max_attempts"] = json!(2);
    let ended = server.wait_for_end(&server.submit(&body));
    assert_eq!(ended["state"], "failed");
    assert_eq!(classes(&ended, 0), ["timed_out", "timed_out"], "{ended}");
    assert_eq!(classes(&ended, 1), ["ok"], "{ended}");
    server.check();
}

/// R6: a device failure was shown as done. R9: failed jobs were never counted and never left.
#[test]
fn r6_r9_a_failure_is_shown_as_one_counted_and_gone() {
    let server = Scripted::start(&[]);
    let mut body = server.body(&[json!({ "fail": { "stage": "a", "class": "device_error" } })]);
    body["max_attempts"] = json!(1);
    let ended = server.wait_for_end(&server.submit(&body));
    assert_eq!(
        (ended["state"].as_str(), ended["partitions"][0]["state"].as_str()),
        (Some("failed"), Some("failed"))
    );
    assert_eq!(classes(&ended, 0), ["device_error"], "{ended}");
    let status = server.get("/v1/status").json();
    assert_eq!(status["jobs"], json!([]), "{status}");
    assert_eq!(status["counters"]["jobs"]["scripted"]["failed"], 1, "{status}");
    assert_eq!(
        status["counters"]["attempts"]["scripted"]["device_error"], 1,
        "{status}"
    );
    assert_eq!(
        server.get("/status").json()["counters"]["failed_by_kind"]["scripted"],
        1
    );
    server.check();
}

/// R7: a partition of a job that had failed left its worker "proving" for ever.
#[test]
fn r7_a_job_that_fails_frees_the_workers_of_its_other_partitions() {
    let server = Scripted::start(&["--cpu-devices", "2"]);
    let never = server.gate("never");
    let go = server.gate("go");
    let mut body = server.body(&[
        json!({ "gate": { "stage": "l", "file": never } }),
        json!({ "gate": { "stage": "l", "file": go }, "fail": { "stage": "b1", "class": "input_invalid" } }),
        json!({}),
        json!({}),
    ]);
    body["on_failure"] = json!("stop");
    let job = server.submit(&body);
    server.until_partition(&job, 0, "proving");
    server.until_partition(&job, 1, "proving");
    std::fs::write(&go, "").unwrap();
    let ended = server.wait_for_end(&job);
    // A witness that was ready earlier may have had the slot first, and keeps its proof.
    let (state, stopped) = (&ended["state"], &ended["partitions"][0]["state"]);
    assert_eq!(
        (state, stopped),
        (&json!("failed"), &json!("cancelled")),
        "{ended}"
    );
    let status = server.get("/v1/status").json();
    assert!(
        status["workers"]
            .as_array()
            .unwrap()
            .iter()
            .all(|worker| worker["state"] == "idle"),
        "{status}"
    );
    assert_eq!(
        server.wait_for_end(&server.submit(&server.body(&[json!({}), json!({})])))["state"],
        "succeeded"
    );
    server.check();
}

/// Only one kind was verified: a proof that the worker hands out as good is checked by the daemon before it is stored.
#[test]
fn a_proof_that_does_not_verify_is_never_stored() {
    let server = Scripted::start(&[]);
    let body = server.body(&[json!({ "crash": { "stage": "finish", "how": "invalid_proof", "times": 1 } })]);
    let ended = server.wait_for_end(&server.submit(&body));
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(classes(&ended, 0), ["invalid_proof", "ok"], "{ended}");
    server.check();
}
