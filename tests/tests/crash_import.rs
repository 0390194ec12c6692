//! Imports that are killed midway: of a circuit, by the daemon and its worker process, and of a whole store, by
//! `proofkeep restore` and `proofkeep import`. What was begun goes on or begins again, and nothing half done is taken for
//! a store.
//!
//! ```text
//! PROOFKEEP_IMPORT_KILLS=100000 PROOFKEEP_SEED=7 cargo test --release -p proofkeep-tests --test crash_import -- --nocapture
//! ```
//! `PROOFKEEP_IMPORT_KILLS` is how many kills there are of each of the four (8 without it, and never fewer than 4), spread
//! evenly over all places, which are before and after each durable operation, from an offset that the seed draws; with
//! more than there are places each one has its kill.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod backup_support;

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use backup_support::{JSON, assert_kept, backup, fsck, launch, prove, register, submit};
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{Daemon, Launch, command, proofkeep, until};
use proofkeep_tests::kill::copy;
use proofkeep_tests::ledger::{Ledger, Said};
use proofkeep_tests::report::Report;
use proofkeep_tests::setting;
use proofkeep_tests::shim::{Counted, Kill, Role, Shims, When, counted};
use serde_json::{Value, json};
use uuid::Uuid;

/// Kills of each kind, where nobody says how many, and at least.
const KILLS: usize = 8;
const FLOOR: usize = 4;
/// Runs differ by an operation or two: so many places are tried beyond those of one run.
const MORE: u64 = 2;
/// Scenes at once: they wait for the disk more than they compute.
const SIDE_BY_SIDE: usize = 4;
/// A directory that is made has hundreds of these, which are alike.
const ALIKE: &str = "mkdir";
const NAME: &str = "poseidon2";

/// A place to kill at.
type Place = (u64, When);

fn kills() -> usize {
    let kills = setting::number("PROOFKEEP_IMPORT_KILLS").unwrap_or(KILLS);
    assert!(kills >= FLOOR, "PROOFKEEP_IMPORT_KILLS must be {FLOOR} at least");
    kills
}

/// So many of these places, spread evenly, and the first and the last two of them always.
fn some(all: &[Place], seed: u64) -> Vec<Place> {
    let count = kills().min(all.len());
    let step = all.len() / count;
    let offset = usize::try_from(seed).unwrap_or(0) % step.max(1);
    let spread = (0..count).map(|place| offset + place * step);
    let ends = (0..2).chain(all.len().saturating_sub(2)..all.len());
    let places: BTreeSet<usize> = spread.chain(ends).collect();
    places.into_iter().map(|place| all[place]).collect()
}

fn places(numbers: impl IntoIterator<Item = u64>) -> Vec<Place> {
    let both = |number| [(number, When::Before), (number, When::After)];
    numbers.into_iter().flat_map(both).collect()
}

/// Does one thing at each place, some side by side, each with a directory of its own; answers how often it was `true`.
fn at_each(root: &Path, places: &[Place], one: impl Fn(&Path, Place) -> bool + Sync) -> u64 {
    let (next, hits) = (AtomicUsize::new(0), Mutex::new(0));
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                while let Some(place) = places.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let scratch = tempfile::tempdir_in(root).unwrap();
                    if one(scratch.path(), *place) {
                        *hits.lock().unwrap() += 1;
                    }
                }
            });
        }
    });
    hits.into_inner().unwrap()
}

/// A directory with the files of a circuit and a witness, and nothing else.
struct Uploaded {
    data: PathBuf,
    circuit: Value,
    witness: String,
}

impl Uploaded {
    fn new(root: &Path) -> Self {
        let data = root.join("uploaded");
        let daemon = launch(&data).start();
        let upload = |file: &str| daemon.upload(&fixtures::read(NAME, file));
        let circuit = json!({
            "zkey": upload("circuit.zkey"), "r1cs": upload("circuit.r1cs"), "wasm": upload("circuit.wasm"),
        });
        let witness = upload("witness.wtns");
        assert!(daemon.terminate().success());
        Self {
            data,
            circuit,
            witness,
        }
    }

    /// Registers the circuit, or says again that it is to be there.
    fn register(&self, daemon: &Daemon, ledger: &Ledger) -> Option<()> {
        let body = self.circuit.to_string();
        let answer = daemon.try_send(
            "PUT",
            &format!("/v1/circuits/{NAME}"),
            &[JSON],
            Some(body.as_bytes()),
        )?;
        assert!(matches!(answer.status, 200..=202), "{}", answer.text());
        let digest = answer.json()["digest"].as_str().unwrap().to_owned();
        let name = NAME.to_owned();
        ledger.note(Said::Circuit { name, digest });
        Some(())
    }

    /// Submits a job of that circuit, ready or not; `None` if the daemon didn't answer.
    fn submit(&self, daemon: &Daemon, ledger: &Ledger) -> Option<Uuid> {
        let body = json!({ "kind": "groth16", "circuit": NAME, "inputs": [{ "witness": self.witness }] });
        let answer = daemon.try_send("POST", "/v1/jobs", &[JSON], Some(body.to_string().as_bytes()))?;
        assert_eq!(answer.status, 202, "{}", answer.text());
        let id = Uuid::parse_str(answer.json()["id"].as_str().unwrap()).unwrap();
        ledger.note(Said::Job {
            id,
            partitions: 1,
            innocent: true,
        });
        Some(id)
    }

    /// The numbers of the operations of the daemon, or of its worker, from where the one is ready to where the circuit is.
    fn operations(&self, root: &Path, role: Role) -> Vec<u64> {
        let scratch = tempfile::tempdir_in(root).unwrap();
        let (data, file) = (scratch.path().join("data"), scratch.path().join("count"));
        copy(&self.data, &data).unwrap();
        let kill = Kill {
            role: Some(role),
            count_file: Some(file.clone()),
            ..Kill::counting(&data)
        };
        let daemon = start(&data, kill).start();
        let before = match role {
            Role::Daemon => counted(&file).unwrap().len() as u64,
            Role::Worker => 0,
        };
        let ledger = Ledger::new();
        self.register(&daemon, &ledger).unwrap();
        self.submit(&daemon, &ledger).unwrap();
        until("the circuit is ready", || {
            daemon.get(&format!("/v1/circuits/{NAME}")).expect(200).json()["state"] == "ready"
        });
        let after = counted(&file).unwrap().len() as u64;
        assert!(daemon.terminate().success());
        (before + 1..=after + MORE).collect()
    }

    /// One kill. `true` if it came.
    fn killed_at(&self, scratch: &Path, (at, when): Place, role: Role) -> bool {
        let (data, once) = (scratch.join("data"), scratch.join("once"));
        copy(&self.data, &data).unwrap();
        let ledger = Ledger::new();
        let kill = Kill {
            at,
            when,
            role: Some(role),
            once_file: Some(once.clone()),
            ..Kill::counting(&data)
        };
        let mut job = None;
        if let Ok(mut daemon) = start(&data, kill).try_start() {
            until("it is ready, or killed", || {
                let ready = daemon.try_send("GET", "/readyz", &[], None);
                daemon.ended().is_some() || ready.is_some_and(|answer| answer.status == 200)
            });
            // What isn't answered may have been done or not.
            job = self
                .register(&daemon, &ledger)
                .and_then(|()| self.submit(&daemon, &ledger));
            until("the kill came, or the job has ended without it", || {
                std::thread::park_timeout(Duration::from_millis(5));
                let path = job.map_or_else(|| "/v1/status".to_owned(), |job| format!("/v1/jobs/{job}"));
                let answer = daemon.try_send("GET", &path, &[], None);
                let ended = answer.is_some_and(|answer| answer.json()["ended_at"].is_string());
                ended || daemon.ended().is_some()
            });
            if daemon.ended().is_none() {
                assert!(
                    role == Role::Worker || !once.exists(),
                    "the daemon was to be killed"
                );
                assert!(daemon.terminate().success());
            }
        }
        fsck(&data);
        assert_kept(&data, &ledger);
        let daemon = launch(&data).start();
        self.register(&daemon, &ledger).unwrap();
        let job = job.unwrap_or_else(|| self.submit(&daemon, &ledger).unwrap());
        let ended = daemon.wait_for_end(&job.to_string());
        assert_eq!(
            ended["state"], "succeeded",
            "{at} {when:?} of the {role:?}: {ended}"
        );
        Ledger::told_of(&ended)
            .into_iter()
            .for_each(|said| ledger.note(said));
        ledger.note(Said::Ready {
            name: NAME.to_owned(),
        });
        assert!(daemon.terminate().success());
        fsck(&data);
        assert_kept(&data, &ledger);
        once.exists()
    }
}

fn start(data: &Path, kill: Kill) -> Launch {
    launch(data).shims(Shims {
        kill: Some(kill),
        ..Shims::default()
    })
}

#[test]
fn an_import_of_a_circuit_killed_midway_goes_on_and_its_jobs_succeed() {
    let (root, seed) = (tempfile::tempdir().unwrap(), setting::seed());
    eprintln!("PROOFKEEP_IMPORT_KILLS={} PROOFKEEP_SEED={seed}", kills());
    let uploaded = Uploaded::new(root.path());
    let mut report = Report::new("circuit-import-kills", seed);
    for (role, name) in [
        (Role::Daemon, "of the daemon"),
        (Role::Worker, "of its worker process"),
    ] {
        let operations = uploaded.operations(root.path(), role);
        assert!(operations.len() > 3, "{role:?}: {operations:?}");
        let places = some(&places(operations), seed);
        let hits = at_each(root.path(), &places, |scratch, place| {
            uploaded.killed_at(scratch, place, role)
        });
        eprintln!("{hits} kills {name} at {places:?}");
        assert!(
            hits * 2 >= places.len() as u64,
            "only {hits} kills {name} at {places:?}"
        );
        report = report.count("kills", hits).count(&format!("kills {name}"), hits);
    }
    report.publish();
}

/// A store as it was saved, and how it is made again.
struct Saved {
    verb: &'static str,
    from: PathBuf,
    ledger: Ledger,
}

impl Saved {
    fn command(&self, target: &Path) -> Command {
        command([
            self.verb.as_ref(),
            self.from.as_os_str(),
            "--data-dir".as_ref(),
            target.as_os_str(),
        ])
    }

    fn run(&self, target: &Path, kill: Kill) -> Output {
        let mut command = self.command(target);
        let shims = Shims {
            kill: Some(kill),
            ..Shims::default()
        };
        shims.apply(&mut command).unwrap();
        command.output().unwrap()
    }

    /// The places of a run that nothing kills: of what is alike, each thirtieth from one that the seed draws.
    fn places(&self, root: &Path, seed: u64) -> Vec<Place> {
        let scratch = tempfile::tempdir_in(root).unwrap();
        let file = scratch.path().join("count");
        let place = scratch.path().join("place");
        std::fs::create_dir(&place).unwrap();
        let kill = Kill {
            count_file: Some(file.clone()),
            ..Kill::counting(&place)
        };
        let output = self.run(&place.join("target"), kill);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let operations = counted(&file).unwrap();
        let draws = |operation: &Counted| {
            operation.operation != ALIKE || (operation.number + seed).is_multiple_of(30)
        };
        let numbers: Vec<u64> = operations
            .iter()
            .filter(|of| draws(of))
            .map(|of| of.number)
            .collect();
        let (drawn, all) = (numbers.len(), operations.len());
        eprintln!(
            "{} has {all} durable operations, {drawn} are places to kill at",
            self.verb
        );
        places(numbers)
    }

    /// One kill; `true` if it came.
    fn killed_at(&self, scratch: &Path, (at, when): Place) -> bool {
        let place = scratch.join("place");
        let target = place.join("target");
        std::fs::create_dir(&place).unwrap();
        let kill = Kill {
            at,
            when,
            ..Kill::counting(&place)
        };
        let output = self.run(&target, kill);
        let which = format!("{} killed at {at} {when:?}", self.verb);
        if output.status.signal() != Some(libc::SIGKILL) {
            assert!(
                output.status.success(),
                "{which}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            return false;
        }
        let again = || {
            let output = self.command(&target).output().unwrap();
            (
                output.status.success(),
                String::from_utf8_lossy(&output.stderr).into_owned(),
            )
        };
        // A store is there, whole, or none is.
        if target.join("FORMAT").exists() {
            fsck(&target);
            assert_kept(&target, &self.ledger);
            let (made, said) = again();
            assert!(
                !made && said.contains(target.to_str().unwrap()),
                "{which}, and again: {said}"
            );
        } else {
            self.refused(&target, &which);
            let (made, said) = again();
            assert!(made, "{which}, and again: {said}");
        }
        fsck(&target);
        assert_kept(&target, &self.ledger);
        true
    }

    /// What a kill left is no store for anybody, and each says so.
    fn refused(&self, target: &Path, which: &str) {
        let ran = proofkeep(["fsck".as_ref(), "--data-dir".as_ref(), target.as_os_str()]);
        let names = |text: &str| text.contains(target.to_str().unwrap());
        assert!(
            ran.code != 0 && names(&ran.stderr),
            "{which}: fsck says {}: {}",
            ran.code,
            ran.stderr
        );
        // An empty directory is one in which a daemon makes a store.
        let begun = std::fs::read_dir(target)
            .is_ok_and(|mut entries| entries.any(|entry| entry.unwrap().file_name() != "LOCK"));
        if begun {
            match launch(target).try_start() {
                Ok(_) => panic!("{which}: a daemon takes what is half made for a store"),
                Err(failed) => assert!(
                    failed.status.code().is_some_and(|code| code > 0) && names(&failed.stderr),
                    "{which}: {}: {}",
                    failed.status,
                    failed.stderr
                ),
            }
        }
    }
}

/// A backup and an export of a store with a proof, jobs that are done, and one that is half done.
fn saved(root: &Path) -> [Saved; 2] {
    let data = root.join("data");
    let (gate, ledger) = (root.join("gate"), Ledger::new());
    let daemon = launch(&data).start();
    let witness = register(&daemon);
    let proved = prove(&daemon, &ledger, &witness);
    let done = submit(&daemon, &ledger, &[json!({ "salt": 1 }), json!({ "salt": 2 })]).unwrap();
    for id in [proved, done] {
        let ended = daemon.wait_for_end(&id.to_string());
        Ledger::told_of(&ended)
            .into_iter()
            .for_each(|said| ledger.note(said));
    }
    let waits = json!({ "gate": { "stage": "finish", "file": gate } });
    let waits = submit(&daemon, &ledger, &[json!({}), waits]).unwrap();
    until("a part of it is proved", || {
        let job = daemon.get(&format!("/v1/jobs/{waits}")).expect(200).json();
        job["summary"]["proved"] == 1
    });
    backup(&data, &root.join("backup")).expect(0);
    daemon.kill();
    let file = root.join("export");
    let _ = proofkeep([
        "export".as_ref(),
        file.as_os_str(),
        "--data-dir".as_ref(),
        data.as_os_str(),
    ])
    .expect(0);
    [("restore", root.join("backup")), ("import", file)].map(|(verb, from)| Saved {
        verb,
        from,
        ledger: ledger.copy(),
    })
}

#[test]
fn a_restore_or_an_import_killed_midway_leaves_no_store_and_can_be_done_again() {
    let (root, seed) = (tempfile::tempdir().unwrap(), setting::seed());
    eprintln!("PROOFKEEP_IMPORT_KILLS={} PROOFKEEP_SEED={seed}", kills());
    let mut report = Report::new("restore-kills", seed);
    for saved in saved(root.path()) {
        let all = saved.places(root.path(), seed);
        assert!(all.len() > 20, "{}: {all:?}", saved.verb);
        let places = some(&all, seed);
        let hits = at_each(root.path(), &places, |scratch, place| {
            saved.killed_at(scratch, place)
        });
        eprintln!("{hits} kills of {} at {places:?}", saved.verb);
        // One made anew has as many operations, give or take a few: the last places may not be reached.
        assert!(
            hits * 4 >= places.len() as u64 * 3,
            "only {hits} kills at {places:?}"
        );
        report = report
            .count("kills", hits)
            .count(&format!("kills of {}", saved.verb), hits);
    }
    report.publish();
}
