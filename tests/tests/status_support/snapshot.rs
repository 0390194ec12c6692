//! One `/v1/status` by itself, and one after another: what STATES.md says of workers, partitions and counters.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{list, number, text};

const OPEN: [&str; 4] = ["synthesizing", "synthesized", "proving", "finishing"];
const TERMINAL: [&str; 4] = ["succeeded", "failed", "cancelled", "expired"];

/// Holds a snapshot against the invariants that it shows. Jobs must be few enough to be drawn in full.
#[track_caller]
pub fn check(picture: &Value) {
    let mut holders: BTreeMap<u64, (String, u64, String)> = BTreeMap::new();
    let mut stages: BTreeMap<&str, u64> = OPEN.into_iter().map(|stage| (stage, 0)).collect();
    let (mut ready, mut waiting) = (0, 0);
    for job in list(picture, "jobs") {
        assert!(
            !TERMINAL.contains(&text(job, "state")),
            "an ended job is in flight: {job}"
        );
        check_job(job);
        for partition in list(job, "partitions") {
            let state = text(partition, "state");
            if let Some(count) = stages.get_mut(state) {
                *count += 1;
            }
            ready += u64::from(state == "ready");
            waiting += u64::from(state == "waiting");
            // Invariant 1, from the partition's side: it holds a worker in `proving` and in no other state (R5).
            assert_eq!(
                state == "proving",
                !partition["worker"].is_null(),
                "{partition} of {job}"
            );
            if state == "proving" {
                let holder = (
                    text(job, "id").to_owned(),
                    number(partition, "index"),
                    text(partition, "device").to_owned(),
                );
                let other = holders.insert(number(partition, "worker"), holder);
                assert!(
                    other.is_none(),
                    "two partitions hold one worker: {other:?} and {partition}"
                );
            }
        }
    }
    for job in list(picture, "recent") {
        assert!(
            TERMINAL.contains(&text(job, "state")),
            "a recent job has not ended: {job}"
        );
        check_job(job);
    }
    check_workers(picture, &mut holders);
    let memory = &picture["memory"];
    assert!(
        number(memory, "reserved_bytes") <= number(memory, "budget_bytes"),
        "{memory}"
    );
    for (stage, count) in stages {
        assert_eq!(number(&picture["stages"], stage), count, "{stage}: {picture}");
    }
    assert_eq!(number(&picture["queue"], "depth"), ready, "{picture}");
    assert_eq!(number(&picture["queue"], "waiting"), waiting, "{picture}");
    assert_eq!(picture["jobs_active"], list(picture, "jobs").len(), "{picture}");
}

/// Invariant 1, from the worker's side.
#[track_caller]
fn check_workers(picture: &Value, holders: &mut BTreeMap<u64, (String, u64, String)>) {
    for (place, worker) in list(picture, "workers").iter().enumerate() {
        let id = number(worker, "id");
        assert_eq!(id, place as u64, "worker ids are one sequence: {picture}");
        match holders.remove(&id) {
            Some((job, partition, device)) => {
                assert_eq!(
                    text(worker, "state"),
                    "proving",
                    "{worker} is held by {job} {partition}: {picture}"
                );
                assert_eq!(
                    (text(worker, "job"), number(worker, "partition")),
                    (&*job, partition),
                    "{picture}"
                );
                assert_eq!(text(worker, "device"), device, "{picture}");
                assert!(worker["busy_ms"].is_u64(), "{worker}");
            }
            None => {
                assert_eq!(
                    text(worker, "state"),
                    "idle",
                    "{worker} is held by no partition: {picture}"
                );
                assert!(
                    worker["job"].is_null() && worker["partition"].is_null(),
                    "{worker}"
                );
            }
        }
    }
    assert!(
        holders.is_empty(),
        "partitions hold workers that aren't there: {holders:?} in {picture}"
    );
}

/// A job against its own partitions.
#[track_caller]
fn check_job(job: &Value) {
    let partitions = list(job, "partitions");
    let count = |wanted: &[&str]| {
        partitions
            .iter()
            .filter(|found| wanted.contains(&text(found, "state")))
            .count() as u64
    };
    let summary = &job["summary"];
    let total = number(summary, "total");
    assert_eq!(partitions.len() as u64, total, "{job}");
    assert_eq!(number(summary, "proved"), count(&["proved"]), "{job}");
    assert_eq!(number(summary, "failed"), count(&["failed"]), "{job}");
    assert_eq!(number(summary, "cancelled"), count(&["cancelled"]), "{job}");
    let running = count(&OPEN);
    assert_eq!(number(summary, "running"), running, "{job}");
    let proved = number(summary, "proved");
    match text(job, "state") {
        "queued" => assert!(running == 0 && proved < total, "{job}"),
        // R4: the proof that makes it n of n makes the job `verifying` in the same transaction.
        "running" => assert!(
            proved + count(&["failed", "cancelled"]) < total,
            "nothing is left and the job still runs: {job}"
        ),
        "verifying" | "succeeded" => assert_eq!(proved, total, "{job}"),
        "stopping" => {
            // All proved: its final check holds a lease of its own.
            assert!(
                running > 0 || proved == total,
                "nothing is left to wait for and the job is still stopping: {job}"
            );
            assert_eq!(count(&["ready", "waiting"]), 0, "{job}");
        }
        _ => assert_eq!(
            running + count(&["ready", "waiting"]),
            0,
            "an ended job has unfinished partitions: {job}"
        ),
    }
    for partition in partitions {
        let attempted = number(partition, "attempt") > 0;
        let state = text(partition, "state");
        assert!(
            attempted || ["ready", "cancelled"].contains(&state),
            "no attempt led here: {partition}"
        );
        assert_eq!(
            state == "waiting",
            partition["wake_at"].is_string(),
            "{partition}"
        );
        if state == "proved" {
            assert!(
                partition["synth_ms"].is_u64() && partition["gpu_ms"].is_u64(),
                "{partition}"
            );
        }
    }
}

/// What may change from one snapshot to the next.
#[track_caller]
pub fn check_after(before: &Value, after: &Value) {
    assert!(
        number(before, "journal") <= number(after, "journal"),
        "the journal went back"
    );
    for family in ["jobs", "attempts"] {
        let later = flat(&after["counters"][family]);
        for (name, count) in flat(&before["counters"][family]) {
            assert!(
                later.get(&name).is_some_and(|found| *found >= count),
                "{family} {name} fell from {count}: {later:?}"
            );
        }
    }
    let lives = |picture: &Value| -> BTreeMap<(String, u64), (u64, String, u64)> {
        let mut found = BTreeMap::new();
        for job in list(picture, "jobs").iter().chain(list(picture, "recent")) {
            for partition in list(job, "partitions") {
                let state = text(partition, "state").to_owned();
                let life = (number(job, "generation"), state, number(partition, "attempt"));
                found.insert((text(job, "id").to_owned(), number(partition, "index")), life);
            }
        }
        found
    };
    let later = lives(after);
    for (name, (generation, state, attempt)) in lives(before) {
        let Some((next_generation, next_state, next_attempt)) = later.get(&name) else {
            continue;
        };
        assert!(
            attempt <= *next_attempt,
            "{name:?}: attempt numbers went back from {attempt} to {next_attempt}"
        );
        assert!(generation <= *next_generation, "{name:?}");
        if state == "proved" {
            assert_eq!(next_state, "proved", "{name:?} lost its proof");
            assert_eq!(attempt, *next_attempt, "{name:?} was proved again");
        }
    }
}

/// Two snapshots with the same number show the same, but for what time alone changes.
#[track_caller]
pub fn check_same(one: &Value, other: &Value) {
    let timeless = |picture: &Value| {
        let mut jobs: Vec<Value> = list(picture, "jobs").clone();
        for job in &mut jobs {
            // Only the scheduler knows that a job waits for memory; no record says so.
            job.as_object_mut().unwrap().remove("reason");
            for partition in job["partitions"].as_array_mut().unwrap() {
                let partition = partition.as_object_mut().unwrap();
                partition.remove("attempt_ms");
                if partition["state"] == "proving" {
                    partition.remove("gpu_ms");
                }
            }
        }
        let workers: Vec<_> = list(picture, "workers")
            .iter()
            .map(|worker| {
                (
                    worker["state"].clone(),
                    worker["job"].clone(),
                    worker["partition"].clone(),
                )
            })
            .collect();
        (
            jobs,
            workers,
            picture["stages"].clone(),
            picture["counters"].clone(),
        )
    };
    assert_eq!(timeless(one), timeless(other));
}

/// `{kind: {outcome: n}}` as `kind outcome → n`.
pub fn flat(counts: &Value) -> BTreeMap<String, u64> {
    let kinds = counts.as_object().unwrap().iter();
    let named = kinds.flat_map(|(kind, outcomes)| {
        let outcomes = outcomes.as_object().unwrap().iter();
        outcomes.map(move |(outcome, count)| (format!("{kind} {outcome}"), count.as_u64().unwrap()))
    });
    named.collect()
}
