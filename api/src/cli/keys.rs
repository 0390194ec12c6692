//! `params preload|evict|pin|unpin`: which keys the daemon has in memory.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::arguments;
use super::exit::{CliError, Exit};
use super::out::Out;
use super::server::{Server, counted};
use crate::client::{Client, escape, pause};

/// How often it is asked whether a key is there.
const AGAIN: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub struct Named {
    /// Their names, without .params; params ls lists them
    #[arg(value_name = "ID", required = true, value_parser = arguments::name())]
    ids: Vec<String>,
    #[command(flatten)]
    server: Server,
}

/// Tells the daemon `what` of each; `preload` waits until they are there.
pub fn run(what: &str, named: &Named, out: &Out) -> Result<Exit, CliError> {
    let client = named.server.client()?;
    let mut exit = Exit::Done;
    for id in &named.ids {
        let path = format!("/v1/params/{}", escape(id));
        let mut entry = client.post(&format!("{path}/{what}"), &[], &json!({}))?.body;
        if what == "preload" {
            entry = loaded(&client, &path)?;
        }
        if let Some(error) = entry["load_error"].as_str().filter(|_| what == "preload") {
            exit = Exit::Failed;
            out.error(&CliError::failed("not-loaded", format!("{id}: {error}")));
            continue;
        }
        out.data(&entry, || line(&entry));
    }
    Ok(exit)
}

fn loaded(client: &Client, path: &str) -> Result<Value, CliError> {
    loop {
        let entry = client.get(path, &[])?.body;
        if entry["loading"] != true {
            if entry["loaded"] == true || entry["load_error"].is_string() {
                return Ok(entry);
            }
            let detail = "the worker process that loaded the key ended; ask again";
            return Err(CliError::failed("not-loaded", detail));
        }
        pause(AGAIN);
    }
}

fn line(entry: &Value) -> String {
    let word = |name: &str, yes: &str, no: &str| if entry[name] == true { yes } else { no }.to_owned();
    format!(
        "{}  {}, {}, {}",
        entry["id"].as_str().unwrap_or_default(),
        word("loaded", "loaded", "not loaded"),
        word("pinned", "pinned", "not pinned"),
        counted(&entry["resident_bytes"], "byte"),
    )
}
