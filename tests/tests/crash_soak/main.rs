//! Everything at once, for long: jobs of both kinds, kills of daemon and workers, stops, cancels, retries, uploads cut
//! off, clients that don't read.
//!
//! ```text
//! PROOFKEEP_SOAK_SECS=7200 cargo test --release -p proofkeep-tests --test crash_soak -- --nocapture
//! ```
//! `PROOFKEEP_SOAK_SECS` is how long (120 without it, and at least 30); `PROOFKEEP_SEED` repeats the choices, if not their
//! moments. In the first half the daemon dies and starts again all the time, and a copy of what it left is checked each
//! time: `fsck`, and every answer that a caller had. In the second half only workers die, so that what the daemon itself
//! gathers would show. Every second is written to `soak.csv` and drawn in `soak.svg`, in the directory that
//! `PROOFKEEP_REPORT_DIR` names or else in the build's directory for temporary files.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bounds;
mod client;
mod control;
mod sample;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use proofkeep_store::fsck::{Mode, fsck};
use proofkeep_store::{Options, Store};
use proofkeep_tests::harness::{Daemon, Http, Launch, kill_process};
use proofkeep_tests::kill::copy;
use proofkeep_tests::ledger::{Ledger, Said};
use proofkeep_tests::report::Report;
use proofkeep_tests::setting;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Ended jobs that are kept.
pub(crate) const KEPT: u64 = 50;
const CLIENTS: u64 = 3;

/// What clients, sampler and the one who kills share.
pub(crate) struct Shared {
    pub ledger: Ledger,
    /// How to reach the daemon and which process it is; `None` while there is none.
    pub daemon: Mutex<Option<(Http, u32)>>,
    pub over: AtomicBool,
    pub root: PathBuf,
    pub did: Did,
}

/// How often clients did something.
#[derive(Default)]
pub(crate) struct Did {
    pub submitted: AtomicU64,
    pub cancelled: AtomicU64,
    pub retried: AtomicU64,
    pub uploads: AtomicU64,
    pub cut_off: AtomicU64,
    pub slow: AtomicU64,
}

impl Shared {
    pub fn data(&self) -> PathBuf {
        self.root.join("data")
    }

    pub fn reach(&self) -> Option<(Http, u32)> {
        self.daemon.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn start(&self) -> Daemon {
        let kept = KEPT.to_string();
        let slots = [
            "--cpu-devices",
            "2",
            "--threads",
            "1",
            "--memory",
            "8GiB",
            "--max-jobs",
            &kept,
        ];
        let daemon = Launch::test_build(&self.data())
            .args(slots)
            .args(["--grace", "5s"])
            .start();
        *self.daemon.lock().unwrap_or_else(PoisonError::into_inner) = Some((daemon.http(), daemon.pid()));
        daemon
    }

    /// Checks a copy of what the daemon left; it has ended.
    fn check(&self, when: &str) {
        *self.daemon.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let scratch = self.root.join("copy");
        if scratch.exists() {
            std::fs::remove_dir_all(&scratch).unwrap();
        }
        copy(&self.data(), &scratch).unwrap();
        let store = open(&scratch);
        let object_ok = |digest| store.objects().verify(digest).is_ok();
        let report = store
            .read(|view| fsck(view, Mode::Full, Some(&object_ok)))
            .unwrap();
        let mut wrong: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        wrong.extend(self.ledger.losses(&store).unwrap());
        assert!(wrong.is_empty(), "{when}:\n{}", wrong.join("\n"));
    }
}

pub(crate) fn open(data: &Path) -> Store {
    let options = Options {
        create: false,
        ..Options::default()
    };
    Store::open(data, &options).unwrap()
}

/// How often who was killed.
#[derive(Default)]
struct Kills {
    daemons: u64,
    workers: u64,
    stops: u64,
}

/// Lets time pass; what is waited for is the time itself.
pub(crate) fn pass(time: Duration, over: &AtomicBool) {
    let end = Instant::now() + time;
    while Instant::now() < end && !over.load(Ordering::Acquire) {
        std::thread::park_timeout(Duration::from_millis(20).min(end - Instant::now()));
    }
}

#[test]
fn a_long_mixed_load_loses_nothing_and_grows_nowhere() {
    let seconds: u64 = setting::number("PROOFKEEP_SOAK_SECS").unwrap_or(120).max(30);
    let seed = setting::seed();
    eprintln!("PROOFKEEP_SOAK_SECS={seconds} PROOFKEEP_SEED={seed}");
    let root = tempfile::tempdir().unwrap();
    let shared = Shared {
        ledger: Ledger::of_a_store_that_prunes(),
        daemon: Mutex::default(),
        over: AtomicBool::new(false),
        root: root.path().to_owned(),
        did: Did::default(),
    };
    let time = Duration::from_secs(seconds);
    let started = Instant::now();
    let first = shared.start();
    client::prepare(&first, &shared);
    let mut kills = Kills::default();
    let (samples, daemon) = std::thread::scope(|scope| {
        let mut daemon = first;
        let sampler = scope.spawn(|| sample::run(&shared, started));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (shared, seed) = (&shared, seed.wrapping_add(number + 1));
                scope.spawn(move || client::run(shared, ChaCha8Rng::seed_from_u64(seed)))
            })
            .collect();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let stop = StopAll(&shared.over);
        while started.elapsed() < time {
            let calm = started.elapsed() > time / 2;
            let pause = if calm { 3000..9000 } else { 1000..5000 };
            pass(
                Duration::from_millis(rng.gen_range(pause)).min(time.saturating_sub(started.elapsed())),
                &shared.over,
            );
            assert!(
                clients.iter().all(|client| !client.is_finished()),
                "a client has ended: see above"
            );
            match rng.gen_range(0..100) {
                0..30 if !calm => {
                    drop(daemon.kill());
                    kills.daemons += 1;
                    shared.check("after kill -9");
                    daemon = shared.start();
                }
                30..45 if !calm => {
                    assert!(daemon.terminate().success());
                    kills.stops += 1;
                    shared.check("after a stop");
                    daemon = shared.start();
                }
                _ => {
                    if let Some(worker) = daemon.workers().first() {
                        kill_process(*worker);
                        kills.workers += 1;
                    }
                }
            }
        }
        drop(stop);
        for client in clients {
            client.join().unwrap();
        }
        (sampler.join().unwrap(), daemon)
    });
    samples.write(&directory());
    end(&shared, daemon);
    let jobs = samples.jobs_ended();
    bounds::check(&samples);
    let did = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let report = Report::new("soak", seed)
        .count("jobs ended", jobs)
        .count("seconds", started.elapsed().as_secs())
        .count("jobs submitted", did(&shared.did.submitted))
        .count("cancels", did(&shared.did.cancelled))
        .count("retries", did(&shared.did.retried))
        .count("uploads", did(&shared.did.uploads))
        .count("uploads cut off", did(&shared.did.cut_off))
        .count("clients that did not read", did(&shared.did.slow))
        .count("daemons killed", kills.daemons)
        .count("daemons stopped", kills.stops)
        .count("workers killed", kills.workers);
    bounds::add(&samples, report).publish();
}

/// Ends the others also when this thread fails.
struct StopAll<'a>(&'a AtomicBool);

impl Drop for StopAll<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn directory() -> PathBuf {
    match std::env::var_os("PROOFKEEP_REPORT_DIR").filter(|name| !name.is_empty()) {
        Some(directory) => directory.into(),
        None => env!("CARGO_TARGET_TMPDIR").into(),
    }
}

/// All jobs end as they may; after a last start nothing is left over.
fn end(shared: &Shared, daemon: Daemon) {
    for (id, ends) in shared.ledger.jobs() {
        let id = id.to_string();
        if daemon.get(&format!("/v1/jobs/{id}")).status != 200 {
            // It was forgotten; the check below knows that it was there.
            continue;
        }
        let job = daemon.wait_for_end(&id);
        Ledger::told_of(&job)
            .into_iter()
            .for_each(|said| shared.ledger.note(said));
        let state = job["state"].as_str().unwrap();
        assert!(
            ends.contains(&state),
            "it should have ended as one of {ends:?}: {job}"
        );
    }
    assert!(daemon.terminate().success());
    shared.check("at the end");
    assert!(shared.start().terminate().success());
    shared.check("after the last start");
    bounds::leftovers(shared);
    let said = |said: &Said| matches!(said, Said::Job { .. });
    assert!(shared.ledger.said_of_jobs().iter().any(said), "nothing was done");
}
