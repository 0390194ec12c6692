//! What the status tests share: a poller, and three readers of what it saw.
//!
//! [`snapshot`] holds one `/v1/status` against the invariants, [`cuzk`] holds `GET /status` against it, and [`ledger`]
//! folds the journals of all jobs by itself and says what every snapshot should have shown.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

pub mod cuzk;
pub mod ledger;
pub mod snapshot;

use std::collections::{BTreeMap, BTreeSet};

use proofkeep_tests::harness::Http;
use serde_json::Value;

/// Everything that was seen.
#[derive(Default)]
pub struct Film {
    /// Snapshots by journal number; those with the same number agree, so one is enough.
    pub pictures: BTreeMap<u64, Value>,
    /// Snapshots that were taken.
    pub polls: usize,
    /// Snapshots in which some worker was busy.
    pub busy: usize,
    /// Times that `GET /status` answered as of the same event and was compared.
    pub compared: usize,
    /// The states in which partitions were seen.
    pub partitions: BTreeMap<String, usize>,
    /// The states in which jobs were seen.
    pub jobs: BTreeMap<String, usize>,
    last: Option<Value>,
}

impl Film {
    /// Polls both statuses once and checks what can be said of one moment.
    pub fn poll(&mut self, http: &Http) {
        let ours = http.get("/v1/status").expect(200);
        let theirs = http.get("/status").expect(200);
        let picture = ours.json();
        self.polls += 1;
        // An old picture, given out while the store was busy, says so; here the disk is never that slow for long.
        if ours.header("proofkeep-stale-ms").is_none() {
            snapshot::check(&picture);
            if let Some(last) = &self.last {
                snapshot::check_after(last, &picture);
            }
            self.count(&picture);
            self.last = Some(picture.clone());
        }
        let number =
            |answer: &proofkeep_tests::harness::Answer| answer.header("proofkeep-journal").map(str::to_owned);
        assert_eq!(number(&ours), Some(picture["journal"].to_string()));
        if number(&ours) == number(&theirs) {
            cuzk::check_agrees(&picture, &theirs.json());
            self.compared += 1;
        }
        if let Some(other) = self
            .pictures
            .insert(picture["journal"].as_u64().unwrap(), picture.clone())
        {
            snapshot::check_same(&other, &picture);
        }
    }

    fn count(&mut self, picture: &Value) {
        let busy = list(picture, "workers")
            .iter()
            .any(|worker| worker["state"] == "proving");
        self.busy += usize::from(busy);
        for job in list(picture, "jobs").iter().chain(list(picture, "recent")) {
            *self.jobs.entry(text(job, "state").to_owned()).or_default() += 1;
            for partition in list(job, "partitions") {
                *self
                    .partitions
                    .entry(text(partition, "state").to_owned())
                    .or_default() += 1;
            }
        }
    }

    /// The jobs that were ever in a picture.
    pub fn ids(&self) -> BTreeSet<String> {
        let jobs = self
            .pictures
            .values()
            .flat_map(|picture| list(picture, "jobs").iter().chain(list(picture, "recent")));
        jobs.map(|job| text(job, "id").to_owned()).collect()
    }

    /// One line about it.
    pub fn tell(&self, what: &str) {
        println!(
            "{what}: {} polls, {} journal numbers, {} with a busy worker, {} compared with GET /status; \
             partitions {:?}, jobs {:?}",
            self.polls,
            self.pictures.len(),
            self.busy,
            self.compared,
            self.partitions,
            self.jobs
        );
    }
}

/// A member that is an array.
#[track_caller]
pub fn list<'a>(value: &'a Value, member: &str) -> &'a Vec<Value> {
    value[member]
        .as_array()
        .unwrap_or_else(|| panic!("no array {member}: {value}"))
}

/// A member that is a string.
#[track_caller]
pub fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member]
        .as_str()
        .unwrap_or_else(|| panic!("no string {member}: {value}"))
}

/// A member that is a number.
#[track_caller]
pub fn number(value: &Value, member: &str) -> u64 {
    value[member]
        .as_u64()
        .unwrap_or_else(|| panic!("no number {member}: {value}"))
}
