//! The real binary under a harness: started on a directory, asked over HTTP, killed, stopped, started again.
//!
//! ```no_run
//! use proofkeep_tests::harness::Daemon;
//! # fn main() {
//! # let directory = std::path::Path::new("data");
//! let daemon = Daemon::start(directory, &["--cpu-devices", "1"]);
//! let status = daemon.get("/v1/status");
//! assert_eq!(status.status, 200);
//! daemon.kill();
//! let daemon = Daemon::start(directory, &[]);
//! assert!(daemon.terminate().success());
//! # }
//! ```
//!
//! Everything here panics when it can't go on, with what the daemon wrote on stderr: it is used by tests only.

mod command;
mod daemon;
mod http;
mod launch;
mod processes;
mod wait;

pub use command::{Ran, command, proofkeep, run, run_in};
pub use daemon::Daemon;
pub use http::{Answer, Http, sha256_name};
pub use launch::Launch;
pub use processes::{children, is_alive, kill_process, signal, workers};
pub use wait::{PATIENCE, until, until_some, until_some_within};

use std::path::PathBuf;

/// The released binary, built beside the running test, or what `PROOFKEEP_BIN` names.
///
/// # Panics
/// When it isn't there: tests of this crate don't build it by themselves.
#[must_use]
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("PROOFKEEP_BIN") {
        return path.into();
    }
    beside_the_test("proofkeep")
}

/// The test build with the scripted kind (`tests/src/bin/proofkeep-test.rs`).
///
/// # Panics
/// When it isn't there.
#[must_use]
pub fn test_binary() -> PathBuf {
    beside_the_test("proofkeep-test")
}

/// What looks at directories that a crash left (`tests/src/bin/proofkeep-judge.rs`).
///
/// # Panics
/// When it isn't there.
#[must_use]
pub fn judge_binary() -> PathBuf {
    beside_the_test("proofkeep-judge")
}

fn beside_the_test(name: &str) -> PathBuf {
    // target/release/deps/some_test-0123 → target/release/name
    let test =
        std::env::current_exe().unwrap_or_else(|error| panic!("the test doesn't know its own path: {error}"));
    let path = test
        .parent()
        .and_then(|deps| deps.parent())
        .map(|target| target.join(name))
        .unwrap_or_default();
    assert!(
        path.is_file(),
        "{} is not there; build it first: cargo build --release --workspace --bins",
        path.display()
    );
    path
}
