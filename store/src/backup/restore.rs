//! Making a store of a backup or an export.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::manifest::Manifest;
use super::{DUMP, MANIFEST, OBJECTS};
use crate::dump::{LoadError, Reader, Restored, load};

/// Makes a store at `path` of the backup at `backup`. `path` must be empty or not there.
///
/// # Errors
/// See [`LoadError`], which names what is damaged; nothing is left at `path` then.
pub fn restore(backup: &Path, path: &Path, cache_bytes: u64) -> Result<Restored, LoadError> {
    let at = backup.join(MANIFEST);
    let damaged = |path: &Path, what: String| LoadError::Damaged {
        path: path.to_path_buf(),
        what,
        object: false,
    };
    let text = fs::read(&at).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => LoadError::NoBackup(backup.to_path_buf()),
        _ => LoadError::io("reading", &at)(error),
    })?;
    let manifest = Manifest::parse(&text).map_err(|what| damaged(&at, what))?;
    let dump = backup.join(DUMP);
    let file = File::open(&dump).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => damaged(&dump, "it is gone".to_owned()),
        _ => LoadError::io("opening", &dump)(error),
    })?;
    let reader = Reader::begin(
        BufReader::with_capacity(1 << 20, file),
        dump.display().to_string(),
    )?;
    if reader.header.inline {
        return Err(damaged(
            &dump,
            "it is an export, which has no manifest".to_owned(),
        ));
    }
    load(reader, Some(&backup.join(OBJECTS)), path, cache_bytes, |reader| {
        let found = (reader.read_so_far(), reader.counts(), reader.header.store);
        let expected = (
            (manifest.dump_bytes, manifest.dump_sha256),
            manifest.counts,
            manifest.store,
        );
        if found != expected {
            let what = format!(
                "{} says {} bytes with sha256 {}, it has {} bytes with sha256 {}",
                at.display(),
                manifest.dump_bytes,
                manifest.dump_sha256.hex(),
                found.0.0,
                found.0.1.hex()
            );
            return Err(damaged(&dump, what));
        }
        Ok(())
    })
}

/// Makes a store at `path` of an export. `name` is what errors call the stream. `path` must be empty or not there.
///
/// # Errors
/// See [`LoadError`], which names what is damaged; nothing is left at `path` then.
pub fn import(input: impl Read, name: &str, path: &Path, cache_bytes: u64) -> Result<Restored, LoadError> {
    let reader = Reader::begin(BufReader::with_capacity(1 << 20, input), name.to_owned())?;
    if !reader.header.inline {
        return Err(LoadError::OtherKind {
            file: name.to_owned(),
            found: "the dump of a backup, without its objects",
            instead: "restore",
        });
    }
    load(reader, None, path, cache_bytes, |_| Ok(()))
}
