//! The run that is recorded: full groups, the largest job, pruning, uploads; three lives, two of them ended by a kill.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proofkeep_tests::harness::{Daemon, Http, Launch, until};
use proofkeep_tests::ledger::{Ledger, Said};
use proofkeep_tests::powercut::{Recording, acknowledge};
use proofkeep_tests::shim::{Record, Role, Shims};
use serde_json::{Value, json};
use uuid::Uuid;

/// Callers at once.
const CALLERS: u64 = 64;
/// Jobs of each, in each life.
const JOBS: u64 = 2;
/// Largest jobs that are submitted and cancelled at once, in each life.
const ROUNDS: u32 = 24;
/// So many more of them at most, until a segment of the log has been used again: mostly one has been by then.
const MORE_ROUNDS: u32 = 480;
/// Ended jobs that are kept.
const KEPT: &str = "24";

/// A recorded run.
pub struct Recorded {
    pub data: PathBuf,
    pub log: PathBuf,
    groups: u64,
    commands: u64,
    kept: u64,
    journal: u64,
}

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            groups,
            commands,
            kept,
            journal,
            ..
        } = self;
        write!(
            f,
            "{commands} commands in {groups} groups while {CALLERS} callers submitted; {journal} events, {kept} kept"
        )
    }
}

/// Makes it.
pub fn record(root: &Path) -> Recorded {
    let mut recorded = Recorded {
        data: root.join("data"),
        log: root.join("log"),
        groups: 0,
        commands: 0,
        kept: 0,
        journal: 0,
    };
    std::fs::create_dir(&recorded.data).unwrap();
    let mut unfinished = None;
    for life in 0..3 {
        let daemon = start(&recorded);
        let client = Client {
            http: daemon.http(),
            log: recorded.log.clone(),
            salt: AtomicU64::new(life << 32),
            said: Mutex::default(),
        };
        unfinished.take().into_iter().for_each(|job| client.cancel(job));
        // Much log and few events: so that segments are freed, and used again.
        rounds(&client);
        crowd(&client, &mut recorded);
        if life == 2 {
            until_a_segment_is_used_again(&client);
        }
        let largest = client.submit(1024, 0);
        client.upload(life);
        // Some of its partitions are proved, then it is cancelled in one transaction; or it is cut off by the kill.
        until("a part of the largest job is proved", || {
            client.look(largest)["summary"]["proved"].as_u64() > Some(10)
        });
        let status = daemon.get("/v1/status").json();
        (recorded.journal, recorded.kept) = (number(&status, "journal"), number(&status, "journal_kept"));
        if life < 2 {
            if life == 0 {
                client.cancel(largest);
            } else {
                unfinished = Some(largest);
            }
            stop(daemon, &recorded.log);
        } else {
            client.cancel(largest);
            assert!(daemon.terminate().success());
        }
    }
    assert!(recorded.kept < recorded.journal, "nothing was pruned");
    assert!(
        recorded.commands >= 4 * recorded.groups,
        "groups are not full: {recorded}"
    );
    recorded
}

fn start(recorded: &Recorded) -> Daemon {
    let record = Record {
        dir: recorded.data.clone(),
        log: recorded.log.clone(),
        role: Some(Role::Daemon),
        ack_file: None,
    };
    Launch::test_build(&recorded.data)
        .args([
            "--cpu-devices",
            "4",
            "--threads",
            "1",
            "--max-jobs",
            KEPT,
            "--grace",
            "5s",
        ])
        .shims(Shims {
            record: Some(record),
            ..Shims::default()
        })
        .start()
}

/// A kill at a moment when every change has its record: the recorder holds this lock from a change to its record.
fn stop(daemon: Daemon, log: &Path) {
    let file = std::fs::File::open(log).unwrap();
    file.lock().unwrap();
    daemon.signal(libc::SIGKILL);
    let mut daemon = daemon;
    until("the killed daemon is gone", || daemon.ended().is_some());
    drop(file);
    drop(daemon.kill());
}

/// Largest jobs, each cancelled at once.
fn rounds(client: &Client) {
    for _ in 0..ROUNDS {
        let largest = client.submit(1024, 0);
        client.cancel(largest);
    }
}

/// When sled frees a segment depends on how its threads met, so there may have to be more rounds before it does.
fn until_a_segment_is_used_again(client: &Client) {
    let mut more = 0;
    while super::log::segments(&so_far(&client.log)).0 == 0 {
        assert!(
            more < MORE_ROUNDS,
            "no segment of the log was used again in {more} more rounds"
        );
        rounds(client);
        more += ROUNDS;
    }
    if more > 0 {
        eprintln!("{more} more rounds until a segment of the log was used again");
    }
}

/// What is recorded by now: nothing is being written under the recorder's lock.
fn so_far(log: &Path) -> Recording {
    let file = std::fs::File::open(log).unwrap();
    file.lock().unwrap();
    Recording::read(log).unwrap()
}

/// Many callers at once, each with jobs that take no time; then all of them are done.
fn crowd(client: &Client, recorded: &mut Recorded) {
    let counts = |status: &Value| {
        (
            number(&status["store"], "groups"),
            number(&status["store"], "commands"),
        )
    };
    let before = counts(&client.http.get("/v1/status").json());
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                for _ in 0..JOBS {
                    client.submit(1, 0);
                }
            });
        }
    });
    let after = counts(&client.http.get("/v1/status").json());
    recorded.groups += after.0 - before.0;
    recorded.commands += after.1 - before.1;
    until("the callers' jobs have ended", || {
        std::thread::park_timeout(Duration::from_millis(100));
        let list = client.http.get("/v1/jobs?limit=1000").json();
        let jobs = list["jobs"].as_array().unwrap();
        jobs.iter()
            .filter(|job| job["ended_at"].is_string())
            .for_each(|job| client.told_of(job));
        jobs.iter().all(|job| job["ended_at"].is_string())
    });
}

fn number(value: &Value, name: &str) -> u64 {
    value[name]
        .as_u64()
        .or_else(|| value["store"][name].as_u64())
        .unwrap()
}

/// A caller whose every answer stands in the recording, after it came.
struct Client {
    http: Http,
    log: PathBuf,
    salt: AtomicU64,
    /// What was said before needn't be said again.
    said: Mutex<BTreeSet<Vec<u8>>>,
}

impl Client {
    fn say(&self, said: &Said) {
        let said = serde_json::to_vec(said).unwrap();
        if self.said.lock().unwrap().insert(said.clone()) {
            acknowledge(&self.log, &said).unwrap();
        }
    }

    fn submit(&self, partitions: u32, piece_ms: u64) -> Uuid {
        let salt = self.salt.fetch_add(1, Ordering::Relaxed);
        let input = json!({ "piece_ms": piece_ms, "salt": salt });
        let inputs = vec![input; partitions as usize];
        let body = json!({ "kind": "scripted", "labels": {"salt": salt.to_string()}, "inputs": inputs });
        let answer = self.http.post("/v1/jobs", &body).expect(202);
        let id = Uuid::parse_str(answer.json()["id"].as_str().unwrap()).unwrap();
        self.say(&Said::Job {
            id,
            partitions,
            innocent: true,
        });
        id
    }

    fn cancel(&self, id: Uuid) {
        self.say(&Said::Asked(id));
        let answer = self
            .http
            .send("POST", &format!("/v1/jobs/{id}/cancel"), &[], None);
        assert_eq!(answer.status, 202, "{}", answer.text());
        self.say(&Said::Cancel(id));
    }

    fn upload(&self, life: u64) {
        for i in 0..12 {
            let bytes = vec![u8::try_from(life * 16 + i).unwrap(); 3000 + 1000 * usize::try_from(i).unwrap()];
            self.say(&Said::Object(self.http.upload(&bytes)));
        }
    }

    fn told_of(&self, job: &Value) {
        Ledger::told_of(job).iter().for_each(|said| self.say(said));
    }

    fn look(&self, id: Uuid) -> Value {
        let job = self.http.get(&format!("/v1/jobs/{id}")).expect(200).json();
        self.told_of(&job);
        job
    }
}
