//! The journals of all jobs, folded by the test itself: who held which worker at every number, under which lease.
//!
//! This is a second implementation on purpose, small and without the daemon's code. It finds edges that STATES.md doesn't
//! draw, leases that are used by somebody else, and snapshots that show what never was.

use std::collections::BTreeMap;

use proofkeep_tests::harness::Http;
use serde_json::Value;

use super::snapshot::flat;
use super::{Film, list, number, text};

#[derive(Clone, Debug, Default, PartialEq)]
struct Partition {
    state: &'static str,
    attempt: u64,
    worker: Option<u64>,
    token: Option<String>,
}

/// Every event of the jobs that a film shows, in order, and the worlds they make.
pub struct Ledger {
    events: Vec<(String, Value)>,
}

impl Ledger {
    /// Reads the journals of these jobs, page by page.
    pub fn read(http: &Http, jobs: impl IntoIterator<Item = String>) -> Self {
        let mut events = Vec::new();
        for job in jobs {
            let mut after = 0;
            loop {
                let page = http
                    .get(&format!("/v1/jobs/{job}/events?limit=1000&after={after}"))
                    .expect(200)
                    .json();
                events.extend(
                    list(&page, "events")
                        .iter()
                        .map(|event| (job.clone(), event.clone())),
                );
                match page["next"].as_u64() {
                    Some(next) => after = next,
                    None => break,
                }
            }
        }
        events.sort_by_key(|(_, event)| number(event, "number"));
        let twice = events
            .windows(2)
            .find(|pair| pair[0].1["number"] == pair[1].1["number"]);
        assert!(twice.is_none(), "two events have one number: {twice:?}");
        Self { events }
    }

    /// Folds them, and holds every picture of the film against the world at its number.
    pub fn check(&self, film: &Film) {
        let mut world = World::default();
        let mut events = self.events.iter().peekable();
        for (journal, picture) in &film.pictures {
            while let Some((job, event)) = events.next_if(|(_, event)| number(event, "number") <= *journal) {
                world.fold(job, event);
            }
            world.check(picture);
        }
        for (job, event) in events {
            world.fold(job, event);
        }
        assert!(
            world.workers.is_empty(),
            "workers stay busy for ever: {:?}",
            world.workers
        );
    }

    /// What the counters must say when nothing was pruned.
    pub fn check_counters(&self, picture: &Value) {
        let mut kinds: BTreeMap<&str, &str> = BTreeMap::new();
        let mut attempts: BTreeMap<String, u64> = BTreeMap::new();
        let mut jobs: BTreeMap<String, u64> = BTreeMap::new();
        for (job, event) in &self.events {
            match text(event, "event") {
                "submitted" => drop(kinds.insert(job, text(event, "kind"))),
                "proof_stored" => *attempts.entry(format!("{} ok", kinds[&job[..]])).or_default() += 1,
                "attempt_ended" => {
                    let class = text(&event["error"], "class");
                    *attempts
                        .entry(format!("{} {class}", kinds[&job[..]]))
                        .or_default() += 1;
                }
                "ended" => {
                    *jobs
                        .entry(format!("{} {}", kinds[&job[..]], text(event, "state")))
                        .or_default() += 1
                }
                _ => {}
            }
        }
        assert_eq!(flat(&picture["counters"]["attempts"]), attempts);
        assert_eq!(flat(&picture["counters"]["jobs"]), jobs);
    }
}

#[derive(Default)]
struct World {
    partitions: BTreeMap<(String, u64), Partition>,
    workers: BTreeMap<u64, (String, u64)>,
}

impl World {
    fn fold(&mut self, job: &str, event: &Value) {
        match text(event, "event") {
            "submitted" => {
                for index in 0..number(event, "partitions") {
                    let ready = Partition {
                        state: "ready",
                        ..Partition::default()
                    };
                    self.partitions.insert((job.to_owned(), index), ready);
                }
            }
            "stopping" => self.each(job, |partition| {
                if ["ready", "waiting"].contains(&partition.state) {
                    partition.state = "cancelled";
                }
            }),
            "retried" => self.each(job, |partition| {
                if ["failed", "cancelled"].contains(&partition.state) {
                    partition.state = "ready";
                }
            }),
            "verify_refused" => {
                for index in list(event, "partitions") {
                    let partition = self
                        .partitions
                        .get_mut(&(job.to_owned(), index.as_u64().unwrap()))
                        .unwrap();
                    assert_eq!(
                        partition.state, "proved",
                        "no such edge: {event} in {partition:?}"
                    );
                    partition.state = "failed";
                }
            }
            _ => {
                if let Some(index) = event["partition"].as_u64() {
                    self.step(job, index, event);
                }
            }
        }
    }

    fn each(&mut self, job: &str, change: impl Fn(&mut Partition)) {
        self.partitions
            .iter_mut()
            .filter(|((of, _), _)| of == job)
            .for_each(|(_, partition)| change(partition));
    }

    /// One event of one partition: the edge must be drawn, and its lease must be the partition's.
    fn step(&mut self, job: &str, index: u64, event: &Value) {
        let name = (job.to_owned(), index);
        let granted = format!("{}-{}", event["boot"], event["number"]);
        let partition = self.partitions.get_mut(&name).unwrap();
        let shown = format!("{event} in {partition:?}");
        let from = |allowed: &[&str]| assert!(allowed.contains(&partition.state), "no such edge: {shown}");
        let under_lease = || {
            assert_eq!(
                event["token"].as_str(),
                partition.token.as_deref(),
                "another's lease: {shown}"
            )
        };
        match text(event, "event") {
            "synth_started" => {
                from(&["ready"]);
                assert_eq!(number(event, "attempt"), partition.attempt + 1, "{shown}");
                partition.attempt += 1;
                (partition.state, partition.token) = ("synthesizing", Some(granted));
            }
            "synth_ended" => {
                from(&["synthesizing"]);
                under_lease();
                (partition.state, partition.token) = ("synthesized", None);
            }
            "gpu_started" => {
                from(&["synthesized"]);
                let worker = number(event, "worker");
                (partition.state, partition.token, partition.worker) =
                    ("proving", Some(granted), Some(worker));
                let other = self.workers.insert(worker, name);
                assert!(other.is_none(), "worker {worker} had {other:?}: {shown}");
            }
            "checkpointed" => {
                from(&["proving"]);
                under_lease();
            }
            "gpu_ended" => {
                from(&["proving"]);
                under_lease();
                partition.state = "finishing";
                self.workers.remove(&partition.worker.take().unwrap());
            }
            "proof_stored" => {
                from(&["finishing"]);
                under_lease();
                (partition.state, partition.token) = ("proved", None);
            }
            "attempt_ended" => {
                from(&["synthesizing", "synthesized", "proving", "finishing"]);
                assert_eq!(number(event, "attempt"), partition.attempt, "{shown}");
                partition.token = None;
                partition.state = match text(event, "next") {
                    "ready" => "ready",
                    "waiting" => "waiting",
                    "failed" => "failed",
                    "cancelled" => "cancelled",
                    other => panic!("there is no state {other}"),
                };
                if let Some(worker) = partition.worker.take() {
                    self.workers.remove(&worker);
                }
            }
            "woken" => {
                from(&["waiting"]);
                partition.state = "ready";
            }
            "stale_ignored" => assert_ne!(event["token"].as_str(), partition.token.as_deref(), "{shown}"),
            other => panic!("no partition is part of {other}: {shown}"),
        }
    }

    fn check(&self, picture: &Value) {
        for job in list(picture, "jobs").iter().chain(list(picture, "recent")) {
            for shown in list(job, "partitions") {
                let name = (text(job, "id").to_owned(), number(shown, "index"));
                let partition = self
                    .partitions
                    .get(&name)
                    .unwrap_or_else(|| panic!("{name:?} was never submitted"));
                assert_eq!(
                    text(shown, "state"),
                    partition.state,
                    "{name:?} at {}",
                    picture["journal"]
                );
                assert_eq!(
                    number(shown, "attempt"),
                    partition.attempt,
                    "{name:?} at {}",
                    picture["journal"]
                );
                assert_eq!(
                    shown["worker"].as_u64(),
                    partition.worker,
                    "{name:?} at {}",
                    picture["journal"]
                );
            }
        }
        for worker in list(picture, "workers") {
            let holder = worker["job"]
                .as_str()
                .map(|job| (job.to_owned(), number(worker, "partition")));
            let expected = self.workers.get(&number(worker, "id"));
            assert_eq!(holder.as_ref(), expected, "{worker} at {}", picture["journal"]);
        }
    }
}
