//! The disk refuses something, memory or descriptors run out, a thread panics: a refused request or a stopped daemon with
//! one clear sentence, and nothing lost afterwards.
//!
//! ```text
//! cargo test --release -p proofkeep-tests --test crash_faults -- --nocapture
//! PROOFKEEP_FAULTS=all cargo test --release -p proofkeep-tests --test crash_faults -- --nocapture
//! ```
//! A small but complete life of the real daemon is lived while the k-th write, sync, rename, open, unlink or `mkdir` in
//! its directory fails, in the daemon or in its worker process (a preloaded library does it; the product has no hook for
//! it). Then the directory is opened without the fault: all that was acknowledged is there, every job ends as it should,
//! `fsck` finds nothing. No sync that failed was tried again.
//!
//! `PROOFKEEP_FAULTS` is how many such lives there are (60 without it; at least 20): each kind of operation at each kind
//! of place comes first. `all` is every k with every failure. `PROOFKEEP_SEED` repeats a run.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod client;
mod life;
mod limits;
mod scene;
mod spawns;
mod sweep;

use std::time::Instant;

use proofkeep_tests::probe;
use proofkeep_tests::report::Report;
use proofkeep_tests::setting;
use proofkeep_tests::shim::{Fault, Role};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use scene::{End, Template};
use sweep::LATE_MS;

/// sled's log.
const LOG: &str = "store.1/db";

#[test]
fn nothing_is_lost_when_the_disk_refuses() {
    if probe::answer_if_asked() {
        return;
    }
    let seed = setting::seed();
    let all = std::env::var("PROOFKEEP_FAULTS").is_ok_and(|text| text == "all");
    let count: usize = if all {
        usize::MAX
    } else {
        setting::number("PROOFKEEP_FAULTS").unwrap_or(60)
    };
    assert!(
        count >= 20,
        "PROOFKEEP_FAULTS must be all or at least 20, found {count}"
    );
    eprintln!(
        "PROOFKEEP_FAULTS={} PROOFKEEP_SEED={seed}",
        if all { "all".to_owned() } else { count.to_string() }
    );
    let started = Instant::now();
    let template = Template::new();
    let table = if all {
        sweep::every(&template)
    } else {
        sweep::sample(&template, count, &mut ChaCha8Rng::seed_from_u64(seed))
    };
    eprintln!("\n{table}\nin {:.0?}", started.elapsed());
    assert!(table.wrong.is_empty(), "{}", table.wrong.join("\n\n"));
    // A run that meets no faults proves nothing.
    let hit = table.cases - table.missed;
    assert!(
        hit * 4 >= table.cases * 3,
        "only {hit} of {} faults were met",
        table.cases
    );
    Report::new("faults", seed)
        .count("faults", hit)
        .count("went on", table.ends(End::WentOn))
        .count("stopped with 70", table.ends(End::Stopped))
        .count("not started", table.ends(End::NotStarted))
        .publish();
}

/// sled tells nobody that the log of a batch failed: who waited for it by then waited for ever, with the commit lock.
#[test]
fn a_sync_that_fails_late_stops_the_daemon_too() {
    let seed = setting::seed();
    eprintln!("PROOFKEEP_SEED={seed}");
    let template = Template::new();
    let [daemon, _] = template.operations(&["sync"]);
    let syncs = daemon.iter().filter(|one| one.path.ends_with(LOG)).count() as u64;
    // The first ones are the opening's. Six in a row: of the log of a batch, of what follows it, and the last of a group.
    let from = ChaCha8Rng::seed_from_u64(seed).gen_range(syncs / 4..syncs / 2);
    for at in from..from + 6 {
        let outcome = template.run(&Fault {
            matching: Some(LOG.to_owned()),
            role: Some(Role::Daemon),
            late_ms: LATE_MS,
            ..Fault::once("", "sync", at)
        });
        assert!(outcome.wrong.is_empty(), "{at}: {}", outcome.wrong.join("\n\n"));
        assert!(outcome.hit.is_some(), "there was no sync {at} of {syncs}");
        assert_eq!(outcome.end, End::Stopped, "sync {at}");
    }
}
