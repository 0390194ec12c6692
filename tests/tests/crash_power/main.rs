//! Power cuts: a real daemon's run is recorded, write by write, and cut at many points. From each cut a directory is
//! rebuilt as the disk may hold it then. It must open, be clean, hold everything that callers had been told, recover,
//! and be clean again; with some of them the daemon goes on until every job has ended as it should.
//!
//! ```text
//! cargo nextest run --cargo-profile release -p proofkeep-tests --test crash_power --no-capture
//! PROOFKEEP_POWER_CUTS=20000 PROOFKEEP_SEED=7 cargo test --release -p proofkeep-tests --test crash_power -- --nocapture
//! ```
//! `PROOFKEEP_POWER_CUTS` is how many images there are at least, half of them of each recording (200 without it, and
//! never fewer than 24). `PROOFKEEP_SEED` repeats a run's choices; it is printed, and else follows from the commit.
//!
//! That the test can fail is shown by the same on a disk that ignores `fdatasync`, and by a store whose groups of
//! commands outgrow sled's segments: there answers must be lost.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod client;
mod control;
mod crowd;
mod cut;
mod life;
mod log;

use std::collections::BTreeSet;
use std::time::Instant;

use proofkeep_tests::judge::Judge;
use proofkeep_tests::powercut::{Change, Model, Recording};
use proofkeep_tests::report::Report;
use proofkeep_tests::setting;

use crowd::Crowd;
use cut::{Cuts, Found};

/// sled's segment, the most log that there may be between two syncs.
const SEGMENT: u64 = 8 << 20;
/// Changes of a start until its boot is durable.
const OPENING: usize = 24;
/// The log, below the data directory.
const LOG_PATH: &str = "store.1/db";
/// With fewer images not each kind has its turn.
const FLOOR: usize = 24;

/// Images of each of the two recordings.
fn images() -> usize {
    let images = setting::number("PROOFKEEP_POWER_CUTS").unwrap_or(200);
    assert!(images >= FLOOR, "PROOFKEEP_POWER_CUTS must be {FLOOR} at least");
    images / 2
}

#[test]
fn nothing_is_lost_when_the_power_goes_while_a_crowd_submits() {
    let (images, seed) = (images(), setting::seed());
    eprintln!("PROOFKEEP_POWER_CUTS={} PROOFKEEP_SEED={seed}", 2 * images);
    let started = Instant::now();
    let root = tempfile::tempdir().unwrap();
    let recorded = Crowd::WHOLE.record(root.path());
    let recording = Recording::read(&recorded.log).unwrap();
    let entries = recording.entries().len();
    eprintln!("{recorded}\nrecorded in {:.0?}", started.elapsed());

    let mut places = places(&recording, images, seed);
    // What a start does to the log that a kill left, unsynced as it is, is cut after each change.
    let starts = (0..entries).filter(|at| matches!(recording.entries()[*at].change, Change::Start { .. }));
    places.extend(starts.skip(1).flat_map(|at| at..at + OPENING));
    let cuts = Cuts {
        recording: &recording,
        log: &recorded.log,
        judge: Judge {
            prunes: true,
            ..Judge::default()
        },
        launch: crowd::launch,
        kinds: &Model::KINDS,
        go_on_every: 37,
        enough: u64::MAX,
        seed,
        scratch: root.path(),
    };
    let found = cuts.at(&places);
    let peak = log::peak(&recording);
    let (reused, segments) = log::segments(&recording);
    eprintln!("{peak}; the log has {segments} segments, {reused} of them were written again");
    finish("power-cuts-crowd", seed, started, &cuts, &found, |report| {
        report
            .count("bytes of log at most between two syncs", peak.bytes)
            .count("segments written again", reused as u64)
    });
    assert!(peak.bytes < SEGMENT, "{peak}, and a segment has {SEGMENT}");
    assert!(
        reused > 0,
        "no segment was used again, so this run shows too little"
    );
    cut::saw_everything(&recording, &recorded.data, root.path(), true);
}

#[test]
fn nothing_is_lost_when_the_power_goes_in_the_life_of_a_directory() {
    let (images, seed) = (images(), setting::seed());
    eprintln!("PROOFKEEP_POWER_CUTS={} PROOFKEEP_SEED={seed}", 2 * images);
    let started = Instant::now();
    let root = tempfile::tempdir().unwrap();
    let life = life::record(root.path(), seed);
    let recording = Recording::read(&life.log).unwrap();
    eprintln!("{life}\nrecorded in {:.0?}", started.elapsed());
    let cuts = Cuts {
        recording: &recording,
        log: &life.log,
        judge: Judge::default(),
        launch: life::launch,
        kinds: &Model::KINDS,
        go_on_every: 11,
        enough: u64::MAX,
        seed,
        scratch: root.path(),
    };
    let found = cuts.at(&places(&recording, images, seed));
    finish("power-cuts-life", seed, started, &cuts, &found, |report| {
        report
            .count("starts killed while they opened", life.killed_starts)
            .count("migrations", life.migrations)
            .count("migrations killed", life.killed_migrations)
    });
    cut::saw_everything(&recording, &life.data, root.path(), false);
}

fn places(recording: &Recording, images: usize, seed: u64) -> BTreeSet<usize> {
    let places: BTreeSet<usize> = recording.cuts(images, seed).into_iter().collect();
    assert!(
        places.len() >= images.min(recording.entries().len() / 2),
        "the recording has only {} places to cut",
        places.len()
    );
    places
}

/// Publishes what was found, and fails if anything is wrong.
fn finish(
    name: &str,
    seed: u64,
    started: Instant,
    cuts: &Cuts<'_>,
    found: &Found,
    more: impl Fn(Report) -> Report,
) {
    let entries = cuts.recording.entries();
    let mut report = Report::new(name, seed)
        .count("images", found.images())
        .count("images gone on with to the end", found.finished)
        .count("changes recorded", entries.len() as u64)
        .count(
            "answers recorded",
            cuts.recording.acknowledged(entries.len()).count() as u64,
        )
        .lost(found.lost)
        .failed(found.failed);
    for (kind, count) in &found.kinds {
        report = report.count(kind, *count);
    }
    more(report).publish();
    eprintln!("{} images, in {:.0?}", found.images(), started.elapsed());
    if !found.wrong.is_empty() {
        panic!(
            "{} images lost an answer, {} are wrong otherwise; {}:\n{}",
            found.lost,
            found.failed,
            cuts.keep(),
            found.wrong.join("\n")
        );
    }
}
