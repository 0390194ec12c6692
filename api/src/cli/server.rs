//! The daemon that a command asks.

use std::path::PathBuf;

use clap::Args;
use proofkeep_formats::count;
use serde_json::Value;

use super::exit::{CliError, Exit};
use crate::client::{Client, ClientError};
use crate::tokens::Secret;

/// Which daemon.
#[derive(Debug, Args)]
pub struct Server {
    /// The daemon's address, or unix:/path
    #[arg(
        long,
        env = "PROOFKEEP_SERVER",
        value_name = "URL",
        default_value = "http://127.0.0.1:8420"
    )]
    server: String,
    #[command(flatten)]
    credentials: Credentials,
}

/// What opens a daemon's door, and how one is told from another.
#[derive(Debug, Args)]
pub struct Credentials {
    /// By https, trust these certificates in PEM instead of those that the system trusts
    #[arg(long, env = "PROOFKEEP_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
    /// A file with the token that the daemon wants, as `proofkeep token add --out` writes it
    #[arg(long, env = "PROOFKEEP_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Credentials {
    /// A client with that token, if there is one.
    pub fn client(&self, server: &str) -> Result<Client, CliError> {
        let client = Client::trusting(server, self.ca.as_deref())?;
        let Some(path) = &self.token_file else {
            return Ok(client);
        };
        let text = std::fs::read_to_string(path).map_err(|error| {
            CliError::failed("unreadable", format!("{} can't be read: {error}", path.display()))
        })?;
        let secret = Secret::parse(text.trim()).ok_or_else(|| {
            let detail = format!(
                "{}: expected a token, pk_ and 64 hexadecimal digits",
                path.display()
            );
            CliError::failed("no-token", detail)
        })?;
        Ok(client.with_token(secret))
    }
}

impl Server {
    /// A client of it.
    pub fn client(&self) -> Result<Client, CliError> {
        self.credentials.client(&self.server)
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        let mut detail = error.to_string();
        let (exit, code) = match error {
            ClientError::Address { .. } => (Exit::Usage, "usage".to_owned()),
            ClientError::Unreachable { .. } => (Exit::Unreachable, "unreachable".to_owned()),
            ClientError::Problem { code, .. } => {
                // What the daemon says is said to whoever speaks HTTP.
                if let Some(here) = here(&code) {
                    detail = format!("{detail}; on the command line: {here}");
                }
                // It couldn't read what was made of the arguments; a body is made by this program or is a file.
                let of_arguments = code.starts_with("malformed-") && code != "malformed-json";
                (if of_arguments { Exit::Usage } else { Exit::Failed }, code)
            }
            ClientError::Strange { .. } => (Exit::Unreachable, "not-proofkeep".to_owned()),
            ClientError::File { .. } => (Exit::Failed, "unreadable".to_owned()),
        };
        Self { exit, code, detail }
    }
}

/// What a problem's advice is in commands.
fn here(code: &str) -> Option<&'static str> {
    Some(match code {
        "unknown-circuit" => "proofkeep circuit ls, proofkeep circuit add",
        "unknown-job" => "proofkeep ls",
        "token-missing" | "token-unknown" => "--token-file FILE, or PROOFKEEP_TOKEN_FILE",
        "name-taken" => "proofkeep circuit add --replace",
        _ => return None,
    })
}

/// How a command ends that waited for a job.
pub fn exit_of(job: &Value) -> Exit {
    match job["state"].as_str() {
        Some("succeeded") => Exit::Done,
        Some("cancelled") => Exit::Cancelled,
        Some("expired") => Exit::TimedOut,
        _ => Exit::Failed,
    }
}

/// A count in JSON with what is counted: `1 wire`.
pub fn counted(value: &Value, noun: &str) -> String {
    value
        .as_u64()
        .map_or_else(|| format!("? {noun}s"), |number| count(number, noun))
}

/// A member of JSON as text: strings without quotes, nothing for `null`.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
