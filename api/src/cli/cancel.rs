//! `cancel`: stops a job.

use clap::Args;
use serde_json::json;

use super::arguments;
use super::exit::{CliError, Exit};
use super::out::Out;
use super::server::Server;
use super::show::head;
use crate::client::escape;

#[derive(Debug, Args)]
#[command(after_help = "Example: proofkeep cancel 0197c4a2-…\n\n\
                  Returns once the wish is durable; what runs stops at its next edge. Proofs that are there stay.")]
pub struct Cancel {
    /// The job's id
    #[arg(value_parser = arguments::name())]
    job: String,
    #[command(flatten)]
    server: Server,
}

pub fn run(command: &Cancel, out: &Out) -> Result<Exit, CliError> {
    let path = format!("/v1/jobs/{}/cancel", escape(&command.job));
    let job = command.server.client()?.post(&path, &[], &json!({}))?.body;
    out.data(&job, || head(&job));
    Ok(Exit::Done)
}
