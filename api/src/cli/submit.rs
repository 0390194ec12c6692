//! `submit`: a job, to be waited for or not.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};

use super::arguments;
use super::exit::{CliError, Exit};
use super::files;
use super::out::Out;
use super::server::{Server, exit_of, text};
use super::wait::{Patience, until_ended};
use crate::client::Client;

#[derive(Debug, Args)]
#[command(
    after_help = "Example: proofkeep submit sha256 --input block1.json --input block2.wtns --label order=7\n\n\
                  Each input is a partition: circom's input.json (the circuit must have its wasm), or a .wtns. The job's\n\
                  id is on stdout once the job is durable; nothing that happens to the daemon loses it."
)]
pub struct Submit {
    /// The circuit: a name or sha256:…
    #[arg(value_parser = arguments::name())]
    circuit: String,
    /// An input.json or a witness.wtns; give several for a job of several partitions
    #[arg(long = "input", value_name = "FILE", required = true)]
    inputs: Vec<PathBuf>,
    /// Wait until it has ended
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    how: How,
}

/// How a job is treated, by whom, and how long it is waited for.
#[derive(Debug, Args)]
pub struct How {
    #[command(flatten)]
    pub patience: Patience,
    #[command(flatten)]
    pub server: Server,
    /// What goes first
    #[arg(long, value_name = "PRIORITY", value_parser = ["low", "normal", "high", "critical"])]
    priority: Option<String>,
    /// A label, to find the job by
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = arguments::label)]
    labels: Vec<(String, String)>,
    /// Failures of a partition that count before it is given up
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    max_attempts: Option<u32>,
    /// What a partition that is given up does to the others
    #[arg(long, value_name = "WHAT", value_parser = ["continue", "stop"])]
    on_failure: Option<String>,
    /// The same key with the same inputs is the same job, however often it is sent
    #[arg(long, value_name = "KEY", value_parser = arguments::idempotency_key)]
    idempotency_key: Option<String>,
}

pub fn run(command: &Submit, out: &Out) -> Result<Exit, CliError> {
    let client = command.how.server.client()?;
    let job = submit(&client, &command.circuit, &command.inputs, &command.how)?;
    let id = text(&job["id"]);
    if !command.wait {
        out.data(&job, || id);
        return Ok(Exit::Done);
    }
    let ended = until_ended(&client, &id, command.how.patience.timeout, out)?;
    out.data(&ended, || id);
    if exit_of(&ended) != Exit::Done {
        out.note(&super::show::text(&ended));
    }
    Ok(exit_of(&ended))
}

/// Uploads the inputs and submits; answers what the daemon shows of the job.
pub fn submit(client: &Client, circuit: &str, inputs: &[PathBuf], how: &How) -> Result<Value, CliError> {
    let inputs = inputs
        .iter()
        .map(|path| input(client, path))
        .collect::<Result<Vec<_>, _>>()?;
    let mut body = Map::new();
    body.insert("kind".to_owned(), "groth16".into());
    body.insert("circuit".to_owned(), circuit.into());
    body.insert("inputs".to_owned(), inputs.into());
    common(client, body, how)
}

/// Submits a body with what every kind has beside its own fields.
pub fn common(client: &Client, mut body: Map<String, Value>, how: &How) -> Result<Value, CliError> {
    let mut labels = Map::new();
    for (key, value) in &how.labels {
        labels.insert(key.clone(), value.as_str().into());
    }
    if !labels.is_empty() {
        body.insert("labels".to_owned(), labels.into());
    }
    for (name, value) in [("priority", &how.priority), ("on_failure", &how.on_failure)] {
        if let Some(value) = value {
            body.insert(name.to_owned(), value.as_str().into());
        }
    }
    if let Some(attempts) = how.max_attempts {
        body.insert("max_attempts".to_owned(), attempts.into());
    }
    let key = how
        .idempotency_key
        .as_deref()
        .map(|key| [("Idempotency-Key", key)]);
    let headers = key.as_ref().map_or(&[][..], |key| &key[..]);
    Ok(client.post("/v1/jobs", headers, &Value::Object(body))?.body)
}

/// An input of a job, uploaded.
pub fn input(client: &Client, path: &Path) -> Result<Value, CliError> {
    let is_witness = files::map(path)?.starts_with(b"wtns");
    let digest = client.upload_file(path)?;
    Ok(if is_witness {
        json!({ "witness": digest })
    } else {
        json!({ "input_blob": digest })
    })
}
