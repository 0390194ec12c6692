//! `export` and `import`: everything that a store keeps, as one file.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use proofkeep_store::backup;
use proofkeep_store::clock::Clock;
use proofkeep_store::dump::Dumped;

use super::backup::{restored, unloaded, unsaved};
use super::data::{CACHE, DataDir};
use super::exit::{CliError, Exit};
use super::files::{Audience, replace};
use super::out::Out;
use crate::render::backup::{draw, text, warning};

#[derive(Debug, Args)]
#[command(after_help = "Example: proofkeep export --data-dir ./data store.pkdump\n\n\
                  One file with every record and every object, to be sent to another machine or another version of\n\
                  proofkeep; - writes to stdout. No daemon may have the data directory. Checkpoints of proofs in work are\n\
                  left out. The file holds witnesses: only its owner can read it.\n\n\
                  A backup (proofkeep backup) is a directory, made while the daemon works, and quick where objects can be\n\
                  linked. The format of both is written down in store/src/dump/mod.rs.")]
pub struct Export {
    /// The file, which may not be there yet; - for stdout
    file: PathBuf,
    #[command(flatten)]
    data: DataDir,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example: proofkeep import store.pkdump --data-dir ./imported\n\n\
                  - reads from stdin. The data directory must be empty or not there yet. Every checksum and digest is\n\
                  checked; if anything is damaged it is named and nothing is left behind. Records are written in this\n\
                  version's schema, and the new store has an id of its own."
)]
pub struct Import {
    /// The file; - for stdin
    file: PathBuf,
    #[command(flatten)]
    data: DataDir,
}

pub fn export(command: &Export, out: &Out) -> Result<Exit, CliError> {
    let file = &command.file;
    let store = command
        .data
        .open("use proofkeep backup, which works while it runs")?;
    let write = |to: &mut dyn Write| -> Result<Dumped, CliError> {
        let mut to = BufWriter::with_capacity(1 << 20, to);
        let dumped = store
            .export(&mut to, file, Clock::start().now(), &|| false)
            .map_err(unsaved)?;
        to.flush().map_err(|error| unwritable(file, &error))?;
        Ok(dumped)
    };
    if is_standard(file) {
        // What goes to stdout is the export itself.
        let value = draw(&write(&mut io::stdout().lock())?, file);
        out.note(&text(&value));
        note(&value, out);
        return Ok(Exit::Done);
    }
    if fs::symlink_metadata(file).is_ok() {
        let detail = format!(
            "{} is there already; choose another name, or move it away",
            file.display()
        );
        return Err(CliError::failed("target-exists", detail));
    }
    let mut dumped = None;
    replace(file, Audience::Owner, |to| {
        dumped = Some(write(to)?);
        Ok(())
    })?;
    sync_parent(file).map_err(|error| unwritable(file, &error))?;
    if let Some(dumped) = dumped {
        let value = draw(&dumped, file);
        out.data(&value, || text(&value));
        note(&value, out);
    }
    Ok(Exit::Done)
}

fn note(value: &serde_json::Value, out: &Out) {
    if let Some(warning) = warning(value) {
        out.note(&warning);
    }
}

fn sync_parent(file: &Path) -> io::Result<()> {
    let absolute = std::path::absolute(file)?;
    absolute
        .parent()
        .map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

pub fn import(command: &Import, out: &Out) -> Result<Exit, CliError> {
    let path = command.data.path();
    let name = command.file.display().to_string();
    let done = if is_standard(&command.file) {
        backup::import(io::stdin().lock(), "stdin", &path, CACHE)
    } else {
        let file = File::open(&command.file)
            .map_err(|error| CliError::failed("unreadable", format!("{name} can't be read: {error}")))?;
        backup::import(file, &name, &path, CACHE)
    };
    let done = done.map_err(|error| unloaded(error, &path))?;
    restored(&done, &path, &name, out);
    Ok(Exit::Done)
}

fn is_standard(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn unwritable(file: &Path, error: &io::Error) -> CliError {
    CliError::failed(
        "unwritable",
        format!("{} can't be written: {error}", file.display()),
    )
}
