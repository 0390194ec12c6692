//! Verification over HTTP: snarkjs's proofs are accepted, others are not, and what can't be read is an error.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http_support;

use http_support::{Server, problem};
use proofkeep_tests::fixtures;
use serde_json::{Value, json};

fn file(name: &str, file: &str) -> Value {
    serde_json::from_slice(&fixtures::read(name, file)).unwrap()
}

fn question(name: &str) -> Value {
    json!({ "vk": file(name, "vkey.json"), "proof": file(name, "proof.json"), "public": file(name, "public.json") })
}

#[test]
fn proofs_of_snarkjs_are_accepted_alone_and_in_arrays() {
    let server = Server::with_multiplier(&[]);
    let valid = json!({ "valid": true });
    for name in ["multiplier", "arrays", "filled", "poseidon2"] {
        assert_eq!(
            server.post("/v1/verify", &question(name)).expect(200).json(),
            valid,
            "{name}"
        );
    }
    let by_name = json!({
        "circuit": "multiplier", "proof": file("multiplier", "proof.json"), "public": file("multiplier", "public.json"),
    });
    let mut wrong = by_name.clone();
    wrong["public"][0] = json!("34");
    let answers = server
        .post("/v1/verify", &json!([by_name, wrong, question("arrays")]))
        .expect(200)
        .json();
    assert_eq!((&answers[0], &answers[2]), (&valid, &valid));
    assert_eq!(answers[1]["valid"], false);
    assert!(
        answers[1]["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("does not hold")),
        "{answers}"
    );
}

#[test]
fn what_cannot_be_read_is_422_and_names_the_field() {
    let server = Server::start(&[]);
    let refused = |change: fn(&mut Value), code: &str, part: &str| {
        let mut body = question("multiplier");
        change(&mut body);
        let detail = problem(&server.post("/v1/verify", &body), 422, code);
        assert!(detail.contains(part), "{detail}");
    };
    refused(
        |body| body["prof"] = json!(1),
        "unknown-field",
        "circuit, vk, proof, public",
    );
    refused(|body| body["proof"] = json!(7), "bad-field", "proof");
    refused(|body| body["proof"] = json!("zz"), "bad-field", "hex");
    refused(|body| body["proof"] = json!("00"), "truncated", "proof");
    refused(
        |body| body["proof"]["pi_a"][0] = json!("5"),
        "point-off-curve",
        "proof",
    );
    refused(
        |body| body["proof"]["curve"] = json!("bn128"),
        "wrong-prime",
        "BLS12-381",
    );
    refused(|body| body["public"] = json!(["33"]), "bad-count", "public");
    refused(|body| body["public"] = json!([33, 3]), "malformed-json", "public");
    refused(
        |body| drop(body.as_object_mut().unwrap().remove("vk")),
        "bad-field",
        "circuit or vk",
    );
    refused(|body| body["circuit"] = json!("multiplier"), "bad-field", "both");
    refused(
        |body| body["vk"]["vk_delta_2"] = body["vk"]["vk_gamma_2"].clone(),
        "setup-unfinished",
        "vk",
    );
    let order = "52435875175126190479447740508185965837690552500527637822603658699938581184513";
    let mut body = question("multiplier");
    body["public"][0] = json!(order);
    problem(&server.post("/v1/verify", &body), 422, "non-canonical");
    problem(&server.post("/v1/verify", &json!([])), 422, "bad-count");
    let second = problem(
        &server.post("/v1/verify", &json!([question("arrays"), {}])),
        422,
        "bad-field",
    );
    assert!(second.contains("[1]"), "{second}");
    let nobody = json!({ "circuit": "nobody", "proof": {}, "public": [] });
    problem(&server.post("/v1/verify", &nobody), 404, "unknown-circuit");
}
