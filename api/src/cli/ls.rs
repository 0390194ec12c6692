//! `ls`: jobs.

use clap::Args;

use super::exit::{CliError, Exit};
use super::out::Out;
use super::server::Server;
use super::show::head;
use crate::client::escape;

#[derive(Debug, Args)]
#[command(after_help = "Example: proofkeep ls --state queued --circuit sha256\n\n\
                  The newest come first. With --json each line is one job.")]
pub struct Ls {
    /// Only jobs in this state
    #[arg(long)]
    state: Option<String>,
    /// Only jobs of this kind
    #[arg(long)]
    kind: Option<String>,
    /// Only jobs of this circuit (a name or sha256:…)
    #[arg(long)]
    circuit: Option<String>,
    /// Only jobs with this label
    #[arg(long, value_name = "KEY=VALUE")]
    label: Option<String>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 50, allow_negative_numbers = true)]
    limit: u64,
    /// The oldest first
    #[arg(long)]
    oldest: bool,
    #[command(flatten)]
    server: Server,
}

/// The most that the daemon gives at once.
const PAGE: u64 = 1000;

pub fn run(command: &Ls, out: &Out) -> Result<Exit, CliError> {
    let client = command.server.client()?;
    let mut filter = format!("order={}", if command.oldest { "oldest" } else { "newest" });
    let filters = [
        ("state", &command.state),
        ("kind", &command.kind),
        ("circuit", &command.circuit),
        ("label", &command.label),
    ];
    for (name, value) in filters {
        if let Some(value) = value {
            filter.push_str(&format!("&{name}={}", escape(value)));
        }
    }
    let mut left = command.limit;
    let mut cursor = String::new();
    while left > 0 {
        let page = client
            .get(
                &format!("/v1/jobs?{filter}&limit={}{cursor}", left.min(PAGE)),
                &[],
            )?
            .body;
        for job in page["jobs"].as_array().into_iter().flatten() {
            out.data(job, || head(job));
            left = left.saturating_sub(1);
        }
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={}", escape(next)),
            None => break,
        }
    }
    Ok(Exit::Done)
}
