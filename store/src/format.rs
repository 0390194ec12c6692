//! The data directory: what lies where, and how one is made so that a half-made one is never taken for a whole one.
//!
//! ```text
//! LOCK         locked with flock while a process uses the directory; holds its process id
//! FORMAT       format, schema, store id, segment size; written and synced last when the directory is made
//! CURRENT      the name of the database in use, such as `store.1`
//! REACHED      how far the journal had come, to find a log that lost its end
//! CREATING     there only while the directory is being made
//! RESTORING    the same while it is filled from a backup
//! store.N/     a sled database
//! objects/     ab/{sha256}: what is too large for a record
//! quarantine/  what was found damaged
//! tmp/         uploads that haven't ended
//! ```
//! Everything here goes through the C library's own calls, so that the power-cut recorder sees it.

mod restoring;

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use proofkeep_migrations::LATEST;
use uuid::Uuid;

use crate::error::OpenError;

/// The version of this layout.
pub const FORMAT_VERSION: u64 = 1;

/// sled's segment size in bytes. Fixed: with more than one segment of log between two syncs sled may reuse a segment
/// whose replacement isn't on disk yet, so a segment has to be larger than the largest group.
pub const SEGMENT_SIZE: u64 = 8 << 20;

/// What a directory that is being made is marked with.
const CREATING: &str = "CREATING";

/// What sled takes by itself.
const SLEDS_SEGMENT_SIZE: u64 = 512 << 10;

/// What `FORMAT` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The newest schema that a record in here may have.
    pub schema: u16,
    /// The store's own name, random; new at restore and import.
    pub store: Uuid,
}

impl Format {
    fn text(self) -> String {
        format!(
            "proofkeep data directory\nformat {FORMAT_VERSION}\nschema {}\nstore {}\nsegment_size {SEGMENT_SIZE}\n",
            self.schema, self.store
        )
    }

    fn parse(directory: &Path, path: &Path, text: &str) -> Result<Self, OpenError> {
        let bad = |expected, found: &str| OpenError::BadFile {
            path: path.to_path_buf(),
            expected,
            found: format!("{:?}", found.chars().take(80).collect::<String>()),
        };
        let newer = |what, found, newest| OpenError::Newer {
            path: directory.to_path_buf(),
            what,
            found,
            newest,
        };
        let mut lines = text.lines();
        let mut field = |name: &'static str| {
            lines
                .next()
                .and_then(|line| line.strip_prefix(name))
                .map(str::trim)
        };
        if field("proofkeep data directory") != Some("") {
            return Err(bad("a first line `proofkeep data directory`", text));
        }
        let version: u64 = field("format ")
            .and_then(|word| word.parse().ok())
            .ok_or_else(|| bad("a line `format NUMBER`", text))?;
        if version > FORMAT_VERSION {
            return Err(newer("format", version, FORMAT_VERSION));
        }
        let schema: u16 = field("schema ")
            .and_then(|word| word.parse().ok())
            .ok_or_else(|| bad("a line `schema NUMBER`", text))?;
        if schema > LATEST {
            return Err(newer("schema", schema.into(), LATEST.into()));
        }
        let store = field("store ")
            .and_then(|word| word.parse().ok())
            .ok_or_else(|| bad("a line `store UUID`", text))?;
        let segment = field("segment_size ").and_then(|word| word.parse::<u64>().ok());
        if version != FORMAT_VERSION || schema == 0 || segment != Some(SEGMENT_SIZE) {
            return Err(bad("format 1 with segments of 8388608 bytes", text));
        }
        Ok(Self { schema, store })
    }
}

/// A data directory that this process has for itself until it is dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    format: Format,
    /// `FORMAT` isn't written yet.
    new: bool,
    segment_size: u64,
    /// Holds the lock.
    lock: File,
}

impl Drop for DataDir {
    fn drop(&mut self) {
        // Closing would leave it to a child that is between fork and exec just now.
        let _ = self.lock.unlock();
    }
}

impl DataDir {
    /// Locks a data directory. With `create`, one that is missing or empty is begun; [`finish`](Self::finish) ends that.
    ///
    /// # Errors
    /// When somebody else has it, or it isn't one, or it is one that this build must not touch.
    pub fn lock(path: &Path, create: bool) -> Result<Self, OpenError> {
        if !path.is_dir() {
            if !create {
                return Err(OpenError::NotThere {
                    path: path.to_path_buf(),
                });
            }
            make_dir(path)?;
            sync_parent(path)?;
        }
        refuse_foreign(path, create)?;
        let mut data = Self::locked(path, take_lock(path)?);
        match read_text(&data.file("FORMAT")) {
            Ok(text) => {
                data.format = Format::parse(path, &data.file("FORMAT"), &text)?;
                remove_if_there(&data.file(CREATING))?;
                remove_if_there(&data.file(restoring::MARK))?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => data.begin(create)?,
            Err(error) => return Err(OpenError::io("reading", &data.file("FORMAT"))(error)),
        }
        Ok(data)
    }

    fn locked(path: &Path, lock: File) -> Self {
        Self {
            path: path.to_path_buf(),
            format: Format {
                schema: LATEST,
                store: Uuid::nil(),
            },
            new: false,
            segment_size: SEGMENT_SIZE,
            lock,
        }
    }

    /// Begins a directory that holds nothing yet, or goes on with one that was begun.
    fn begin(&mut self, create: bool) -> Result<(), OpenError> {
        let unfinished = self.file(CREATING).exists();
        if !unfinished && create {
            let others = fs::read_dir(&self.path).map_err(OpenError::io("reading", &self.path))?;
            for entry in others {
                let name = entry.map_err(OpenError::io("reading", &self.path))?.file_name();
                if name != "LOCK" {
                    let found = name.to_string_lossy().into_owned();
                    return Err(OpenError::NotEmpty {
                        path: self.path.clone(),
                        found,
                    });
                }
            }
        }
        if !create {
            let path = self.path.clone();
            // A database without FORMAT was ours once, and no daemon that is started there mends that.
            return Err(match self.stores()?.first() {
                Some(number) if !unfinished => OpenError::NotEmpty {
                    path,
                    found: format!("store.{number}"),
                },
                _ => OpenError::NotThere { path },
            });
        }
        if unfinished {
            // FORMAT is written before anything is stored, so what a cut-off creation left holds nothing.
            for number in self.stores()? {
                let left = self.store(number);
                fs::remove_dir_all(&left).map_err(OpenError::io("removing", &left))?;
            }
            remove_if_there(&self.file("CURRENT"))?;
        }
        self.make(CREATING)
    }

    /// Makes everything but the database and the two files that point to it; the mark says that it isn't whole.
    fn make(&mut self, mark: &str) -> Result<(), OpenError> {
        self.new = true;
        self.format.store = Uuid::new_v4();
        write_synced(&self.file(mark), "this directory is being made\n")?;
        sync_dir(&self.path)?;
        for name in ["objects", "quarantine", "tmp"] {
            make_dir(&self.file(name))?;
        }
        for first in 0..=u8::MAX {
            make_dir(&self.objects().join(format!("{first:02x}")))?;
        }
        sync_dir(&self.objects())?;
        make_dir(&self.store(1))?;
        sync_dir(&self.path)
    }

    /// The directory is being made; the database is missing until [`finish`](Self::finish).
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.new
    }

    /// Ends the making of a directory whose `store.1` is there and synced: `CURRENT`, then `FORMAT`.
    ///
    /// # Errors
    /// When one can't be written.
    pub fn finish(&mut self) -> Result<(), OpenError> {
        self.set_current(1)?;
        self.replace("FORMAT", &self.format.text())?;
        self.new = false;
        remove_if_there(&self.file(CREATING))?;
        remove_if_there(&self.file(restoring::MARK))?;
        sync_dir(&self.path)
    }

    /// Points `CURRENT` to another database, durably.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn set_current(&self, number: u64) -> Result<(), OpenError> {
        self.replace("CURRENT", &format!("store.{number}\n"))
    }

    /// Notes that every record has the latest schema, durably.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn set_latest_schema(&mut self) -> Result<(), OpenError> {
        self.format.schema = LATEST;
        self.replace("FORMAT", &self.format.text())
    }

    /// The number of the database in use; 1 in a directory that is being made.
    ///
    /// # Errors
    /// When `CURRENT` is missing or says something else.
    pub fn current(&self) -> Result<u64, OpenError> {
        if self.new {
            return Ok(1);
        }
        let path = self.file("CURRENT");
        let text = match read_text(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(OpenError::io("reading", &path)(error)),
        };
        text.trim_end()
            .strip_prefix("store.")
            .and_then(|number| number.parse().ok())
            .ok_or_else(|| OpenError::BadFile {
                path,
                expected: "a line such as `store.1`",
                found: format!("{text:?}"),
            })
    }

    /// The numbers of all databases there are, in order.
    ///
    /// # Errors
    /// When the directory can't be read.
    pub fn stores(&self) -> Result<Vec<u64>, OpenError> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(OpenError::io("reading", &self.path))? {
            let name = entry.map_err(OpenError::io("reading", &self.path))?.file_name();
            found.extend(
                name.to_str()
                    .and_then(|name| name.strip_prefix("store.")?.parse::<u64>().ok()),
            );
        }
        found.sort_unstable();
        Ok(found)
    }

    /// What a database in here is opened with.
    pub(crate) fn segment_size(&self) -> u64 {
        self.segment_size
    }

    /// From here on as sled would without being told; see
    /// [`Options::log_fits_segment`](crate::Options::log_fits_segment).
    pub(crate) fn use_small_segments(&mut self) {
        self.segment_size = SLEDS_SEGMENT_SIZE;
    }

    /// What `FORMAT` says.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A database's directory.
    #[must_use]
    pub fn store(&self, number: u64) -> PathBuf {
        self.file(&format!("store.{number}"))
    }

    /// Where objects lie.
    #[must_use]
    pub fn objects(&self) -> PathBuf {
        self.file("objects")
    }

    /// Where damaged things go.
    #[must_use]
    pub fn quarantine(&self) -> PathBuf {
        self.file("quarantine")
    }

    /// Where uploads are written.
    #[must_use]
    pub fn tmp(&self) -> PathBuf {
        self.file("tmp")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Replaces a small file: temporary name, sync, rename, sync of the directory.
    fn replace(&self, name: &str, text: &str) -> Result<(), OpenError> {
        let (new, old) = (self.file(&format!("{name}.new")), self.file(name));
        write_synced(&new, text)?;
        fs::rename(&new, &old).map_err(OpenError::io("renaming", &new))?;
        sync_dir(&self.path)
    }
}

/// A directory that was never ours is refused before anything is put into it, a lock too.
fn refuse_foreign(path: &Path, create: bool) -> Result<(), OpenError> {
    let ours = ["LOCK", "FORMAT", "CREATING"];
    if ours.iter().any(|name| path.join(name).exists()) {
        return Ok(());
    }
    let path = path.to_path_buf();
    if !create {
        return Err(OpenError::NotThere { path });
    }
    let unreadable = OpenError::io("reading", &path);
    let entries = fs::read_dir(&path).and_then(|mut entries| entries.next().transpose());
    match entries.map_err(unreadable)? {
        None => Ok(()),
        Some(other) => {
            let found = other.file_name().to_string_lossy().into_owned();
            Err(OpenError::NotEmpty { path, found })
        }
    }
}

fn take_lock(data: &Path) -> Result<File, OpenError> {
    let path = data.join("LOCK");
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600);
    let mut lock = options.open(&path).map_err(OpenError::io("opening", &path))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // The text is for a person; without it the answer is the same.
            let _ = lock.read_to_string(&mut pid);
            let pid = if pid.trim().is_empty() {
                "?".to_owned()
            } else {
                pid.trim().to_owned()
            };
            return Err(OpenError::Locked {
                path: data.to_path_buf(),
                pid,
            });
        }
        Err(TryLockError::Error(error)) => return Err(OpenError::io("locking", &path)(error)),
    }
    // Only the lock counts: a full disk must not keep recovery from making room.
    let _ = lock
        .set_len(0)
        .and_then(|()| writeln!(lock, "{}", std::process::id()));
    Ok(lock)
}

pub(crate) fn make_dir(path: &Path) -> Result<(), OpenError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(OpenError::io("making", path))
}

fn write_synced(path: &Path, text: &str) -> Result<(), OpenError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path).map_err(OpenError::io("making", path))?;
    file.write_all(text.as_bytes())
        .map_err(OpenError::io("writing", path))?;
    file.sync_all().map_err(OpenError::io("syncing", path))
}

/// What a small file says, whatever a disk made of it.
fn read_text(path: &Path) -> std::io::Result<String> {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn remove_if_there(path: &Path) -> Result<(), OpenError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(OpenError::io("removing", path)(error))
        }
        _ => Ok(()),
    }
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(path: &Path) -> Result<(), OpenError> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(OpenError::io("syncing", path))
}

fn sync_parent(path: &Path) -> Result<(), OpenError> {
    let absolute = std::path::absolute(path).map_err(OpenError::io("finding", path))?;
    absolute.parent().map_or(Ok(()), sync_dir)
}
