//! Copies of a store that are whole and of one moment, made while it is used.
//!
//! A *backup* is a directory:
//!
//! ```text
//! MANIFEST     text: what is in it, with counts, and the digest of the dump; written last
//! dump         every record, and the names of all objects; the format is that of the module `dump`
//! objects/     ab/{sha256}: on the filesystem of the store hard links, elsewhere copies
//! ```
//!
//! It is made as `{name}.part` and gets its name when everything in it is synced, so that nothing unfinished looks like
//! one. An *export* is one stream with the bytes of the objects in it.

mod export;
mod manifest;
mod partial;
mod restore;

use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

pub use restore::{import, restore};

use crate::commit::{Busy, Recording};
use crate::dump::{Dumped, Kept, NewFile, SaveError, Sink, Source, Writer, copy_object, dump};
use crate::ids::{Digest, Millis};
use crate::open::Store;
use manifest::Manifest;
use partial::Partial;

/// The manifest's name.
const MANIFEST: &str = "MANIFEST";

/// The dump's name.
const DUMP: &str = "dump";

/// The name of the directory of objects.
const OBJECTS: &str = "objects";

/// The store keeps so much of its own disk, or a twentieth of it if that is less: a backup must not be what fills it.
const RESERVE: u64 = 1 << 30;

impl Store {
    /// Makes a backup at `target`, where nothing may be yet. Commits go on meanwhile. `at` is the time now, and `stop`
    /// is asked again and again whether to break it off.
    ///
    /// # Errors
    /// See [`SaveError`]; nothing is kept then.
    pub fn backup(&self, target: &Path, at: Millis, stop: &dyn Fn() -> bool) -> Result<Dumped, SaveError> {
        let mut partial = Partial::create(target)?;
        let own_disk = same_disk(self.data().path(), partial.path())?;
        let go_on = || {
            if stop() {
                return Err(SaveError::Stopped);
            }
            if own_disk {
                keep_room(partial.path())?;
            }
            Ok(())
        };
        let source = self.source(at, &go_on)?;
        let mut sink = Beside {
            objects: partial.objects(),
            link: own_disk,
            go_on: &go_on,
        };
        let file = BufWriter::with_capacity(1 << 20, partial.dump()?);
        let path = partial.path().join(DUMP);
        let (file, dumped) = dump(&source, file, &path, &mut sink)?;
        // The objects are kept by their links now.
        drop(source);
        file.into_inner()
            .map_err(io::IntoInnerError::into_error)
            .and_then(|file| file.sync_all())
            .map_err(SaveError::io("syncing", &path))?;
        partial.finish(&Manifest::of(&dumped))?;
        Ok(dumped)
    }

    fn source<'a>(
        &'a self,
        at: Millis,
        go_on: &'a dyn Fn() -> Result<(), SaveError>,
    ) -> Result<Source<'a>, SaveError> {
        let recording = Recording::begin(self.shared()).map_err(|Busy| SaveError::Busy)?;
        Ok(Source {
            recording,
            objects: self.objects(),
            store: self.id(),
            at,
            go_on,
        })
    }
}

/// Whether two directories lie on one filesystem.
fn same_disk(one: &Path, other: &Path) -> Result<bool, SaveError> {
    let device = |path: &Path| {
        fs::metadata(path)
            .map(|found| found.dev())
            .map_err(SaveError::io("looking at", path))
    };
    Ok(device(one)? == device(other)?)
}

/// Leaves the store its room.
fn keep_room(path: &Path) -> Result<(), SaveError> {
    let found = rustix::fs::statvfs(path).map_err(|error| SaveError::io("looking at", path)(error.into()))?;
    let (free, all) = (
        found.f_bavail.saturating_mul(found.f_frsize),
        found.f_blocks.saturating_mul(found.f_frsize),
    );
    if free < RESERVE.min(all / 20) {
        return Err(SaveError::DiskFull(path.to_path_buf()));
    }
    Ok(())
}

/// Objects as files beside the dump.
struct Beside<'a> {
    objects: PathBuf,
    /// They can be linked, as far as is known.
    link: bool,
    go_on: &'a dyn Fn() -> Result<(), SaveError>,
}

impl<W: Write> Sink<W> for Beside<'_> {
    const INLINE: bool = false;

    fn keep(&mut self, dump: &mut Writer<W>, digest: Digest, path: &Path) -> Result<Kept, SaveError> {
        let directory = self.objects.join(&digest.hex()[..2]);
        partial::make_dir(&directory)?;
        let target = directory.join(digest.hex());
        let Some(length) = (match self.link {
            true => self.link(digest, path, &target)?,
            false => self.copy(digest, path, &target)?,
        }) else {
            return Ok(Kept::Lost);
        };
        dump.object(digest, length)
            .map_err(SaveError::io("writing", &self.objects))?;
        Ok(Kept::Whole)
    }
}

impl Beside<'_> {
    /// Links an object once its bytes are checked; copies it if the filesystem links no more.
    fn link(&mut self, digest: Digest, path: &Path, target: &Path) -> Result<Option<u64>, SaveError> {
        let Some(length) = check(digest, path, self.go_on)? else {
            return Ok(None);
        };
        match fs::hard_link(path, target) {
            Ok(()) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if crate::error::is_disk_full(&error) => Err(SaveError::io("linking", target)(error)),
            Err(_) => {
                self.link = false;
                self.copy(digest, path, target)
            }
        }
    }

    fn copy(&mut self, digest: Digest, path: &Path, target: &Path) -> Result<Option<u64>, SaveError> {
        let Some(from) = open(path)? else { return Ok(None) };
        let mut file = NewFile::create(target).map_err(SaveError::io("making", target))?;
        let copied = copy_object(from, |bytes| {
            (self.go_on)().map_err(Broken::Other)?;
            file.write(bytes)
                .map_err(|error| Broken::Other(SaveError::io("writing", target)(error)))
        });
        let copied = copied.map_err(|error| error.reading(path))?;
        if copied.digest != digest {
            drop(file);
            fs::remove_file(target).map_err(SaveError::io("removing", target))?;
            return Ok(None);
        }
        file.finish().map_err(SaveError::io("syncing", target))?;
        Ok(Some(copied.length))
    }
}

/// Reads an object. Its length, or `None` if it is gone or isn't what its name says.
fn check(
    digest: Digest,
    path: &Path,
    go_on: &dyn Fn() -> Result<(), SaveError>,
) -> Result<Option<u64>, SaveError> {
    let Some(from) = open(path)? else { return Ok(None) };
    let read = copy_object(from, |_| go_on().map_err(Broken::Other)).map_err(|error| error.reading(path))?;
    Ok((read.digest == digest).then_some(read.length))
}

fn open(path: &Path) -> Result<Option<fs::File>, SaveError> {
    match fs::File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(SaveError::io("opening", path)(error)),
    }
}

/// What ended a copy: the object that is read, or something else.
enum Broken {
    Reading(io::Error),
    Other(SaveError),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Reading(error)
    }
}

impl Broken {
    fn reading(self, path: &Path) -> SaveError {
        match self {
            Self::Reading(error) => SaveError::io("reading", path)(error),
            Self::Other(error) => error,
        }
    }
}
