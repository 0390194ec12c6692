//! A backup onto another file system, where nothing can be linked: everything is copied, and the backup is as good.
//!
//! `PROOFKEEP_OTHER_MOUNT` names a directory there; without it `/dev/shm` is taken, if it is another device than the one
//! for temporary files. Where there is none, that is said, and nothing is tested.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod backup_support;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use backup_support::{assert_kept, backup, fsck, launch, prove, register, restore, submit};
use proofkeep_tests::harness::until;
use proofkeep_tests::ledger::Ledger;
use serde_json::json;

fn device(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().map(|meta| meta.dev())
}

/// A directory on another device than `here`, which can be written to.
fn elsewhere(here: &Path) -> Option<tempfile::TempDir> {
    let named = std::env::var_os("PROOFKEEP_OTHER_MOUNT").map(PathBuf::from);
    let is_other = |path: &PathBuf| device(path).is_some_and(|found| Some(found) != device(here));
    let mut found = [named, Some(PathBuf::from("/dev/shm"))]
        .into_iter()
        .flatten()
        .filter(is_other);
    found.find_map(|path| tempfile::tempdir_in(path).ok())
}

/// Files below a directory, with their device and how many names they have.
fn files(directory: &Path) -> Vec<(PathBuf, u64, u64)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let meta = entry.metadata().unwrap();
        if meta.is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push((entry.path(), meta.dev(), meta.nlink()));
        }
    }
    found
}

#[test]
fn a_backup_on_another_file_system_is_copied_and_whole() {
    let root = tempfile::tempdir().unwrap();
    let Some(other) = elsewhere(root.path()) else {
        println!(
            "SKIPPED a_backup_on_another_file_system_is_copied_and_whole: /dev/shm is no other device than {} here; name \
             a directory on one in PROOFKEEP_OTHER_MOUNT",
            root.path().display()
        );
        return;
    };
    let (data, ledger) = (root.path().join("data"), Ledger::new());
    let daemon = launch(&data).start();
    let witness = register(&daemon);
    let proved = prove(&daemon, &ledger, &witness);
    let ended = daemon.wait_for_end(&proved.to_string());
    Ledger::told_of(&ended)
        .into_iter()
        .for_each(|said| ledger.note(said));
    let waits = json!({ "gate": { "stage": "finish", "file": root.path().join("gate") } });
    let waits = submit(&daemon, &ledger, &[json!({}), waits]).unwrap();
    until("a part of it is proved", || {
        let job = daemon.get(&format!("/v1/jobs/{waits}")).expect(200).json();
        job["summary"]["proved"] == 1
    });
    // By the daemon while it works, by the command that asks it, and by the command alone.
    let target = |name: &str| other.path().join(name);
    let answer = daemon
        .post("/v1/admin/backup", &json!({ "target": target("asked") }))
        .expect(201);
    assert_eq!(answer.json()["missing"], json!([]));
    backup(&data, &target("told")).expect(0);
    daemon.kill();
    backup(&data, &target("alone")).expect(0);
    for name in ["asked", "told", "alone"] {
        let saved = files(&target(name));
        assert!(saved.len() > 4, "{saved:?}");
        for (path, on, names) in &saved {
            assert!(
                Some(*on) == device(other.path()) && *names == 1,
                "{} is on device {on} with {names} names",
                path.display()
            );
        }
        let restored = restore(&target(name));
        fsck(&restored);
        assert_kept(&restored, &ledger);
    }
    // On the file system of the data objects are linked: what is above can tell the two apart.
    let beside = root.path().join("beside");
    backup(&data, &beside).expect(0);
    assert!(
        files(&beside).iter().any(|(_, _, names)| *names > 1),
        "nothing is linked beside the data"
    );
    // From there to here again, where nothing of it can be linked either.
    let again = root.path().join("again");
    let _ = proofkeep_tests::harness::proofkeep([
        "restore".as_ref(),
        target("asked").as_os_str(),
        "--data-dir".as_ref(),
        again.as_os_str(),
    ])
    .expect(0);
    fsck(&again);
    assert_kept(&again, &ledger);
}
