//! From an input to a proof in one call.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http_support;

use http_support::{JSON, Server, id, problem};
use proofkeep_tests::fixtures;
use serde_json::json;

const BYTES: (&str, &str) = ("content-type", "application/octet-stream");

#[test]
fn a_witness_or_an_input_comes_back_as_a_proof() {
    let server = Server::with_multiplier(&[]);
    let witness = fixtures::read("multiplier", "witness.wtns");
    let input = fixtures::read("multiplier", "input.json");
    for (header, body) in [(BYTES, &witness), (JSON, &input)] {
        let answer = server
            .send("POST", "/v1/circuits/multiplier/prove", &[header], Some(body))
            .expect(201);
        assert_eq!(answer.header("preference-applied"), Some("wait=60"));
        let proved = answer.json();
        assert_eq!(proved["publicSignals"], json!(["33", "3"]));
        let question =
            json!({ "circuit": "multiplier", "proof": proved["proof"], "public": proved["publicSignals"] });
        assert_eq!(
            server.post("/v1/verify", &question).expect(200).json(),
            json!({ "valid": true })
        );
        let job = server
            .get(&format!("/v1/jobs/{}", proved["job"].as_str().unwrap()))
            .expect(200)
            .json();
        assert_eq!(job["state"], "succeeded");
    }
}

#[test]
fn who_does_not_wait_gets_the_job() {
    let server = Server::with_multiplier(&[]);
    let input = fixtures::read("multiplier", "input.json");
    let headers = [JSON, ("prefer", "wait=0")];
    let answer = server
        .send("POST", "/v1/circuits/multiplier/prove", &headers, Some(&input))
        .expect(202);
    let job = answer.json();
    assert_eq!(
        answer.header("location"),
        Some(&format!("/v1/jobs/{}", id(&job))[..])
    );
    assert_eq!(server.wait_for_end(id(&job))["state"], "succeeded");
}

#[test]
fn an_input_that_does_not_do_is_422_with_the_job() {
    let server = Server::with_multiplier(&[]);
    server.register_fixture("arrays");
    let prove = |circuit: &str, input: &str| {
        server.send(
            "POST",
            &format!("/v1/circuits/{circuit}/prove"),
            &[JSON],
            Some(input.as_bytes()),
        )
    };
    let unknown = prove("multiplier", r#"{"a":"3","b":"11","c":"1"}"#);
    assert_eq!(unknown.status, 422, "{}", unknown.text());
    let body = unknown.json();
    assert!(
        body["job"].is_string() && body["class"] == "input_invalid",
        "{body}"
    );
    assert!(body["detail"].as_str().unwrap().contains('c'), "{body}");
    let assertion = prove(
        "arrays",
        r#"{"weights":["1","20","3000"],"values":[["1","2"],["3","4"],["5","6"]]}"#,
    );
    assert_eq!(assertion.status, 422, "{}", assertion.text());
    assert!(
        assertion.json()["detail"]
            .as_str()
            .unwrap()
            .contains("WeightedSum"),
        "{}",
        assertion.text()
    );
    problem(&prove("nobody", "{}"), 404, "unknown-circuit");
    let form = [("content-type", "text/plain")];
    let answer = server.send("POST", "/v1/circuits/multiplier/prove", &form, Some(b"{}"));
    problem(&answer, 415, "media-type");
    let other = fixtures::read("arrays", "witness.wtns");
    let answer = server.send("POST", "/v1/circuits/multiplier/prove", &[BYTES], Some(&other));
    problem(&answer, 422, "witness-length");
}

#[test]
fn a_witness_that_breaks_a_constraint_names_it() {
    let server = Server::with_multiplier(&[]);
    let mut witness = fixtures::read("multiplier", "witness.wtns");
    // The last byte of the file is the top of its last value; 32 bytes before its end that value begins.
    let last = witness.len() - 32;
    witness[last] ^= 1;
    let answer = server.send("POST", "/v1/circuits/multiplier/prove", &[BYTES], Some(&witness));
    problem(&answer, 422, "unsatisfied");
    assert!(
        answer.json()["detail"].as_str().unwrap().contains("constraint"),
        "{}",
        answer.text()
    );
}
