//! How fast it is. Prints, never asserts: a timing is no test. `tests/bench/run.sh` builds what it needs and runs it.
//!
//! | variable | what | default |
//! | --- | --- | --- |
//! | `PROOFKEEP_BENCH_LOG2` | domain of the proof that is measured | 15 |
//! | `PROOFKEEP_BENCH_JOBS` | finished jobs in the store while the status is asked | 2000 |
//! | `PROOFKEEP_BENCH_ROUNDS` | proofs of each kind | 3 |
//! | `PROOFKEEP_BENCH_QUEUE` | partitions of the job that is held against calls of bellperson | 4 |
//! | `PROOFKEEP_BENCH_ONLY` | parts to run, such as `store,status` | all |
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod chain;
mod finished;
mod latency;
mod proof;
mod scaling;
mod store;
mod times;

/// A number from the environment.
fn number(name: &str, default: usize) -> usize {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

fn main() {
    let only = std::env::var("PROOFKEEP_BENCH_ONLY").unwrap_or_default();
    let wanted = |part: &str| only.is_empty() || only.split(',').any(|found| found.trim() == part);
    let log2 = number("PROOFKEEP_BENCH_LOG2", 15);
    let rounds = number("PROOFKEEP_BENCH_ROUNDS", 3).max(1);
    println!("{}", proofkeep_tests::machine::description());
    if wanted("store") {
        store::run();
    }
    if wanted("submit") {
        latency::submits();
    }
    if wanted("proof") {
        proof::run(log2, rounds);
    }
    if wanted("scaling") {
        scaling::run(log2, rounds, number("PROOFKEEP_BENCH_QUEUE", 4).max(1));
    }
    if wanted("status") {
        finished::run(number("PROOFKEEP_BENCH_JOBS", 2000));
    }
    println!("load at the end: {}", proofkeep_tests::machine::load());
}
