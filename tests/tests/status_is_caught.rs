//! The checks of `status_never_lies` can fail: a daemon whose state machine lacks one rule is caught by them, and the
//! same scenario with every rule passes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod status_support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use proofkeep_tests::harness::{Daemon, Launch, proofkeep};
use serde_json::{Value, json};
use status_support::ledger::Ledger;
use status_support::{Film, list, text};

/// Polls after which a daemon that never comes to rest is looked at as it is.
const POLLS: usize = 6000;

/// One job that fails and stops its other partition on the device, one that succeeds slowly enough to be watched, one that
/// fails alone, and one that fails at its very end and succeeds when it is tried again.
fn jobs(marks: &Path) -> [Value; 4] {
    let slow = json!({ "synth_ms": 10, "piece_ms": 5, "finish_ms": 60 });
    let fails =
        json!({ "synth_ms": 10, "piece_ms": 40, "fail": { "stage": "b2", "class": "input_invalid" } });
    let late = json!({ "fail": { "stage": "finish", "class": "device_error", "times": 1 } });
    let held = json!({ "synth_ms": 10, "piece_ms": 400 });
    let job = |inputs: Vec<Value>, on_failure: &str| json!({ "kind": "scripted", "inputs": inputs, "on_failure": on_failure, "marks": marks });
    [
        job(vec![fails.clone(), held], "stop"),
        job(vec![slow.clone(), slow], "continue"),
        job(vec![fails], "continue"),
        job(vec![late], "continue"),
    ]
}

/// Runs the jobs under the checks; what a check said, if one did.
fn caught(rule: Option<&str>) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut launch = Launch::test_build(&data).args(["--cpu-devices", "2"]);
    if let Some(rule) = rule {
        launch = launch.env("PROOFKEEP_WITHOUT_RULE", rule);
    }
    let daemon = launch.start();
    assert_eq!(daemon.get("/v1/status").json()["test_build"], true);
    let checked = catch_unwind(AssertUnwindSafe(|| watch(&daemon, directory.path())));
    daemon.kill();
    let checked = checked.and_then(|()| {
        catch_unwind(|| drop(proofkeep([Path::new("fsck"), Path::new("--data-dir"), &data]).expect(0)))
    });
    let text = checked.err()?;
    Some(
        text.downcast_ref::<String>()
            .cloned()
            .unwrap_or_else(|| "a panic without words".to_owned()),
    )
}

fn watch(daemon: &Daemon, marks: &Path) {
    for job in jobs(marks) {
        let _ = daemon.post("/v1/jobs", &job).expect(202);
    }
    let mut film = Film::default();
    for _ in 0..POLLS {
        film.poll(daemon);
        let (_, picture) = film.pictures.last_key_value().unwrap();
        if list(picture, "jobs").is_empty() {
            break;
        }
    }
    let ledger = Ledger::read(daemon, film.ids());
    ledger.check(&film);
    let (_, last) = film.pictures.last_key_value().unwrap();
    ledger.check_counters(last);
    let mut ends: Vec<&str> = list(last, "recent")
        .iter()
        .map(|job| text(job, "state"))
        .collect();
    ends.sort_unstable();
    assert_eq!(
        ends,
        ["failed", "failed", "succeeded", "succeeded"],
        "the jobs ended otherwise: {last}"
    );
}

#[test]
fn with_every_rule_nothing_is_said() {
    assert_eq!(caught(None), None);
}

/// Without the rule, one of these was said; which one depends on what a poll came to see.
#[track_caller]
fn is_caught(rule: &str, words: &[&str]) {
    let said = caught(Some(rule)).unwrap_or_else(|| panic!("nobody noticed that {rule} is missing"));
    let short: String = said.chars().take(160).collect();
    println!("without {rule}: {short}");
    let expected = words.iter().any(|words| said.contains(words));
    assert!(
        expected,
        "without {rule}, {words:?} was to be said, and this was: {said}"
    );
}

#[test]
fn r4_the_last_proof_moves_the_job() {
    is_caught(
        "last_proof_moves_the_job",
        &["nothing is left and the job still runs"],
    );
}

#[test]
fn r5_a_partition_that_is_finished_holds_no_slot() {
    is_caught("finishing_frees_the_slot", &["finishing"]);
}

#[test]
fn r6_a_failure_is_not_shown_as_done() {
    is_caught("failure_is_not_success", &["lost its proof", "ended otherwise"]);
}

#[test]
fn r7_a_job_that_stops_frees_its_workers() {
    is_caught("stopping_frees_workers", &["is held by no partition"]);
}

#[test]
fn r8_every_end_ends_its_lease() {
    is_caught("every_end_ends_the_lease", &["still stopping"]);
}

#[test]
fn r9_a_failed_job_leaves() {
    is_caught("failed_jobs_end", &["still stopping"]);
}

#[test]
fn r10_every_end_is_counted() {
    is_caught("ends_are_counted", &["scripted"]);
}
