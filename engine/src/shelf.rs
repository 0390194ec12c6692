//! Objects as a worker process sees them: files it reads by digest, and a few that it writes.
//!
//! The rules are those of the store's `objects`: a file appears under its name only when it is whole and synced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use proofkeep_store::ids::{BootNumber, Digest};
use proofkeep_store::records::{Failure, FailureClass};
use sha2::{Digest as _, Sha256};

/// Bytes that are hashed between two signs of life.
const SLICE: usize = 64 << 20;

/// Where a worker process finds objects, and where it makes them.
#[derive(Clone, Debug)]
pub struct Shelf {
    /// The data directory's `objects/`.
    pub objects: PathBuf,
    /// Where temporary files go; on the same file system.
    pub scratch: PathBuf,
    /// Marks temporary files, so that a later boot sweeps what this one left.
    pub boot: BootNumber,
}

impl Shelf {
    /// Where the object lies, if it is there.
    #[must_use]
    pub fn path(&self, object: Digest) -> PathBuf {
        let hex = object.hex();
        self.objects.join(&hex[..2]).join(hex)
    }

    /// Maps an object read-only. `what` names it in the error.
    ///
    /// # Errors
    /// `input_missing` when it isn't there, `device_error` when it can't be mapped.
    pub fn map(&self, object: Digest, what: &str) -> Result<Mmap, Failure> {
        let path = self.path(object);
        let file = File::open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Failure::coded(
                FailureClass::InputMissing,
                "blob-missing",
                format!("the {what} {object} is not there any more; upload it again"),
            ),
            _ => io_failure(&format!("opening the {what} {object}"), &error),
        })?;
        map_file(&file).map_err(|error| io_failure(&format!("mapping the {what} {object}"), &error))
    }

    /// Maps an object and checks its bytes. `alive` is called between slices, and may end it.
    ///
    /// # Errors
    /// As [`map`](Self::map); `input_missing` with code `blob-damaged` when the disk has other bytes now, and then the
    /// file is in quarantine, so that an upload can replace it.
    pub fn map_verified(
        &self,
        object: Digest,
        what: &str,
        alive: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<Mmap, Failure> {
        let map = self.map(object, what)?;
        self.verify(&map, object, what, alive)?;
        Ok(map)
    }

    /// Checks an object that is mapped; see [`map_verified`](Self::map_verified).
    ///
    /// # Errors
    /// As there.
    pub fn verify(
        &self,
        map: &Mmap,
        object: Digest,
        what: &str,
        alive: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut hash = Sha256::new();
        for chunk in map.chunks(SLICE) {
            hash.update(chunk);
            alive()?;
        }
        let found = Digest(hash.finalize().into());
        if found == object {
            return Ok(());
        }
        self.put_aside(object);
        let detail = format!(
            "the {what} {object} on disk has other bytes now (digest {found}): the disk damaged it; upload it again, then retry"
        );
        Err(Failure::coded(FailureClass::InputMissing, "blob-damaged", detail))
    }

    /// Moves what lies under an object's name to quarantine, if it isn't that object.
    pub fn put_aside(&self, object: Digest) {
        let path = self.path(object);
        let aside = self.objects.with_file_name("quarantine").join(format!(
            "object-{}-{}",
            object.hex(),
            uuid::Uuid::new_v4()
        ));
        // Whoever uploads it anew just now must not lose it: what was moved is looked at once more.
        let moved = fs::rename(&path, &aside).and_then(|()| {
            let mut hash = Sha256::new();
            io::copy(&mut File::open(&aside)?, &mut hash)?;
            if Digest(hash.finalize().into()) == object {
                fs::rename(&aside, &path)?;
            }
            Ok(())
        });
        if let Err(error) = moved {
            tracing::warn!(%object, "a damaged object could not be moved to quarantine: {error}");
        }
    }

    /// Makes an object of what `write` writes; durable when it returns.
    ///
    /// # Errors
    /// `device_error` with code `disk-full` or `io`; nothing is kept then.
    pub fn create(
        &self,
        what: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Digest, Failure> {
        let temporary = self.temporary();
        self.write(&temporary.0, write)
            .map_err(|error| io_failure(&format!("writing the {what}"), &error))
    }

    /// [`create`](Self::create) for a writer that goes back and changes what it wrote, so that the digest is made of the
    /// whole file at the end; `alive` is called while that is read.
    ///
    /// # Errors
    /// As there, and those of `write`.
    pub fn create_seeking(
        &self,
        what: &str,
        alive: &mut dyn FnMut(),
        write: impl FnOnce(io::BufWriter<File>) -> Result<io::BufWriter<File>, Failure>,
    ) -> Result<Digest, Failure> {
        let failed = |error: io::Error| io_failure(&format!("writing the {what}"), &error);
        let temporary = self.temporary();
        let out = write(io::BufWriter::new(create_new(&temporary.0).map_err(failed)?))?;
        let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
        let digest = digest_of(&temporary.0, alive).map_err(failed)?;
        self.keep(&temporary.0, digest).map_err(failed)?;
        Ok(digest)
    }

    fn temporary(&self) -> Temporary {
        Temporary(
            self.scratch
                .join(format!("{}-{}", self.boot, uuid::Uuid::new_v4())),
        )
    }

    /// Gives a file its name, durably.
    fn keep(&self, temporary: &Path, digest: Digest) -> io::Result<()> {
        let target = self.path(digest);
        fs::rename(temporary, &target)?;
        let directory = target
            .parent()
            .map_or_else(|| self.objects.clone(), Path::to_path_buf);
        File::open(directory)?.sync_all()
    }

    fn write(
        &self,
        temporary: &Path,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<Digest> {
        let mut out = Hashing {
            out: io::BufWriter::new(create_new(temporary)?),
            hash: Sha256::new(),
        };
        write(&mut out)?;
        out.flush()?;
        out.out.get_ref().sync_all()?;
        let digest = Digest(out.hash.finalize().into());
        self.keep(temporary, digest)?;
        Ok(digest)
    }
}

fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

fn digest_of(path: &Path, alive: &mut dyn FnMut()) -> io::Result<Digest> {
    let mut file = File::open(path)?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        let length = file.read(&mut buffer)?;
        if length == 0 {
            return Ok(Digest(hash.finalize().into()));
        }
        hash.update(&buffer[..length]);
        alive();
    }
}

/// Maps a file whose bytes nobody changes: objects are written once and only ever renamed or deleted.
pub(crate) fn map_file(file: &File) -> io::Result<Mmap> {
    // SAFETY: an object is never written to again after it got its name, so the bytes under the map stay as they are.
    unsafe { Mmap::map(file) }
}

/// The disk or the system refused something; another try may work.
pub(crate) fn io_failure(doing: &str, error: &io::Error) -> Failure {
    let (class, code, hint) = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => (
            FailureClass::DeviceError,
            "disk-full",
            "; free some space on the disk of the data directory",
        ),
        io::ErrorKind::OutOfMemory => (
            FailureClass::OutOfMemory,
            "out-of-memory",
            "; give proofkeep more memory",
        ),
        _ => (FailureClass::DeviceError, "io", ""),
    };
    Failure::coded(class, code, format!("{doing} failed: {error}{hint}"))
}

/// Removed when dropped; once it was renamed there is nothing under this name.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // What can't be removed now goes with the next boot.
        let _ = fs::remove_file(&self.0);
    }
}

struct Hashing<W> {
    out: W,
    hash: Sha256,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use std::io::Seek as _;

    use super::*;

    fn shelf(directory: &Path) -> Shelf {
        let shelf = Shelf {
            objects: directory.join("objects"),
            scratch: directory.join("tmp"),
            boot: BootNumber(3),
        };
        fs::create_dir(&shelf.scratch).unwrap();
        for first in 0..=u8::MAX {
            fs::create_dir_all(shelf.objects.join(format!("{first:02x}"))).unwrap();
        }
        shelf
    }

    #[test]
    fn an_object_is_named_by_its_bytes_and_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = shelf(directory.path());
        let digest = shelf
            .create("test object", |out| out.write_all(b"some bytes"))
            .unwrap();
        assert_eq!(digest, Digest::of(b"some bytes"));
        assert_eq!(&shelf.map(digest, "test object").unwrap()[..], b"some bytes");
        assert_eq!(fs::read_dir(&shelf.scratch).unwrap().count(), 0);
    }

    #[test]
    fn a_writer_that_goes_back_makes_the_object_of_what_is_there_at_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = shelf(directory.path());
        let mut alive = 0;
        let digest = shelf
            .create_seeking("test object", &mut || alive += 1, |mut out| {
                out.write_all(b"some bytes").unwrap();
                out.seek(io::SeekFrom::Start(0)).unwrap();
                out.write_all(b"S").unwrap();
                Ok(out)
            })
            .unwrap();
        assert_eq!((digest, alive), (Digest::of(b"Some bytes"), 1));
        assert_eq!(&shelf.map(digest, "test object").unwrap()[..], b"Some bytes");
        let stopped = Failure::new(FailureClass::Cancelled, "stopped");
        let refused = shelf.create_seeking("test object", &mut || (), |_| Err(stopped.clone()));
        assert_eq!(refused, Err(stopped));
        assert_eq!(fs::read_dir(&shelf.scratch).unwrap().count(), 0);
    }

    #[test]
    fn a_failed_write_keeps_nothing_and_says_why() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = shelf(directory.path());
        let error = shelf
            .create("test object", |_| {
                Err(io::Error::from(io::ErrorKind::StorageFull))
            })
            .unwrap_err();
        assert_eq!(
            (error.class, error.code.as_str()),
            (FailureClass::DeviceError, "disk-full")
        );
        assert_eq!(fs::read_dir(&shelf.scratch).unwrap().count(), 0);
        let missing = shelf.map(Digest::of(b"not there"), "test object").unwrap_err();
        assert_eq!(missing.class, FailureClass::InputMissing);
    }
}
