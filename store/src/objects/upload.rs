//! Writing an object: temporary name, hash while writing, sync, rename, sync of the directory.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{ObjectError, Paths};
use crate::ids::Digest;

/// An object that is being written. Dropping it forgets what was written.
///
/// It blocks: in asynchronous code use it where blocking is allowed.
#[derive(Debug)]
pub struct Upload {
    file: File,
    path: PathBuf,
    hasher: Sha256,
    length: u64,
    paths: Arc<Paths>,
}

impl Upload {
    pub(super) fn begin(paths: Arc<Paths>) -> Result<Self, ObjectError> {
        let path = paths.tmp.join(format!("{}-{}", paths.boot, Uuid::new_v4()));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(ObjectError::io("making", &path))?;
        Ok(Self {
            file,
            path,
            hasher: Sha256::new(),
            length: 0,
            paths,
        })
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`ObjectError::DiskFull`], or what the system said.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), ObjectError> {
        self.file
            .write_all(bytes)
            .map_err(ObjectError::io("writing", &self.path))?;
        self.hasher.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Bytes written so far.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Makes the object durable under its name. One that is there already is replaced by these bytes, which are known
    /// to be right, and is as young as if it were new.
    ///
    /// # Errors
    /// [`ObjectError::DiskFull`], or what the system said; nothing is kept then.
    pub fn finish(mut self) -> Result<(Digest, u64), ObjectError> {
        let digest = Digest(self.hasher.finalize_reset().into());
        self.file
            .sync_all()
            .map_err(ObjectError::io("syncing", &self.path))?;
        let directory = self.paths.directory(digest);
        let target = directory.join(digest.hex());
        let settling = &self.paths.settling;
        settling.begin(digest, &target);
        let named = fs::rename(&self.path, &target)
            .map_err(ObjectError::io("renaming", &self.path))
            .and_then(|()| {
                File::open(&directory)
                    .and_then(|directory| directory.sync_all())
                    .map_err(ObjectError::io("syncing", &directory))
            });
        settling.end(digest, &target, named.is_ok());
        named?;
        Ok((digest, self.length))
    }

    /// The same for an object whose digest was announced; anything else is not kept.
    ///
    /// # Errors
    /// [`ObjectError::Mismatch`], and as [`finish`](Self::finish).
    pub fn finish_as(self, expected: Digest) -> Result<u64, ObjectError> {
        let found = Digest(self.hasher.clone().finalize().into());
        if found != expected {
            return Err(ObjectError::Mismatch {
                expected,
                found,
                length: self.length,
            });
        }
        self.finish().map(|(_, length)| length)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // After `finish` there is nothing under this name. A file that can't be removed now goes with the next boot.
        let _ = fs::remove_file(&self.path);
    }
}
