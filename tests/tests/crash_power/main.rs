//! Power cuts: a real daemon's run is recorded, write by write, and cut at many points. From each cut a directory is
//! rebuilt as the disk may hold it then; it must open, be clean, and hold everything that callers had been told.
//!
//! ```text
//! cargo nextest run --cargo-profile release -p proofkeep-tests --test crash_power --no-capture
//! PROOFKEEP_CUTS=1000 PROOFKEEP_SEED=7 cargo test --release -p proofkeep-tests --test crash_power -- --nocapture
//! ```
//! `PROOFKEEP_CUTS` is how many images there are at least (200 without it). That the test can fail is shown by the same
//! run on a disk that ignores the daemon's syncs of the log: there answers must be lost.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod judge;
mod log;
mod session;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use proofkeep_tests::harness::Launch;
use proofkeep_tests::kill::copy;
use proofkeep_tests::powercut::{Change, Disk, Model, Recording};

/// sled's segment, the most log that there may be between two syncs.
const SEGMENT: u64 = 8 << 20;
/// Changes of a start until its boot is durable.
const OPENING: usize = 24;
/// The log, below the data directory.
const LOG_PATH: &str = "store.1/db";

#[test]
fn nothing_acknowledged_is_lost_when_the_power_goes() {
    let cuts: usize = number("PROOFKEEP_CUTS").unwrap_or(200);
    let seed = number("PROOFKEEP_SEED").unwrap_or(1);
    eprintln!("PROOFKEEP_CUTS={cuts} PROOFKEEP_SEED={seed}");
    let started = Instant::now();
    let root = tempfile::tempdir().unwrap();
    let recorded = session::record(root.path());
    let recording = Recording::read(&recorded.log).unwrap();
    let entries = recording.entries().len();
    let acknowledged = recording.acknowledged(entries).count();
    eprintln!(
        "{recorded}\n{entries} changes, {acknowledged} answers, recorded in {:.0?}",
        started.elapsed()
    );

    let mut disk = Disk::empty();
    let mut tried: BTreeMap<&str, u32> = BTreeMap::new();
    let mut places: BTreeSet<usize> = recording.cuts(cuts, seed).into_iter().collect();
    assert!(
        places.len() >= cuts,
        "the recording has only {} places to cut",
        places.len()
    );
    // What a start does to the log that a kill left, unsynced as it is, is cut after each change.
    let starts = (0..entries).filter(|at| matches!(recording.entries()[*at].change, Change::Start { .. }));
    places.extend(starts.skip(1).flat_map(|at| at..at + OPENING));
    let image = root.path().join("image");
    for (i, cut) in places.into_iter().enumerate() {
        disk.advance(&recording, cut).unwrap();
        let (name, model) = model(i, seed);
        disk.image(&recording, model, &image).unwrap();
        let wrong = judge::image(&image, &recording, cut);
        assert!(
            wrong.is_empty(),
            "cut at {cut} of {entries}, {model:?}:\n{}",
            wrong.join("\n")
        );
        if i % 40 == 39 {
            // The real daemon starts on it too, goes on with what is there, and stops in good order.
            let daemon = Launch::test_build(&image)
                .args(["--cpu-devices", "2", "--grace", "2s"])
                .start();
            assert!(daemon.terminate().success());
        }
        std::fs::remove_dir_all(&image).unwrap();
        *tried.entry(name).or_default() += 1;
    }
    let peak = log::peak(&recording);
    eprintln!("images: {tried:?}; {peak}; after {:.0?}", started.elapsed());
    assert!(peak.bytes < SEGMENT, "{peak}, and a segment has {SEGMENT}");
    // Worker processes aren't recorded; all that they write are the locks of their devices.
    let daemons = root.path().join("daemons");
    copy(&recorded.data, &daemons).unwrap();
    std::fs::remove_dir_all(daemons.join("run")).unwrap();
    std::fs::create_dir(daemons.join("run")).unwrap();
    disk.agrees_with(&recording, &daemons).unwrap();

    let (reused, segments) = log::segments(&recording);
    eprintln!("the log has {segments} segments, {reused} of them were written again");
    assert!(
        reused > 0,
        "no segment was used again, so this run shows too little"
    );

    // The other way round: without the daemon's syncs of the log, answers are lost.
    let lost = judge::without_syncs(&recorded.log, root.path());
    eprintln!("on a disk that ignores syncs of the log: {lost}");
}

/// Each cut gets another model.
fn model(i: usize, seed: u64) -> (&'static str, Model) {
    match i % 6 {
        0 | 3 => ("strict", Model::Strict),
        1 | 4 => (
            "reordered",
            Model::Reordered {
                seed: seed.wrapping_add(i as u64),
            },
        ),
        2 => ("renames not durable", Model::NamesLost),
        _ => ("renames before bytes", Model::NamesFirst),
    }
}

fn number<T: std::str::FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} must be a number, found {text:?}")),
    )
}

/// A directory's name for messages.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
