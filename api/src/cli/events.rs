//! `events`: the journal of one job.

use clap::Args;
use serde_json::Value;

use super::arguments;
use super::exit::{CliError, Exit};
use super::out::Out;
use super::server::{Server, text as plain};
use crate::client::escape;

#[derive(Debug, Args)]
#[command(
    after_help = "Example: proofkeep events 0197c4a2-… --after 120\n\nWith --json each line is one event."
)]
pub struct Events {
    /// The job's id
    #[arg(value_parser = arguments::name())]
    job: String,
    /// Only events after this journal number
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    after: u64,
    #[command(flatten)]
    server: Server,
}

pub fn run(command: &Events, out: &Out) -> Result<Exit, CliError> {
    let client = command.server.client()?;
    let mut after = Some(command.after);
    while let Some(from) = after {
        let page = client
            .get(
                &format!("/v1/jobs/{}/events?after={from}&limit=500", escape(&command.job)),
                &[],
            )?
            .body;
        for event in page["events"].as_array().into_iter().flatten() {
            out.data(event, || text(event));
        }
        after = page["next"].as_u64();
    }
    Ok(Exit::Done)
}

/// One event for people: number, moment, what happened, to what, and the rest of what it says.
pub fn text(event: &Value) -> String {
    const SHOWN: [&str; 6] = ["number", "at", "event", "job", "partition", "boot"];
    let mut line = format!(
        "{:>6} {} {}",
        plain(&event["number"]),
        plain(&event["at"]),
        plain(&event["event"])
    );
    for name in ["job", "partition"] {
        if !event[name].is_null() {
            line.push_str(&format!(" {name} {}", plain(&event[name])));
        }
    }
    for (name, value) in event.as_object().into_iter().flatten() {
        if !SHOWN.contains(&name.as_str()) && !value.is_null() {
            line.push_str(&format!(" {name}={}", plain(value)));
        }
    }
    line
}
