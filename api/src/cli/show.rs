//! `show`: one job with its partitions and what was tried.

use clap::Args;
use serde_json::Value;

use super::arguments;
use super::exit::{CliError, Exit};
use super::out::Out;
use super::server::{Server, text as plain};
use crate::client::escape;

#[derive(Debug, Args)]
#[command(after_help = "Example: proofkeep show 0197c4a2-…")]
pub struct Show {
    /// The job's id
    #[arg(value_parser = arguments::name())]
    job: String,
    #[command(flatten)]
    server: Server,
}

pub fn run(command: &Show, out: &Out) -> Result<Exit, CliError> {
    let job = command
        .server
        .client()?
        .get(&format!("/v1/jobs/{}", escape(&command.job)), &[])?
        .body;
    out.data(&job, || text(&job));
    Ok(Exit::Done)
}

/// A job for people.
pub fn text(job: &Value) -> String {
    let mut lines = vec![head(job)];
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            lines.push(format!("  {name:<11} {value}"));
        }
    };
    line("waits for", plain(&job["reason"]));
    line("generation", plain(&job["generation"]));
    line("priority", plain(&job["priority"]));
    line("created", plain(&job["created_at"]));
    line("ended", plain(&job["ended_at"]));
    line("eta", plain(&job["eta"]));
    line("error", failure(&job["error"]));
    for partition in list(&job["partitions"]) {
        lines.push(partition_line(partition));
        lines.extend(list(&partition["attempts"]).iter().map(attempt_line));
    }
    if let Some(next) = job["next_partition"].as_u64() {
        lines.push(format!(
            "  partitions {next} and later: proofkeep show --json, or /v1/jobs/ID/partitions?from={next}"
        ));
    }
    lines.join("\n")
}

/// The first line: id, state, circuit, how far.
pub fn head(job: &Value) -> String {
    let (id, state) = (plain(&job["id"]), plain(&job["state"]));
    if state == "damaged" {
        return format!("{id}  {state:<10} {}", plain(&job["error"]["detail"]));
    }
    let kind = plain(&job["kind"]);
    let circuit = if job["circuit"].is_null() {
        String::new()
    } else {
        format!(" {}", plain(&job["circuit"]))
    };
    let insecure = if job["insecure"] == Value::Bool(true) {
        " (insecure key)"
    } else {
        ""
    };
    format!("{id}  {state:<10} {kind}{circuit}{insecure}  {}", progress(job))
}

/// `3 of 4 proved, 1 running`.
pub fn progress(job: &Value) -> String {
    let summary = &job["summary"];
    let count = |name: &str| summary[name].as_u64().unwrap_or(0);
    let mut text = format!("{} of {} proved", count("proved"), count("total"));
    for name in ["running", "failed", "cancelled"] {
        if count(name) > 0 {
            text.push_str(&format!(", {} {name}", count(name)));
        }
    }
    text
}

/// A failure for people; empty for none.
pub fn failure(error: &Value) -> String {
    if error.is_null() {
        return String::new();
    }
    format!("{} ({})", plain(&error["detail"]), plain(&error["code"]))
}

fn partition_line(partition: &Value) -> String {
    let mut text = format!(
        "  partition {:<4} {}",
        plain(&partition["index"]),
        plain(&partition["state"])
    );
    let pieces: Vec<String> = list(&partition["checkpoint"])
        .iter()
        .map(|piece| plain(&piece["piece"]))
        .collect();
    if !pieces.is_empty() {
        text.push_str(&format!(", kept {}", pieces.join(" ")));
    }
    let error = failure(&partition["error"]);
    if !error.is_empty() {
        text.push_str(&format!(": {error}"));
    }
    text
}

fn attempt_line(attempt: &Value) -> String {
    let stage = plain(&attempt["stage"]);
    let outcome = match attempt["outcome"].as_str() {
        Some(outcome) => format!("{outcome} in {stage}"),
        None => format!("now in {stage}"),
    };
    let mut text = format!(
        "    attempt {} (boot {}, {}) {outcome}",
        plain(&attempt["number"]),
        plain(&attempt["boot"]),
        plain(&attempt["device"])
    );
    for (name, member) in [("witness", "synth_ms"), ("device", "gpu_ms")] {
        if let Some(ms) = attempt[member].as_u64() {
            text.push_str(&format!(", {name} {ms} ms"));
        }
    }
    let reused: Vec<String> = list(&attempt["reused"]).iter().map(plain).collect();
    if !reused.is_empty() {
        text.push_str(&format!(
            ", reused {} (saved {} ms)",
            reused.join(" "),
            plain(&attempt["saved_ms"])
        ));
    }
    let error = failure(&attempt["error"]);
    if !error.is_empty() {
        text.push_str(&format!(": {error}"));
    }
    text
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_shows_what_was_tried_and_what_was_reused() {
        let job = json!({
            "id": "7", "state": "proving", "kind": "groth16", "circuit": "sha256", "insecure": true,
            "summary": { "total": 2, "proved": 1, "failed": 0, "running": 1 },
            "partitions": [{
                "index": 1, "state": "proving", "checkpoint": [{ "piece": "H", "ms": 90 }], "error": null,
                "attempts": [
                    { "number": 1, "boot": 1, "device": "cpu:0", "stage": "prove", "outcome": "crashed", "synth_ms": 5,
                      "error": { "code": "daemon-crashed", "detail": "the daemon ended" } },
                    { "number": 2, "boot": 2, "device": "cpu:0", "stage": "prove", "outcome": null,
                      "reused": ["H", "L"], "saved_ms": 90 },
                ],
            }],
        });
        let text = text(&job);
        for part in [
            "7  proving    groth16 sha256 (insecure key)  1 of 2 proved, 1 running",
            "partition 1    proving, kept H",
            "attempt 1 (boot 1, cpu:0) crashed in prove, witness 5 ms: the daemon ended (daemon-crashed)",
            "attempt 2 (boot 2, cpu:0) now in prove, reused H L (saved 90 ms)",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
}
