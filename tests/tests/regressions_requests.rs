//! Faults of other systems that show in requests and their answers (CUZK.md, "Faults" and "Peers add").

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http_support;
mod regressions_support;

use std::collections::BTreeSet;

use http_support::{Server, products};
use proofkeep_scripted::{proof_of, witness_of};
use proofkeep_tests::harness::until;
use regressions_support::{Scripted, id, keyed};
use serde_json::{Value, json};

/// Two queued jobs shared a key, one was silently lost, and its caller waited for ever.
#[test]
fn r11_two_callers_under_one_key_both_get_the_end_of_the_job() {
    let server = Scripted::start(&["--cpu-devices", "1"]);
    let gate = server.gate("go");
    let blocker = server.submit(&server.body(&[json!({ "gate": { "stage": "synth", "file": gate } })]));
    server.until_partition(&blocker, 0, "synthesizing");
    // Both are queued behind it, under one key; others under keys of their own.
    let body = server.body(&[json!({ "salt": 1 }), json!({ "salt": 2 })]);
    let ends: Vec<Value> = std::thread::scope(|scope| {
        let ask = |key: &'static str| {
            let (http, body) = (server.http(), &body);
            scope.spawn(move || {
                let headers = [
                    ("content-type", "application/json"),
                    ("idempotency-key", key),
                    ("prefer", "wait=120"),
                ];
                let answer = http.send("POST", "/v1/jobs", &headers, Some(body.to_string().as_bytes()));
                assert!(matches!(answer.status, 200 | 201), "{}", answer.text());
                answer.json()
            })
        };
        let callers = ["porep-1000-7", "porep-1000-7", "porep-1000-8", "porep-1000-9"].map(ask);
        until("the three jobs are there", || {
            server.get("/v1/jobs").json()["jobs"].as_array().unwrap().len() == 4
        });
        std::fs::write(&gate, "").unwrap();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    assert!(ends.iter().all(|job| job["state"] == "succeeded"), "{ends:?}");
    assert_eq!(id(&ends[0]), id(&ends[1]));
    let ids: BTreeSet<String> = ends.iter().map(id).collect();
    assert_eq!(ids.len(), 3, "jobs under other keys are other jobs");
    server.check();
}

/// The same request id twice mixed two proofs, or panicked.
#[test]
fn r12_one_key_with_two_bodies_never_mixes_two_proofs() {
    let server = Scripted::start(&[]);
    let bodies: Vec<Value> = (0..2)
        .map(|salt| server.body(&[json!({ "salt": salt, "synth_ms": 20 })]))
        .collect();
    let answers: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..40)
            .map(|place| {
                let (http, body) = (server.http(), &bodies[place % 2]);
                scope.spawn(move || (place % 2, keyed(&http, "sector-7", body)))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (winners, losers): (Vec<_>, Vec<_>) = answers.iter().partition(|(_, answer)| answer.status < 300);
    let won = winners[0].0;
    assert!(
        winners.iter().all(|(body, _)| *body == won),
        "both bodies were taken"
    );
    assert_eq!((winners.len(), losers.len()), (20, 20));
    for (_, answer) in &losers {
        assert_eq!((answer.status, &*answer.code()), (422, "idempotency-mismatch"));
    }
    let job = id(&winners[0].1.json());
    server.wait_for_end(&job);
    let proof = server
        .get(&format!("/v1/jobs/{job}/proof?format=bytes"))
        .expect(200)
        .body;
    assert_eq!(
        proof,
        proof_of(&witness_of(0, won as u64).0),
        "the proof is another request's"
    );
    server.check();
}

/// 8 parallel identical submits made 8 jobs (base).
#[test]
fn eight_parallel_identical_submits_make_one_job() {
    let server = Scripted::start(&[]);
    let body = server.body(&[json!({})]);
    let ids: BTreeSet<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| id(&server.keyed("one", &body).json())))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 1);
    assert_eq!(server.get("/v1/jobs").json()["jobs"].as_array().unwrap().len(), 1);
    server.check();
}

/// A cancelled job's cached answer was replayed after a restart (Aztec).
#[test]
fn a_cancelled_job_is_opened_again_after_a_restart_and_never_answered_from_memory() {
    let mut server = Scripted::start(&[]);
    for (round, crash) in [(0, false), (1, true)] {
        let key = format!("epoch-{round}");
        let gate = server.gate(&key);
        let body = server.body(&[json!({ "salt": round, "gate": { "stage": "l", "file": gate } })]);
        let job = id(&server.keyed(&key, &body).expect(202).json());
        server.until_partition(&job, 0, "proving");
        let _ = server
            .post(&format!("/v1/jobs/{job}/cancel"), &json!({}))
            .expect(202);
        assert_eq!(server.wait_for_end(&job)["state"], "cancelled");
        if crash {
            server.crash();
        } else {
            server.restart();
        }
        std::fs::write(&gate, "").unwrap();
        let again = server.keyed(&key, &body).expect(202).json();
        assert_eq!(
            (id(&again), again["generation"].as_u64()),
            (job.clone(), Some(2)),
            "{again}"
        );
        assert_ne!(again["state"], "cancelled", "the old end was told again");
        assert_eq!(server.wait_for_end(&job)["state"], "succeeded");
        // Once it succeeded, the key names that end, also after a restart.
        server.crash();
        let known = server.keyed(&key, &body).expect(200).json();
        assert_eq!(
            (known["state"].as_str(), known["generation"].as_u64()),
            (Some("succeeded"), Some(2)),
            "{known}"
        );
    }
    server.check();
}

/// Big numbers were rounded in a UI (River). An input's integers may have any size, and no answer rounds them.
#[test]
fn big_numbers_are_not_rounded() {
    let server = Server::with_multiplier(&[]);
    // 2^53 + 1, 2^64 + 1, and r - 1: none of them is a double.
    for a in [
        "9007199254740993",
        "18446744073709551617",
        "52435875175126190479447740508185965837690552500527637822603658699938581184512",
    ] {
        let forms = [
            json!({ "a": a, "b": "1" }).to_string(),
            format!("{{\"a\": {a}, \"b\": 1}}"),
        ];
        for input in forms {
            let body = format!(
                "{{\"kind\": \"groth16\", \"circuit\": \"multiplier\", \"inputs\": [{{\"input\": {input}}}]}}"
            );
            let headers = [http_support::JSON, ("prefer", "wait=60")];
            let job = server
                .send("POST", "/v1/jobs", &headers, Some(body.as_bytes()))
                .expect(201)
                .json();
            assert_eq!(job["state"], "succeeded", "{input}: {job}");
            let public = server
                .get(&format!("/v1/jobs/{}/public", id(&job)))
                .expect(200)
                .json();
            // The output a·b, then the public input a.
            assert_eq!(public, json!([a, a]), "{input}");
            let one_call = server.send(
                "POST",
                "/v1/circuits/multiplier/prove",
                &[http_support::JSON],
                Some(input.as_bytes()),
            );
            assert_eq!(
                one_call.expect(201).json()["publicSignals"],
                json!([a, a]),
                "{input}"
            );
        }
    }
    // What isn't a field element is a string and stays one: a label, a key.
    let mut labelled = products(&[(3, 11)]);
    labelled["labels"] = json!({ "order": "9007199254740993" });
    let job = server.finish(&labelled);
    assert_eq!(job["labels"]["order"], "9007199254740993");
    assert!(job["partitions"][0]["attempts"][0]["process"].is_string() && job["request_digest"].is_string());
}
