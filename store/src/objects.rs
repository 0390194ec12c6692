//! What is too large for a record: files named by the SHA-256 of what is in them, `objects/{ab}/{sha256}`.
//!
//! A file appears under its name only when it is whole and synced, and the record that names it is written after that.
//! The store's commit thread looks for it under its lock, the sweeper deletes under the same lock, so neither can miss
//! the other.

mod settling;
mod sweep;
mod upload;

use std::fs::{self, File, FileTimes};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

pub use sweep::Swept;
pub use upload::Upload;

use crate::clock::{self, Clock};
use crate::error::is_disk_full;
use crate::format::DataDir;
use crate::ids::{BootNumber, Digest};
use settling::Settling;

/// Why an object was not written or read.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// No space is left: an answer of 507, not the end of the daemon.
    #[error("no space is left on the disk of {}; free some and send it again", .0.display())]
    DiskFull(PathBuf),
    /// It isn't there.
    #[error("there is no object {0}; upload it first")]
    Missing(Digest),
    /// What lies under its name is something else. It was moved away, so that an upload can replace it.
    #[error("object {expected} is damaged: its bytes have digest {found}; it was moved to {}, upload it again", .moved_to.display())]
    Damaged {
        /// Its name.
        expected: Digest,
        /// What its bytes have.
        found: Digest,
        /// Where it is now.
        moved_to: PathBuf,
    },
    /// An upload is not what it was said to be. Nothing was kept.
    #[error(
        "expected bytes with digest {expected}, received others with digest {found} (length {length}); send it again"
    )]
    Mismatch {
        /// As announced.
        expected: Digest,
        /// As received.
        found: Digest,
        /// Bytes received.
        length: u64,
    },
    /// The system refused something.
    #[error("{doing} {} failed: {source}", .path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl ObjectError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            let path = path.to_path_buf();
            if is_disk_full(&source) {
                Self::DiskFull(path)
            } else {
                Self::Io { doing, path, source }
            }
        }
    }
}

/// What is known of an object without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Bytes.
    pub length: u64,
    /// When it was uploaded last.
    pub touched: SystemTime,
}

/// The objects of a store. Cloning gives another handle on the same ones.
#[derive(Clone, Debug)]
pub struct Objects {
    paths: Arc<Paths>,
}

#[derive(Debug)]
struct Paths {
    objects: PathBuf,
    tmp: PathBuf,
    quarantine: PathBuf,
    boot: BootNumber,
    /// Of this boot; a jump of the wall clock doesn't move it.
    clock: Clock,
    settling: Settling,
}

impl Objects {
    /// The objects of a data directory; temporary files are marked with `boot`.
    pub(crate) fn new(data: &DataDir, boot: BootNumber) -> Self {
        let paths = Paths {
            objects: data.objects(),
            tmp: data.tmp(),
            quarantine: data.quarantine(),
            boot,
            clock: Clock::start(),
            settling: Settling::default(),
        };
        Self {
            paths: Arc::new(paths),
        }
    }

    /// The boot that temporary files are marked with: the one that this store opens next.
    pub(crate) fn boot(&self) -> BootNumber {
        self.paths.boot
    }

    /// Where an object lies, whether it is there or not; for a worker process that maps it.
    #[must_use]
    pub fn path(&self, digest: Digest) -> PathBuf {
        let name = digest.hex();
        self.paths.objects.join(&name[..2]).join(name)
    }

    /// Where all of them lie.
    pub(crate) fn directory(&self) -> &Path {
        &self.paths.objects
    }

    /// Begins an upload.
    ///
    /// # Errors
    /// When no temporary file can be made.
    pub fn create(&self) -> Result<Upload, ObjectError> {
        Upload::begin(Arc::clone(&self.paths))
    }

    /// Stores bytes that are in memory.
    ///
    /// # Errors
    /// As an [`Upload`].
    pub fn put(&self, bytes: &[u8]) -> Result<Digest, ObjectError> {
        let mut upload = self.create()?;
        upload.write(bytes)?;
        upload.finish().map(|(digest, _)| digest)
    }

    /// What is known of an object, or `None` if it isn't there. One whose name isn't durable yet is not there.
    ///
    /// # Errors
    /// When the system can't say.
    pub fn stat(&self, digest: Digest) -> Result<Option<Stat>, ObjectError> {
        if !self.paths.settling.is_durable(digest) {
            return Ok(None);
        }
        let path = self.path(digest);
        let stat = fs::metadata(&path).and_then(|meta| {
            Ok(Stat {
                length: meta.len(),
                touched: meta.modified()?,
            })
        });
        match stat {
            Ok(stat) => Ok(Some(stat)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ObjectError::io("looking at", &path)(error)),
        }
    }

    /// Opens an object without checking its bytes; for those who check while they read.
    ///
    /// # Errors
    /// When it isn't there or can't be opened.
    pub fn open(&self, digest: Digest) -> Result<File, ObjectError> {
        if !self.paths.settling.is_durable(digest) {
            return Err(ObjectError::Missing(digest));
        }
        let path = self.path(digest);
        File::open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ObjectError::Missing(digest),
            _ => ObjectError::io("opening", &path)(error),
        })
    }

    /// An object's bytes, checked. One that fails is moved to quarantine.
    ///
    /// # Errors
    /// When it isn't there, can't be read, or is damaged.
    pub fn read_verified(&self, digest: Digest) -> Result<Vec<u8>, ObjectError> {
        let mut bytes = Vec::new();
        let read = self.open(digest)?.read_to_end(&mut bytes);
        read.map_err(ObjectError::io("reading", &self.path(digest)))?;
        self.expect(digest, Digest::of(&bytes))?;
        Ok(bytes)
    }

    /// Checks an object of any size. One that fails is moved to quarantine.
    ///
    /// # Errors
    /// As [`read_verified`](Self::read_verified).
    pub fn verify(&self, digest: Digest) -> Result<(), ObjectError> {
        self.expect(digest, self.digest_of(digest)?)
    }

    /// The digest that an object's bytes have, without moving anything.
    ///
    /// # Errors
    /// When it isn't there or can't be read.
    pub fn digest_of(&self, digest: Digest) -> Result<Digest, ObjectError> {
        let mut file = self.open(digest)?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 256 << 10];
        loop {
            let read = file
                .read(&mut buffer)
                .map_err(ObjectError::io("reading", &self.path(digest)))?;
            if read == 0 {
                return Ok(Digest(hasher.finalize().into()));
            }
            hasher.update(&buffer[..read]);
        }
    }

    /// Renews an object's age, so that the sweeper leaves it alone. `false` if it isn't there.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn touch(&self, digest: Digest) -> Result<bool, ObjectError> {
        let file = match self.open(digest) {
            Ok(file) => file,
            Err(ObjectError::Missing(_)) => return Ok(false),
            Err(error) => return Err(error),
        };
        file.set_times(FileTimes::new().set_modified(clock::wall()))
            .map_err(ObjectError::io("touching", &self.path(digest)))?;
        Ok(true)
    }

    /// The objects among these that are not there.
    ///
    /// # Errors
    /// When the system can't say.
    pub fn missing(&self, digests: &[Digest]) -> Result<Vec<Digest>, ObjectError> {
        let mut missing = Vec::new();
        for digest in digests {
            if self.stat(*digest)?.is_none() {
                missing.push(*digest);
            }
        }
        Ok(missing)
    }

    fn expect(&self, expected: Digest, found: Digest) -> Result<(), ObjectError> {
        if found == expected {
            return Ok(());
        }
        let moved_to =
            self.paths
                .quarantine
                .join(format!("object-{}-{}", expected.hex(), uuid::Uuid::new_v4()));
        let path = self.path(expected);
        fs::rename(&path, &moved_to).map_err(ObjectError::io("moving", &path))?;
        Err(ObjectError::Damaged {
            expected,
            found,
            moved_to,
        })
    }
}

impl Paths {
    fn directory(&self, digest: Digest) -> PathBuf {
        self.objects.join(&digest.hex()[..2])
    }
}
