//! Safe repeats: one key, one job.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http_support;

use std::collections::BTreeSet;

use http_support::{JSON, Server, id, problem, products};
use proofkeep_tests::harness::Answer;
use serde_json::{Value, json};

fn submit(server: &Server, key: &str, body: &Value) -> Answer {
    server.send(
        "POST",
        "/v1/jobs",
        &[JSON, ("idempotency-key", key)],
        Some(body.to_string().as_bytes()),
    )
}

#[test]
fn a_hundred_identical_submits_at_once_make_one_job() {
    let server = Server::with_multiplier(&[]);
    let body = products(&[(3, 11)]);
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..100)
            .map(|_| scope.spawn(|| submit(&server, "same", &body)))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let ids: BTreeSet<String> = answers
        .iter()
        .map(|answer| id(&answer.json()).to_owned())
        .collect();
    assert_eq!(ids.len(), 1, "{ids:?}");
    let accepted = answers.iter().filter(|answer| answer.status == 202).count();
    let known = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!((accepted, known), (1, 99));
    assert_eq!(server.get("/v1/jobs").json()["jobs"].as_array().unwrap().len(), 1);
    assert_eq!(server.wait_for_end(ids.first().unwrap())["state"], "succeeded");
    assert_eq!(submit(&server, "same", &body).expect(200).json()["generation"], 1);
}

#[test]
fn the_same_key_with_another_body_is_refused_and_names_the_job() {
    let server = Server::with_multiplier(&[]);
    let first = submit(&server, "k", &products(&[(3, 11)])).expect(202).json();
    let other = submit(&server, "k", &products(&[(3, 12)]));
    problem(&other, 422, "idempotency-mismatch");
    assert_eq!(other.json()["job"], first["id"]);
    // What counts is the request, not how it is written.
    let mut same = products(&[(3, 11)]);
    same["priority"] = json!("normal");
    assert_eq!(submit(&server, "k", &same).expect(200).json()["id"], first["id"]);
}

#[test]
fn a_job_that_ended_without_success_is_opened_again() {
    let server = Server::with_multiplier(&[]);
    let mut bad = products(&[(3, 11)]);
    bad["inputs"][0] = json!({ "input": { "a": "3" } });
    let job = submit(&server, "bad", &bad).expect(202).json();
    assert_eq!(server.wait_for_end(id(&job))["state"], "failed");
    let again = submit(&server, "bad", &bad).expect(202).json();
    assert_eq!((&again["id"], &again["generation"]), (&job["id"], &json!(2)));
    assert_eq!(server.wait_for_end(id(&job))["state"], "failed");

    let many: Vec<(u32, u32)> = (0..200).map(|number| (number + 2, 3)).collect();
    let job = submit(&server, "many", &products(&many)).expect(202).json();
    assert_eq!(
        server
            .send("POST", &format!("/v1/jobs/{}/cancel", id(&job)), &[], None)
            .status,
        202
    );
    assert_eq!(server.wait_for_end(id(&job))["state"], "cancelled");
    let again = submit(&server, "many", &products(&many)).expect(202).json();
    assert_eq!((&again["id"], &again["generation"]), (&job["id"], &json!(2)));
    assert_eq!(server.wait_for_end(id(&job))["state"], "succeeded");
}
