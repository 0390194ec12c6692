//! `migrate` and `compact`: the same data in a new database, in the latest schema and without what was deleted.

use clap::Args;
use proofkeep_formats::count;
use proofkeep_store::migrate::{MigrateError, Migrated, migrate};
use serde_json::json;

use super::data::{CACHE, DataDir, refused};
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

#[derive(Debug, Args)]
#[command(after_help = "Example: proofkeep compact --data-dir ./data\n\n\
                  The database's file never shrinks by itself: the space of what was deleted is used again. This\n\
                  writes what is there into a new database, compares the two, and puts the new one in use; jobs and\n\
                  their history stay as they are. If anything goes wrong, nothing is changed. The old one is removed,\n\
                  and its space is free, after the daemon's first clean boot.")]
pub struct Compact {
    #[command(flatten)]
    data: DataDir,
}

pub fn run(command: &Migrate, out: &Out) -> Result<Exit, CliError> {
    let done = rewrite(
        &command.data,
        "stop it first, a migration needs the directory for itself",
        "migrate",
    )?;
    out.data(&draw(&done), || {
        format!(
            "{}: store.{} is in use now, with {} ({}) of store.{}",
            command.data.path().display(),
            done.to,
            count(done.records, "record"),
            count(done.bytes, "byte"),
            done.from
        )
    });
    Ok(Exit::Done)
}

pub fn compact(command: &Compact, out: &Out) -> Result<Exit, CliError> {
    let done = rewrite(
        &command.data,
        "stop it first, compacting needs the directory for itself",
        "compact",
    )?;
    out.data(&draw(&done), || {
        format!(
            "{}: {} bytes before (store.{}), {} bytes after (store.{}, in use now), {} kept",
            command.data.path().display(),
            done.size_before,
            done.from,
            done.size_after,
            done.to,
            count(done.records, "record")
        )
    });
    Ok(Exit::Done)
}

fn rewrite(data: &DataDir, instead: &str, code: &str) -> Result<Migrated, CliError> {
    let path = data.path();
    migrate(&path, CACHE).map_err(|error| match error {
        MigrateError::Open(error) => refused(error, &path, instead),
        other => CliError::failed(code, other.to_string()),
    })
}

fn draw(done: &Migrated) -> serde_json::Value {
    json!({
        "from": done.from, "to": done.to, "records": done.records, "bytes": done.bytes,
        "size_before": done.size_before, "size_after": done.size_after,
    })
}
