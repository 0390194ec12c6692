//! The status, a page of jobs and a start, with many finished jobs in the store.

use std::time::Instant;

use proofkeep_store::machine::{Command, Reply};
use proofkeep_tests::harness::Daemon;

use crate::latency::statuses;
use crate::store;
use crate::times::Times;

const CALLERS: usize = 64;

/// Fills a store with jobs that were submitted and cancelled, through the same commit path as any, and asks.
pub fn run(jobs: usize) {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let start = Instant::now();
    fill(&data, jobs);
    println!(
        "{jobs} jobs submitted and ended, 2 transitions each, {CALLERS} callers: {:.1} s",
        start.elapsed().as_secs_f64()
    );
    let start = Instant::now();
    let daemon = Daemon::start(&data, &["--max-jobs", &(jobs + 1000).to_string()]);
    println!(
        "a daemon on them: ready after {:.2} s",
        start.elapsed().as_secs_f64()
    );
    let status = daemon.get("/v1/status").expect(200).json();
    println!(
        "  journal {}, log {} MiB",
        status["journal"],
        status["store"]["size_bytes"].as_u64().unwrap_or(0) >> 20
    );
    println!("  status: {}", statuses(&daemon, |count| count == 300));
    let mut pages = Times::default();
    let mut cuzk = Times::default();
    for _ in 0..100 {
        let _ = pages.time(|| daemon.get("/v1/jobs?limit=50")).expect(200);
        let _ = cuzk.time(|| daemon.get("/status")).expect(200);
    }
    println!("  GET /status: {cuzk}");
    println!("  the newest 50 jobs: {pages}");
    let mut filtered = Times::default();
    let answer = filtered
        .time(|| daemon.get("/v1/jobs?state=succeeded&limit=50"))
        .expect(200)
        .json();
    println!(
        "  50 succeeded ones, of which there are none: {filtered}, more to look at: {}",
        !answer["next"].is_null()
    );
    let start = Instant::now();
    let ended = daemon.terminate();
    println!("  ended in {:.2} s ({ended})", start.elapsed().as_secs_f64());
}

fn fill(data: &std::path::Path, jobs: usize) {
    let (_store, handle) = store::open(data);
    std::thread::scope(|scope| {
        for caller in 0..CALLERS {
            let handle = &handle;
            scope.spawn(move || {
                for number in (caller..jobs).step_by(CALLERS) {
                    let reply = handle.commit_blocking(store::submit(number)).unwrap().reply;
                    let Reply::Submitted { job, .. } = reply else {
                        panic!("{reply:?}")
                    };
                    handle
                        .commit_blocking(Command::Cancel {
                            job,
                            actor: "local".to_owned(),
                        })
                        .unwrap();
                }
            });
        }
    });
    handle.commit_blocking(Command::BootClose).unwrap();
    handle.stop();
}
