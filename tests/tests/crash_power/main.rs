//! Power cuts: a real daemon's run is recorded, write by write, and cut at many points. From each cut a directory is
//! rebuilt as the disk may hold it then. It must open, be clean, hold everything that callers had been told, recover,
//! and be clean again; with some of them the daemon goes on until every job has ended as it should.
//!
//! ```text
//! cargo nextest run --cargo-profile release -p proofkeep-tests --test crash_power --no-capture
//! PROOFKEEP_POWER_CUTS=20000 PROOFKEEP_SEED=7 cargo test --release -p proofkeep-tests --test crash_power -- --nocapture
//! ```
//! `PROOFKEEP_POWER_CUTS` is how many images there are at least, half of them of each recording (200 without it, and
//! never fewer than 24), and an eighth as many more of a third one, of backups and what is made of them (at least 24). `PROOFKEEP_SEED` repeats a run's choices; it is printed, and else follows from the commit.
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
mod saved;

use std::collections::BTreeSet;
use std::path::Path;
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
/// More images than this are made of more than one recording, each with a seed of its own.
const OF_ONE: usize = 1000;

#[test]
fn nothing_is_lost_when_the_power_goes_while_a_crowd_submits() {
    in_rounds("power-cuts-crowd", |images, seed, root| {
        let recorded = Crowd::WHOLE.record(root);
        let recording = Recording::read(&recorded.log).unwrap();
        let entries = recording.entries().len();
        eprintln!("{recorded}");
        // What a start does to the log that a kill left, unsynced as it is, is cut after each change.
        let starts =
            (0..entries).filter(|at| matches!(recording.entries()[*at].change, Change::Start { .. }));
        let mut openings: BTreeSet<usize> = starts.skip(1).flat_map(|at| at..at + OPENING).collect();
        let others = images.saturating_sub(openings.len()).max(images / 2);
        let mut places = places(&recording, others, seed);
        places.append(&mut openings);
        let cuts = Cuts {
            recording: &recording,
            log: &recorded.log,
            judge: Judge {
                prunes: true,
                ..Judge::default()
            },
            look: None,
            launch: crowd::launch,
            kinds: &Model::KINDS,
            go_on_every: 37,
            enough: u64::MAX,
            seed,
            scratch: root,
        };
        let found = cuts.at(&places);
        let peak = log::peak(&recording);
        let (reused, segments) = log::segments(&recording);
        eprintln!("{peak}; the log has {segments} segments, {reused} of them were written again");
        assert!(peak.bytes < SEGMENT, "{peak}, and a segment has {SEGMENT}");
        assert!(
            reused > 0,
            "no segment was used again, so this run shows too little"
        );
        cut::saw_everything(&recording, &recorded.data, root, true);
        Round::of(&cuts, found, &[("segments written again", reused as u64)])
    });
}

#[test]
fn nothing_is_lost_when_the_power_goes_in_the_life_of_a_directory() {
    in_rounds("power-cuts-life", |images, seed, root| {
        let life = life::record(root, seed);
        let recording = Recording::read(&life.log).unwrap();
        eprintln!("{life}");
        let cuts = Cuts {
            recording: &recording,
            log: &life.log,
            judge: Judge::default(),
            look: None,
            launch: life::launch,
            kinds: &Model::KINDS,
            go_on_every: 11,
            enough: u64::MAX,
            seed,
            scratch: root,
        };
        let found = cuts.at(&places(&recording, images, seed));
        cut::saw_everything(&recording, &life.data, root, false);
        let more = [
            ("starts killed while they opened", life.killed_starts),
            ("migrations and compactions", life.migrations),
            ("migrations and compactions killed", life.killed_migrations),
        ];
        Round::of(&cuts, found, &more)
    });
}

#[test]
fn nothing_half_made_is_taken_for_a_backup_or_a_store_when_the_power_goes() {
    let (seed, root) = (setting::seed(), tempfile::tempdir().unwrap());
    let images = (setting::number("PROOFKEEP_POWER_CUTS").unwrap_or(200) / 8).max(FLOOR);
    eprintln!("{images} images, PROOFKEEP_SEED={seed}");
    let saved = saved::record(root.path());
    let recording = Recording::read(&saved.log).unwrap();
    eprintln!("{saved}");
    let look = |image: &Path, told: &[&[u8]]| saved.judge(image, told);
    let cuts = Cuts {
        recording: &recording,
        log: &saved.log,
        judge: Judge::default(),
        look: Some(&look),
        launch: life::launch,
        kinds: &Model::KINDS,
        go_on_every: 0,
        enough: u64::MAX,
        seed,
        scratch: root.path(),
    };
    let found = cuts.at(&places(&recording, images, seed));
    cut::saw_everything(&recording, &saved.disk, root.path(), false);
    let report = Report::new("power-cuts-saved", seed).count("images", found.images());
    let report = found
        .kinds
        .iter()
        .fold(report, |report, (kind, count)| report.count(kind, *count));
    report.lost(found.lost).failed(found.failed).publish();
    assert!(
        found.wrong.is_empty(),
        "{}\n{}",
        cuts.keep(),
        found.wrong.join("\n")
    );
}

/// What came of one recording.
struct Round {
    found: Found,
    counts: Vec<(&'static str, u64)>,
    /// Where the recording is kept, if something is wrong.
    kept: Option<String>,
}

impl Round {
    fn of(cuts: &Cuts<'_>, found: Found, more: &[(&'static str, u64)]) -> Self {
        let changes = cuts.recording.entries().len();
        let answers = cuts.recording.acknowledged(changes).count() as u64;
        let mut counts = vec![
            ("recordings", 1),
            ("changes recorded", changes as u64),
            ("answers recorded", answers),
        ];
        counts.extend(more);
        let kept = (!found.wrong.is_empty()).then(|| cuts.keep());
        Self { found, counts, kept }
    }
}

fn places(recording: &Recording, images: usize, seed: u64) -> BTreeSet<usize> {
    let places: BTreeSet<usize> = recording.cuts(images, seed).into_iter().collect();
    assert!(
        places.len() >= images,
        "the recording has only {} places to cut",
        places.len()
    );
    places
}

/// Makes recordings until there are images enough, publishes what was found, and fails if anything is wrong.
fn in_rounds(name: &str, one: impl Fn(usize, u64, &Path) -> Round) {
    let wanted: usize = setting::number("PROOFKEEP_POWER_CUTS").unwrap_or(200);
    assert!(wanted >= FLOOR, "PROOFKEEP_POWER_CUTS must be {FLOOR} at least");
    let first = setting::seed();
    eprintln!("PROOFKEEP_POWER_CUTS={wanted} PROOFKEEP_SEED={first}");
    let (started, mut seed) = (Instant::now(), first);
    let mut report = Report::new(name, first);
    let (mut images, mut wrong) = (0, Vec::new());
    // Half of the images are of the other kind of recording.
    while images < wanted as u64 / 2 {
        let root = tempfile::tempdir().unwrap();
        let left = wanted / 2 - usize::try_from(images).unwrap_or(0);
        let Round { found, counts, kept } = one(left.min(OF_ONE), seed, root.path());
        images += found.images();
        report = report
            .count("images", found.images())
            .count("images gone on with to the end", found.finished)
            .lost(found.lost)
            .failed(found.failed);
        let kinds = found.kinds.iter().map(|(kind, count)| (*kind, *count));
        for (what, count) in counts.into_iter().chain(kinds) {
            report = report.count(what, count);
        }
        if let Some(kept) = kept {
            wrong.push(format!("seed {seed}, {kept}:"));
            wrong.extend(found.wrong);
        }
        eprintln!("{images} images so far, after {:.0?}", started.elapsed());
        seed = seed.wrapping_add(1);
    }
    report.publish();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
