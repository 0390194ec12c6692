//! Requests that can't be what somebody meant: each answer says what was expected, what was found and what to do.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod bad_input_support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use bad_input_support::{BYTES, JSON, Target, problem};
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{proofkeep, sha256_name};
use serde_json::{Value, json};

#[test]
fn a_job_with_a_wrong_field_is_refused_and_the_field_is_named() {
    let target = Target::with_circuit("multiplier", &[]);
    let witness = target.upload(&fixtures::read("multiplier", "witness.wtns"));
    let good = json!({ "kind": "groth16", "circuit": "multiplier", "inputs": [{ "witness": witness }] });
    let with = |member: &str, value: Value| {
        let mut body = good.clone();
        body[member] = value;
        body
    };
    let missing = format!("sha256:{}", "ab".repeat(32));
    let cases: [(Value, &str, &[&str]); 15] = [
        (with("inptus", json!([])), "unknown-field", &["inptus", "inputs"]),
        (
            with("kind", json!("plonk")),
            "unknown-kind",
            &["plonk", "groth16"],
        ),
        (with("circuit", json!(7)), "bad-field", &["circuit", "sha256:"]),
        (with("inputs", json!([])), "inputs-count", &["1 to 1024", "0"]),
        (
            with("inputs", json!(vec![json!({ "witness": witness }); 1025])),
            "inputs-count",
            &["1 to 1024", "1025"],
        ),
        (with("inputs", json!({})), "bad-field", &["inputs", "an array"]),
        (
            with("inputs", json!([{ "witness": missing }])),
            "blob-missing",
            &[&missing, "upload"],
        ),
        (
            with("inputs", json!([{ "witness": "sha256:12" }])),
            "bad-field",
            &["inputs[0].witness", "64 hex digits"],
        ),
        (
            with("inputs", json!([{ "witness": witness, "input": {} }])),
            "bad-field",
            &["inputs[0]", "exactly one of"],
        ),
        (
            with("inputs", json!([{ "wtns": witness }])),
            "unknown-field",
            &["inputs[0].wtns", "witness"],
        ),
        (
            with("inputs", json!([{ "witness_base64": "***" }])),
            "bad-base64",
            &["inputs[0].witness_base64", "base64"],
        ),
        (
            with("priority", json!("urgent")),
            "bad-field",
            &["priority", "critical", "urgent"],
        ),
        (
            with("max_attempts", json!(0)),
            "bad-field",
            &["max_attempts", "1 to 100"],
        ),
        (
            with("on_failure", json!("panic")),
            "bad-field",
            &["on_failure", "continue", "stop"],
        ),
        (
            with("labels", json!({ "a": 1 })),
            "bad-field",
            &["labels.a", "a string"],
        ),
    ];
    for (body, code, parts) in cases {
        let refused = problem(&target.post("/v1/jobs", &body), 422);
        refused.says(code, parts);
    }
    let unknown = target.post("/v1/jobs", &with("circuit", json!("nobody")));
    problem(&unknown, 404).says("unknown-circuit", &["nobody", "register"]);
    for text in ["", "{", "[]", "null", "{\"kind\": \"groth16\",}", "\u{feff}{}"] {
        problem(
            &target.send("POST", "/v1/jobs", &[JSON], Some(text.as_bytes())),
            400,
        )
        .says("malformed-json", &["the body: expected", "found"]);
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    problem(
        &target.send("POST", "/v1/jobs", &[JSON], Some(deep.as_bytes())),
        400,
    )
    .says("malformed-json", &[]);
    assert_eq!(
        target.get("/v1/jobs").json()["jobs"],
        json!([]),
        "something of it became a job"
    );
    target.check_unharmed();
}

#[test]
fn a_digest_that_does_not_match_is_refused_and_nothing_is_kept() {
    let target = Target::start(&[]);
    let wrong = sha256_name(b"another");
    let answer = target.send("PUT", &format!("/v1/blobs/{wrong}"), &[BYTES], Some(b"bytes"));
    problem(&answer, 422).says("digest-mismatch", &[&wrong, &sha256_name(b"bytes")]);
    for name in [&wrong, &sha256_name(b"bytes")] {
        assert_eq!(
            target
                .send("HEAD", &format!("/v1/blobs/{name}"), &[], None)
                .status,
            404
        );
    }
    target.check_unharmed();
}

/// A header that promises 5 GiB, and one that promises more than there can be.
#[test]
fn a_length_that_is_never_sent_takes_no_memory_and_leaves_nothing() {
    let target = Target::start(&["--max-upload", "4GiB"]);
    let ask = |path: &str, kind: &str, length: &str, body: &[u8]| {
        let mut stream = TcpStream::connect(target.url().trim_start_matches("http://")).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        // A server that has refused it already may have closed.
        let _ = stream.write_all(body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    };
    let five = (5_u64 << 30).to_string();
    for (path, kind) in [
        ("/v1/blobs", "application/octet-stream"),
        ("/v1/jobs", "application/json"),
        ("/v1/verify", "application/json"),
    ] {
        let answer = ask(path, kind, &five, b"");
        assert!(
            answer.starts_with("HTTP/1.1 413") && answer.contains("\"limit\""),
            "{path}: {answer}"
        );
    }
    let answer = ask(
        "/v1/blobs",
        "application/octet-stream",
        "99999999999999999999999",
        b"x",
    );
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    // Within the limit, but most of it never comes.
    let mut stream = TcpStream::connect(target.url().trim_start_matches("http://")).unwrap();
    let head = "POST /v1/blobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/octet-stream\r\ncontent-length: 3221225472\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&[0; 100_000]).unwrap();
    proofkeep_tests::harness::until("it has begun", || {
        bad_input_support::files_below(&target.data().join("tmp")) == 1
    });
    let daemon = target.get("/v1/status").json()["memory"]["daemon_rss_bytes"]
        .as_u64()
        .unwrap();
    assert!(daemon < 1 << 30, "memory was taken for what never came: {daemon}");
    drop(stream);
    proofkeep_tests::harness::until("it is gone", || {
        bad_input_support::files_below(&target.data().join("tmp")) == 0
    });
    target.check_unharmed();
}

#[test]
fn what_is_no_proof_is_refused_and_what_is_a_wrong_one_is_told() {
    let target = Target::with_circuit("multiplier", &[]);
    let read = |file: &str| -> Value { serde_json::from_slice(&fixtures::read("multiplier", file)).unwrap() };
    let (proof, public, vk) = (read("proof.json"), read("public.json"), read("vkey.json"));
    let verify = |proof: &Value, public: &Value| {
        target.post(
            "/v1/verify",
            &json!({ "vk": vk, "proof": proof, "public": public }),
        )
    };
    assert_eq!(verify(&proof, &public).expect(200).json()["valid"], true);
    let change = |place: &[&str], value: Value| {
        let mut changed = proof.clone();
        let mut at = &mut changed;
        for step in place {
            at = match step.parse::<usize>() {
                Ok(index) => &mut at[index],
                Err(_) => &mut at[*step],
            };
        }
        *at = value;
        changed
    };
    let q = "4002409555221667393417789825735904156556882819939007885332058136124031650490837864442687629129015664037894272559787";
    let r = "52435875175126190479447740508185965837690552500527637822603658699938581184513";
    let bn254 = change(&["curve"], json!("bn128"));
    let cases: [(Value, Value, &str, &[&str]); 8] = [
        (
            change(&["pi_a", "0"], json!("1")),
            public.clone(),
            "point-off-curve",
            &["proof", "point on BLS12-381"],
        ),
        (
            change(&["pi_a", "0"], json!(q)),
            public.clone(),
            "non-canonical",
            &["proof"],
        ),
        (bn254, public.clone(), "wrong-prime", &["bn128", "BLS12-381"]),
        (
            change(&["protocol"], json!("plonk")),
            public.clone(),
            "not-groth16",
            &["plonk"],
        ),
        (json!("00ff"), public.clone(), "truncated", &["proof", "192"]),
        (json!(7), public.clone(), "bad-field", &["proof", "proof.json"]),
        (proof.clone(), json!(["1"]), "bad-count", &["public"]),
        (proof.clone(), json!([r, "3"]), "non-canonical", &["public"]),
    ];
    for (proof, public, code, parts) in cases {
        println!("{code}");
        problem(&verify(&proof, &public), 422).says(code, parts);
    }
    // Well-formed and not true: no error of the request.
    let answer = verify(&proof, &json!(["34", "3"])).expect(200).json();
    assert_eq!(answer["valid"], false, "{answer}");
    assert!(
        answer["reason"].as_str().is_some_and(|reason| !reason.is_empty()),
        "{answer}"
    );
    // The same on the command line.
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, value: &Value| {
        let path = directory.path().join(name);
        std::fs::write(&path, value.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let vk = write("vk.json", &vk);
    let run = |proof: &Value, public: &Value| {
        let (proof, public) = (write("proof.json", proof), write("public.json", public));
        proofkeep(["--json", "groth16", "verify", &vk, &public, &proof])
    };
    assert_eq!(run(&proof, &public).expect(0).json(), json!({ "valid": true }));
    for (proof, public, code) in [
        (proof.clone(), json!(["34", "3"]), "proof-invalid"),
        (
            change(&["pi_a", "0"], json!("1")),
            public.clone(),
            "point-off-curve",
        ),
    ] {
        let verdict = run(&proof, &public).expect(1).json();
        assert_eq!(
            (&verdict["valid"], &verdict["code"]),
            (&json!(false), &json!(code)),
            "{verdict}"
        );
    }
    target.check_unharmed();
}
