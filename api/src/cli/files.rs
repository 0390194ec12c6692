//! Files that commands read and write.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use memmap2::Mmap;

use super::exit::CliError;

/// Who may read a file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Whoever the system lets: a proof, a key.
    Anyone,
    /// Its owner alone: a witness.
    Owner,
}

/// The bytes of a file, mapped.
///
/// # Errors
/// When it can't be opened, naming it.
pub fn map(path: &Path) -> Result<Mmap, CliError> {
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    let kind = file
        .metadata()
        .map_err(|error| unreadable(path, &error))?
        .file_type();
    if !kind.is_file() {
        let found = if kind.is_dir() {
            "a directory"
        } else {
            "a pipe or a device"
        };
        let expected = format!("expected a file, found {found}");
        return Err(unreadable(path, &io::Error::other(expected)));
    }
    // SAFETY: the map is only read. Somebody who changes the file meanwhile changes what is read, as with any read;
    // every parser checks the bytes it was given, and a proof made from changed bytes does not verify.
    unsafe { Mmap::map(&file) }.map_err(|error| unreadable(path, &error))
}

/// The whole of a small file.
///
/// # Errors
/// When it can't be read, naming it.
pub fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    fs::read(path).map_err(|error| unreadable(path, &error))
}

/// Looks whether files can be written there, before the work whose result they are to hold.
///
/// # Errors
/// When one can't be, naming it.
pub fn expect_places(paths: &[&Path]) -> Result<(), CliError> {
    for path in paths {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let why = if path.is_dir() {
            "expected a file's name, found a directory".to_owned()
        } else if parent.is_some_and(|parent| !parent.is_dir()) {
            "its directory is not there; make it first".to_owned()
        } else {
            continue;
        };
        return Err(unwritable(path, &io::Error::other(why)));
    }
    Ok(())
}

/// Writes a file whole or not at all.
///
/// # Errors
/// When it can't be written, naming it.
pub fn write(path: &Path, audience: Audience, bytes: &[u8]) -> Result<(), CliError> {
    replace(path, audience, |file| {
        file.write_all(bytes).map_err(|error| unwritable(path, &error))
    })
}

/// Writes a file whole or not at all: beside its place first, then renamed.
///
/// # Errors
/// When it can't be written, naming it, and what `fill` says.
pub fn replace(
    path: &Path,
    audience: Audience,
    fill: impl FnOnce(&mut File) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let named = |error: io::Error| unwritable(path, &error);
    let name = path
        .file_name()
        .ok_or_else(|| named(io::ErrorKind::IsADirectory.into()))?;
    let mut beside = name.to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let beside = path.with_file_name(beside);
    let mode = match audience {
        Audience::Anyone => 0o666,
        Audience::Owner => 0o600,
    };
    let mut options = File::options();
    options
        .write(true)
        .read(true)
        .create(true)
        .truncate(true)
        .mode(mode);
    let mut file = options.open(&beside).map_err(named)?;
    let written = fill(&mut file)
        .and_then(|()| file.sync_all().map_err(named))
        .and_then(|()| fs::rename(&beside, path).map_err(named));
    if written.is_err() {
        // What is half there is of no use to anybody.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn unreadable(path: &Path, error: &io::Error) -> CliError {
    CliError::failed("unreadable", format!("{} can't be read: {error}", path.display()))
}

fn unwritable(path: &Path, error: &io::Error) -> CliError {
    CliError::failed(
        "unwritable",
        format!("{} can't be written: {error}", path.display()),
    )
}
