//! How a worker process begins and ends.

use std::io::Write as _;

use proofkeep_engine::protocol::{FromWorker, ToWorker, WireToken};
use proofkeep_engine::worker::{EXIT_MEMORY, EXIT_PROTOCOL, EXIT_TAKEN, EXIT_USAGE, lock_path};
use serde_json::json;

use crate::circuits::{circom, fixture};
use crate::daemon::{Daemon, Options, data_directory};
use crate::proofs::work;

crate::tests![
    it_ends_when_the_daemon_ends_and_frees_its_device,
    one_process_holds_a_device,
    a_killed_process_frees_its_device,
    quit_lets_work_end_and_then_exits,
    a_panic_fails_its_task_and_nothing_else,
    a_failed_allocation_exits_with_its_code,
    an_abort_is_a_signal,
    damaged_words_end_it,
    it_is_the_first_to_be_killed_for_memory_and_ignores_a_terminal,
    wrong_arguments_are_refused,
];

fn it_ends_when_the_daemon_ends_and_frees_its_device() {
    let directory = tempfile::tempdir().unwrap();
    data_directory(directory.path());
    for _ in 0..2 {
        let mut daemon = Daemon::spawn(directory.path());
        daemon.welcome(Options::default());
        assert!(daemon.die().success());
    }
}

fn one_process_holds_a_device() {
    let directory = tempfile::tempdir().unwrap();
    data_directory(directory.path());
    let mut first = Daemon::spawn(directory.path());
    first.welcome(Options::default());
    let mut second = Daemon::spawn(directory.path());
    assert_eq!(second.wait().code(), Some(EXIT_TAKEN));
    assert!(first.die().success());
}

fn a_killed_process_frees_its_device() {
    let directory = tempfile::tempdir().unwrap();
    data_directory(directory.path());
    let mut first = Daemon::spawn(directory.path());
    first.welcome(Options::default());
    let holder = std::fs::read_to_string(lock_path(directory.path(), "cpu:0")).unwrap();
    assert!(holder.trim().parse::<u32>().is_ok(), "{holder:?}");
    first.kill();
    let mut second = Daemon::spawn(directory.path());
    second.welcome(Options::default());
    let files = circom(&second, "multiplier");
    let input = json!({"witness": second.put(&fixture("multiplier", "witness.wtns")).to_string()});
    assert!(second.synth(work(1), &files, input).is_ok());
}

fn quit_lets_work_end_and_then_exits() {
    let mut daemon = Daemon::new();
    let files = circom(&daemon, "poseidon2");
    let input = json!({"witness": daemon.put(&fixture("poseidon2", "witness.wtns")).to_string()});
    let ready = daemon.synth(work(1), &files, input).unwrap();
    let token = daemon.ask_prove(work(1), &ready, Vec::new());
    daemon.say(&ToWorker::Quit);
    assert!(daemon.hear_end(token).proof.is_some());
    assert!(daemon.wait().success());
}

fn trial(daemon: &mut Daemon, request: &[u8]) -> WireToken {
    let token = daemon.token();
    daemon.say(&ToWorker::Synth {
        token,
        work: work(1),
        kind: "trial".to_owned(),
        circuit: None,
        request: request.to_vec(),
        ticket_bytes: 0,
        recheck: false,
    });
    token
}

fn a_panic_fails_its_task_and_nothing_else() {
    let mut daemon = Daemon::new();
    for request in [&b"panic"[..], b"panic in a pool"] {
        let token = trial(&mut daemon, request);
        let failure = daemon.hear_synth(token).unwrap_err();
        assert_eq!(
            (failure.class.as_str(), failure.code.as_str()),
            ("device_error", "panic")
        );
        assert!(!failure.detail.contains("secret"), "{}", failure.detail);
        assert!(failure.detail.contains("trial.rs"), "{}", failure.detail);
    }
    let token = trial(&mut daemon, b"nothing");
    assert_eq!(daemon.hear_synth(token).unwrap_err().class, "input_invalid");
}

fn a_failed_allocation_exits_with_its_code() {
    let mut daemon = Daemon::new();
    trial(&mut daemon, b"allocate");
    assert_eq!(daemon.wait().code(), Some(EXIT_MEMORY));
}

fn an_abort_is_a_signal() {
    use std::os::unix::process::ExitStatusExt as _;
    let mut daemon = Daemon::new();
    trial(&mut daemon, b"abort");
    assert_eq!(daemon.wait().signal(), Some(6));
}

fn damaged_words_end_it() {
    for bytes in [
        &b"rubbish that is no frame"[..],
        &[12, 0, 0, 0, 0xb5, 0x6c, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4],
    ] {
        let mut daemon = Daemon::new();
        daemon.socket.write_all(bytes).unwrap();
        assert_eq!(daemon.wait().code(), Some(EXIT_PROTOCOL));
    }
    let directory = tempfile::tempdir().unwrap();
    data_directory(directory.path());
    let mut daemon = Daemon::spawn(directory.path());
    assert!(matches!(daemon.hear(), FromWorker::Hello { .. }));
    daemon.say(&ToWorker::Quit);
    assert_eq!(
        daemon.wait().code(),
        Some(EXIT_PROTOCOL),
        "the first word must be Welcome"
    );
}

fn it_is_the_first_to_be_killed_for_memory_and_ignores_a_terminal() {
    let mut daemon = Daemon::new();
    let holder = std::fs::read_to_string(lock_path(&daemon.data, "cpu:0")).unwrap();
    let process = format!("/proc/{}", holder.trim());
    let score = std::fs::read_to_string(format!("{process}/oom_score_adj")).unwrap();
    assert_eq!(score.trim(), "500");
    let status = std::fs::read_to_string(format!("{process}/status")).unwrap();
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .unwrap();
    let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
    for signal in [2, 15] {
        assert_ne!(ignored & (1 << (signal - 1)), 0, "signal {signal}");
    }
    let token = trial(&mut daemon, b"nothing");
    assert!(daemon.hear_synth(token).is_err());
}

fn wrong_arguments_are_refused() {
    for args in [
        &["worker"][..],
        &["worker", "--device", "cpu:0"],
        &["worker", "--what", "x"],
        &["worker", "--fd", "5"],
    ] {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(args)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(EXIT_USAGE), "{args:?}");
        assert!(!output.stderr.is_empty());
    }
}
