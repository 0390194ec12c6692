//! `migrate`: the same data in the latest schema.

use clap::Args;
use proofkeep_store::migrate::{MigrateError, migrate};
use serde_json::json;

use super::data::{DataDir, refused};
use super::exit::{CliError, Exit};
use super::out::Out;

#[derive(Debug, Args)]
#[command(after_help = "Example: proofkeep migrate --data-dir ./data\n\n\
                  Every record is written into a new database and compared; then the new one is put in use. If\n\
                  anything goes wrong, nothing is changed. The old one is removed after the daemon's first clean boot.")]
pub struct Migrate {
    #[command(flatten)]
    data: DataDir,
}

/// Bytes of memory for each of the two databases.
const CACHE: u64 = 64 << 20;

pub fn run(command: &Migrate, out: &Out) -> Result<Exit, CliError> {
    let path = command.data.path();
    let done = migrate(&path, CACHE).map_err(|error| match error {
        MigrateError::Open(error) => refused(error, &path, "a migration needs the directory for itself"),
        other => CliError::failed("migrate", other.to_string()),
    })?;
    let value = json!({ "from": done.from, "to": done.to, "records": done.records, "bytes": done.bytes });
    out.data(&value, || {
        format!(
            "{}: store.{} is in use now, with {} records ({} bytes) of store.{}",
            path.display(),
            done.to,
            done.records,
            done.bytes,
            done.from
        )
    });
    Ok(Exit::Done)
}
