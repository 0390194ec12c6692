//! What a cut must leave: a store that opens, that `fsck` finds clean, and that holds what was promised.

use std::path::Path;

use super::log::log_inode;
use proofkeep_store::fsck::{Mode, fsck};
use proofkeep_store::{Options, Store};
use proofkeep_tests::ledger::{Ledger, Said};
use proofkeep_tests::powercut::{Change, Disk, Model, Recording};

/// What is wrong with an image; nothing, if all is well.
pub fn image(image: &Path, recording: &Recording, cut: usize) -> Vec<String> {
    let ledger = Ledger::of_a_store_that_prunes();
    for said in recording.acknowledged(cut) {
        ledger.note(serde_json::from_slice::<Said>(said).unwrap());
    }
    let store = match Store::open(image, &Options::default()) {
        Ok(store) => store,
        Err(error) => return vec![format!("{} doesn't open: {error}", super::shown(image))],
    };
    let object_ok = |digest| store.objects().verify(digest).is_ok();
    let mut wrong = match store.read(|view| fsck(view, Mode::Full, Some(&object_ok))) {
        Ok(report) => report.findings.iter().map(ToString::to_string).collect(),
        Err(error) => vec![format!("it can't be read: {error}")],
    };
    match ledger.losses(&store) {
        Ok(losses) => wrong.extend(losses),
        Err(error) => wrong.push(format!("it can't be read: {error}")),
    }
    wrong
}

/// The same run's first life on a disk that ignores syncs of the log from its middle on. Answers must be lost, whether
/// the loss is noticed at the start or not; says what is seen. Later lives use segments again, and there what is lost
/// may be read as damage: the store ends the process then, and this one is the test's.
pub fn without_syncs(log: &Path, root: &Path) -> String {
    let recording = Recording::read(log).unwrap();
    let mut starts = (0..recording.entries().len())
        .filter(|at| matches!(recording.entries()[*at].change, Change::Start { .. }));
    let end = starts.nth(1).unwrap();
    let (inode, middle) = (log_inode(&recording), end / 2);
    let bytes = std::fs::read(log).unwrap();
    let mut left = Vec::with_capacity(bytes.len());
    let mut at = 0;
    // A record is its length in four bytes, and that many more.
    for (i, entry) in recording.entries()[..end].iter().enumerate() {
        let length = 4 + u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let ignored = match entry.change {
            Change::SyncBegin { inode: of, .. } | Change::SyncEnd { inode: of, .. } => {
                of == inode && i > middle
            }
            _ => false,
        };
        if !ignored {
            left.extend_from_slice(&bytes[at..at + length]);
        }
        at += length;
    }
    let path = root.join("without");
    std::fs::write(&path, left).unwrap();
    let recording = Recording::read(&path).unwrap();
    let cut = recording.entries().len();
    let mut disk = Disk::empty();
    disk.advance(&recording, cut).unwrap();
    let place = root.join("lossy");
    disk.image(&recording, Model::Strict, &place).unwrap();
    let noticed = image(&place, &recording, cut);
    assert!(
        !noticed.is_empty(),
        "the loss of half of the log is not noticed: this test can't fail"
    );
    // The store notes how far it had come; without that note it opens, and the answers are not there.
    std::fs::remove_file(place.join("REACHED")).unwrap();
    let lost = image(&place, &recording, cut);
    let answers = lost.iter().filter(|text| text.starts_with("job ")).count();
    assert!(answers > 0, "no answer is lost without syncs: {lost:?}");
    format!(
        "{}; with its note of how far it had come removed, {answers} answers are lost",
        noticed[0]
    )
}
