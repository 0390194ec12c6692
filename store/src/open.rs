//! Opening the database by the rules that sled needs, and the [`Store`] that comes out of it.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use proofkeep_migrations::LATEST;
use uuid::Uuid;

use crate::clock::Clock;
use crate::codec;
use crate::commit::{Handle, Limits, Reached, Shared, fatal};
use crate::error::OpenError;
use crate::format::{DataDir, sync_dir};
use crate::ids::{BootNumber, JournalNumber};
use crate::keys::{self, Sequence};
use crate::lookout::Lookout;
use crate::machine::Machine;
use crate::objects::Objects;
use crate::tree::{Database, SyncError};
use crate::view::{ReadError, View};

/// How a store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// An empty or missing directory is made into a store.
    pub create: bool,
    /// Bytes of memory for sled's cache.
    pub cache_bytes: u64,
    /// Between two syncs sled writes less log than one of its segments holds: segments are large, and groups end in
    /// time. Always so. A test leaves the rule out, to show that its power cuts find what is lost without.
    pub log_fits_segment: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create: true,
            cache_bytes: 64 << 20,
            log_fits_segment: true,
        }
    }
}

/// An open store. Reads see only what is durable.
pub struct Store {
    data: Arc<DataDir>,
    shared: Arc<Shared>,
    objects: Objects,
    last_boot: BootNumber,
}

impl Store {
    /// Opens a data directory, or makes one.
    ///
    /// # Errors
    /// See [`OpenError`]; a store is never started empty where one was.
    pub fn open(path: &Path, options: &Options) -> Result<Self, OpenError> {
        Self::open_locked(Self::lock(path, options.create)?, options)
    }

    /// Locks a data directory, or begins one with `create`, and looks whether this build can open it: what a second
    /// process, or the wrong build, is to learn before it does anything else.
    ///
    /// # Errors
    /// [`OpenError::Locked`] and the others that need no look into the database.
    pub fn lock(path: &Path, create: bool) -> Result<DataDir, OpenError> {
        let data = DataDir::lock(path, create)?;
        expect_latest(&data)?;
        Ok(data)
    }

    /// Opens a data directory that this process has locked.
    ///
    /// # Errors
    /// See [`OpenError`]; a store is never started empty where one was.
    pub fn open_locked(mut data: DataDir, options: &Options) -> Result<Self, OpenError> {
        expect_latest(&data)?;
        if !options.log_fits_segment {
            data.use_small_segments();
        }
        let number = data.current()?;
        let database = open_database(&data, number, options.cache_bytes)?;
        if data.is_new() {
            mark(&database);
            data.finish()?;
        }
        let (journal, reached) = check_journal(&data, number, &database)?;
        let last_boot = read_sequence(&database.view(), Sequence::Boot)
            .map_err(|source| unreadable(&data, number, source))?;
        let last_boot = BootNumber(last_boot.unwrap_or(0));
        let objects = Objects::new(&data, BootNumber(last_boot.0 + 1));
        let data = Arc::new(data);
        let shared = Arc::new(Shared::new(
            database,
            journal,
            reached,
            Arc::clone(&data),
            *options,
        ));
        Ok(Self {
            data,
            shared,
            objects,
            last_boot,
        })
    }

    /// Reads under the lock: a consistent view of what is durable. Keep it short, at most 5 ms or one page, since the
    /// commit thread waits for it meanwhile.
    pub fn read<T>(&self, read: impl FnOnce(&dyn View) -> T) -> T {
        self.shared.read(read)
    }

    /// What is too large for a record.
    #[must_use]
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// The store's own random name.
    #[must_use]
    pub fn id(&self) -> Uuid {
        self.data.format().store
    }

    /// The last boot there was; 0 in a new store.
    #[must_use]
    pub fn last_boot(&self) -> BootNumber {
        self.last_boot
    }

    /// The data directory, locked while this or a [`Handle`] lives.
    #[must_use]
    pub fn data(&self) -> &DataDir {
        &self.data
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Starts the commit thread. Call it once.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(&self, machine: Machine, clock: Clock, limits: Limits) -> std::io::Result<Handle> {
        Handle::start(
            machine,
            clock,
            limits,
            Arc::clone(&self.shared),
            self.objects.clone(),
        )
    }

    /// Removes the databases that a migration left behind. Call it after a clean boot of the new one.
    ///
    /// # Errors
    /// When one can't be removed.
    pub fn remove_superseded(&self) -> Result<(), OpenError> {
        let current = self.data.current()?;
        for number in self.data.stores()?.into_iter().filter(|number| *number < current) {
            let old = self.data.store(number);
            fs::remove_dir_all(&old).map_err(OpenError::io("removing", &old))?;
        }
        sync_dir(self.data.path())
    }
}

fn read_sequence(view: &dyn View, sequence: Sequence) -> Result<Option<u64>, ReadError> {
    let key = keys::sequence(sequence);
    let Some(value) = view.get(&key)? else {
        return Ok(None);
    };
    codec::read_number(&value)
        .map(Some)
        .map_err(|damage| ReadError::damaged(&key, damage))
}

fn unreadable(data: &DataDir, number: u64, source: ReadError) -> OpenError {
    OpenError::Record {
        path: data.store(number),
        source,
    }
}

/// The journal's last number in an open database, if the database is there as it was left.
pub(crate) fn check_journal(
    data: &DataDir,
    number: u64,
    database: &Database,
) -> Result<(JournalNumber, Reached), OpenError> {
    let journal = read_sequence(&database.view(), Sequence::Journal)
        .map_err(|source| unreadable(data, number, source))?
        .map(JournalNumber);
    let Some(journal) = journal else {
        let reason = "sled finds nothing in it, so its log was cut off or overwritten".to_owned();
        return Err(OpenError::Damaged {
            path: data.store(number),
            reason,
            quarantined: false,
        });
    };
    Ok((journal, check_reached(data, journal)?))
}

/// Compares the journal's last number with how far it had come, and notes it anew.
fn check_reached(data: &DataDir, journal: JournalNumber) -> Result<Reached, OpenError> {
    let mark = data.file("REACHED");
    let (note, reached) = Reached::open(&mark).map_err(OpenError::io("opening", &mark))?;
    if let Some(reached) = reached.filter(|reached| *reached > journal) {
        return Err(OpenError::Lost {
            path: data.path().to_path_buf(),
            found: journal,
            reached,
            mark,
        });
    }
    if reached.is_none() && journal > JournalNumber(0) {
        tracing::warn!(
            "{} is missing or damaged, so nobody can tell whether the log lost its end; it is written anew from what is \
             there (journal entry {journal})",
            mark.display()
        );
    }
    note.note(journal);
    note.sync().map_err(OpenError::io("syncing", &mark))?;
    sync_dir(data.path())?;
    Ok(note)
}

/// Older records are migrated, not read.
fn expect_latest(data: &DataDir) -> Result<(), OpenError> {
    let found = data.format().schema;
    if found < LATEST {
        let path = data.path().to_path_buf();
        return Err(OpenError::Older {
            path,
            found,
            newest: LATEST,
        });
    }
    Ok(())
}

/// Gives a new database its first record. sled opens a log whose start is overwritten as an empty one, and this tells
/// the two apart: a store that was ever opened has a journal number.
fn mark(database: &Database) {
    let (key, value) = (keys::sequence(Sequence::Journal), Some(codec::number(0)));
    if let Err(error) = database
        .apply([(&key, &value)])
        .map_err(SyncError::Flush)
        .and_then(|()| database.sync())
    {
        fatal::stop_writing(&error, error.is_disk_full());
    }
}

/// Opens `store.{number}`.
pub(crate) fn open_database(data: &DataDir, number: u64, cache_bytes: u64) -> Result<Database, OpenError> {
    let path = data.store(number);
    let log = path.join("db");
    if !data.is_new() && !log.is_file() {
        return Err(OpenError::NoDatabase {
            format: data.file("FORMAT"),
            database: log,
        });
    }
    open_at(data, &path, cache_bytes)
}

/// Opens or makes the database at `path`, which lies in `data`.
pub(crate) fn open_at(data: &DataDir, path: &Path, cache_bytes: u64) -> Result<Database, OpenError> {
    wait_for_sled(&path.join("db"))?;
    remove_generating(path)?;
    forget_cached(&path.join("db"))?;
    let mut quarantined = false;
    let (db, lookout) = match try_open(path, data.segment_size(), cache_bytes) {
        Ok(opened) => opened,
        // A damaged snapshot is only an index of the log: without it sled reads the log from its start.
        Err(Failure::Damaged(first)) => {
            quarantined = quarantine_snapshots(data, path)?;
            if !quarantined {
                return Err(OpenError::Damaged {
                    path: path.to_path_buf(),
                    reason: first,
                    quarantined,
                });
            }
            tracing::warn!(
                "the database {} did not open ({first}); its snapshots are in quarantine/, trying without",
                path.display()
            );
            forget_cached(&path.join("db"))?;
            try_open(path, data.segment_size(), cache_bytes)
                .map_err(|failure| failure.into_error(path, quarantined))?
        }
        Err(failure) => return Err(failure.into_error(path, quarantined)),
    };
    if let Err(error) = settle(data, path) {
        // sled syncs its log once more while it closes, and could be told that all is well.
        std::mem::forget(db);
        return Err(error);
    }
    Database::new(db, path, lookout).map_err(OpenError::io("opening", &path.join("db")))
}

enum Failure {
    Damaged(String),
    System(std::io::Error),
}

impl Failure {
    fn into_error(self, path: &Path, quarantined: bool) -> OpenError {
        match self {
            Self::Damaged(reason) => OpenError::Damaged {
                path: path.to_path_buf(),
                reason,
                quarantined,
            },
            Self::System(error) => OpenError::io("opening", path)(error),
        }
    }
}

fn try_open(path: &Path, segment_size: u64, cache_bytes: u64) -> Result<(sled::Db, Lookout), Failure> {
    let config = sled::Config::new()
        .path(path)
        .segment_size(usize::try_from(segment_size).unwrap_or(usize::MAX))
        .cache_capacity(cache_bytes)
        // sled's own flusher only logs a failed sync. We sync, and look.
        .flush_every_ms(None)
        .use_compression(false)
        .mode(sled::Mode::HighThroughput);
    let lookout = Lookout::start(config.clone()).map_err(Failure::System)?;
    // Some damaged files make sled panic; nothing of ours is shared with it yet.
    match catch_unwind(AssertUnwindSafe(|| config.open())) {
        Ok(Ok(db)) => Ok((db, lookout)),
        Ok(Err(sled::Error::Io(error))) if error.kind() != std::io::ErrorKind::InvalidData => {
            Err(Failure::System(error))
        }
        Ok(Err(error)) => Err(Failure::Damaged(error.to_string())),
        Err(_) => Err(Failure::Damaged("sled panicked while reading it".to_owned())),
    }
}

/// Waits until an earlier handle of this process is closed: sled's own threads may hold its files for a moment after the
/// last handle was dropped. Nobody else can have them, since we hold the directory's lock.
fn wait_for_sled(log: &Path) -> Result<(), OpenError> {
    const PATIENCE: Duration = Duration::from_secs(30);
    let Some(file) = open_if_there(log)? else {
        return Ok(());
    };
    if file.try_lock().is_ok() {
        return Ok(());
    }
    let (send, locked) = mpsc::channel();
    // A panic in it would end the wait as if the lock hadn't come.
    std::thread::Builder::new()
        .name("lock".to_owned())
        .spawn(move || {
            let locked = file.lock();
            // Given back before anyone hears of it: sled takes the lock itself, once, and doesn't wait.
            drop(file);
            send.send(locked)
        })
        .map_err(OpenError::io("locking", log))?;
    let waited = locked.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        Err(std::io::Error::new(
            std::io::ErrorKind::WouldBlock,
            "it is still open in this process",
        ))
    });
    waited.map_err(OpenError::io("locking", log))
}

fn open_if_there(path: &Path) -> Result<Option<File>, OpenError> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(OpenError::io("opening", path)(error)),
    }
}

/// Removes snapshots whose writing was cut off; with one there sled never opens again.
fn remove_generating(path: &Path) -> Result<(), OpenError> {
    if !path.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(path).map_err(OpenError::io("reading", path))? {
        let file = entry.map_err(OpenError::io("reading", path))?.path();
        if file
            .extension()
            .is_some_and(|extension| extension == "generating")
        {
            fs::remove_file(&file).map_err(OpenError::io("removing", &file))?;
        }
    }
    Ok(())
}

/// Makes recovery read the disk and not pages that a failed sync may have left in memory, marked clean.
fn forget_cached(log: &Path) -> Result<(), OpenError> {
    let Some(file) = open_if_there(log)? else {
        return Ok(());
    };
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
        .map_err(|error| OpenError::io("reading", log)(error.into()))
}

fn quarantine_snapshots(data: &DataDir, path: &Path) -> Result<bool, OpenError> {
    let mut moved = false;
    for entry in fs::read_dir(path).map_err(OpenError::io("reading", path))? {
        let entry = entry.map_err(OpenError::io("reading", path))?;
        let name = entry.file_name();
        if name.to_string_lossy().starts_with("snap.") {
            let store = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let target =
                data.quarantine()
                    .join(format!("{store}-{}-{}", Uuid::new_v4(), name.to_string_lossy()));
            fs::rename(entry.path(), &target).map_err(OpenError::io("moving", &entry.path()))?;
            moved = true;
        }
    }
    if moved {
        sync_dir(&data.quarantine())?;
        sync_dir(path)?;
    }
    Ok(moved)
}

/// sled syncs neither what it wrote while opening nor the names of its files.
fn settle(data: &DataDir, path: &Path) -> Result<(), OpenError> {
    for name in ["db", "conf"] {
        let file = path.join(name);
        let sync = || {
            fs::set_permissions(&file, Permissions::from_mode(0o600))?;
            File::open(&file)?.sync_all()
        };
        sync().map_err(OpenError::io("syncing", &file))?;
    }
    sync_dir(path)?;
    sync_dir(data.path())
}
