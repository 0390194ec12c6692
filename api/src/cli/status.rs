//! `status`: what the daemon does now.

use clap::Args;
use serde_json::Value;

use super::exit::{CliError, Exit};
use super::out::Out;
use super::server::{Server, counted, text as plain};
use super::show::head;

#[derive(Debug, Args)]
#[command(after_help = "Example: proofkeep status")]
pub struct Status {
    #[command(flatten)]
    server: Server,
}

pub fn run(command: &Status, out: &Out) -> Result<Exit, CliError> {
    let status = command.server.client()?.get("/v1/status", &[])?.body;
    out.data(&status, || text(&status));
    Ok(Exit::Done)
}

fn text(status: &Value) -> String {
    let mut lines = Vec::new();
    let (boot, queue, memory) = (&status["boot"], &status["queue"], &status["memory"]);
    let recovered = &boot["recovered"];
    lines.push(format!(
        "proofkeep {}, boot {} since {}, journal {}",
        plain(&status["version"]),
        plain(&boot["number"]),
        plain(&boot["since"]),
        plain(&status["journal"])
    ));
    if recovered["interrupted"].as_u64().unwrap_or(0) > 0 {
        lines.push(format!(
            "recovered: {} closed, {} kept, {} reused ({} ms saved)",
            counted(&recovered["interrupted"], "attempt"),
            counted(&recovered["partitions_kept"], "partition"),
            counted(&recovered["checkpoints_reused"], "checkpoint"),
            plain(&recovered["saved_ms"])
        ));
    }
    if status["test_build"] == Value::Bool(true) {
        lines.push("THIS IS A TEST BUILD".to_owned());
    }
    lines.push(format!(
        "queue: {} ready, {} waiting{}",
        plain(&queue["depth"]),
        plain(&queue["waiting"]),
        if queue["paused"] == Value::Bool(true) {
            ", paused"
        } else {
            ""
        }
    ));
    lines.push(format!(
        "memory: {} of {} reserved",
        mebibytes(&memory["reserved_bytes"]),
        mebibytes(&memory["budget_bytes"])
    ));
    for worker in status["workers"].as_array().into_iter().flatten() {
        let mut line = format!(
            "worker {} on {} {}",
            plain(&worker["id"]),
            plain(&worker["device"]),
            plain(&worker["state"])
        );
        if !worker["job"].is_null() {
            line.push_str(&format!(
                " job {} partition {} for {} ms",
                plain(&worker["job"]),
                plain(&worker["partition"]),
                plain(&worker["busy_ms"])
            ));
        }
        lines.push(line);
    }
    for circuit in status["importing"].as_array().into_iter().flatten() {
        let progress = &circuit["progress"];
        lines.push(format!(
            "importing {}: {} of {}",
            plain(&circuit["name"]),
            plain(&progress["done"]),
            plain(&progress["total"])
        ));
    }
    lines.extend(status["jobs"].as_array().into_iter().flatten().map(head));
    lines.join("\n")
}

fn mebibytes(bytes: &Value) -> String {
    bytes
        .as_u64()
        .map_or_else(|| "?".to_owned(), |bytes| format!("{} MiB", bytes >> 20))
}
