//! A data directory that is being filled from a backup. Until `FORMAT` is there nobody takes it for a store: `RESTORING`
//! lies in it, and a daemon that is started on it says that it holds other things.

use std::fs;
use std::io;
use std::path::Path;

use super::{DataDir, make_dir, remove_if_there, sync_parent, take_lock};
use crate::error::OpenError;

/// What an unfinished one is marked with.
pub(super) const MARK: &str = "RESTORING";

/// What [`DataDir::make`] and those who fill it put into a directory, `store.1` apart.
const MADE: [&str; 9] = [
    "objects",
    "quarantine",
    "tmp",
    "CURRENT",
    "CURRENT.new",
    "FORMAT",
    "FORMAT.new",
    "REACHED",
    MARK,
];

impl DataDir {
    /// Locks a directory that is to be filled, and makes everything in it but the database: one that isn't there, or is
    /// empty, or was left unfinished by an earlier try.
    ///
    /// # Errors
    /// When somebody has it, or anything else is in it.
    pub(crate) fn restoring(path: &Path) -> Result<Filling, OpenError> {
        let created = !path.is_dir();
        if created {
            make_dir(path)?;
            sync_parent(path)?;
        } else {
            check_empty(path)?;
        }
        let mut data = DataDir::locked(path, take_lock(path)?);
        // Somebody else may have been quicker.
        check_empty(path)?;
        clear(path)?;
        data.make(MARK)?;
        Ok(Filling { data, created })
    }
}

/// A directory that is being filled; dropping it removes all that was made.
#[derive(Debug)]
pub(crate) struct Filling {
    pub data: DataDir,
    created: bool,
}

impl Filling {
    /// Everything else is there and synced: makes it a data directory.
    pub fn finish(mut self) -> Result<(), OpenError> {
        self.data.finish()
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        if !self.data.is_new() {
            return;
        }
        let path = self.data.path().to_path_buf();
        let removed = clear(&path).and_then(|()| {
            remove_if_there(&path.join("LOCK"))?;
            match self.created {
                true => fs::remove_dir(&path).map_err(OpenError::io("removing", &path)),
                false => Ok(()),
            }
        });
        if let Err(error) = removed {
            tracing::warn!("what an unfinished restore made is still there: {error}");
        }
    }
}

/// Nothing but what an unfinished try left.
fn check_empty(path: &Path) -> Result<(), OpenError> {
    let failed = || OpenError::io("reading", path);
    let unfinished = path.join(MARK).exists() && !path.join("FORMAT").exists();
    for entry in fs::read_dir(path).map_err(failed())? {
        let name = entry.map_err(failed())?.file_name();
        if name != "LOCK" && !unfinished {
            return Err(OpenError::NotNew {
                path: path.to_path_buf(),
                found: name.to_string_lossy().into_owned(),
            });
        }
    }
    Ok(())
}

/// Removes what was made, the mark last.
fn clear(path: &Path) -> Result<(), OpenError> {
    for name in ["store.1"].into_iter().chain(MADE) {
        let made = path.join(name);
        let removed = if made.is_dir() {
            fs::remove_dir_all(&made)
        } else {
            fs::remove_file(&made)
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(OpenError::io("removing", &made)(error));
            }
            _ => {}
        }
    }
    Ok(())
}
