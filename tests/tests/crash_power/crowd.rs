//! The worst load: full groups, the largest job, pruning, segments that are used again; lives that end by a kill.

use std::fmt;
use std::path::{Path, PathBuf};

use proofkeep_tests::harness::{Daemon, Launch, until};
use proofkeep_tests::judge::{LOG_FITS_SEGMENT, WITHOUT};
use proofkeep_tests::powercut::Recording;
use proofkeep_tests::shim::{Record, Role, Shims};
use serde_json::Value;

use super::client::Client;

/// Callers at once.
const CALLERS: u64 = 64;
/// Jobs of each, in each life.
const JOBS: u64 = 2;
/// So many more rounds at most, until a segment of the log has been used again: mostly one has been by then.
const MORE_ROUNDS: u32 = 480;
/// Ended jobs that are kept.
const KEPT: &str = "24";

/// What is recorded.
#[derive(Debug, Clone, Copy)]
pub struct Crowd {
    /// All but the last one end by a kill.
    pub lives: u64,
    /// Largest jobs that are submitted and cancelled at once, in each life.
    pub rounds: u32,
    /// Callers that submit largest jobs side by side, in each life.
    pub large: u32,
    /// The last life goes on until a segment of the log is used again.
    pub reuse: bool,
    /// The disk says that it has synced and hasn't.
    pub lying: bool,
    /// The store leaves [`LOG_FITS_SEGMENT`] out.
    pub without: bool,
}

impl Crowd {
    /// As the released daemon does it, on a disk as it should be.
    pub const WHOLE: Self = Self {
        lives: 3,
        rounds: 24,
        large: 0,
        reuse: true,
        lying: false,
        without: false,
    };
    /// The same for a moment.
    pub const SHORT: Self = Self {
        lives: 2,
        rounds: 4,
        reuse: false,
        ..Self::WHOLE
    };
}

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

impl Crowd {
    /// Makes it.
    pub fn record(&self, root: &Path) -> Recorded {
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
        for life in 0..self.lives {
            let daemon = self.start(&recorded);
            let client = Client::new(&daemon, &recorded.log, life);
            unfinished.take().into_iter().for_each(|job| client.cancel(job));
            // Much log and few events: so that segments are freed, and used again.
            rounds(&client, self.rounds);
            side_by_side(&client, self.large);
            crowd(&client, &mut recorded);
            let last = life + 1 == self.lives;
            if last && self.reuse {
                until_a_segment_is_used_again(&client, &recorded.log);
            }
            let largest = client.submit(1024);
            uploads(&client, life);
            // Some of its partitions are proved, then it is cancelled in one transaction; or it is cut off by the kill.
            until("a part of the largest job is proved", || {
                client.look(largest)["summary"]["proved"].as_u64() > Some(10)
            });
            let status = daemon.get("/v1/status").json();
            (recorded.journal, recorded.kept) = (number(&status, "journal"), number(&status, "journal_kept"));
            if last || life == 0 {
                client.cancel(largest);
            } else {
                unfinished = Some(largest);
            }
            if last {
                assert!(daemon.terminate().success());
            } else {
                stop(daemon, &recorded.log);
            }
        }
        assert!(recorded.kept < recorded.journal, "nothing was pruned");
        // Where a sync takes no time, as on a disk that only says it has synced, nobody waits for another's.
        assert!(
            self.lying || recorded.commands >= 2 * recorded.groups,
            "callers don't meet in groups: {recorded}"
        );
        recorded
    }

    fn start(&self, recorded: &Recorded) -> Daemon {
        let record = Record {
            dir: recorded.data.clone(),
            log: recorded.log.clone(),
            role: Some(Role::Daemon),
            ack_file: None,
            lying: self.lying,
        };
        let mut launch = launch(&recorded.data).shims(Shims {
            record: Some(record),
            ..Shims::default()
        });
        if self.without {
            launch = launch.env(WITHOUT, LOG_FITS_SEGMENT);
        }
        launch.start()
    }
}

/// The daemon as it is started for this load.
pub fn launch(data: &Path) -> Launch {
    let devices = ["--cpu-devices", "4", "--threads", "1"];
    Launch::test_build(data)
        .args(devices)
        .args(["--max-jobs", KEPT, "--grace", "5s"])
}

/// A kill at a moment when every change has its record: the recorder holds this lock from a change to its record.
pub fn stop(daemon: Daemon, log: &Path) {
    let file = std::fs::File::open(log).unwrap();
    file.lock().unwrap();
    daemon.signal(libc::SIGKILL);
    let mut daemon = daemon;
    until("the killed daemon is gone", || daemon.ended().is_some());
    drop(file);
    drop(daemon.kill());
}

/// Largest jobs, each cancelled at once.
fn rounds(client: &Client, count: u32) {
    for _ in 0..count {
        let largest = client.submit(1024);
        client.cancel(largest);
    }
}

/// The same by callers who don't wait for each other: where groups have no bound, much meets in one.
fn side_by_side(client: &Client, callers: u32) {
    std::thread::scope(|scope| {
        for _ in 0..callers {
            scope.spawn(|| rounds(client, 4));
        }
    });
}

/// When sled frees a segment depends on how its threads met, so there may have to be more rounds before it does.
fn until_a_segment_is_used_again(client: &Client, log: &Path) {
    let mut more = 0;
    while super::log::segments(&so_far(log)).0 == 0 {
        assert!(
            more < MORE_ROUNDS,
            "no segment of the log was used again in {more} more rounds"
        );
        rounds(client, 24);
        more += 24;
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
                    client.submit(1);
                }
            });
        }
    });
    let after = counts(&client.http.get("/v1/status").json());
    recorded.groups += after.0 - before.0;
    recorded.commands += after.1 - before.1;
    client.wait_for_all();
}

fn uploads(client: &Client, life: u64) {
    for i in 0..12 {
        let byte = u8::try_from(life * 16 + i).unwrap();
        client.upload(&vec![byte; 3000 + 1000 * usize::try_from(i).unwrap()]);
    }
}

fn number(value: &Value, name: &str) -> u64 {
    value[name]
        .as_u64()
        .or_else(|| value["store"][name].as_u64())
        .unwrap()
}
