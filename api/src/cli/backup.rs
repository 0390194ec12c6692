//! `backup` and `restore`: a directory that holds a store as it was at one moment.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use proofkeep_store::clock::Clock;
use proofkeep_store::dump::{LoadError, Restored, SaveError};
use proofkeep_store::{OpenError, backup};
use serde_json::{Value, json};

use super::data::{CACHE, DataDir, options, refused};
use super::exit::{CliError, Exit};
use super::out::Out;
use super::server::Credentials;
use crate::client::Client;
use crate::render::backup::{draw, text, warning};

#[derive(Debug, Args)]
#[command(
    after_help = "Example: proofkeep backup --data-dir ./data ./backup-monday\n\n\
                  The backup is a new directory: the store as of one moment, in which everything is that was acknowledged\n\
                  before. If a daemon has the data directory it makes the backup itself and goes on meanwhile; with\n\
                  --server, the daemon that is named does, on its own machine. Objects (inputs, keys) are hard links where\n\
                  the backup lies on the same filesystem, else copies: keep a backup that is to survive a broken disk on\n\
                  another one. Checkpoints of proofs in work are left out. It holds witnesses: only its owner can read it.\n\n\
                  For one file that can be sent elsewhere see proofkeep export."
)]
pub struct Backup {
    /// Where it is to be; nothing may be there yet
    target: PathBuf,
    #[command(flatten)]
    data: DataDir,
    /// The daemon that makes it [default: the one that has the data directory, if there is one]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    #[command(flatten)]
    credentials: Credentials,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example: proofkeep restore ./backup-monday --data-dir ./restored\n\n\
                  The data directory must be empty or not there yet. Every checksum and digest is checked; if anything is\n\
                  damaged it is named and nothing is left behind. The new store has an id of its own, so that nobody takes\n\
                  one for the other; jobs that were running go on when a daemon is started on it."
)]
pub struct Restore {
    /// The backup
    backup: PathBuf,
    #[command(flatten)]
    data: DataDir,
}

pub fn run(command: &Backup, out: &Out) -> Result<Exit, CliError> {
    let value = match &command.server {
        Some(server) => ask(&command.credentials.client(server)?, &command.target, None)?,
        None => make(command, out)?,
    };
    out.data(&value, || text(&value));
    if let Some(warning) = warning(&value) {
        out.note(&warning);
    }
    Ok(Exit::Done)
}

fn make(command: &Backup, out: &Out) -> Result<Value, CliError> {
    let path = command.data.path();
    match proofkeep_store::Store::open(&path, &options()) {
        Ok(store) => {
            let made = store.backup(&command.target, Clock::start().now(), &|| false);
            let dumped = made.map_err(unsaved)?;
            Ok(draw(&dumped, &absolute(&command.target)?))
        }
        Err(OpenError::Locked { pid, .. }) => {
            let server = daemon_of(&path);
            out.note(&format!(
                "pid {pid} has {}; asking it, at {server}",
                path.display()
            ));
            let store = store_of(&path);
            ask(
                &command.credentials.client(&server)?,
                &command.target,
                store.as_deref(),
            )
            .map_err(|error| error.about(format!("pid {pid} has {}", path.display())))
        }
        Err(error) => Err(refused(error, &path, "use proofkeep backup --server")),
    }
}

/// Has a daemon make it.
fn ask(client: &Client, target: &Path, store: Option<&str>) -> Result<Value, CliError> {
    let mut body = json!({ "target": absolute(target)?.display().to_string() });
    if let Some(store) = store {
        body["store"] = store.into();
    }
    Ok(client.post("/v1/admin/backup", &[], &body)?.body)
}

/// Where the daemon of a data directory listens: it notes that there.
pub fn daemon_of(data: &Path) -> String {
    let noted = fs::read_to_string(data.join(crate::daemon::ADDRESS)).ok();
    noted
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
        .or_else(|| std::env::var("PROOFKEEP_SERVER").ok())
        .unwrap_or_else(|| "http://127.0.0.1:8420".to_owned())
}

/// The id of the store in a data directory that another process has, as `FORMAT` says it.
fn store_of(data: &Path) -> Option<String> {
    let text = fs::read_to_string(data.join("FORMAT")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("store "))?;
    Some(line.trim().to_owned())
}

fn absolute(path: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(path)
        .map_err(|error| CliError::usage(format!("{} can't be found: {error}", path.display())))
}

/// Why nothing was saved.
pub fn unsaved(error: SaveError) -> CliError {
    let code = match &error {
        SaveError::Busy => "backup-running",
        SaveError::Stopped => "stopped",
        SaveError::Exists(_) => "target-exists",
        SaveError::Target { .. } => "bad-target",
        SaveError::DiskFull(_) => "disk-full",
        SaveError::TooSlow(_) => "backup-too-slow",
        SaveError::Read(_) => "unreadable",
        SaveError::Io { .. } => "unwritable",
    };
    CliError::failed(code, error.to_string())
}

pub fn restore(command: &Restore, out: &Out) -> Result<Exit, CliError> {
    let path = command.data.path();
    let done = backup::restore(&command.backup, &path, CACHE).map_err(|error| unloaded(error, &path))?;
    restored(&done, &path, &command.backup.display().to_string(), out);
    Ok(Exit::Done)
}

/// Says what was made.
pub fn restored(done: &Restored, path: &Path, from: &str, out: &Out) {
    let missing: Vec<String> = done.missing.iter().map(ToString::to_string).collect();
    let value = json!({
        "data_dir": path.display().to_string(), "store": done.store, "from": done.from, "journal": done.journal.0,
        "records": done.records, "objects": done.counts.objects, "object_bytes": done.counts.object_bytes,
        "missing": missing,
    });
    out.data(&value, || {
        format!(
            "{}: store {} as of journal entry {}, {} records and {} objects of {from}",
            path.display(),
            done.store,
            done.journal,
            done.records,
            done.counts.objects
        )
    });
    if !missing.is_empty() {
        out.note(&format!(
            "warning: the store that was saved had lost these objects already: {}; upload them again",
            missing.join(", ")
        ));
    }
}

/// Why nothing was made.
pub fn unloaded(error: LoadError, path: &Path) -> CliError {
    let code = match error {
        LoadError::Open(OpenError::NotNew { .. }) => "data-dir-not-empty",
        LoadError::Open(OpenError::DiskFull { .. }) => "disk-full",
        LoadError::Open(error) => return refused(error, path, "choose an empty directory"),
        LoadError::Dump(proofkeep_store::dump::DumpError::Newer { .. }) => "backup-newer",
        LoadError::Dump(proofkeep_store::dump::DumpError::Io { .. }) => "unreadable",
        LoadError::Dump(_) | LoadError::Damaged { .. } | LoadError::Record { .. } => "backup-damaged",
        LoadError::NoBackup(_) | LoadError::OtherKind { .. } => "no-backup",
        LoadError::Write { .. } | LoadError::Read(_) | LoadError::Io { .. } => "unwritable",
    };
    CliError::failed(code, error.to_string())
}
