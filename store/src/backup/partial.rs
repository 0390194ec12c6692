//! A backup that is being made: `{name}.part`, until it is whole.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::manifest::Manifest;
use super::{DUMP, MANIFEST, OBJECTS};
use crate::dump::SaveError;

/// Dropping it removes it, unless it was finished.
#[derive(Debug)]
pub(super) struct Partial {
    target: PathBuf,
    parent: PathBuf,
    path: PathBuf,
    /// Locked while this lives, so that nobody else takes it for one that was left behind.
    dump: File,
    finished: bool,
}

impl Partial {
    /// Begins one for a target that isn't there. What an interrupted one left under the same name is removed.
    pub fn create(target: &Path) -> Result<Self, SaveError> {
        let wrong = |reason| SaveError::Target {
            path: target.to_path_buf(),
            reason,
        };
        let absolute = std::path::absolute(target).map_err(SaveError::io("finding", target))?;
        let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else {
            return Err(wrong("expected a directory that isn't there yet"));
        };
        if !parent.is_dir() {
            return Err(wrong("the directory that it is to lie in is not there"));
        }
        if fs::symlink_metadata(&absolute).is_ok() {
            return Err(SaveError::Exists(absolute));
        }
        let mut part = name.to_owned();
        part.push(".part");
        let path = parent.join(part);
        remove_abandoned(&path)?;
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(SaveError::io("making", &path))?;
        let dump = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path.join(DUMP))
            .map_err(|error| {
                // What is empty is of no use to anybody.
                let _ = fs::remove_dir(&path);
                SaveError::io("making", &path.join(DUMP))(error)
            })?;
        let (parent, target) = (parent.to_path_buf(), absolute);
        let partial = Self {
            target,
            parent,
            path,
            dump,
            finished: false,
        };
        partial.dump.try_lock().map_err(|_| SaveError::Busy)?;
        make_dir(&partial.objects())?;
        Ok(partial)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn objects(&self) -> PathBuf {
        self.path.join(OBJECTS)
    }

    /// The dump's file, to be written.
    pub fn dump(&self) -> Result<File, SaveError> {
        self.dump
            .try_clone()
            .map_err(SaveError::io("opening", &self.path.join(DUMP)))
    }

    /// Everything else is written and synced: writes the manifest, and gives it its name.
    pub fn finish(&mut self, manifest: &Manifest) -> Result<(), SaveError> {
        let path = self.path.join(MANIFEST);
        let write = || {
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(manifest.text().as_bytes())?;
            file.sync_all()
        };
        write().map_err(SaveError::io("writing", &path))?;
        let objects = self.objects();
        for entry in fs::read_dir(&objects).map_err(SaveError::io("reading", &objects))? {
            sync_dir(&entry.map_err(SaveError::io("reading", &objects))?.path())?;
        }
        sync_dir(&objects)?;
        sync_dir(&self.path)?;
        fs::rename(&self.path, &self.target).map_err(|error| match error.kind() {
            io::ErrorKind::DirectoryNotEmpty
            | io::ErrorKind::AlreadyExists
            | io::ErrorKind::NotADirectory => SaveError::Exists(self.target.clone()),
            _ => SaveError::io("renaming", &self.path)(error),
        })?;
        self.finished = true;
        sync_dir(&self.parent)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.finished
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            tracing::warn!("{} could not be removed: {error}", self.path.display());
        }
    }
}

/// Removes what an interrupted backup left, and nothing else.
fn remove_abandoned(path: &Path) -> Result<(), SaveError> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(SaveError::io("reading", path)(error)),
    };
    for entry in entries {
        let name = entry.map_err(SaveError::io("reading", path))?.file_name();
        if ![DUMP, MANIFEST, OBJECTS].iter().any(|ours| name == *ours) {
            return Err(SaveError::Exists(path.to_path_buf()));
        }
    }
    if let Ok(dump) = File::open(path.join(DUMP))
        && dump.try_lock().is_err()
    {
        return Err(SaveError::Busy);
    }
    fs::remove_dir_all(path).map_err(SaveError::io("removing", path))
}

/// A directory for its owner alone; one that is there is as good.
pub(super) fn make_dir(path: &Path) -> Result<(), SaveError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(SaveError::io("making", path)(error))
        }
        _ => Ok(()),
    }
}

fn sync_dir(path: &Path) -> Result<(), SaveError> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(SaveError::io("syncing", path))
}
