//! A disk that refuses ends the process before anything is answered that isn't stored.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod io_support;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command as Process, Output};

use io_support::{boot, open, submit, submitted};
use proofkeep_store::format::SEGMENT_SIZE;
use proofkeep_store::machine::Command;
use proofkeep_store::records::Job;
use proofkeep_store::view::records;
use proofkeep_store::{EXIT_STORE, keys};
use rustix::process::{Resource, Rlimit, setrlimit};

const DATA: &str = "PROOFKEEP_TEST_DATA";

/// Runs the named test of this binary again, as a process that isn't killed when it writes past its limit.
fn run_again(test: &str, data: &Path) -> Output {
    Process::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" --exact \"$1\" --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(DATA, data)
        .output()
        .unwrap()
}

/// What the child does: commits jobs for ever and says which were acknowledged.
fn commit_until_the_end(data: &Path) -> ! {
    let store = open(data);
    let handle = boot(&store);
    // Some of a second segment is left.
    let bytes = Some(SEGMENT_SIZE + (1 << 20));
    setrlimit(
        Resource::Fsize,
        Rlimit {
            current: bytes,
            maximum: bytes,
        },
    )
    .unwrap();
    loop {
        let job = submitted(handle.commit_blocking(Command::Submit(submit(64))));
        let mut out = std::io::stderr();
        writeln!(out, "acknowledged {job}").unwrap();
    }
}

#[test]
fn a_refused_write_ends_the_process_and_loses_nothing_acknowledged() {
    if let Some(data) = std::env::var_os(DATA) {
        commit_until_the_end(Path::new(&data));
    }
    let data = tempfile::tempdir().unwrap();
    drop(open(data.path()));
    let output = run_again(
        "a_refused_write_ends_the_process_and_loses_nothing_acknowledged",
        data.path(),
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(EXIT_STORE), "{said}");
    assert!(said.contains("everything acknowledged is kept"), "{said}");
    let acknowledged: Vec<u64> = said
        .lines()
        .filter_map(|line| line.strip_prefix("acknowledged ")?.parse().ok())
        .collect();
    assert!(acknowledged.len() > 3, "{said}");
    assert_eq!(acknowledged, (1..=acknowledged.len() as u64).collect::<Vec<_>>());

    let store = open(data.path());
    let jobs: Vec<Job> = store
        .read(|view| records(view, &keys::family(keys::Family::Job)))
        .unwrap();
    let kept: Vec<u64> = jobs.iter().map(|job| job.number.0).collect();
    assert!(
        kept.starts_with(&acknowledged),
        "acknowledged {acknowledged:?}, kept {kept:?}"
    );
    let handle = boot(&store);
    submitted(handle.commit_blocking(Command::Submit(submit(1))));
}

#[test]
fn a_panic_of_what_is_vital_ends_the_process_with_one_sentence() {
    if std::env::var_os(DATA).is_some() {
        // In a thread of its own, as in a daemon: only the process's end is noticed.
        let thread =
            std::thread::spawn(|| proofkeep_store::vital("the thread of this test", || panic!("at once")));
        let _ = thread.join();
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let output = run_again(
        "a_panic_of_what_is_vital_ends_the_process_with_one_sentence",
        data.path(),
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(EXIT_STORE), "{said}");
    let last = said.lines().next_back().unwrap();
    assert!(
        last.starts_with("proofkeep: the thread of this test panicked; stopping"),
        "{said}"
    );
    assert!(
        last.contains("report it") && last.contains("start again"),
        "{said}"
    );
}

/// sled's pool loses what it was about to write when one of its threads panics, and tells nobody.
#[test]
fn a_panic_of_a_thread_of_sleds_ends_the_process_with_one_sentence() {
    if let Some(data) = std::env::var_os(DATA) {
        let store = open(Path::new(&data));
        let _handle = boot(&store);
        let thread = std::thread::Builder::new().name("sled-io-9".to_owned());
        let _ = thread.spawn(|| panic!("at once")).unwrap().join();
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let output = run_again(
        "a_panic_of_a_thread_of_sleds_ends_the_process_with_one_sentence",
        data.path(),
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(EXIT_STORE), "{said}");
    let last = said.lines().next_back().unwrap();
    assert!(
        last.contains("a thread of sled's panicked") && last.contains("start again"),
        "{said}"
    );
}
