//! `GET /status` against `/v1/status` of the same event: two pictures of one moment must be one picture.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{list, number, text};

/// The mapping of CUZK.md, written down once more.
fn word(state: &str) -> &'static str {
    match state {
        "ready" | "waiting" => "pending",
        "synthesizing" => "synthesizing",
        "synthesized" | "finishing" => "synth_done",
        "proving" => "gpu",
        "proved" => "done",
        "failed" | "cancelled" => "failed",
        other => panic!("there is no state {other}"),
    }
}

/// Holds one against the other.
#[track_caller]
pub fn check_agrees(ours: &Value, theirs: &Value) {
    let pipelines: BTreeMap<&str, &Value> = list(theirs, "pipelines")
        .iter()
        .map(|pipeline| (text(pipeline, "job_id"), pipeline))
        .collect();
    assert_eq!(
        pipelines.len(),
        list(theirs, "pipelines").len(),
        "a job is there twice: {theirs}"
    );
    for job in list(ours, "jobs") {
        let pipeline = pipelines
            .get(text(job, "id"))
            .unwrap_or_else(|| panic!("no pipeline for {job}"));
        check_pipeline(job, pipeline);
    }
    // A job leaves 30 s after its end, which may lie between the two answers.
    for job in list(ours, "recent") {
        if let Some(pipeline) = pipelines.get(text(job, "id")) {
            check_pipeline(job, pipeline);
        }
    }
    let workers = list(theirs, "gpu_workers");
    assert_eq!(workers.len(), list(ours, "workers").len());
    for (worker, ours) in workers.iter().zip(list(ours, "workers")) {
        assert_eq!(worker["worker_id"], ours["id"]);
        assert_eq!(worker["state"], ours["state"]);
        assert_eq!(worker["current_job"], ours["job"], "{worker} and {ours}");
        assert_eq!(
            worker["current_partition"], ours["partition"],
            "{worker} and {ours}"
        );
    }
    let stages = &ours["stages"];
    let witnesses = number(stages, "synthesized") + number(stages, "proving");
    assert_eq!(theirs["synthesis"]["active"], stages["synthesizing"]);
    let buffers = &theirs["buffers"];
    assert_eq!(buffers["synth_in_flight"], stages["synthesizing"]);
    assert_eq!(buffers["provers_in_flight"], witnesses);
    assert_eq!(buffers["aux_in_flight"], witnesses);
    assert_eq!(buffers["shells_in_flight"], 0);
    assert_eq!(buffers["pending_handles"], stages["finishing"]);
    check_counters(ours, theirs);
}

#[track_caller]
fn check_pipeline(job: &Value, pipeline: &Value) {
    assert_eq!(pipeline["proof_kind"], job["kind"]);
    assert_eq!(pipeline["total_partitions"], job["summary"]["total"]);
    assert_eq!(
        pipeline["partitions_done"], job["summary"]["proved"],
        "{pipeline} and {job}"
    );
    let partitions = list(pipeline, "partitions");
    assert_eq!(partitions.len(), list(job, "partitions").len());
    for (partition, ours) in partitions.iter().zip(list(job, "partitions")) {
        assert_eq!(partition["index"], ours["index"]);
        assert_eq!(
            text(partition, "state"),
            word(text(ours, "state")),
            "{pipeline} and {job}"
        );
        assert_eq!(partition["synth_ms"], ours["synth_ms"], "{pipeline} and {job}");
        if ours["state"] != "proving" {
            assert_eq!(partition["gpu_ms"], ours["gpu_ms"], "{pipeline} and {job}");
        }
    }
}

#[track_caller]
fn check_counters(ours: &Value, theirs: &Value) {
    let counters = &theirs["counters"];
    assert_eq!(counters["queue_depth"], ours["queue"]["depth"]);
    for (outcome, total, by_kind) in [
        ("succeeded", "total_completed", "completed_by_kind"),
        ("failed", "total_failed", "failed_by_kind"),
    ] {
        let kinds = ours["counters"]["jobs"].as_object().unwrap().iter();
        let found: BTreeMap<&str, u64> = kinds
            .filter_map(|(kind, outcomes)| Some((&kind[..], outcomes[outcome].as_u64()?)))
            .collect();
        assert_eq!(number(counters, total), found.values().sum::<u64>(), "{counters}");
        for (kind, count) in found {
            assert_eq!(counters[by_kind][kind].as_u64().unwrap_or(0), count, "{counters}");
        }
    }
}
