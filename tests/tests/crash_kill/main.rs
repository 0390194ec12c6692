//! `kill -9`, of the daemon and of its worker processes: while it opens, recovers, imports, proves, verifies, closes.
//!
//! ```text
//! cargo nextest run --cargo-profile release -p proofkeep-tests --test crash_kill --no-capture
//! PROOFKEEP_KILLS=300 cargo test --release -p proofkeep-tests --test crash_kill -- --nocapture
//! PROOFKEEP_KILL_EVERY=1 cargo test --release -p proofkeep-tests --test crash_kill -- --nocapture
//! ```
//! `PROOFKEEP_KILLS` is how many there are at least (100 without it); `PROOFKEEP_SEED` repeats a run, whose seed is
//! printed and else follows from the commit. The test keeps its own ledger of every answer that it got. After each kill
//! it opens a copy of the directory and looks: `fsck` is clean, which replays every journal; nothing that was answered
//! is lost; no attempt is missing or rewritten; what was proved is still proved by the same bytes. In the end all jobs
//! have ended as they should, and their proofs verify.
//!
//! Half of the kills come at the k-th durable operation of a small job (a preloaded library counts them; the product
//! has no hook for it), the other half at random moments or at one that was aimed at, under load. Both the released
//! binary with real circuits and the test build with the scripted kind are killed.
//!
//! With so many kills not each operation of the small job has its turn. `PROOFKEEP_KILL_EVERY=1` runs something else
//! instead: a kill at every single one of them, for both kinds (`=scripted` or `=groth16` for one of them).
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod client;
mod every;
mod real;
mod scene;
mod scripted;
mod storm;
mod sweep;

use std::time::Instant;

use proofkeep_tests::kill::{Hits, Row};
use proofkeep_tests::report::Report;
use proofkeep_tests::setting;
use proofkeep_tests::shim::When;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

#[test]
fn nothing_is_lost_by_kills_of_daemon_and_workers() {
    if let Ok(kind) = std::env::var("PROOFKEEP_KILL_EVERY") {
        return every_operation(&kind);
    }
    let kills: u32 = setting::number("PROOFKEEP_KILLS").unwrap_or(100);
    let seed = setting::seed();
    eprintln!("PROOFKEEP_KILLS={kills} PROOFKEEP_SEED={seed}");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut total = Hits::default();
    let started = Instant::now();
    let mut part = |name: &str, hits: Hits| {
        eprintln!("{name}: {} kills, after {:.0?}", hits.kills(), started.elapsed());
        total.add(&hits);
        total.kills()
    };
    part(
        "each operation, scripted",
        sweep::run(&scripted::Scripted, kills * 3 / 10, &mut rng),
    );
    part(
        "each operation, groth16",
        sweep::run(&real::Real, kills * 2 / 10, &mut rng),
    );
    let done = part(
        "under load, groth16",
        storm::run(&real::Real, kills * 2 / 10, &mut rng),
    );
    part(
        "under load, scripted",
        storm::run(&scripted::Scripted, kills.saturating_sub(done), &mut rng),
    );
    eprintln!("\n{total}\nin {:.0?}", started.elapsed());
    assert!(total.kills() >= kills);
    // A full run hits each state ten times; a short one in proportion, and each at least once.
    let floor = (kills / 30).clamp(1, 10);
    let missing = total.missing(&Row::wanted(), floor);
    assert!(missing.is_empty(), "hit too rarely: {missing:?}");
    // A loss or a job that ends otherwise than it should has ended the test before this.
    total
        .rows()
        .fold(
            Report::new("kills", seed).count("kills", total.kills().into()),
            |report, (row, hits)| report.count(&row.to_string(), hits.into()),
        )
        .publish();
}

/// The mode by hand: no operation of a small job is left out.
fn every_operation(kind: &str) {
    let kinds: [(&str, &dyn scene::Workload); 2] =
        [("scripted", &scripted::Scripted), ("groth16", &real::Real)];
    assert!(
        kind == "1" || kinds.iter().any(|(name, _)| *name == kind),
        "PROOFKEEP_KILL_EVERY must be 1, scripted or groth16, found {kind:?}"
    );
    let started = Instant::now();
    for (name, workload) in kinds.into_iter().filter(|(name, _)| ["1", *name].contains(&kind)) {
        for (moment, when) in [("before", When::Before), ("after", When::After)] {
            let covered = every::run(workload, when);
            eprintln!(
                "\n{name}, {moment} each operation, after {:.0?}: {covered}",
                started.elapsed()
            );
        }
    }
}
