//! The time of day jumps while jobs wait, prove, back off and are pruned, and between two boots; nothing breaks.
//!
//! ```text
//! cargo test --release -p proofkeep-tests --test crash_clock -- --nocapture
//! ```
//! A preloaded library (`crash/shim/clock.c`) moves the clocks of the daemon and its workers. A machine's sleep is the
//! same jump forward, with every process stopped meanwhile; the monotonic clock doesn't count it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};

use proofkeep_scripted::mark_count;
use proofkeep_store::event::What;
use proofkeep_store::ids::{BootNumber, JournalNumber, Millis};
use proofkeep_store::{Options, Store, query};
use proofkeep_tests::harness::{Daemon, Launch, proofkeep, signal, until};
use proofkeep_tests::report::Report;
use proofkeep_tests::setting;
use proofkeep_tests::shim::{Shims, set_clock};
use serde_json::{Value, json};
use tempfile::TempDir;

const HOUR: i64 = 3600;
const YEAR: i64 = 365 * 24 * HOUR;
/// Ended jobs that are kept.
const KEPT: usize = 20;

/// Partitions of the job that fills every slot and every place before them.
const FILL: usize = 6;

struct World {
    daemon: Option<Daemon>,
    directory: TempDir,
    wall: i64,
    slept: i64,
    /// Every job, in the order in which they were taken.
    jobs: Vec<String>,
    /// By how much the daemon must have seen the clock jump while it ran.
    steps: Vec<i64>,
    between: u64,
}

/// What is going on when the clock jumps.
struct Scene {
    go: PathBuf,
    /// Proves, and fills all places.
    proving: String,
    /// Backs off after the first of two failures.
    backing_off: String,
    /// Waits for its turn.
    waiting: String,
    /// An upload that the waiting one needs.
    needed: String,
    /// An upload that nobody needs yet.
    young: String,
    /// Under which key the waiting one was sent.
    key: usize,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut world = Self {
            daemon: None,
            directory,
            wall: 0,
            slept: 0,
            jobs: Vec::new(),
            steps: Vec::new(),
            between: 0,
        };
        world.set(0, 0);
        world.start();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn set(&mut self, wall: i64, slept: i64) {
        (self.wall, self.slept) = (self.wall + wall, self.slept + slept);
        set_clock(&self.path("clock"), self.wall, self.slept).unwrap();
    }

    fn start(&mut self) {
        let shims = Shims {
            clock: Some(self.path("clock")),
            ..Shims::default()
        };
        let kept = KEPT.to_string();
        self.daemon = Some(
            Launch::test_build(&self.path("data"))
                .args(["--cpu-devices", "2", "--memory", "8GiB", "--max-jobs", &kept])
                .shims(shims)
                .start(),
        );
    }

    fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().unwrap()
    }

    fn body(&self, marks: &str, inputs: &[Value]) -> Value {
        let marks = self.path(marks);
        std::fs::create_dir_all(&marks).unwrap();
        json!({ "kind": "scripted", "ticket_bytes": 256 << 20, "marks": marks, "inputs": inputs })
    }

    /// Submits under a key that is the job's place in the order.
    fn submit(&mut self, body: &Value) -> String {
        let id = self.submit_as(self.jobs.len(), body);
        self.jobs.push(id.clone());
        id
    }

    fn submit_as(&self, key: usize, body: &Value) -> String {
        let key = format!("job-{key}");
        let headers = [
            ("content-type", "application/json"),
            ("idempotency-key", key.as_str()),
        ];
        let answer = self
            .daemon()
            .send("POST", "/v1/jobs", &headers, Some(body.to_string().as_bytes()));
        assert!(matches!(answer.status, 200..=202), "{}", answer.text());
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// Brings about that something proves, backs off, and waits: for its turn, or (where there are places left) in the
    /// middle of its work, so that the back-off can begin last.
    fn scene(&mut self, full: bool) -> (Scene, Value) {
        let name = format!("scene-{}", self.jobs.len());
        let go = self.path(&format!("{name}-go"));
        let fails = json!({ "fail": { "stage": "synth", "class": "device_error", "times": 2 } });
        let backing_off = self.body(&format!("{name}-off"), &[fails]);
        // Where every place will be taken, it needs one to fail in first.
        let first = full.then(|| self.back_off(&backing_off));
        let gated = json!({ "gate": { "stage": "prove", "file": go } });
        let count = if full { FILL } else { 2 };
        let proving = self.body(&name, &vec![gated.clone(); count]);
        let proving = self.submit(&proving);
        until("two partitions are proved", || {
            let marks = self.path(&name);
            let reached = |index: &u32| mark_count(&marks, *index, "prove") > 0;
            (0..u32::try_from(count).unwrap()).filter(reached).count() >= 2
        });
        let needed = self.daemon().upload(format!("needed by {name}").as_bytes());
        let young = self.daemon().upload(format!("sent by {name}").as_bytes());
        let mut last = self.body(&format!("{name}-last"), &[if full { json!({}) } else { gated }]);
        last["needs"] = json!(needed);
        let waiting = self.submit(&last);
        let key = self.jobs.len() - 1;
        let backing_off = first.unwrap_or_else(|| self.back_off(&backing_off));
        let scene = Scene {
            go,
            proving,
            backing_off,
            waiting,
            needed,
            young,
            key,
        };
        (scene, last)
    }

    fn back_off(&mut self, body: &Value) -> String {
        let job = self.submit(body);
        until("it backs off", || {
            self.shown(&job)["partitions"][0]["state"] == "waiting"
        });
        job
    }

    fn shown(&self, job: &str) -> Value {
        self.daemon().get(&format!("/v1/jobs/{job}")).expect(200).json()
    }

    /// A jump while it runs.
    fn jump(&mut self, wall: i64) {
        let (scene, last) = self.scene(true);
        self.set(wall, 0);
        self.seen(wall);
        self.after(&scene, &last, true);
    }

    /// A sleep of the machine while it runs.
    fn sleep(&mut self, seconds: i64) {
        let (scene, last) = self.scene(true);
        let all: Vec<u32> = self
            .daemon()
            .workers()
            .into_iter()
            .chain([self.daemon().pid()])
            .collect();
        all.iter().for_each(|pid| signal(*pid, libc::SIGSTOP));
        self.set(seconds, seconds);
        all.iter().for_each(|pid| signal(*pid, libc::SIGCONT));
        self.seen(seconds);
        self.after(&scene, &last, true);
    }

    /// A jump while it is off.
    fn jump_between(&mut self, wall: i64, killed: bool) {
        let (scene, last) = self.scene(false);
        let daemon = self.daemon.take().unwrap();
        if killed {
            daemon.kill();
        } else {
            assert!(daemon.terminate().success());
        }
        self.set(wall, 0);
        self.start();
        self.between += 1;
        self.after(&scene, &last, false);
        // By a clock that went forward, what nobody needs is old; no daemon could know better.
        if wall < 0 {
            assert!(
                self.has(&scene.young),
                "an upload went although the clock only went back"
            );
        }
    }

    fn seen(&mut self, step: i64) {
        self.steps.push(step);
        let pid = self.daemon().pid();
        until(&format!("process {pid} has seen the clock jump"), || {
            self.daemon().stderr().matches("the wall clock jumped").count() >= self.steps_of_this_boot()
        });
    }

    fn steps_of_this_boot(&self) -> usize {
        // All jumps at run time come before the first restart.
        self.steps.len()
    }

    fn has(&self, object: &str) -> bool {
        self.daemon()
            .send("HEAD", &format!("/v1/blobs/{object}"), &[], None)
            .status
            == 200
    }

    /// What must hold after a jump.
    fn after(&mut self, scene: &Scene, last: &Value, same_boot: bool) {
        if same_boot {
            assert!(self.has(&scene.young), "an upload of a moment ago went");
            assert!(
                !scene.go.exists() && self.shown(&scene.waiting)["state"] == "queued",
                "it was not its turn"
            );
        }
        assert!(self.has(&scene.needed), "an upload that a job needs went");
        assert_eq!(
            self.submit_as(scene.key, last),
            scene.waiting,
            "the key leads elsewhere"
        );
        let status = self.daemon().get("/v1/status").expect(200).json();
        durations(&status, same_boot);
        std::fs::write(&scene.go, "").unwrap();
        for job in [&scene.backing_off, &scene.proving, &scene.waiting] {
            let ended = self.daemon().wait_for_end(job);
            assert_eq!(ended["state"], "succeeded", "{ended}");
            durations(&ended, same_boot);
            if same_boot {
                times(&ended);
            }
        }
        let ended = self.shown(&scene.backing_off);
        let attempts = ended["partitions"][0]["attempts"].as_array().unwrap();
        let failed = attempts
            .iter()
            .filter(|attempt| attempt["error"]["class"] == "device_error")
            .count();
        let other = attempts.len() - failed;
        // A boot in between may interrupt it once; a storm of retries would be more.
        assert!(failed == 2 && other <= if same_boot { 1 } else { 2 }, "{ended}");
        self.order();
    }

    /// The newest jobs are there, in the order in which they were taken; older ones are forgotten.
    fn order(&self) {
        let newest: Vec<&String> = self.jobs.iter().rev().take(KEPT).collect();
        until("old jobs are forgotten", || {
            let page = self.daemon().get("/v1/jobs?limit=100").expect(200).json();
            let listed: Vec<&str> = page["jobs"]
                .as_array()
                .unwrap()
                .iter()
                .map(|job| job["id"].as_str().unwrap())
                .collect();
            assert!(
                listed
                    .iter()
                    .zip(&newest)
                    .all(|(found, expected)| found == expected),
                "{listed:?} {newest:?}"
            );
            listed.len() == newest.len()
        });
    }
}

/// No duration anywhere is negative, nor of the length of a jump if there was none between two boots.
fn durations(value: &Value, same_boot: bool) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                // A setting is no duration of anything.
                let lasted = name.ends_with("_ms") || name.ends_with("_s");
                if lasted && name != "every_ms" && !value.is_null() {
                    let number = value.as_u64().unwrap_or_else(|| panic!("{name} is {value}"));
                    let limit = if same_boot {
                        30 * 60 * 1000
                    } else {
                        2 * 366 * 24 * 3600 * 1000
                    };
                    assert!(number < limit, "{name} is {number}");
                }
                durations(value, same_boot);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| durations(value, same_boot)),
        _ => {}
    }
}

/// Within one boot no time is before one that comes before it.
fn times(job: &Value) {
    let order = |of: &Value, names: &[&str]| {
        let times: Vec<&str> = names.iter().filter_map(|name| of[name].as_str()).collect();
        assert!(times.is_sorted(), "{names:?} of {of}");
    };
    order(job, &["created_at", "started_at", "ended_at"]);
    for partition in job["partitions"].as_array().unwrap() {
        for attempt in partition["attempts"].as_array().unwrap() {
            order(attempt, &["started_at", "gpu_started_at", "ended_at"]);
        }
    }
}

/// The journal: numbers rise by one, times never go back within a boot, each jump at run time is an event.
fn journal(data: &Path, steps: &[i64]) -> u64 {
    let store = Store::open(
        data,
        &Options {
            create: false,
            ..Options::default()
        },
    )
    .unwrap();
    let mut events = Vec::new();
    store
        .read(|view| {
            for number in 1..=query::last_event(view)?.0 {
                let Some(event) = query::event(view, JournalNumber(number))? else {
                    // It went with its job.
                    continue;
                };
                assert_eq!(event.number.0, number);
                let step = match event.what {
                    What::ClockStepped { by_ms } => Some(by_ms),
                    _ => None,
                };
                events.push((event.boot, event.at, step));
            }
            Ok::<_, proofkeep_store::view::ReadError>(())
        })
        .unwrap();
    told(&events, steps);
    events.len() as u64
}

/// What the journal tells of the clock: within a boot no event is before the one before it, and each jump is told once.
fn told(events: &[(BootNumber, Millis, Option<i64>)], steps: &[i64]) {
    for (number, pair) in events.windows(2).enumerate() {
        let ((boot, at, _), (next_boot, next_at, _)) = (pair[0], pair[1]);
        assert!(
            (next_boot, next_at) >= (boot, at),
            "event {} of those kept is before the one before it",
            number + 2
        );
    }
    let found: Vec<i64> = events.iter().filter_map(|(_, _, step)| *step).collect();
    assert_eq!(found.len(), steps.len(), "{found:?}");
    for (found, expected) in found.iter().zip(steps) {
        assert!(
            (found - expected * 1000).abs() < 60_000,
            "a jump of {expected} s is told as {found} ms"
        );
    }
}

/// The other way round: what a daemon that believed the time of day would show is called wrong. Else the jumps show
/// nothing.
#[test]
fn what_a_daemon_without_a_clock_of_its_own_would_show_is_noticed() {
    let wrong = |what: &str, judged: Box<dyn FnOnce() + std::panic::UnwindSafe>| {
        let outcome = std::panic::catch_unwind(judged);
        assert!(outcome.is_err(), "{what} is not noticed");
    };
    let hour = HOUR as u64 * 1000;
    let at = |boot, at, step| (BootNumber(boot), Millis(at), step);
    let good = vec![
        at(1, 10 * hour, None),
        at(1, 10 * hour + 5, Some(-3_600_000)),
        at(1, 10 * hour + 9, None),
        // The next boot believes the time of day that it finds.
        at(2, 9 * hour, None),
    ];
    told(&good, &[-HOUR]);
    let back = vec![good[0], at(1, 9 * hour, Some(-3_600_000)), good[3]];
    wrong(
        "time that goes back in a boot",
        Box::new(move || told(&back, &[-HOUR])),
    );
    let (silent, twice) = (vec![good[0], good[2]], vec![good[1], good[1]]);
    wrong(
        "a jump that is not told",
        Box::new(move || told(&silent, &[-HOUR])),
    );
    wrong(
        "a jump that is told twice",
        Box::new(move || told(&twice, &[-HOUR])),
    );
    let other = good.clone();
    wrong(
        "a jump of another length",
        Box::new(move || told(&other, &[2 * HOUR])),
    );

    let job = |started: &str, ended: &str, ms: i64| {
        json!({
            "created_at": "2026-01-01T10:00:00.000Z", "started_at": started, "ended_at": ended,
            "partitions": [{ "attempts": [{ "started_at": started, "ended_at": ended, "synth_ms": ms }] }],
        })
    };
    let good = job("2026-01-01T10:00:01.000Z", "2026-01-01T10:00:02.000Z", 7);
    times(&good);
    durations(&good, true);
    let back = job("2026-01-01T10:00:01.000Z", "2026-01-01T09:00:02.000Z", 7);
    wrong("a job that ended before it began", Box::new(move || times(&back)));
    let negative = job("2026-01-01T10:00:01.000Z", "2026-01-01T10:00:02.000Z", -3_600_000);
    wrong(
        "a negative duration",
        Box::new(move || durations(&negative, true)),
    );
    let year = job(
        "2026-01-01T10:00:01.000Z",
        "2026-01-01T10:00:02.000Z",
        YEAR * 1000,
    );
    wrong(
        "a duration of a year in one boot",
        Box::new(move || durations(&year, true)),
    );
}

#[test]
fn jumps_of_the_clock_break_nothing() {
    let mut world = World::new();
    world.jump(-HOUR);
    world.jump(YEAR);
    world.jump(-HOUR);
    world.sleep(8 * HOUR);
    world.jump(-YEAR);
    let in_a_boot = world.steps.len() as u64;
    world.jump_between(-HOUR, true);
    world.jump_between(YEAR, false);
    world.jump_between(-2 * YEAR, true);
    world.jump_between(YEAR, true);
    let (data, steps) = (world.path("data"), world.steps.clone());
    let between = world.between;
    assert!(world.daemon.take().unwrap().terminate().success());
    let _ = proofkeep([Path::new("fsck"), Path::new("--data-dir"), &data]).expect(0);
    let events = journal(&data, &steps);
    Report::new("clock-jumps", setting::seed())
        .count("jumps", in_a_boot + between)
        .count("while it ran", in_a_boot)
        .count("between two boots", between)
        .count("jobs", world.jobs.len() as u64)
        .count("events", events)
        .publish();
}
