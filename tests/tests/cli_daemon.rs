//! The commands that ask a daemon.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cli_support;

use cli_support::Desk;
use proofkeep_tests::harness::{Daemon, Ran};
use serde_json::Value;

/// A daemon with the circuit `poseidon2`, and a desk with its files.
fn with_poseidon() -> (Desk, Daemon) {
    let desk = Desk::new();
    let daemon = Daemon::start(&desk.path().join("data"), &[]);
    desk.take(
        "poseidon2",
        &["circuit.zkey", "circuit.r1cs", "circuit.wasm", "circuit.sym"],
    );
    desk.take("poseidon2", &["input.json", "witness.wtns", "vkey.json"]);
    let files = "--zkey circuit.zkey --r1cs circuit.r1cs --wasm circuit.wasm --sym circuit.sym";
    let added = desk
        .ask(&daemon, &format!("circuit add poseidon2 {files} --json"))
        .expect(0)
        .json();
    assert_eq!(added["state"], "ready");
    (desk, daemon)
}

/// What was on stdout, a value a line.
fn lines(ran: &Ran) -> Vec<Value> {
    ran.stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn one_command_proves_an_input_or_a_witness_and_the_proof_verifies() {
    let (desk, daemon) = with_poseidon();
    for input in ["input.json", "witness.wtns"] {
        let ran = desk
            .ask(&daemon, &format!("prove poseidon2 {input} --json"))
            .expect(0);
        assert!(ran.json()["job"].is_string());
        desk.run("verify vkey.json public.json proof.json").expect(0);
        let ran = desk
            .ask(&daemon, "verify --circuit poseidon2 public.json proof.json")
            .expect(0);
        assert_eq!(ran.stdout, "valid\n");
    }
    desk.write("other.json", br#"["7"]"#);
    let ran = desk
        .ask(&daemon, "verify --circuit poseidon2 other.json proof.json")
        .expect(1);
    assert!(ran.stdout.starts_with("invalid: "), "{}", ran.stdout);
}

#[test]
fn a_job_of_several_inputs_is_submitted_waited_for_listed_shown_and_fetched() {
    let (desk, daemon) = with_poseidon();
    let line = "submit poseidon2 --input input.json --input witness.wtns --label order=7 --priority high";
    let id = desk.ask(&daemon, line).expect(0).stdout.trim().to_owned();
    let shown = desk
        .ask(&daemon, &format!("wait {id} --timeout 5m --json"))
        .expect(0)
        .json();
    assert_eq!(shown["state"], "succeeded");
    assert_eq!(shown["summary"]["proved"], 2);

    let listed = lines(
        &desk
            .ask(&daemon, "ls --label order=7 --state succeeded --json")
            .expect(0),
    );
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["id"], id.as_str());
    assert!(lines(&desk.ask(&daemon, "ls --label order=8 --json").expect(0)).is_empty());
    let text = desk.ask(&daemon, &format!("show {id}")).expect(0).stdout;
    assert!(
        text.contains("2 of 2 proved") && text.contains("attempt 1"),
        "{text}"
    );
    let events = lines(&desk.ask(&daemon, &format!("events {id} --json")).expect(0));
    assert_eq!(events.first().unwrap()["event"], "submitted");
    assert_eq!(events.last().unwrap()["event"], "ended");

    desk.ask(&daemon, &format!("proof {id} --out proofs")).expect(0);
    for partition in ["0", "1"] {
        let (public, proof) = (
            format!("proofs/public_{partition}.json"),
            format!("proofs/proof_{partition}.json"),
        );
        desk.run(&format!("verify vkey.json {public} {proof}")).expect(0);
    }
    let hex = desk
        .ask(&daemon, &format!("proof {id} --partition 1 --format hex"))
        .expect(0)
        .stdout;
    assert_eq!(hex.trim().len(), 384, "{hex}");
    let public = desk
        .ask(&daemon, &format!("proof {id} --partition 0 --public"))
        .expect(0)
        .json();
    assert_eq!(public.as_array().unwrap().len(), 1);
    let status = desk.ask(&daemon, "status").expect(0).stdout;
    assert!(status.contains("boot 1"), "{status}");
}

#[test]
fn the_same_key_and_inputs_are_one_job() {
    let (desk, daemon) = with_poseidon();
    let submit = |file: &str| {
        desk.ask(
            &daemon,
            &format!("submit poseidon2 --input {file} --idempotency-key k --wait --json"),
        )
    };
    let first = submit("input.json").expect(0).json();
    let again = submit("input.json").expect(0).json();
    assert_eq!(first["id"], again["id"]);
    let other = submit("witness.wtns").expect(1);
    assert!(other.stderr.contains("idempotency-mismatch"), "{}", other.stderr);
}

#[test]
fn a_wait_that_is_too_short_is_exit_code_4_and_a_cancelled_job_3() {
    let desk = Desk::new();
    let daemon = Daemon::start(&desk.path().join("data"), &[]);
    desk.take("sha256_rounds16", &["circuit.r1cs", "witness.wtns"]);
    desk.run("circuit setup circuit.r1cs circuit.zkey --insecure --seed s")
        .expect(0);
    let ran = desk
        .ask(&daemon, "circuit add rounds --zkey circuit.zkey")
        .expect(0);
    assert!(ran.stderr.contains("forge"), "{}", ran.stderr);
    let inputs = " --input witness.wtns".repeat(200);
    let id = desk
        .ask(&daemon, &format!("submit rounds{inputs}"))
        .expect(0)
        .stdout
        .trim()
        .to_owned();
    let ran = desk.ask(&daemon, &format!("wait {id} --timeout 1ms")).expect(4);
    assert!(ran.stderr.contains("it goes on"), "{}", ran.stderr);
    desk.ask(&daemon, &format!("cancel {id}")).expect(0);
    let shown = desk.ask(&daemon, &format!("wait {id} --json")).expect(3).json();
    assert_eq!(shown["state"], "cancelled");
    let retried = desk.ask(&daemon, &format!("retry {id} --json")).expect(0).json();
    assert_eq!(retried["generation"], 2);
    desk.ask(&daemon, &format!("cancel {id}")).expect(0);
    desk.ask(&daemon, &format!("wait {id}")).expect(3);
    desk.ask(&daemon, "circuit rm rounds").expect(0);
    assert!(lines(&desk.ask(&daemon, "circuit ls --json").expect(0)).is_empty());
}

#[test]
fn what_the_daemon_refuses_is_one_sentence_with_its_code() {
    let (desk, daemon) = with_poseidon();
    for (line, code) in [
        ("show 01890000-0000-7000-8000-000000000000", "unknown-job"),
        ("circuit show nothing", "unknown-circuit"),
        ("submit nothing --input witness.wtns", "unknown-circuit"),
        ("submit poseidon2 --input vkey.json --wait", "signal-unknown"),
    ] {
        let ran = desk.ask(&daemon, line).expect(1);
        assert!(ran.stderr.contains(code), "{line}: {}", ran.stderr);
    }
}

#[test]
fn a_wait_goes_on_over_a_kill_and_a_restart_of_the_daemon() {
    let (desk, daemon) = with_poseidon();
    let address = daemon.url().trim_start_matches("http://").to_owned();
    let inputs = " --input input.json".repeat(40);
    let id = desk
        .ask(&daemon, &format!("submit poseidon2{inputs}"))
        .expect(0)
        .stdout
        .trim()
        .to_owned();
    let url = daemon.url().to_owned();
    let mut command = proofkeep_tests::harness::command(["wait", &id, "--json", "--server", &url]);
    let waiting = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    // It must have been answered once before the daemon goes away.
    proofkeep_tests::harness::until("a partition is proved", || {
        daemon.get(&format!("/v1/jobs/{id}")).json()["summary"]["proved"] != 0
    });
    daemon.kill();
    let daemon = Daemon::start(&desk.path().join("data"), &["--listen", &address]);
    let ran = Ran::from(waiting.wait_with_output().unwrap()).expect(0);
    assert_eq!(ran.json()["summary"]["proved"], 40);
    drop(daemon);
}
