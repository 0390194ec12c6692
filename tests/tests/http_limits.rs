//! Answers about what isn't there yet, can never be, or is there no more.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http_support;

use http_support::{Server, id, problem, products};
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{until, until_some};
use serde_json::json;

#[test]
fn a_circuit_that_is_being_imported_has_no_key_yet_but_takes_jobs() {
    let server = Server::start(&[]);
    // Who would import it is held up.
    let workers = until_some("the worker process", || {
        Some(server.workers()).filter(|workers| !workers.is_empty())
    });
    until("it has said hello", || {
        server.get("/v1/status").json()["devices"][0]["description"] != ""
    });
    workers.iter().for_each(|worker| signal(*worker, "STOP"));
    let zkey = server.upload(&fixtures::read("multiplier", "circuit.zkey"));
    let answer = server
        .put("/v1/circuits/multiplier", &json!({ "zkey": zkey }))
        .expect(202);
    assert_eq!(answer.json()["state"], "importing");
    problem(
        &server.get("/v1/circuits/multiplier/vk"),
        409,
        "circuit-not-ready",
    );
    let witness = server.upload(&fixtures::read("multiplier", "witness.wtns"));
    let body = json!({ "kind": "groth16", "circuit": "multiplier", "inputs": [{ "witness": witness }] });
    let job = server.post("/v1/jobs", &body).expect(202).json();
    let path = format!("/v1/jobs/{}", id(&job));
    assert_eq!(server.get(&path).json()["reason"], "circuit-importing");
    let early = server.get(&format!("{path}/proof"));
    problem(&early, 409, "not-ready");
    assert_eq!(early.json()["retryable"], true);
    workers.iter().for_each(|worker| signal(*worker, "CONT"));
    assert_eq!(server.wait_for_end(id(&job))["state"], "succeeded");
}

#[test]
fn a_job_that_never_fits_is_refused_when_it_is_submitted() {
    let server = Server::with_multiplier(&["--memory", "64MiB"]);
    // An input needs room for its calculator.
    let answer = server.post("/v1/jobs", &products(&[(3, 11)]));
    let detail = problem(&answer, 422, "needs-memory");
    assert!(detail.contains("bytes"), "{detail}");
    let witness = server.upload(&fixtures::read("multiplier", "witness.wtns"));
    let body = json!({ "kind": "groth16", "circuit": "multiplier", "inputs": [{ "witness": witness }] });
    assert_eq!(server.finish(&body)["state"], "succeeded");
}

#[test]
fn a_damaged_result_is_said_to_be_damaged() {
    let server = Server::with_multiplier(&[]);
    let job = server.finish(&products(&[(3, 11)]));
    let path = format!("/v1/jobs/{}", id(&job));
    let events = server.get(&format!("{path}/events")).json();
    let public = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|event| event["public_digest"].as_str());
    let name = public.unwrap().trim_start_matches("sha256:").to_owned();
    let file = server
        .directory
        .path()
        .join("data/objects")
        .join(&name[..2])
        .join(&name);
    std::fs::write(&file, "something else").unwrap();
    problem(&server.get(&format!("{path}/public")), 500, "proof-damaged");
    problem(
        &server.get(&format!("{path}/partitions/0/public")),
        500,
        "proof-damaged",
    );
    // The proof itself is whole.
    assert_eq!(server.get(&format!("{path}/proof")).status, 200);
    assert_eq!(server.get("/readyz").status, 200);
}

fn signal(pid: u32, name: &str) {
    let sent = std::process::Command::new("kill")
        .args([format!("-{name}"), pid.to_string()])
        .status();
    assert!(sent.unwrap().success());
}
