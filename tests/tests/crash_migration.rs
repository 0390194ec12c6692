//! A migration or a compaction, which do the same, killed before and after every durable operation of it: one of the two
//! databases is in use then and whole, nothing is lost, and the same command ends what was begun.
//!
//! What is migrated: a store of each schema that there ever was (`tests/fixtures/store-v*`), and one that a daemon left
//! when it was killed at work.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use proofkeep_store::{Options, Store};
use proofkeep_tests::harness::{Launch, command, proofkeep, until};
use proofkeep_tests::judge::Judge;
use proofkeep_tests::kill::copy;
use proofkeep_tests::ledger::{Ledger, Said};
use proofkeep_tests::report::Report;
use proofkeep_tests::shim::{Kill, Shims, When, counted};
use serde_json::json;
use uuid::Uuid;

/// One of so many killed directories is gone on with by a daemon.
const GO_ON_EVERY: u64 = 12;
/// Runs differ by an operation or two: so many more places are tried than one run had.
const MORE: u64 = 3;
/// Kills side by side; sled's threads are waited for more than anything is computed.
const SIDE_BY_SIDE: usize = 6;

#[test]
fn a_store_of_each_schema_is_kept_opens_and_migrates() {
    let latest = latest();
    for schema in 1..=latest {
        let root = tempfile::tempdir().unwrap();
        let data = fixture(root.path(), schema);
        assert_eq!(schema_of(&data), schema);
        let fsck = || proofkeep(["fsck".as_ref(), "--data-dir".as_ref(), data.as_os_str()]);
        if schema < latest {
            // It is not touched before somebody says so.
            assert!(fsck().expect(1).stderr.contains("proofkeep migrate"));
        } else {
            let _ = fsck().expect(0);
        }
        let _ = proofkeep(["migrate".as_ref(), "--data-dir".as_ref(), data.as_os_str()]).expect(0);
        let _ = fsck().expect(0);
        let judge = Judge {
            made_up: true,
            ..Judge::default()
        };
        let wrong = judge.judge(&data, std::iter::empty());
        assert!(wrong.is_empty(), "schema {schema}: {wrong:?}");
    }
}

#[test]
fn a_migration_killed_anywhere_leaves_one_of_two_whole_stores() {
    let root = tempfile::tempdir().unwrap();
    let mut report = Report::new("migration-kills", 0);
    let mut sources: Vec<(String, Source)> = (1..=latest())
        .map(|schema| {
            let place = root.path().join(format!("schema-{schema}"));
            std::fs::create_dir(&place).unwrap();
            let data = fixture(&place, schema);
            (format!("schema {schema}"), Source::new(data, Vec::new()))
        })
        .collect();
    sources.push(("a daemon's".to_owned(), lived(root.path())));
    for (name, source) in &sources {
        for (verb, moment, when) in [
            ("migrate", "before", When::Before),
            ("compact", "after", When::After),
        ] {
            let pass = source.killed_at_each(root.path(), verb, when);
            eprintln!("{name}, {verb} killed {moment}: {pass:?}");
            // A run that nothing kills has about as many; fewer would mean that a part of it was never hit.
            assert!(
                pass.kills >= pass.operations.saturating_sub(2) && pass.operations > 20,
                "{pass:?}"
            );
            assert!(
                pass.old > 0 && pass.new > 0,
                "both databases are in use at some moment: {pass:?}"
            );
            report = report
                .count("kills", pass.kills)
                .count("the old database in use after the kill", pass.old)
                .count("the new database in use after the kill", pass.new)
                .count("gone on with by a daemon", pass.gone_on);
        }
    }
    report.publish();
}

/// What came of a kill at each operation.
#[derive(Debug, Default)]
struct Pass {
    /// Durable operations of a run that nothing kills.
    operations: u64,
    kills: u64,
    old: u64,
    new: u64,
    gone_on: u64,
}

impl Pass {
    fn add(&mut self, other: Self) {
        self.kills += other.kills;
        self.old += other.old;
        self.new += other.new;
        self.gone_on += other.gone_on;
    }
}

/// A directory that is to be migrated.
struct Source {
    data: PathBuf,
    /// The digest of every record, in the latest schema.
    records: String,
    /// What callers were told of it.
    said: Vec<Said>,
    current: u64,
}

impl Source {
    fn new(data: PathBuf, said: Vec<Said>) -> Self {
        let place = data.with_file_name("looked-at");
        copy(&data, &place).unwrap();
        if schema_of(&data) < latest() {
            let _ = proofkeep(["migrate".as_ref(), "--data-dir".as_ref(), place.as_os_str()]).expect(0);
        }
        let records = Judge::records(&place).unwrap();
        std::fs::remove_dir_all(&place).unwrap();
        let current = current(&data);
        Self {
            data,
            records,
            said,
            current,
        }
    }

    fn killed_at_each(&self, root: &Path, verb: &str, when: When) -> Pass {
        let operations = self.count(&root.join("counted"), verb);
        let (next, pass) = (AtomicU64::new(1), Mutex::new(Pass::default()));
        std::thread::scope(|scope| {
            for side in 0..SIDE_BY_SIDE {
                let (next, pass) = (&next, &pass);
                scope.spawn(move || {
                    let scratch = root.join(format!("scratch-{side}"));
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        if at > operations + MORE {
                            break;
                        }
                        let one = self.killed_at(&scratch, verb, at, when);
                        pass.lock().unwrap().add(one);
                    }
                });
            }
        });
        Pass {
            operations,
            ..pass.into_inner().unwrap()
        }
    }

    /// No kill, if the run ended before it came to that operation.
    fn killed_at(&self, scratch: &Path, verb: &str, at: u64, when: When) -> Pass {
        copy(&self.data, scratch).unwrap();
        let mut kill = Kill::counting(scratch);
        (kill.at, kill.when) = (at, when);
        let (status, said) = migrate(verb, scratch, kill);
        let mut pass = Pass::default();
        if status.signal() == Some(libc::SIGKILL) {
            pass.kills = 1;
            self.check(scratch, verb, at, &mut pass);
        } else {
            assert!(status.success(), "{status}: {said}");
        }
        std::fs::remove_dir_all(scratch).unwrap();
        pass
    }

    fn count(&self, scratch: &Path, verb: &str) -> u64 {
        copy(&self.data, scratch).unwrap();
        let file = scratch.with_extension("count");
        let mut kill = Kill::counting(scratch);
        kill.count_file = Some(file.clone());
        let (status, said) = migrate(verb, scratch, kill);
        assert!(status.success(), "{said}");
        let operations = counted(&file).unwrap().len() as u64;
        std::fs::remove_file(&file).unwrap();
        std::fs::remove_dir_all(scratch).unwrap();
        operations
    }

    /// What the kill left: one of the two databases, whole; the command ends what was begun, or a daemon goes on.
    fn check(&self, scratch: &Path, verb: &str, at: u64, pass: &mut Pass) {
        let used = current(scratch);
        assert!(
            used == self.current || used == self.current + 1,
            "store.{used} is in use, of {} and its successor",
            self.current
        );
        *(if used == self.current {
            &mut pass.old
        } else {
            &mut pass.new
        }) += 1;
        // One of an older schema can't be opened before it is migrated.
        if let Some(found) = Judge::records(scratch) {
            assert_eq!(found, self.records, "store.{used} holds something else");
        }
        if !self.said.is_empty() && at.is_multiple_of(GO_ON_EVERY) {
            self.go_on(scratch);
            pass.gone_on += 1;
            return;
        }
        let _ = proofkeep([verb.as_ref(), "--data-dir".as_ref(), scratch.as_os_str()]).expect(0);
        assert_eq!(current(scratch), used + 1, "the next one is in use");
        assert_eq!(
            Judge::records(scratch).as_ref(),
            Some(&self.records),
            "store.{} holds something else",
            used + 1
        );
        self.judge(scratch, false);
    }

    fn go_on(&self, scratch: &Path) {
        let ledger = Ledger::new();
        self.said.iter().for_each(|said| ledger.note(said.clone()));
        let daemon = launch(scratch).start();
        for (id, ends) in ledger.jobs() {
            let job = daemon.wait_for_end(&id.to_string());
            assert!(ends.contains(&job["state"].as_str().unwrap()), "{job}");
        }
        assert!(daemon.terminate().success());
        self.judge(scratch, true);
    }

    fn judge(&self, scratch: &Path, ended: bool) {
        let said: Vec<Vec<u8>> = self
            .said
            .iter()
            .map(|said| serde_json::to_vec(said).unwrap())
            .collect();
        let judge = Judge {
            ended,
            made_up: self.said.is_empty(),
            ..Judge::default()
        };
        let wrong = judge.judge(scratch, said.iter().map(Vec::as_slice));
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

fn migrate(verb: &str, data: &Path, kill: Kill) -> (std::process::ExitStatus, String) {
    let mut command = command([verb.as_ref(), "--data-dir".as_ref(), data.as_os_str()]);
    let shims = Shims {
        kill: Some(kill),
        ..Shims::default()
    };
    shims.apply(&mut command).unwrap();
    let output = command.output().unwrap();
    (
        output.status,
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// The database in use.
fn current(data: &Path) -> u64 {
    let text = std::fs::read_to_string(data.join("CURRENT")).unwrap();
    text.trim().strip_prefix("store.").unwrap().parse().unwrap()
}

/// The schema of a data directory.
fn schema_of(data: &Path) -> u16 {
    let format = std::fs::read_to_string(data.join("FORMAT")).unwrap();
    let line = format.lines().find_map(|line| line.strip_prefix("schema "));
    line.unwrap().parse().unwrap()
}

/// The one that this build writes.
fn latest() -> u16 {
    let root = tempfile::tempdir().unwrap();
    drop(Store::open(&root.path().join("data"), &Options::default()).unwrap());
    schema_of(&root.path().join("data"))
}

/// What a build with that schema left when it was killed.
fn fixture(place: &Path, schema: u16) -> PathBuf {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("fixtures/store-v{schema}/store-v{schema}.tar.gz"));
    assert!(
        archive.is_file(),
        "there is no store of schema {schema} in tests/fixtures"
    );
    let tar = Command::new("tar")
        .arg("-xzf")
        .arg(archive)
        .arg("-C")
        .arg(place)
        .status();
    assert!(tar.unwrap().success());
    place.join("data")
}

fn launch(data: &Path) -> Launch {
    Launch::test_build(data).args(["--cpu-devices", "2", "--threads", "1", "--memory", "8GiB"])
}

/// What a daemon left that was killed at work: a job that is done, a large one that is cancelled, one half done.
fn lived(root: &Path) -> Source {
    let data = root.join("lived");
    let daemon = launch(&data).start();
    let mut said = Vec::new();
    let mut submit = |partitions: u32, piece_ms: u64| {
        let inputs = vec![json!({ "piece_ms": piece_ms }); partitions as usize];
        let body = json!({ "kind": "scripted", "inputs": inputs });
        let job = daemon.post("/v1/jobs", &body).expect(202).json();
        let id = Uuid::parse_str(job["id"].as_str().unwrap()).unwrap();
        said.push(Said::Job {
            id,
            partitions,
            innocent: true,
        });
        id
    };
    let done = submit(3, 0);
    let cancelled = submit(600, 0);
    let open = submit(40, 2);
    let path = format!("/v1/jobs/{cancelled}/cancel");
    let _ = daemon.send("POST", &path, &[], None).expect(202);
    said.extend([Said::Asked(cancelled), Said::Cancel(cancelled)]);
    said.extend(Ledger::told_of(&daemon.wait_for_end(&done.to_string())));
    until("some of the last job is proved", || {
        let job = daemon.get(&format!("/v1/jobs/{open}")).expect(200).json();
        said.extend(Ledger::told_of(&job));
        job["summary"]["proved"].as_u64() > Some(2)
    });
    drop(daemon.kill());
    Source::new(data, said)
}
