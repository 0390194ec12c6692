//! The released binary and the test build beside it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use proofkeep_tests::harness::{Daemon, Launch};

#[test]
fn a_test_build_says_so_and_a_release_has_no_scripted_kind() {
    let directory = tempfile::tempdir().unwrap();
    let scripted = serde_json::json!({ "kind": "scripted", "inputs": [{}] });

    let released = Daemon::start(&directory.path().join("released"), &[]);
    assert!(released.get("/v1/status").expect(200).json()["test_build"].is_null());
    released.post("/v1/jobs", &scripted).expect(422);

    let test = Launch::test_build(&directory.path().join("test")).start();
    assert_eq!(test.get("/v1/status").expect(200).json()["test_build"], true);
    let job = test.post("/v1/jobs", &scripted).expect(202).json();
    let ended = test.wait_for_end(job["id"].as_str().unwrap());
    assert_eq!(ended["state"], "succeeded", "{ended}");
}

#[test]
fn a_rule_that_a_test_build_is_to_drop_must_exist() {
    let directory = tempfile::tempdir().unwrap();
    let launch =
        |rule: &str| Launch::test_build(&directory.path().join("data")).env("PROOFKEEP_WITHOUT_RULE", rule);
    let failed = launch("no_such_rule").try_start().unwrap_err();
    assert_eq!(failed.status.code(), Some(2));
    assert!(failed.stderr.contains("no_such_rule") && failed.stderr.contains("keys_are_unique"));
    drop(launch("keys_are_unique").start());
}
