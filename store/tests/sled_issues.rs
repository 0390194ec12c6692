//! Faults that others reported of sled 0.34 and that are open there, each tried through our rules. The number in a name
//! is that of sled's own issue.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod io_support;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use io_support::{boot, open, submit, submitted};
use proofkeep_store::machine::Command;
use proofkeep_store::migrate::migrate;
use proofkeep_store::records::Job;
use proofkeep_store::view::{View, records};
use proofkeep_store::{Store, keys};

/// Set for a child that is to do the work and print its memory.
const CHILD: &str = "PROOFKEEP_TEST_CHILD";

/// What is done to a file's bytes.
type Damage = fn(&[u8]) -> Vec<u8>;

fn jobs(store: &Store) -> Vec<Job> {
    store
        .read(|view| records(view, &keys::family(keys::Family::Job)))
        .unwrap()
}

fn commit_jobs(path: &Path, count: u32, partitions: u32) {
    let store = open(path);
    let handle = boot(&store);
    for _ in 0..count {
        submitted(handle.commit_blocking(Command::Submit(submit(partitions))));
    }
    handle.stop();
}

fn snapshots(path: &Path) -> Vec<PathBuf> {
    fs::read_dir(path.join("store.1"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|file| file.file_name().unwrap().to_string_lossy().starts_with("snap."))
        .collect()
}

/// 1234 and 1289: sled's threads hold the lock of a database for a moment after the last handle is dropped, and an open
/// in that moment fails.
#[test]
fn issue_1289_opening_at_once_after_closing_waits_for_the_lock() {
    let data = tempfile::tempdir().unwrap();
    for round in 1..=60 {
        commit_jobs(data.path(), 1, 3);
        assert_eq!(jobs(&open(data.path())).len(), round);
    }
    for from in 1..=20 {
        let done = migrate(data.path(), 16 << 20).unwrap();
        assert_eq!((done.from, done.to), (from, from + 1));
    }
    assert_eq!(jobs(&open(data.path())).len(), 60);
}

/// 1166, 1387, 1527 and 1533: a snapshot that is empty, cut off, overwritten, or whose writing was interrupted keeps sled
/// from ever opening again, by an error or by a panic.
#[test]
fn issue_1533_no_snapshot_however_damaged_keeps_a_store_from_opening() {
    let data = tempfile::tempdir().unwrap();
    commit_jobs(data.path(), 12, 5);
    let before = jobs(&open(data.path()));
    let whole: Vec<_> = snapshots(data.path())
        .into_iter()
        .map(|path| (fs::read(&path).unwrap(), path))
        .collect();
    assert!(!whole.is_empty(), "sled takes its snapshots while it opens");
    let damages: [Damage; 7] = [
        |_| Vec::new(),
        |bytes| bytes[..1].to_vec(),
        |bytes| bytes[..bytes.len() / 2].to_vec(),
        |bytes| bytes[..bytes.len() - 1].to_vec(),
        |bytes| vec![0; bytes.len()],
        |bytes| vec![0xff; bytes.len()],
        |bytes| [bytes, bytes].concat(),
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        for left in snapshots(data.path()) {
            fs::remove_file(left).unwrap();
        }
        for (bytes, path) in &whole {
            fs::write(path, damage(bytes)).unwrap();
            let mut generating = path.clone().into_os_string();
            generating.push(".generating");
            fs::write(generating, damage(bytes)).unwrap();
        }
        assert_eq!(jobs(&open(data.path())), before, "damage {number}");
        assert_eq!(jobs(&open(data.path())), before, "damage {number}, opened again");
    }
}

/// 1301 and 1412: iterators beside transactions, and many readers beside a writer, stop for ever.
#[test]
fn issue_1412_readers_beside_a_writer_do_not_deadlock() {
    const PATIENCE: Duration = Duration::from_secs(300);
    let (finished, ends) = mpsc::channel();
    std::thread::spawn(move || {
        let data = tempfile::tempdir().unwrap();
        let store = open(data.path());
        let handle = boot(&store);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        let page = store.read(|view: &dyn View| view.scan(&[], None, 64)).unwrap();
                        assert!(!page.is_empty());
                        for (key, _) in page {
                            // It may have gone meanwhile; what counts is that an answer comes.
                            store.read(|view: &dyn View| view.get(&key)).unwrap();
                        }
                    }
                });
            }
            for round in 0..150 {
                let job = submitted(handle.commit_blocking(Command::Submit(submit(1 + round % 40))));
                if round % 3 == 0 {
                    let actor = "tester".into();
                    handle.commit_blocking(Command::Cancel { job, actor }).unwrap();
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        handle.stop();
        finished.send(jobs(&store).len()).unwrap();
    });
    let kept = ends.recv_timeout(PATIENCE).expect("nobody waits for ever");
    assert_eq!(kept, 150);
}

/// 786: keys that are written again and again make the file grow without bound.
#[test]
fn issue_786_a_store_that_is_rewritten_does_not_grow_with_what_it_wrote() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let handle = boot(&store);
    let size = || fs::metadata(data.path().join("store.1/db")).unwrap().len();
    let job = submitted(handle.commit_blocking(Command::Submit(submit(1))));
    let mut sizes = Vec::new();
    for _ in 0..4 {
        for _ in 0..1500 {
            // The same few records each time; what the journal gains is small beside the log of the rewriting.
            let actor = "tester".to_owned();
            handle
                .commit_blocking(Command::Cancel {
                    job,
                    actor: actor.clone(),
                })
                .unwrap();
            let retry = Command::Retry {
                job,
                actor,
                replacement: None,
                damaged: Vec::new(),
            };
            handle.commit_blocking(retry).unwrap();
        }
        sizes.push(size());
    }
    let growth = sizes[3] - sizes[1];
    assert!(growth <= 6 * (8 << 20), "bytes after each round: {sizes:?}");
}

fn rss() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// 986, 1036, 1309, 1388 and 1410: reading a database through, and opening one, takes many times the cache that was set.
#[test]
fn issue_1036_memory_stays_near_the_cache_while_everything_is_read() {
    if let Some(data) = std::env::var_os(CHILD) {
        let before = rss();
        let store = open(Path::new(&data));
        let opened = rss();
        let mut records = 0_u64;
        for _ in 0..3 {
            let mut after: Option<Vec<u8>> = None;
            loop {
                let page = store
                    .read(|view: &dyn View| view.scan(&[], after.as_deref(), 256))
                    .unwrap();
                let Some((last, _)) = page.last() else { break };
                after = Some(last.to_vec());
                records += page.len() as u64;
            }
        }
        let mut out = std::io::stderr();
        writeln!(out, "memory {} {} {records}", opened - before, rss() - before).unwrap();
        return;
    }
    let data = tempfile::tempdir().unwrap();
    commit_jobs(data.path(), 60, 1024);
    let output = Process::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "issue_1036_memory_stays_near_the_cache_while_everything_is_read",
        ])
        .arg("--nocapture")
        .env(CHILD, data.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let numbers: Vec<u64> = said
        .lines()
        .find_map(|line| line.strip_prefix("memory "))
        .expect("the child says what it used")
        .split(' ')
        .map(|number| number.parse().unwrap())
        .collect();
    let [opened, read, records] = numbers[..] else {
        panic!("three numbers: {said}")
    };
    assert!(records >= 3 * 60 * 1024, "{records} records were read");
    // The cache is 16 MiB; sled counts a fraction of what it holds.
    assert!(opened < 256 << 20, "{opened} bytes to open");
    assert!(
        read < 256 << 20,
        "{read} bytes after reading everything three times"
    );
}
