//! Migrating and compacting, which are one: every record goes through the codec into a new database beside the old one.
//!
//! The old database stays as it is, and in use, until the new one is written, compared and synced; then `CURRENT` is
//! replaced by a rename. A cut at any moment leaves one of the two whole, and the step can be run again. The old one is
//! removed by [`Store::remove_superseded`](crate::Store::remove_superseded) after a clean boot of the new.

use std::fs;
use std::path::Path;

use crate::codec::{Damage, MAX_RECORD, reencode};
use crate::commit::Weight;
use crate::error::OpenError;
use crate::format::{DataDir, make_dir, sync_dir};
use crate::keys::Key;
use crate::open::{check_journal, open_at, open_database};
use crate::tree::{Database, SyncError};
use crate::view::{ReadError, View as _};

/// Pairs read at once.
const PAGE: usize = 256;

/// Why nothing was migrated. The old database is still the one in use.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The directory, or one of the databases.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A record of the old database can't be read.
    #[error("{0}; nothing was changed. Run `proofkeep fsck`, and restore a backup if it can't be repaired")]
    Read(#[from] ReadError),
    /// The new database could not be written.
    #[error(
        "writing {path} failed: {reason}; nothing was changed. Free some space or check the disk, then run it again"
    )]
    Write {
        /// The new database.
        path: String,
        /// What was said.
        reason: String,
        /// No space is left.
        disk_full: bool,
    },
    /// The new database does not read back as what was written.
    #[error(
        "the new database differs from the old one at key {key}; it is not used. Check the disk, then run it again"
    )]
    Differs {
        /// The key, in hex.
        key: String,
    },
}

/// What a migration did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The database before.
    pub from: u64,
    /// The database in use now.
    pub to: u64,
    /// Records copied.
    pub records: u64,
    /// Their bytes, keys included.
    pub bytes: u64,
    /// Bytes of the files of the database before.
    pub size_before: u64,
    /// Bytes of the files of the database in use now.
    pub size_after: u64,
}

/// Exports the database of the data directory at `path` into a new one in the latest schema and puts that in use. No
/// other process may have the directory.
///
/// # Errors
/// See [`MigrateError`].
pub fn migrate(path: &Path, cache_bytes: u64) -> Result<Migrated, MigrateError> {
    let mut data = DataDir::lock(path, false)?;
    let from = data.current()?;
    let old = open_database(&data, from, cache_bytes)?;
    // A database that lost its end would look whole once it was copied.
    check_journal(&data, from, &old)?;
    // What a migration that was cut off left behind is in nobody's use.
    for left in data.stores()?.into_iter().filter(|number| *number > from) {
        let left = data.store(left);
        fs::remove_dir_all(&left).map_err(OpenError::io("removing", &left))?;
    }
    let to = from + 1;
    let target = data.store(to);
    make_dir(&target)?;
    sync_dir(data.path())?;
    let new = open_at(&data, &target, cache_bytes)?;
    let written = export(&old, &new, &target)?;
    drop(new);
    // Compared as it will be read from now on: opened again, from the disk.
    let new = open_at(&data, &target, cache_bytes)?;
    compare(&old, &new)?;
    drop((old, new));
    data.set_current(to)?;
    data.set_latest_schema()?;
    Ok(Migrated {
        from,
        to,
        records: written.records,
        bytes: written.bytes,
        size_before: size(&data.store(from))?,
        size_after: size(&target)?,
    })
}

/// Bytes of the files in a directory.
fn size(directory: &Path) -> Result<u64, OpenError> {
    let failed = || OpenError::io("reading", directory);
    let mut total = 0;
    for entry in fs::read_dir(directory).map_err(failed())? {
        let file = entry.and_then(|entry| entry.metadata()).map_err(failed())?;
        total += if file.is_file() { file.len() } else { 0 };
    }
    Ok(total)
}

/// Writes everything, in groups as the commit thread's.
fn export(old: &Database, new: &Database, target: &Path) -> Result<Weight, MigrateError> {
    let failed = |reason: String, disk_full| MigrateError::Write {
        path: target.display().to_string(),
        reason,
        disk_full,
    };
    let write = |group: &[(Key, Option<Vec<u8>>)]| {
        new.apply(group.iter().map(|(key, value)| (key, value)))
            .map_err(SyncError::Flush)
            .and_then(|()| new.sync())
            .map_err(|error| failed(error.to_string(), error.is_disk_full()))
    };
    let mut total = Weight::default();
    let mut group = Vec::new();
    let mut weight = Weight::default();
    each(old, |key, value| {
        let value = reencode(&value).map_err(|damage| ReadError::damaged(&key, damage))?;
        let length = key.len() + value.len();
        if length > MAX_RECORD {
            let damage = Damage::Payload(format!(
                "{length} bytes in the new schema, the limit is {MAX_RECORD}"
            ));
            return Err(ReadError::damaged(&key, damage).into());
        }
        let one = Weight {
            records: 1,
            bytes: length as u64,
        };
        total += one;
        weight += one;
        group.push((key, Some(value)));
        if weight.is_full() {
            write(&group)?;
            group.clear();
            weight = Weight::default();
        }
        Ok(())
    })?;
    write(&group)?;
    Ok(total)
}

/// Reads both databases side by side.
fn compare(old: &Database, new: &Database) -> Result<(), MigrateError> {
    let differs = |key: &[u8]| MigrateError::Differs {
        key: hex::encode(key),
    };
    let mut records = 0_u64;
    each(old, |key, value| {
        records += 1;
        let expected = reencode(&value).map_err(|damage| ReadError::damaged(&key, damage))?;
        if new.view().get(&key)? == Some(expected) {
            Ok(())
        } else {
            Err(differs(&key))
        }
    })?;
    each(new, |key, _| {
        records
            .checked_sub(1)
            .map(|left| records = left)
            .ok_or_else(|| differs(&key))
    })
}

fn each(
    database: &Database,
    mut visit: impl FnMut(Key, Vec<u8>) -> Result<(), MigrateError>,
) -> Result<(), MigrateError> {
    let mut after: Option<Key> = None;
    loop {
        let page = database.view().scan(&[], after.as_deref(), PAGE)?;
        let Some((last, _)) = page.last() else {
            return Ok(());
        };
        after = Some(last.clone());
        for (key, value) in page {
            visit(key, value)?;
        }
    }
}
