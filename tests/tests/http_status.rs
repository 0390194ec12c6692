//! What the daemon says of itself, and how it starts and ends.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http_support;

use std::io::Write as _;

use http_support::{JSON, Server, id, problem, products};
use proofkeep_tests::harness::{Daemon, Launch, until, until_some};
use serde_json::{Value, json};

#[test]
fn both_pictures_show_the_same() {
    let server = Server::with_multiplier(&["--cpu-devices", "2,1"]);
    server.finish(&products(&[(3, 11), (5, 7)]));
    let many: Vec<(u32, u32)> = (0..40).map(|number| (number + 2, 3)).collect();
    let job = server.post("/v1/jobs", &products(&many)).expect(202).json();
    // Two answers of one moment carry one journal number.
    let (ours, theirs) = until_some("two answers of one moment", || {
        let (ours, theirs) = (
            server.get("/v1/status").expect(200),
            server.get("/status").expect(200),
        );
        (ours.header("proofkeep-journal") == theirs.header("proofkeep-journal"))
            .then(|| (ours.json(), theirs.json()))
    });
    assert_eq!(theirs["gpu_workers"].as_array().unwrap().len(), 3);
    assert_eq!(theirs["memory"]["total_bytes"], ours["memory"]["budget_bytes"]);
    assert_eq!(theirs["counters"]["total_completed"], 1);
    assert_eq!(ours["counters"]["jobs"]["groth16"]["succeeded"], 1);
    assert!(ours["store"]["last_sync_ms"].is_u64(), "{}", ours["store"]);
    let workers = ours["workers"].as_array().unwrap();
    for (worker, gpu) in workers.iter().zip(theirs["gpu_workers"].as_array().unwrap()) {
        assert_eq!(
            (&worker["id"], &worker["state"]),
            (&gpu["worker_id"], &gpu["state"])
        );
        let (here, there) = (
            worker["job"].as_str(),
            gpu.get("current_job").and_then(Value::as_str),
        );
        assert_eq!(here, there);
    }
    let pipeline = theirs["pipelines"]
        .as_array()
        .unwrap()
        .iter()
        .find(|found| found["job_id"] == job["id"])
        .unwrap();
    assert_eq!(
        (&pipeline["total_partitions"], &pipeline["proof_kind"]),
        (&json!(40), &json!("groth16"))
    );
    let in_flight = ours["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .chain(ours["recent"].as_array().unwrap());
    let drawn = in_flight
        .into_iter()
        .find(|found| found["id"] == job["id"])
        .unwrap();
    assert_eq!(
        (&drawn["circuit"], drawn["partitions"].as_array().unwrap().len()),
        (&json!("multiplier"), 40)
    );
    assert_eq!(
        (
            &ours["boot"]["number"],
            &ours["boot"]["clean"],
            &ours["queue"]["paused"]
        ),
        (&json!(1), &json!(true), &json!(false))
    );
    assert!(ours.get("test_build").is_none());
    server.wait_for_end(id(&job));
}

#[test]
fn it_says_that_it_lives_and_is_ready() {
    let server = Server::start(&[]);
    assert_eq!(
        server.get("/livez").expect(200).json(),
        json!({ "status": "live" })
    );
    assert_eq!(
        server.get("/readyz").expect(200).json(),
        json!({ "status": "ready" })
    );
}

#[test]
fn a_daemon_that_recovers_listens_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    assert!(Daemon::start(&data, &[]).terminate().success());
    // The directory's lock doesn't need that file; opening the store waits for a pipe in its place until somebody writes
    // into it.
    let current = data.join("CURRENT");
    let text = std::fs::read(&current).unwrap();
    std::fs::remove_file(&current).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(&current)
        .status()
        .unwrap();
    assert!(made.success());
    let daemon = Launch::new(&data).try_start().unwrap();
    assert_eq!(
        daemon.get("/livez").expect(200).json(),
        json!({ "status": "starting" })
    );
    for (method, path) in [
        ("GET", "/readyz"),
        ("GET", "/v1/status"),
        ("GET", "/status"),
        ("POST", "/v1/jobs"),
    ] {
        let answer = daemon.send(method, path, &[], None);
        problem(&answer, 503, "starting");
        assert_eq!(answer.header("retry-after"), Some("1"), "{path}");
    }
    // The file is back before the waiting read gets its words; whoever reads it later finds it whole.
    let mut pipe = std::fs::OpenOptions::new().write(true).open(&current).unwrap();
    let whole = data.join("tmp/CURRENT");
    std::fs::write(&whole, &text).unwrap();
    std::fs::rename(&whole, &current).unwrap();
    pipe.write_all(&text).unwrap();
    drop(pipe);
    until("it is ready", || {
        daemon
            .try_send("GET", "/readyz", &[], None)
            .is_some_and(|answer| answer.status == 200)
    });
    assert!(daemon.terminate().success());
}

#[test]
fn sigterm_ends_it_in_good_order_and_nothing_is_lost() {
    let mut server = Server::with_multiplier(&[]);
    let many: Vec<(u32, u32)> = (0..100).map(|number| (number + 2, 3)).collect();
    let job = server.post("/v1/jobs", &products(&many)).expect(202).json();
    let path = format!("/v1/jobs/{}", id(&job));
    let http = server.http();
    let waiting = std::thread::spawn(move || {
        // The wait ends with the daemon, with an answer.
        http.try_send(
            "GET",
            &path,
            &[("prefer", "wait=300"), ("if-none-match", "\"x\"")],
            None,
        )
    });
    let daemon = server.take();
    let status = daemon.terminate();
    assert_eq!(status.code(), Some(0));
    assert!(waiting.join().unwrap().is_some());
    server.restart(&[]);
    let boot = server.get("/v1/status").json()["boot"].clone();
    assert_eq!(
        (&boot["number"], &boot["before"]),
        (&json!(2), &json!("clean")),
        "{boot}"
    );
    assert_eq!(server.wait_for_end(id(&job))["summary"]["proved"], 100);
}

#[test]
fn a_daemon_that_stops_takes_nothing_new_and_a_second_signal_ends_it_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let daemon = Daemon::start(&data, &["--grace", "100s", "--checkpoint-after", "1h"]);
    let zkey = proofkeep_tests::fixtures::read("poseidon2", "circuit.zkey");
    let wasm = proofkeep_tests::fixtures::read("poseidon2", "circuit.wasm");
    daemon.register("poseidon2", &[("zkey", &zkey), ("wasm", &wasm)]);
    // A worker process that is stopped can't reach an edge, so the daemon stays in its grace period.
    let workers = daemon.workers();
    let inputs: Vec<Value> = (0..50)
        .map(|number| json!({ "input": { "inputs": [number, 2] } }))
        .collect();
    let job = daemon
        .post(
            "/v1/jobs",
            &json!({ "kind": "groth16", "circuit": "poseidon2", "inputs": inputs }),
        )
        .expect(202)
        .json();
    until("it proves", || {
        daemon.get(&format!("/v1/jobs/{}", id(&job))).json()["state"] == "running"
    });
    for worker in &workers {
        send_signal(*worker, libc::SIGSTOP);
    }
    daemon.signal(libc::SIGINT);
    until("it takes nothing new", || daemon.get("/readyz").status == 503);
    problem(&daemon.get("/readyz"), 503, "draining");
    problem(
        &daemon.send("POST", "/v1/jobs", &[JSON], Some(b"{}")),
        503,
        "draining",
    );
    assert_eq!(daemon.get("/v1/status").status, 200);
    daemon.signal(libc::SIGINT);
    assert_eq!(daemon.wait().code(), Some(130));
}

#[test]
fn a_second_daemon_on_the_same_directory_is_told_who_has_it() {
    let server = Server::start(&[]);
    let second = Launch::new(&server.directory.path().join("data")).try_start();
    let (status, stderr) = match second {
        Err(failed) => (failed.status, failed.stderr),
        Ok(mut daemon) => until_some("the second daemon ends and says why", || {
            let status = daemon.ended()?;
            Some((status, daemon.stderr())).filter(|(_, stderr)| stderr.contains("has it"))
        }),
    };
    assert_eq!(status.code(), Some(1));
    assert!(
        stderr.contains(&format!("process {} has it", server.pid())),
        "{stderr}"
    );
}

#[test]
fn an_address_that_is_taken_is_named() {
    let server = Server::start(&[]);
    let address = server.url().trim_start_matches("http://").to_owned();
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().display().to_string();
    let ran =
        proofkeep_tests::harness::proofkeep(["serve", "--data-dir", &data, "--listen", &address]).expect(1);
    assert!(
        ran.stderr.contains(&address) && ran.stdout.is_empty(),
        "{}",
        ran.stderr
    );
}

fn send_signal(pid: u32, number: i32) {
    let number = number.to_string();
    let sent = std::process::Command::new("kill")
        .args([format!("-{number}"), pid.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// The usual build has no Filecoin kinds, and says so where their parameters would be.
#[cfg(not(feature = "filecoin"))]
#[test]
fn parameter_files_are_for_builds_with_the_filecoin_kinds() {
    let server = Server::start(&[]);
    for (method, path) in [
        ("GET", "/v1/params"),
        ("GET", "/v1/params/v28-x"),
        ("POST", "/v1/params/v28-x/preload"),
        ("POST", "/v1/params/v28-x/pin"),
    ] {
        let answer = server.send(method, path, &[], None);
        let body = answer.expect(404).json();
        assert_eq!(body["code"], "not-built", "{body}");
        assert!(body["detail"].as_str().unwrap().contains("--features"), "{body}");
    }
}
