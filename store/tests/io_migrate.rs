//! Migrating and compacting, and a store that an earlier build wrote.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod io_support;

use std::fs;
use std::path::Path;

use io_support::{boot, open, submit, submitted};
use proofkeep_store::machine::Command;
use proofkeep_store::migrate::{MigrateError, migrate};
use proofkeep_store::view::View;
use proofkeep_store::{OpenError, Store};

fn everything(store: &Store) -> Vec<(Vec<u8>, Vec<u8>)> {
    store.read(|view: &dyn View| view.scan(&[], None, usize::MAX)).unwrap()
}

fn fill(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let store = open(path);
    let handle = boot(&store);
    for partitions in [1, 1024, 3, 700, 1000] {
        let job = submitted(handle.commit_blocking(Command::Submit(submit(partitions))));
        handle.commit_blocking(Command::Cancel { job, actor: "tester".into() }).unwrap();
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
    assert_eq!(fs::read_to_string(data.path().join("CURRENT")).unwrap(), "store.2\n");
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
    assert!(matches!(migrate(data.path(), 16 << 20), Err(MigrateError::Open(OpenError::Locked { .. }))));
    drop(store);
    let missing = migrate(&data.path().join("missing"), 16 << 20);
    assert!(matches!(missing, Err(MigrateError::Open(OpenError::NotThere { .. }))));
}
