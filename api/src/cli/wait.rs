//! `wait`: until a job has ended.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::arguments;
use super::exit::{CliError, Exit};
use super::out::Out;
use super::server::{Server, exit_of};
use super::show;
use crate::client::{Client, Ended};

#[derive(Debug, Args)]
#[command(after_help = "Example: proofkeep wait 0197c4a2-… --timeout 10m\n\n\
                  Exit codes: 0 succeeded, 1 failed, 3 cancelled, 4 timed out. The job goes on when the wait ends, and\n\
                  the wait goes on when the daemon is started again within a minute.")]
pub struct Wait {
    /// The job's id
    #[arg(value_parser = arguments::name())]
    job: String,
    #[command(flatten)]
    patience: Patience,
    #[command(flatten)]
    server: Server,
}

/// How long to wait.
#[derive(Debug, Args)]
pub struct Patience {
    /// Wait no longer than this; as long as it takes if not given
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    pub timeout: Option<Duration>,
}

pub fn run(command: &Wait, out: &Out) -> Result<Exit, CliError> {
    let job = until_ended(
        &command.server.client()?,
        &command.job,
        command.patience.timeout,
        out,
    )?;
    out.data(&job, || show::text(&job));
    Ok(exit_of(&job))
}

/// Waits with progress on stderr.
pub fn until_ended(
    client: &Client,
    job: &str,
    timeout: Option<Duration>,
    out: &Out,
) -> Result<Value, CliError> {
    let mut changed = |job: &Value| {
        let state = job["state"].as_str().unwrap_or_default();
        out.progress(&format!("{state}: {}", show::progress(job)));
    };
    let ended = client.wait(job, timeout, &mut changed);
    out.progress_done();
    match ended? {
        Ended::Job(job) => Ok(job),
        Ended::TimedOut(last) => {
            let state = last
                .as_ref()
                .and_then(|job| job["state"].as_str())
                .unwrap_or("not known to have ended");
            Err(CliError {
                exit: Exit::TimedOut,
                code: "timed-out".to_owned(),
                detail: format!(
                    "the job is still {state}; it goes on, and `proofkeep wait {job}` waits for it again"
                ),
            })
        }
    }
}
