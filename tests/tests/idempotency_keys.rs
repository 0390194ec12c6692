//! Safe repeats: one key is one job and one request, however many ask at once, and a job that ended without success is
//! opened again as its next generation, never answered from memory.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http_support;
mod regressions_support;

use std::collections::BTreeMap;

use http_support::{Server, products};
use regressions_support::{Scripted, id, keyed};
use serde_json::{Value, json};

/// Submits `count` times at once; how often each (status, id) came back.
fn at_once(server: &Server, count: usize, key: &str, body: &Value) -> BTreeMap<(u16, String), usize> {
    let mut answers = BTreeMap::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|_| {
                let http = server.http();
                scope.spawn(move || keyed(&http, key, body))
            })
            .collect();
        for thread in threads {
            let answer = thread.join().unwrap();
            *answers.entry((answer.status, id(&answer.json()))).or_default() += 1;
        }
    });
    answers
}

#[test]
fn a_hundred_identical_submits_at_once_make_one_job_with_real_proofs() {
    let server = Server::with_multiplier(&[]);
    let body = products(&[(3, 11), (5, 7)]);
    let answers = at_once(&server, 100, "same", &body);
    let counts: Vec<(u16, usize)> = answers
        .iter()
        .map(|((status, _), count)| (*status, *count))
        .collect();
    assert_eq!(
        counts,
        [(200, 99), (202, 1)],
        "one is new, the others know it: {answers:?}"
    );
    let ids: std::collections::BTreeSet<&String> = answers.keys().map(|(_, id)| id).collect();
    assert_eq!(ids.len(), 1);
    let ended = server.wait_for_end(ids.first().unwrap());
    assert_eq!(
        (ended["state"].as_str(), ended["generation"].as_u64()),
        (Some("succeeded"), Some(1))
    );
    assert!(
        ended["partitions"]
            .as_array()
            .unwrap()
            .iter()
            .all(|partition| partition["attempts_total"] == 1),
        "{ended}"
    );
    // And a hundred times the same afterwards: no life, no attempt is added.
    let again = at_once(&server, 100, "same", &body);
    assert_eq!(again.into_values().collect::<Vec<_>>(), [100]);
    assert_eq!(
        server.get(&format!("/v1/jobs/{}", id(&ended))).json()["journal"],
        ended["journal"]
    );
    let submitted = server.get(&format!("/v1/jobs/{}/events", id(&ended))).json();
    let count = submitted["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["event"] == "submitted")
        .count();
    assert_eq!(count, 1);
}

#[test]
fn the_same_key_with_another_body_is_refused_whatever_became_of_the_job() {
    let mut server = Scripted::start(&[]);
    let gate = server.gate("go");
    let body = server.body(&[json!({ "gate": { "stage": "l", "file": gate } })]);
    let mut other = body.clone();
    other["priority"] = json!("high");
    let refused = |server: &Scripted| {
        let answer = server.keyed("k", &other);
        assert_eq!(
            (answer.status, &*answer.code()),
            (422, "idempotency-mismatch"),
            "{}",
            answer.text()
        );
        answer.json()["job"].as_str().unwrap().to_owned()
    };
    let job = id(&server.keyed("k", &body).expect(202).json());
    assert_eq!(refused(&server), job, "while it runs");
    server.crash();
    assert_eq!(refused(&server), job, "after a crash");
    let _ = server
        .post(&format!("/v1/jobs/{job}/cancel"), &json!({}))
        .expect(202);
    server.wait_for_end(&job);
    assert_eq!(refused(&server), job, "when it was cancelled");
    std::fs::write(&gate, "").unwrap();
    // Defaults that are written out, and another order, are the same request.
    let mut same = body.clone();
    same["priority"] = json!("normal");
    same["max_attempts"] = json!(3);
    assert_eq!(id(&server.keyed("k", &same).expect(202).json()), job);
    assert_eq!(server.wait_for_end(&job)["state"], "succeeded");
    assert_eq!(refused(&server), job, "when it succeeded");
    server.check();
}

#[test]
fn a_failed_job_is_opened_again_and_keeps_the_proofs_it_has() {
    let server = Scripted::start(&[]);
    let mut body = server.body(&[
        json!({ "fail": { "stage": "l", "class": "unsatisfied", "times": 1 } }),
        json!({ "salt": 1 }),
    ]);
    body["max_attempts"] = json!(1);
    let job = id(&server.keyed("k", &body).expect(202).json());
    let failed = server.wait_for_end(&job);
    assert_eq!(
        (failed["state"].as_str(), failed["summary"]["proved"].as_u64()),
        (Some("failed"), Some(1)),
        "{failed}"
    );
    let kept = failed["partitions"][1]["proof"].clone();
    // Twenty at once: one opens it, the others find it open.
    let answers: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..20)
            .map(|_| scope.spawn(|| server.keyed("k", &body).status))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(
        answers.iter().filter(|status| **status == 202).count(),
        1,
        "{answers:?}"
    );
    let ended = server.wait_for_end(&job);
    assert_eq!(
        (ended["state"].as_str(), ended["generation"].as_u64()),
        (Some("succeeded"), Some(2)),
        "{ended}"
    );
    assert_eq!(
        (
            &ended["partitions"][1]["proof"],
            &ended["partitions"][1]["attempts_total"]
        ),
        (&kept, &json!(1)),
        "{ended}"
    );
    assert_eq!(
        regressions_support::attempts(&ended, 0).len(),
        2,
        "attempt numbers run on: {ended}"
    );
    server.check();
}

#[test]
fn a_cancelled_job_is_opened_again() {
    let server = Scripted::start(&[]);
    let gate = server.gate("go");
    let body = server.body(&[json!({ "gate": { "stage": "synth", "file": gate } })]);
    let job = id(&server.keyed("k", &body).expect(202).json());
    server.until_partition(&job, 0, "synthesizing");
    let _ = server
        .post(&format!("/v1/jobs/{job}/cancel"), &json!({}))
        .expect(202);
    assert_eq!(server.wait_for_end(&job)["state"], "cancelled");
    std::fs::write(&gate, "").unwrap();
    let again = server.keyed("k", &body).expect(202).json();
    assert_eq!((id(&again), again["generation"].as_u64()), (job.clone(), Some(2)));
    assert_eq!(server.wait_for_end(&job)["state"], "succeeded");
    server.check();
}

#[test]
fn keys_of_different_jobs_do_not_disturb_each_other() {
    let server = Scripted::start(&["--cpu-devices", "2"]);
    let bodies: Vec<Value> = (0..50)
        .map(|salt| server.body(&[json!({ "salt": salt })]))
        .collect();
    let jobs: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = bodies
            .iter()
            .enumerate()
            .map(|(number, body)| {
                let http = server.http();
                scope.spawn(move || {
                    let key = format!("sector-{number}");
                    let first = id(&keyed(&http, &key, body).json());
                    assert_eq!(id(&keyed(&http, &key, body).expect(200).json()), first);
                    first
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (job, body) in jobs.iter().zip(&bodies) {
        let ended = server.wait_for_end(job);
        assert_eq!(ended["state"], "succeeded");
        let proof = server
            .get(&format!("/v1/jobs/{job}/proof?format=bytes"))
            .expect(200)
            .body;
        let salt = body["inputs"][0]["salt"].as_u64().unwrap();
        assert_eq!(
            proof,
            proofkeep_scripted::proof_of(&proofkeep_scripted::witness_of(0, salt).0)
        );
    }
    server.check();
}
