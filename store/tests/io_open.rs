//! Opening: what is made, what is refused, and that nothing is ever started empty where something was.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod io_support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use io_support::{boot, open, submit, submitted};
use proofkeep_store::machine::Command;
use proofkeep_store::records::Job;
use proofkeep_store::view::records;
use proofkeep_store::{OpenError, Options, Store, keys};

fn refused(path: &Path) -> OpenError {
    match Store::open(path, &Options::default()) {
        Err(error) => error,
        Ok(_) => panic!("{} opened", path.display()),
    }
}

/// A store with a few jobs, closed.
fn filled() -> (tempfile::TempDir, Vec<Job>) {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let handle = boot(&store);
    for partitions in 1..=5 {
        submitted(handle.commit_blocking(Command::Submit(submit(partitions))));
    }
    handle.stop();
    let jobs = jobs(&store);
    drop((handle, store));
    (data, jobs)
}

fn jobs(store: &Store) -> Vec<Job> {
    store
        .read(|view| records(view, &keys::family(keys::Family::Job)))
        .unwrap()
}

#[test]
fn a_new_directory_is_private_and_complete() {
    let outer = tempfile::tempdir().unwrap();
    let path = outer.path().join("data");
    let store = open(&path);
    let mode = |name: &str| fs::metadata(path.join(name)).unwrap().permissions().mode() & 0o777;
    for directory in [
        "",
        "objects",
        "objects/00",
        "objects/ff",
        "quarantine",
        "tmp",
        "store.1",
    ] {
        assert_eq!(mode(directory), 0o700, "{directory:?}");
    }
    for file in [
        "LOCK",
        "FORMAT",
        "CURRENT",
        "REACHED",
        "store.1/db",
        "store.1/conf",
    ] {
        assert_eq!(mode(file), 0o600, "{file}");
    }
    assert_eq!(fs::read_to_string(path.join("CURRENT")).unwrap(), "store.1\n");
    let format = fs::read_to_string(path.join("FORMAT")).unwrap();
    let expected = format!(
        "proofkeep data directory\nformat 1\nschema 1\nstore {}\nsegment_size 8388608\n",
        store.id()
    );
    assert_eq!(format, expected);
    assert!(!path.join("CREATING").exists());
}

#[test]
fn the_second_to_open_is_told_who_was_first() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let error = refused(data.path());
    let pid = std::process::id().to_string();
    assert!(
        matches!(&error, OpenError::Locked { pid: found, .. } if *found == pid),
        "{error}"
    );
    assert!(
        error.to_string().contains(&format!("process {pid} has it")),
        "{error}"
    );
    drop(store);
    open(data.path());
}

#[test]
fn without_leave_nothing_is_made() {
    let data = tempfile::tempdir().unwrap();
    let options = Options {
        create: false,
        ..Options::default()
    };
    for path in [data.path().to_path_buf(), data.path().join("missing")] {
        assert!(matches!(
            Store::open(&path, &options),
            Err(OpenError::NotThere { .. })
        ));
        assert!(!path.join("FORMAT").exists());
    }
}

#[test]
fn a_directory_with_other_things_is_left_alone() {
    let data = tempfile::tempdir().unwrap();
    fs::write(data.path().join("thesis.tex"), "…").unwrap();
    let error = refused(data.path());
    assert!(
        matches!(&error, OpenError::NotEmpty { found, .. } if found == "thesis.tex"),
        "{error}"
    );
}

#[test]
fn a_lost_format_file_is_not_a_new_store() {
    let (data, before) = filled();
    let format = fs::read(data.path().join("FORMAT")).unwrap();
    fs::remove_file(data.path().join("FORMAT")).unwrap();
    assert!(matches!(refused(data.path()), OpenError::NotEmpty { .. }));
    fs::write(data.path().join("FORMAT"), format).unwrap();
    assert_eq!(jobs(&open(data.path())), before);
}

#[test]
fn a_lost_database_is_not_started_empty() {
    let (data, before) = filled();
    let (log, aside) = (data.path().join("store.1/db"), data.path().join("aside"));
    fs::rename(&log, &aside).unwrap();
    let error = refused(data.path());
    assert!(matches!(error, OpenError::NoDatabase { .. }), "{error}");
    assert!(!log.exists(), "nothing was made in its place");
    fs::rename(&aside, &log).unwrap();
    assert_eq!(jobs(&open(data.path())), before);

    fs::remove_dir_all(data.path().join("store.1")).unwrap();
    assert!(matches!(refused(data.path()), OpenError::NoDatabase { .. }));
}

#[test]
fn a_creation_that_was_cut_off_is_begun_again() {
    for cut in ["CREATING", "store.1", "CURRENT"] {
        let data = tempfile::tempdir().unwrap();
        drop(open(data.path()));
        // The state of the directory when it was cut after this step.
        fs::write(data.path().join("CREATING"), "").unwrap();
        fs::remove_file(data.path().join("FORMAT")).unwrap();
        if cut != "CURRENT" {
            fs::remove_file(data.path().join("CURRENT")).unwrap();
        }
        if cut == "CREATING" {
            fs::remove_dir_all(data.path().join("store.1")).unwrap();
        } else {
            // Cut while sled was opening: a log that is too short to be one.
            fs::write(data.path().join("store.1/db"), "half").unwrap();
        }
        let store = open(data.path());
        assert!(jobs(&store).is_empty(), "{cut}");
        assert!(!data.path().join("CREATING").exists(), "{cut}");
        let handle = boot(&store);
        submitted(handle.commit_blocking(Command::Submit(submit(1))));
    }
}

#[test]
fn a_leftover_of_creation_beside_a_format_file_is_removed() {
    let (data, before) = filled();
    fs::write(data.path().join("CREATING"), "").unwrap();
    assert_eq!(jobs(&open(data.path())), before);
    assert!(!data.path().join("CREATING").exists());
}

#[test]
fn a_snapshot_that_was_cut_off_does_not_stop_the_next_start() {
    let (data, before) = filled();
    let left = data.path().join("store.1/snap.0000000000000100.generating");
    fs::write(&left, "half a snapshot").unwrap();
    assert_eq!(jobs(&open(data.path())), before);
    assert!(!left.exists());
}

#[test]
fn a_damaged_snapshot_goes_to_quarantine_and_the_log_is_read() {
    let (data, before) = filled();
    // sled takes its snapshots while it opens.
    drop(open(data.path()));
    let mut damaged = 0;
    for entry in fs::read_dir(data.path().join("store.1")).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name().to_string_lossy().starts_with("snap.") {
            let mut bytes = fs::read(entry.path()).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x10;
            fs::write(entry.path(), bytes).unwrap();
            damaged += 1;
        }
    }
    assert!(damaged > 0, "there was a snapshot to damage");
    assert_eq!(jobs(&open(data.path())), before);
    assert_eq!(
        fs::read_dir(data.path().join("quarantine")).unwrap().count(),
        damaged
    );
}

#[test]
fn a_damaged_log_stops_with_what_to_do_and_changes_nothing() {
    let (data, _) = filled();
    let log = data.path().join("store.1/db");
    let whole = fs::read(&log).unwrap();
    let mut overwritten = whole.clone();
    overwritten[..4096].fill(0xa5);
    for damaged in [
        Vec::new(),
        vec![0; whole.len()],
        vec![0xa5; whole.len()],
        overwritten,
    ] {
        fs::write(&log, &damaged).unwrap();
        let error = refused(data.path());
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("restore the last backup"), "{error}");
    }
}

#[test]
fn a_newer_store_is_refused() {
    let (data, before) = filled();
    let path = data.path().join("FORMAT");
    let format = fs::read_to_string(&path).unwrap();
    for (line, newer, what) in [
        ("schema 1", "schema 2", "schema"),
        ("format 1", "format 2", "format"),
    ] {
        fs::write(&path, format.replace(line, newer)).unwrap();
        let error = refused(data.path());
        assert!(
            matches!(error, OpenError::Newer { what: found, found: 2, newest: 1, .. } if found == what),
            "{error}"
        );
    }
    fs::write(&path, &format).unwrap();
    assert_eq!(jobs(&open(data.path())), before);
}

#[test]
fn damaged_small_files_are_named() {
    let (data, _) = filled();
    for (name, text) in [
        ("FORMAT", ""),
        ("FORMAT", "proofkeep data directory\nformat one\n"),
        ("CURRENT", "store.x\n"),
    ] {
        let path = data.path().join(name);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, text).unwrap();
        let error = refused(data.path());
        assert!(
            matches!(&error, OpenError::BadFile { path: found, .. } if *found == path),
            "{error}"
        );
        fs::write(&path, whole).unwrap();
    }
    fs::remove_file(data.path().join("CURRENT")).unwrap();
    assert!(matches!(refused(data.path()), OpenError::BadFile { .. }));
}

#[test]
fn a_log_that_lost_its_end_is_not_opened_as_if_nothing_were_missing() {
    let (data, before) = filled();
    let log = data.path().join("store.1/db");
    let mut bytes = fs::read(&log).unwrap();
    // One bit in the middle of the log: sled takes it for the log's end.
    let middle = bytes.iter().rposition(|byte| *byte != 0).unwrap() / 2;
    bytes[middle] ^= 1;
    fs::write(&log, &bytes).unwrap();
    let error = refused(data.path());
    assert!(
        matches!(error, OpenError::Lost { found, reached, .. } if found < reached),
        "{error}"
    );
    // Whoever wants what is left says so.
    fs::remove_file(data.path().join("REACHED")).unwrap();
    let left = jobs(&open(data.path()));
    assert!(
        left.len() < before.len() && before.starts_with(&left),
        "{} of {} jobs",
        left.len(),
        before.len()
    );
}
