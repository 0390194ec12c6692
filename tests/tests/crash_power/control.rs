//! The other way round: where a rule is left out, answers must be lost. Else the test shows nothing.

use std::collections::BTreeSet;
use std::time::Instant;

use proofkeep_tests::judge::Judge;
use proofkeep_tests::powercut::{Bytes, Model, Recording};
use proofkeep_tests::report::Report;
use proofkeep_tests::setting;

use super::crowd::{self, Crowd};
use super::cut::{Cuts, Found};
use super::log;

/// Images of a disk that ignores syncs.
const LYING: usize = 24;
/// Images of a store whose groups outgrow its segments, at most.
const WITHOUT: usize = 240;
/// So many wrong ones of these show it.
const ENOUGH: u64 = 2;
/// What sled takes for a segment by itself.
const SLEDS_SEGMENT: u64 = 512 << 10;

#[test]
fn without_fdatasync_answers_are_lost() {
    let crowd = Crowd {
        lying: true,
        ..Crowd::SHORT
    };
    let all = |recording: &Recording, seed| recording.cuts(LYING, seed).into_iter().collect();
    let found = found(
        crowd,
        "power-cuts-without-fdatasync",
        &Model::KINDS,
        u64::MAX,
        all,
    );
    assert!(
        found.lost + found.failed >= found.images() / 3,
        "without fdatasync only {} of {} images are wrong: this test can't fail",
        found.lost + found.failed,
        found.images()
    );
}

#[test]
fn with_groups_that_outgrow_segments_answers_are_lost() {
    let crowd = Crowd {
        without: true,
        large: 8,
        ..Crowd::SHORT
    };
    // sled has written over what it took for stable, and none of that is synced: a cut there loses most.
    let sectors: Vec<_> = Model::KINDS
        .into_iter()
        .filter(|(_, model)| model.bytes == Bytes::Sectors)
        .collect();
    let full = |recording: &Recording, seed| {
        let full = log::before_syncs(recording, 2 * SLEDS_SEGMENT);
        assert!(full.len() > 2, "groups don't outgrow segments");
        // As many tries of each as there is room for, spread by the seed.
        let offset = usize::try_from(seed % 7).unwrap_or(0);
        let each = WITHOUT.div_ceil(full.len());
        full.iter()
            .flat_map(|at| (0..each).map(move |back| at.saturating_sub(back * 5 + offset * back)))
            .take(WITHOUT)
            .collect()
    };
    let found = found(crowd, "power-cuts-without-segments", &sectors, ENOUGH, full);
    assert!(
        found.lost + found.failed > 0,
        "with groups that outgrow segments none of {} images is wrong: this test can't fail",
        found.images()
    );
}

/// What is found of images at these places.
fn found(
    crowd: Crowd,
    name: &str,
    kinds: &[(&'static str, Model)],
    enough: u64,
    places: impl Fn(&Recording, u64) -> BTreeSet<usize>,
) -> Found {
    let (started, seed) = (Instant::now(), setting::seed());
    eprintln!("PROOFKEEP_SEED={seed}");
    let root = tempfile::tempdir().unwrap();
    let recorded = crowd.record(root.path());
    let recording = Recording::read(&recorded.log).unwrap();
    eprintln!(
        "{recorded}\n{}, recorded in {:.0?}",
        log::peak(&recording),
        started.elapsed()
    );
    let cuts = Cuts {
        recording: &recording,
        log: &recorded.log,
        judge: Judge {
            prunes: true,
            without: crowd.without,
            ..Judge::default()
        },
        look: None,
        launch: crowd::launch,
        kinds,
        go_on_every: 0,
        enough,
        seed,
        scratch: root.path(),
    };
    let found = cuts.at(&places(&recording, seed));
    let first = found.wrong.first().map_or("nothing is wrong", String::as_str);
    eprintln!(
        "of {} images {} lost an answer, {} are wrong otherwise, in {:.0?}; the first: {}",
        found.images(),
        found.lost,
        found.failed,
        started.elapsed(),
        first.chars().take(600).collect::<String>()
    );
    Report::new(name, seed)
        .count("images", found.images())
        .lost(found.lost)
        .failed(found.failed)
        .publish();
    found
}
