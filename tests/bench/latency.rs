//! How long a submit takes over HTTP until it is durable and answered.

use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{Daemon, Http};
use serde_json::{Value, json};

use crate::times::Times;

/// A daemon with the smallest circuit and a job of it.
pub fn small(directory: &std::path::Path) -> (Daemon, Value) {
    let daemon = Daemon::start(&directory.join("data"), &["--cpu-devices", "1"]);
    let key = fixtures::read("multiplier", "circuit.zkey");
    daemon.register("multiplier", &[("zkey", &key)]);
    let witness = daemon.upload(&fixtures::read("multiplier", "witness.wtns"));
    let body = json!({ "kind": "groth16", "circuit": "multiplier", "inputs": [{ "witness": witness }] });
    (daemon, body)
}

fn submit(http: &Http, body: &Value) -> String {
    let answer = http.post("/v1/jobs", body).expect(202);
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// Measures it: one caller, then 64 at once; a connection for each call.
pub fn submits() {
    let directory = tempfile::tempdir().unwrap();
    let (daemon, body) = small(directory.path());
    for (callers, each) in [(1_usize, 200), (64, 10)] {
        // Each caller waits for the jobs of its last round, so that what is measured is no queue of proofs.
        let times = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..callers)
                .map(|_| {
                    let (http, body) = (daemon.http(), &body);
                    scope.spawn(move || {
                        let mut times = Times::default();
                        for _ in 0..each {
                            let job = times.time(|| submit(&http, body));
                            http.wait_for_end(&job);
                        }
                        times
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .fold(Times::default(), Times::and)
        });
        println!("submit over HTTP, {callers} callers: {times}");
    }
}

/// The status while something goes on; stops when `done` says so.
pub fn statuses(http: &Http, mut done: impl FnMut(usize) -> bool) -> Times {
    let mut times = Times::default();
    for count in 0.. {
        if done(count) {
            break;
        }
        let _ = times.time(|| http.get("/v1/status")).expect(200);
    }
    times
}
