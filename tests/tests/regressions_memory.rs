//! Faults of other systems around memory: lost wake-ups, keys counted twice, eviction that was a stub.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http_support;
mod regressions_support;

use http_support::Server;
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::until;
use regressions_support::{Scripted, id};
use serde_json::{Value, json};

/// A release between check and wait woke nobody, and the dispatcher slept for ever.
#[test]
fn r13_no_release_of_memory_is_missed() {
    // Room for one partition at a time, four slots that want one: every end must wake who waits.
    let server = Scripted::start(&["--cpu-devices", "2,2", "--memory", "64MiB"]);
    let mut jobs = Vec::new();
    for number in 0..40_u64 {
        let inputs: Vec<Value> = (0..4)
            .map(|partition| json!({ "salt": number * 4 + partition }))
            .collect();
        let mut body = server.body(&inputs);
        body["ticket_bytes"] = json!(40 << 20);
        jobs.push(server.submit(&body));
    }
    for job in jobs {
        assert_eq!(server.wait_for_end(&job)["state"], "succeeded");
    }
    let memory = server.get("/v1/status").json()["memory"].clone();
    assert!(
        memory["peak_reserved_bytes"].as_u64() <= memory["budget_bytes"].as_u64(),
        "{memory}"
    );
    until("nothing is reserved any more", || {
        server.get("/v1/status").json()["memory"]["reserved_bytes"] == 0
    });
    server.check();
}

fn job(server: &Server, circuit: &str, witness: &str, count: usize) -> String {
    let inputs = vec![json!({ "witness": witness }); count];
    let body = json!({ "kind": "groth16", "circuit": circuit, "inputs": inputs });
    id(&server.post("/v1/jobs", &body).expect(202).json())
}

/// Two loads of one parameter set reserved twice and blocked each other.
#[test]
fn r15_a_key_that_many_want_at_once_is_loaded_and_counted_once() {
    let mut server = Server::start(&["--cpu-devices", "4", "--threads", "1"]);
    server.register_fixture("poseidon2");
    let witness = server.upload(&fixtures::read("poseidon2", "witness.wtns"));
    assert!(server.take().terminate().success());
    // Nothing is resident in a new process; eight partitions want the key at once.
    server.restart(&["--cpu-devices", "4", "--threads", "1"]);
    let jobs: Vec<String> = (0..4).map(|_| job(&server, "poseidon2", &witness, 2)).collect();
    let mut ticket = 0;
    for job in &jobs {
        let ended = server.wait_for_end(job);
        assert_eq!(ended["state"], "succeeded", "{ended}");
        assert!(
            ended["partitions"]
                .as_array()
                .unwrap()
                .iter()
                .all(|partition| partition["attempts_total"] == 1),
            "{ended}"
        );
        ticket = ended["ticket_bytes"].as_u64().unwrap();
    }
    let memory = server.get("/v1/status").json()["memory"].clone();
    let keys = memory["keys"].as_array().unwrap();
    assert_eq!(keys.len(), 1, "{memory}");
    assert_eq!(
        (&keys[0]["circuit"], &keys[0]["resident"]),
        (&json!("poseidon2"), &json!(true)),
        "{memory}"
    );
    // Ahead of four slots there are at most eight witnesses; the key is there once.
    let most = keys[0]["bytes"].as_u64().unwrap() + 8 * ticket;
    assert!(
        memory["peak_reserved_bytes"].as_u64().unwrap() <= most,
        "the key was reserved twice: {memory}"
    );
}

/// Evict was a stub: keys that don't fit together take turns, and none stays when there is no room.
#[test]
fn keys_that_do_not_fit_together_take_turns() {
    let mut server = Server::start(&["--cpu-devices", "1", "--threads", "1"]);
    server.register_fixture("poseidon2");
    server.register_fixture("filled");
    let witnesses =
        ["poseidon2", "filled"].map(|name| (name, server.upload(&fixtures::read(name, "witness.wtns"))));
    let (mut key, mut ticket) = (0, 0);
    for (name, witness) in &witnesses {
        let ended = server.wait_for_end(&job(&server, name, witness, 1));
        ticket = ticket.max(ended["ticket_bytes"].as_u64().unwrap());
        let memory = server.get("/v1/status").json()["memory"].clone();
        let keys = memory["keys"].as_array().unwrap().iter();
        key = key.max(keys.map(|key| key["bytes"].as_u64().unwrap()).max().unwrap());
    }
    assert!(server.take().terminate().success());
    // Room for the larger key and one partition, and not for both keys.
    let budget = key + ticket;
    server.restart(&[
        "--cpu-devices",
        "1",
        "--threads",
        "1",
        "--memory",
        &budget.to_string(),
    ]);
    let jobs: Vec<String> = (0..6)
        .map(|number| {
            let (name, witness) = &witnesses[number % 2];
            job(&server, name, witness, 1)
        })
        .collect();
    for job in jobs {
        assert_eq!(server.wait_for_end(&job)["state"], "succeeded");
        let memory = server.get("/v1/status").json()["memory"].clone();
        assert!(memory["reserved_bytes"].as_u64().unwrap() <= budget, "{memory}");
        assert!(
            memory["peak_reserved_bytes"].as_u64().unwrap() <= budget,
            "{memory}"
        );
    }
}
