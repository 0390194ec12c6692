//! Faults of other systems that show while somebody waits for an answer.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod http_support;
mod regressions_support;

use std::net::TcpStream;

use http_support::Server;
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::proofkeep;
use regressions_support::Scripted;
use serde_json::{Value, json};

/// Verifying held the global lock, and every request stalled: here many answers come while one check goes on.
#[test]
fn r16_status_answers_come_while_proofs_are_made_and_verified() {
    let server = Server::with_multiplier(&["--cpu-devices", "2"]);
    let witness = server.upload(&fixtures::read("multiplier", "witness.wtns"));
    let inputs = vec![json!({ "witness": witness }); 300];
    let body = json!({ "kind": "groth16", "circuit": "multiplier", "inputs": inputs });
    let job = server.post("/v1/jobs", &body).expect(202).json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let (mut running, mut verifying, mut stale) = (0, 0, 0);
    loop {
        // While the disk syncs slowly the last picture comes, and says how old it is: an answer comes in any case.
        let status = server.get("/v1/status").expect(200);
        stale += usize::from(status.header("proofkeep-stale-ms").is_some());
        let status = status.json();
        let Some(shown) = status["jobs"]
            .as_array()
            .unwrap()
            .iter()
            .find(|shown| shown["id"] == *job)
        else {
            break;
        };
        running += usize::from(shown["state"] == "running");
        verifying += usize::from(shown["state"] == "verifying");
        assert_eq!(server.get("/livez").status, 200);
    }
    println!(
        "{running} answers while 300 proofs were made, {verifying} while all were verified again, {stale} of them old"
    );
    assert_eq!(server.wait_for_end(&job)["state"], "succeeded");
    assert!(
        running >= 20 && verifying >= 3 && stale < running,
        "{running} {verifying} {stale}"
    );
}

/// Await's time-out was ignored.
#[test]
fn a_wait_ends_when_it_was_to_end() {
    let server = Scripted::start(&[]);
    let gate = server.gate("go");
    let body = server.body(&[json!({ "gate": { "stage": "synth", "file": gate } })]);
    // The job can't end before the gate opens, so whatever comes back came by the time-out.
    let headers = [http_support::JSON, ("prefer", "wait=1")];
    let answer = server
        .send("POST", "/v1/jobs", &headers, Some(body.to_string().as_bytes()))
        .expect(202);
    assert_eq!(answer.header("preference-applied"), Some("wait=1"));
    let job = answer.json()["id"].as_str().unwrap().to_owned();
    let shown = server
        .send("GET", &format!("/v1/jobs/{job}"), &[("prefer", "wait=1")], None)
        .expect(200);
    assert_eq!(shown.json()["state"], "running");
    let ran = proofkeep(["wait", &job, "--timeout", "1s", "--server", server.url()]).expect(4);
    assert!(ran.stderr.contains("goes on"), "{}", ran.stderr);
    std::fs::write(&gate, "").unwrap();
    assert_eq!(server.wait_for_end(&job)["state"], "succeeded");
    let ran = proofkeep([
        "wait",
        &job,
        "--timeout",
        "60s",
        "--json",
        "--server",
        server.url(),
    ])
    .expect(0);
    assert_eq!(ran.json()["state"], "succeeded");
    server.check();
}

/// Cancel was a stub: here it frees the device, the memory and the queue, in every state of a job.
#[test]
fn cancel_works() {
    let server = Scripted::start(&["--cpu-devices", "1"]);
    let gate = server.gate("go");
    let gated = |stage: &str| {
        server.body(&[
            json!({ "gate": { "stage": stage, "file": gate } }),
            json!({}),
            json!({}),
        ])
    };
    for (stage, state) in [
        ("synth", "synthesizing"),
        ("l", "proving"),
        ("finish", "finishing"),
    ] {
        let job = server.submit(&gated(stage));
        server.until_partition(&job, 0, state);
        let queued = server.submit(&server.body(&[json!({ "gate": { "stage": "synth", "file": gate } })]));
        for job in [&queued, &job] {
            let _ = server
                .post(&format!("/v1/jobs/{job}/cancel"), &json!({}))
                .expect(202);
            // Again changes nothing.
            let _ = server
                .post(&format!("/v1/jobs/{job}/cancel"), &json!({}))
                .expect(202);
            let ended = server.wait_for_end(job);
            assert_eq!(ended["state"], "cancelled", "{stage}: {ended}");
            assert_eq!(ended["summary"]["running"], 0, "{stage}: {ended}");
        }
        let ran = proofkeep(["wait", &job, "--server", server.url()]).expect(3);
        assert!(ran.stdout.contains("cancelled"), "{}", ran.stdout);
        // The only slot is free: this one ends.
        assert_eq!(
            server.wait_for_end(&server.submit(&server.body(&[json!({})])))["state"],
            "succeeded"
        );
        let status = server.get("/v1/status").json();
        assert_eq!(
            (&status["jobs"], &status["workers"][0]["state"]),
            (&json!([]), &json!("idle")),
            "{status}"
        );
    }
    server.check();
}

/// A panel froze in its seventh tab, since each held a connection: here idle and waiting ones hold nobody up.
#[test]
fn connections_that_wait_hold_nobody_up() {
    let server = Scripted::start(&[]);
    let gate = server.gate("go");
    let job = server.submit(&server.body(&[json!({ "gate": { "stage": "synth", "file": gate } })]));
    let address = server.url().trim_start_matches("http://").to_owned();
    let idle: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let ends: Vec<Value> = std::thread::scope(|scope| {
        let path = format!("/v1/jobs/{job}");
        let waiters: Vec<_> = (0..60)
            .map(|_| {
                let (http, path) = (server.http(), path.clone());
                scope.spawn(move || {
                    http.send("GET", &path, &[("prefer", "wait=120")], None)
                        .expect(200)
                        .json()
                })
            })
            .collect();
        for _ in 0..50 {
            assert_eq!(server.get("/v1/status").status, 200);
        }
        std::fs::write(&gate, "").unwrap();
        waiters.into_iter().map(|waiter| waiter.join().unwrap()).collect()
    });
    assert!(ends.iter().all(|job| job["state"] == "succeeded"));
    drop(idle);
    server.check();
}
