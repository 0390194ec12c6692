//! `retry`: a job that didn't succeed gets another life.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};

use super::arguments;
use super::exit::{CliError, Exit};
use super::out::Out;
use super::server::Server;
use super::show::head;
use super::submit::input;
use crate::client::escape;

#[derive(Debug, Args)]
#[command(
    after_help = "Example: proofkeep retry 0197c4a2-… --replace 17=fixed.json\n\n\
                  Proofs that are there are kept; only what is missing is proved."
)]
pub struct Retry {
    /// The job's id
    #[arg(value_parser = arguments::name())]
    job: String,
    /// Another input for a partition, counted from 0
    #[arg(long = "replace", value_name = "K=FILE")]
    replace: Vec<String>,
    #[command(flatten)]
    server: Server,
}

pub fn run(command: &Retry, out: &Out) -> Result<Exit, CliError> {
    let client = command.server.client()?;
    let mut replace = Map::new();
    for given in &command.replace {
        let split = given
            .split_once('=')
            .filter(|(index, _)| index.parse::<u32>().is_ok());
        let (index, file) = split.ok_or_else(|| {
            CliError::usage(format!(
                "--replace {given}: expected PARTITION=FILE, like 17=fixed.json"
            ))
        })?;
        replace.insert(index.to_owned(), input(&client, &PathBuf::from(file))?);
    }
    let body = if replace.is_empty() {
        json!({})
    } else {
        json!({ "replace": Value::Object(replace) })
    };
    let job = client
        .post(&format!("/v1/jobs/{}/retry", escape(&command.job)), &[], &body)?
        .body;
    out.data(&job, || head(&job));
    Ok(Exit::Done)
}
