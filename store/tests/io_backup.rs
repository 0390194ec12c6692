//! Backups and exports of a store that is written meanwhile, and stores that are made of them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod io_support;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use io_support::{boot, open, submit, submitted};
use proofkeep_store::backup::{import, restore};
use proofkeep_store::clock::Clock;
use proofkeep_store::dump::{Dumped, LoadError, SaveError};
use proofkeep_store::fsck::{Mode, fsck};
use proofkeep_store::ids::Digest;
use proofkeep_store::machine::{Command, Submit};
use proofkeep_store::view::View;
use proofkeep_store::{OpenError, Store};

const CACHE: u64 = 16 << 20;

fn everything(store: &Store) -> Vec<(Vec<u8>, Vec<u8>)> {
    store
        .read(|view: &dyn View| view.scan(&[], None, usize::MAX))
        .unwrap()
}

fn assert_clean(store: &Store) {
    let whole = |digest| {
        store
            .objects()
            .digest_of(digest)
            .is_ok_and(|found| found == digest)
    };
    let report = store.read(|view| fsck(view, Mode::Full, Some(&whole))).unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
}

fn go_on() -> bool {
    false
}

fn save(store: &Store, target: &Path) -> Result<Dumped, SaveError> {
    store.backup(target, Clock::start().now(), &go_on)
}

fn with_object(store: &Store, bytes: &[u8]) -> Submit {
    let digest = store.objects().put(bytes).unwrap();
    Submit {
        objects: vec![digest],
        ..submit(2)
    }
}

/// A store with jobs, some of them cancelled, and objects. A thousand records, about.
fn filled(path: &Path) -> Store {
    let store = open(path);
    let handle = boot(&store);
    for number in 0..20_u8 {
        let job = with_object(&store, &[number; 3000]);
        let job = submitted(handle.commit_blocking(Command::Submit(job)));
        if number % 3 == 0 {
            handle
                .commit_blocking(Command::Cancel {
                    job,
                    actor: "tester".into(),
                })
                .unwrap();
        }
    }
    handle.stop();
    store
}

/// Every file below a directory.
fn files(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn a_restored_store_is_the_same_store_under_another_id() {
    let root = tempfile::tempdir().unwrap();
    let store = filled(&root.path().join("data"));
    let loose = store
        .objects()
        .put(b"uploaded, and named by no record yet")
        .unwrap();
    let target = root.path().join("backup");
    let dumped = save(&store, &target).unwrap();
    assert_eq!(dumped.counts.objects, 21);
    assert_eq!((dumped.missing.len(), dumped.counts.deletions), (0, 0));
    assert_eq!(dumped.began, dumped.journal);

    let path = root.path().join("restored");
    let done = restore(&target, &path, CACHE).unwrap();
    assert_eq!((done.from, done.journal), (store.id(), dumped.journal));
    let restored = open(&path);
    assert_eq!(
        (everything(&restored), restored.id()),
        (everything(&store), done.store)
    );
    assert_ne!(restored.id(), store.id());
    assert!(restored.objects().verify(loose).is_ok());
    assert_clean(&restored);
    // It goes on by itself: another boot, another job.
    let handle = boot(&restored);
    submitted(handle.commit_blocking(Command::Submit(submit(1))));
    handle.stop();
    assert_clean(&restored);

    let mut stream = Vec::new();
    store
        .export(&mut stream, Path::new("stream"), Clock::start().now(), &go_on)
        .unwrap();
    let path = root.path().join("imported");
    let done = import(stream.as_slice(), "stream", &path, CACHE).unwrap();
    let imported = open(&path);
    assert_eq!(everything(&imported), everything(&store));
    assert!(![store.id(), restored.id()].contains(&done.store));
    assert!(imported.objects().verify(loose).is_ok());
    assert_clean(&imported);
}

#[test]
fn only_the_owner_can_read_a_backup_and_objects_are_linked() {
    let root = tempfile::tempdir().unwrap();
    let store = filled(&root.path().join("data"));
    let target = root.path().join("backup");
    save(&store, &target).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for file in files(&target) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
        assert_eq!(mode(file.parent().unwrap()), 0o700, "{}", file.display());
    }
    let digest = Digest::of(&[7; 3000]);
    let linked = target.join("objects").join(&digest.hex()[..2]).join(digest.hex());
    let ino = |path: &Path| fs::metadata(path).unwrap().ino();
    assert_eq!(ino(&linked), ino(&store.objects().path(digest)));
}

#[test]
fn a_backup_under_load_is_one_state_with_all_that_was_acknowledged_before() {
    let root = tempfile::tempdir().unwrap();
    let store = open(&root.path().join("data"));
    let handle = boot(&store);
    // Enough records for many slices.
    for _ in 0..12 {
        submitted(handle.commit_blocking(Command::Submit(submit(1024))));
    }
    let acknowledged = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    let mut changed = 0;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut last = None;
                while !done.load(Ordering::Relaxed) {
                    let committed = match last.take() {
                        None => handle.commit_blocking(Command::Submit(submit(3))),
                        Some(job) => handle.commit_blocking(Command::Cancel {
                            job,
                            actor: "tester".into(),
                        }),
                    };
                    let committed = committed.unwrap();
                    acknowledged.fetch_max(committed.journal.0, Ordering::SeqCst);
                    if let proofkeep_store::machine::Reply::Submitted { job, .. } = committed.reply {
                        last = Some(job);
                    }
                }
            });
        }
        // Whatever fails here, the threads have to end.
        let end = End(&done);
        for round in 0..4 {
            let before = acknowledged.load(Ordering::SeqCst);
            let target = root.path().join(format!("backup-{round}"));
            let dumped = save(&store, &target).unwrap();
            assert!(dumped.began.0 >= before && dumped.journal >= dumped.began);
            changed += dumped.journal.0 - dumped.began.0;
            let path = root.path().join(format!("restored-{round}"));
            assert_eq!(restore(&target, &path, CACHE).unwrap().journal, dumped.journal);
            assert_clean(&open(&path));
        }
        drop(end);
    });
    assert!(changed > 0, "nothing was committed while the backups were made");
    handle.stop();
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn whatever_is_flipped_cut_emptied_or_deleted_in_a_backup_is_named_and_nothing_is_left() {
    let root = tempfile::tempdir().unwrap();
    let store = filled(&root.path().join("data"));
    let target = root.path().join("backup");
    save(&store, &target).unwrap();
    let path = root.path().join("restored");
    let seed = Clock::start().now().0;
    println!("seed {seed}");
    let refused = |file: &Path, what: &str| {
        let error = restore(&target, &path, CACHE).expect_err(what);
        let text = error.to_string();
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(text.contains(name), "{what} of {}: {text}", file.display());
        assert!(!path.exists(), "{what} of {} left something", file.display());
    };
    let mut tried = 0;
    for (number, file) in files(&target).into_iter().enumerate() {
        // Objects are all alike: some of them are enough.
        let is_object = file.starts_with(target.join("objects"));
        if is_object && number % 5 != 0 {
            continue;
        }
        let whole = fs::read(&file).unwrap();
        // Replaced, not overwritten: the store has the same file.
        let replace = |bytes: &[u8]| {
            fs::remove_file(&file).unwrap();
            fs::write(&file, bytes).unwrap();
        };
        for position in [
            0,
            whole.len() / 2,
            whole.len() - 1,
            (seed as usize).wrapping_mul(31) % whole.len(),
        ] {
            let mut flipped = whole.clone();
            flipped[position] ^= 1 << (seed % 8);
            replace(&flipped);
            refused(&file, "a flip");
            tried += 1;
        }
        replace(&whole[..whole.len() / 2]);
        refused(&file, "a cut");
        replace(&[]);
        refused(&file, "emptying");
        fs::remove_file(&file).unwrap();
        refused(&file, "deleting");
        fs::write(&file, &whole).unwrap();
    }
    assert!(tried >= 20, "{tried}");
    restore(&target, &path, CACHE).unwrap();
    assert_eq!(everything(&open(&path)), everything(&store));
}

#[test]
fn whatever_is_flipped_or_cut_in_an_export_is_found_and_nothing_is_left() {
    let root = tempfile::tempdir().unwrap();
    let store = filled(&root.path().join("data"));
    let mut stream = Vec::new();
    store
        .export(&mut stream, Path::new("stream"), Clock::start().now(), &go_on)
        .unwrap();
    let path = root.path().join("imported");
    let seed = Clock::start().now().0;
    println!("seed {seed}");
    let refused = |bytes: &[u8], what: String| {
        let error = import(bytes, "the stream", &path, CACHE).expect_err(&what);
        assert!(error.to_string().contains("the stream"), "{what}: {error}");
        assert!(!path.exists(), "{what} left something");
    };
    for number in 0..24 {
        let position = (seed as usize).wrapping_add(number * stream.len() / 24) % stream.len();
        let mut flipped = stream.clone();
        flipped[position] ^= 1 << (number % 8);
        refused(&flipped, format!("a flip at {position}"));
    }
    for length in [0, 10, stream.len() / 3, stream.len() - 1] {
        refused(&stream[..length], format!("a cut at {length}"));
    }
    let backup = root.path().join("backup");
    save(&store, &backup).unwrap();
    let dump = fs::read(backup.join("dump")).unwrap();
    let error = import(dump.as_slice(), "dump", &path, CACHE).unwrap_err();
    assert!(error.to_string().contains("proofkeep restore"), "{error}");
}

#[test]
fn a_backup_that_is_broken_off_leaves_nothing_that_looks_like_one() {
    let root = tempfile::tempdir().unwrap();
    let store = filled(&root.path().join("data"));
    let target = root.path().join("backup");
    // Broken off the n-th time that it asks whether it may go on.
    let mut broken = 0;
    for limit in [1, 2, 3, 50, 150, 250] {
        let asked = AtomicU64::new(0);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) + 1 >= limit;
        match store.backup(&target, Clock::start().now(), &stop) {
            Err(SaveError::Stopped) => {
                broken += 1;
                assert!(!target.exists());
                assert!(!root.path().join("backup.part").exists());
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(broken, 6);
    // What a killed one leaves has no manifest and another name; the next one removes it, and only that.
    let part = root.path().join("backup.part");
    fs::create_dir(&part).unwrap();
    fs::write(part.join("dump"), "half").unwrap();
    let error = restore(&part, &root.path().join("restored"), CACHE).unwrap_err();
    assert!(matches!(error, LoadError::NoBackup(_)), "{error}");
    save(&store, &target).unwrap();
    assert!(!part.exists());
    assert!(matches!(save(&store, &target), Err(SaveError::Exists(_))));

    let other = root.path().join("other.part");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("thesis.txt"), "mine").unwrap();
    let refused = save(&store, &root.path().join("other"));
    assert!(matches!(refused, Err(SaveError::Exists(_))), "{refused:?}");
    assert!(other.join("thesis.txt").exists());
    let refused = save(&store, &root.path().join("no/such/place"));
    assert!(matches!(refused, Err(SaveError::Target { .. })), "{refused:?}");
}

#[test]
fn a_store_is_restored_only_where_nothing_is() {
    let root = tempfile::tempdir().unwrap();
    let store = filled(&root.path().join("data"));
    let target = root.path().join("backup");
    save(&store, &target).unwrap();
    let refused = restore(&target, store.data().path(), CACHE);
    assert!(
        matches!(refused, Err(LoadError::Open(OpenError::NotNew { .. }))),
        "{refused:?}"
    );
    let path = root.path().join("mine");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("thesis.txt"), "mine").unwrap();
    assert!(restore(&target, &path, CACHE).is_err());
    assert_eq!(files(&path), [path.join("thesis.txt")]);

    // What a killed restore left is no store, and the next one takes its place.
    fs::remove_file(path.join("thesis.txt")).unwrap();
    fs::write(path.join("RESTORING"), "").unwrap();
    fs::create_dir(path.join("store.1")).unwrap();
    fs::write(path.join("store.1/db"), "half").unwrap();
    let options = proofkeep_store::Options::default();
    let started = Store::open(&path, &options).err();
    assert!(matches!(started, Some(OpenError::NotEmpty { .. })), "{started:?}");
    restore(&target, &path, CACHE).unwrap();
    assert!(!path.join("RESTORING").exists());
    assert_clean(&open(&path));
    // A directory that was there stays, empty, when its restore fails.
    let path = root.path().join("empty");
    fs::create_dir(&path).unwrap();
    fs::write(target.join("MANIFEST"), "proofkeep nonsense\n").unwrap();
    assert!(restore(&target, &path, CACHE).is_err());
    fs::remove_file(target.join("MANIFEST")).unwrap();
    assert!(matches!(
        restore(&target, &path, CACHE),
        Err(LoadError::NoBackup(_))
    ));
    assert_eq!(files(&path), [] as [PathBuf; 0]);
}

#[test]
fn objects_that_the_store_lost_are_said_and_the_rest_is_saved() {
    let root = tempfile::tempdir().unwrap();
    let store = filled(&root.path().join("data"));
    let (lost, damaged) = (Digest::of(&[3; 3000]), Digest::of(&[4; 3000]));
    fs::remove_file(store.objects().path(lost)).unwrap();
    fs::write(store.objects().path(damaged), "something else").unwrap();
    let mut expected = [lost, damaged];
    expected.sort();
    let target = root.path().join("backup");
    assert_eq!(save(&store, &target).unwrap().missing, expected);
    let path = root.path().join("restored");
    assert_eq!(restore(&target, &path, CACHE).unwrap().missing, expected);
    let mut stream = Vec::new();
    store
        .export(&mut stream, Path::new("stream"), Clock::start().now(), &go_on)
        .unwrap();
    let path = root.path().join("imported");
    let done = import(stream.as_slice(), "stream", &path, CACHE).unwrap();
    assert_eq!(
        (done.missing.as_slice(), done.counts.objects),
        (&expected[..], 18)
    );
}

#[test]
fn nothing_is_swept_while_a_backup_is_made() {
    let root = tempfile::tempdir().unwrap();
    let store = filled(&root.path().join("data"));
    let handle = io_support::start(&store);
    let loose = store.objects().put(b"nobody needs it").unwrap();
    let swept = AtomicU64::new(0);
    let target = root.path().join("backup");
    let stop = || {
        let now = handle.sweep_objects(Duration::ZERO).unwrap();
        swept.fetch_add(now.removed, Ordering::Relaxed);
        // A second one meanwhile is refused.
        assert!(matches!(
            save(&store, &root.path().join("second")),
            Err(SaveError::Busy)
        ));
        false
    };
    store.backup(&target, Clock::start().now(), &stop).unwrap();
    assert_eq!(swept.load(Ordering::Relaxed), 0);
    assert!(
        target
            .join("objects")
            .join(&loose.hex()[..2])
            .join(loose.hex())
            .exists()
    );
    assert!(handle.sweep_objects(Duration::ZERO).unwrap().removed > 0);
    handle.stop();
}
