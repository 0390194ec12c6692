//! Migrating and compacting, and a store that an earlier build wrote.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod io_support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command as Process;

use io_support::{boot, open, submit, submitted};
use proofkeep_store::codec::{RecordKind, envelope::kind_of, reencode};
use proofkeep_store::fsck::{Mode, fsck};
use proofkeep_store::ids::JobNumber;
use proofkeep_store::machine::Command;
use proofkeep_store::migrate::{MigrateError, migrate};
use proofkeep_store::records::Job;
use proofkeep_store::view::{View, record};
use proofkeep_store::{OpenError, Store, keys};

fn everything(store: &Store) -> Vec<(Vec<u8>, Vec<u8>)> {
    store
        .read(|view: &dyn View| view.scan(&[], None, usize::MAX))
        .unwrap()
}

fn fill(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let store = open(path);
    let handle = boot(&store);
    for partitions in [1, 1024, 3, 700, 1000] {
        let job = submitted(handle.commit_blocking(Command::Submit(submit(partitions))));
        handle
            .commit_blocking(Command::Cancel {
                job,
                actor: "tester".into(),
            })
            .unwrap();
    }
    handle.stop();
    everything(&store)
}

#[test]
fn a_compacted_store_is_the_same_store() {
    let data = tempfile::tempdir().unwrap();
    let before = fill(data.path());
    let id = open(data.path()).id();
    let done = migrate(data.path(), 16 << 20).unwrap();
    assert_eq!((done.from, done.to, done.records), (1, 2, before.len() as u64));
    assert_eq!(
        fs::read_to_string(data.path().join("CURRENT")).unwrap(),
        "store.2\n"
    );
    assert!(data.path().join("store.1/db").exists(), "the old one stays");

    let store = open(data.path());
    assert_eq!(everything(&store), before);
    assert_eq!(store.id(), id);
    let handle = boot(&store);
    submitted(handle.commit_blocking(Command::Submit(submit(1))));
    handle.stop();
    store.remove_superseded().unwrap();
    assert!(!data.path().join("store.1").exists());
    let after = everything(&store);
    drop((handle, store));
    assert_eq!(migrate(data.path(), 16 << 20).unwrap().to, 3);
    assert_eq!(everything(&open(data.path())), after);
}

#[test]
fn what_a_cut_off_migration_left_is_not_used() {
    let data = tempfile::tempdir().unwrap();
    let before = fill(data.path());
    fs::create_dir(data.path().join("store.2")).unwrap();
    fs::write(data.path().join("store.2/db"), "half").unwrap();
    assert_eq!(everything(&open(data.path())), before);
    assert_eq!(migrate(data.path(), 16 << 20).unwrap().to, 2);
    assert_eq!(everything(&open(data.path())), before);
}

#[test]
fn a_store_in_use_is_not_migrated() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    assert!(matches!(
        migrate(data.path(), 16 << 20),
        Err(MigrateError::Open(OpenError::Locked { .. }))
    ));
    drop(store);
    let missing = migrate(&data.path().join("missing"), 16 << 20);
    assert!(matches!(
        missing,
        Err(MigrateError::Open(OpenError::NotThere { .. }))
    ));
}

/// What a build with schema 1 left when it was killed.
fn schema_1() -> tempfile::TempDir {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/store-v1/store-v1.tar.gz");
    let unpacked = tempfile::tempdir().unwrap();
    let tar = Process::new("tar")
        .arg("-xzf")
        .arg(archive)
        .arg("-C")
        .arg(unpacked.path())
        .status();
    assert!(tar.unwrap().success());
    unpacked
}

#[test]
fn a_store_of_schema_1_opens_and_goes_on() {
    let unpacked = schema_1();
    let data = unpacked.path().join("data");
    let store = open(&data);
    let expected: Vec<(Vec<u8>, Vec<u8>)> = fs::read_to_string(unpacked.path().join("records.txt"))
        .unwrap()
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(key, value)| (hex::decode(key).unwrap(), hex::decode(value).unwrap()))
        .collect();
    let found = everything(&store);
    assert_eq!(found, expected);
    let kinds: BTreeSet<RecordKind> = found
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(_, value)| kind_of(value).unwrap())
        .collect();
    assert_eq!(
        kinds.len(),
        RecordKind::ALL.len(),
        "every kind of record is there: {kinds:?}"
    );
    for (key, value) in &found {
        assert_eq!(&reencode(value).unwrap(), value, "at {}", hex::encode(key));
    }
    let whole = |digest| {
        store
            .objects()
            .digest_of(digest)
            .is_ok_and(|found| found == digest)
    };
    let check = || store.read(|view| fsck(view, Mode::Full, Some(&whole))).unwrap();
    assert!(check().is_clean(), "{:?}", check().findings);
    let handle = boot(&store);
    let job: Job = store
        .read(|view| record(view, &keys::job(JobNumber(3))))
        .unwrap()
        .unwrap();
    assert_eq!(
        (job.tally.proved, job.tally.leases),
        (1, 0),
        "recovery ended what was cut off"
    );
    submitted(handle.commit_blocking(Command::Submit(submit(2))));
    handle.stop();
    assert!(check().is_clean(), "{:?}", check().findings);
    let after = everything(&store);
    drop((handle, store));
    migrate(&data, 16 << 20).unwrap();
    assert_eq!(everything(&open(&data)), after);
}

/// `REACHED` as the store writes it.
fn reached(journal: u64) -> String {
    let text = format!("journal {journal:020}");
    format!("{text} crc32c {:08x}\n", crc32c::crc32c(text.as_bytes()))
}

#[test]
fn a_store_that_lost_its_end_is_not_migrated() {
    let data = tempfile::tempdir().unwrap();
    fill(data.path());
    fs::write(data.path().join("REACHED"), reached(1_000_000)).unwrap();
    let refused = migrate(data.path(), 16 << 20);
    assert!(
        matches!(refused, Err(MigrateError::Open(OpenError::Lost { .. }))),
        "{refused:?}"
    );
    assert_eq!(
        fs::read_to_string(data.path().join("CURRENT")).unwrap(),
        "store.1\n"
    );
    assert!(!data.path().join("store.2").exists());
}
