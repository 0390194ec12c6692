//! What the commit thread and the readers share: the database behind one lock, and numbers that need none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::watch;

use super::recording::{Changes, Waiting};
use super::{Reached, Weight, fatal};
use crate::error::{OpenError, is_disk_full};
use crate::format::DataDir;
use crate::ids::JournalNumber;
use crate::open::{Options, open_database};
use crate::tree::Database;
use crate::view::View;

/// What the commit thread has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Groups that wrote something; one sync each.
    pub groups: u64,
    /// Commands that wrote something.
    pub commands: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Bytes of log that sled may have written for them at most; it writes about half of that.
    pub log: u64,
    /// The most bytes of keys and values between two syncs.
    pub largest_group: u64,
    /// The most bytes of log that sled may have written between two syncs; below a segment.
    pub largest_log: u64,
    /// Commands that wrote something since the database was opened.
    pub since_open: u64,
    /// How long the last sync took, in whole milliseconds; 0 before the first.
    pub last_sync_ms: u64,
}

pub(crate) struct Shared {
    /// `None` only if the database did not open again. The write side is held from a group's first change to the end
    /// of its sync, so that the read side sees only what is durable.
    database: RwLock<Option<Database>>,
    pub durable: watch::Sender<JournalNumber>,
    /// There while a dump is made; see [`Recording`](super::recording::Recording).
    pub(super) recording: Mutex<Option<Waiting>>,
    reached: Reached,
    data: Arc<DataDir>,
    options: Options,
    epoch: Instant,
    seen_ms: AtomicU64,
    groups: AtomicU64,
    commands: AtomicU64,
    bytes: AtomicU64,
    log: AtomicU64,
    largest_group: AtomicU64,
    largest_log: AtomicU64,
    opened_at: AtomicU64,
    last_sync_ms: AtomicU64,
}

/// The write side of the lock, and the database.
pub(super) struct Exclusive<'a>(RwLockWriteGuard<'a, Option<Database>>);

impl Exclusive<'_> {
    pub fn database(&self) -> &Database {
        opened(self.0.as_ref())
    }

    /// Gives the lock to those who wait for it, so that a busy commit thread can't keep readers out.
    pub fn release(self) {
        RwLockWriteGuard::unlock_fair(self.0);
    }
}

fn opened(database: Option<&Database>) -> &Database {
    database.unwrap_or_else(|| fatal::stop(&"the database did not open again; start the daemon again"))
}

impl Shared {
    pub fn new(
        database: Database,
        journal: JournalNumber,
        reached: Reached,
        data: Arc<DataDir>,
        options: Options,
    ) -> Self {
        Self {
            database: RwLock::new(Some(database)),
            durable: watch::Sender::new(journal),
            recording: Mutex::new(None),
            reached,
            data,
            options,
            epoch: Instant::now(),
            seen_ms: AtomicU64::new(0),
            groups: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            log: AtomicU64::new(0),
            largest_group: AtomicU64::new(0),
            largest_log: AtomicU64::new(0),
            opened_at: AtomicU64::new(0),
            last_sync_ms: AtomicU64::new(0),
        }
    }

    /// Groups end before sled may have written a segment of log.
    pub(super) fn bounds_groups(&self) -> bool {
        self.options.log_fits_segment
    }

    pub(super) fn lock(&self) -> Exclusive<'_> {
        Exclusive(self.database.write())
    }

    pub fn exclusive<T>(&self, exclusive: impl FnOnce(&Database) -> T) -> T {
        let lock = self.lock();
        let result = exclusive(lock.database());
        lock.release();
        result
    }

    pub fn read<T>(&self, read: impl FnOnce(&dyn View) -> T) -> T {
        read_behind(&self.database.read(), read)
    }

    pub fn try_read_for<T>(&self, patience: Duration, read: impl FnOnce(&dyn View) -> T) -> Option<T> {
        self.database
            .try_read_for(patience)
            .map(|lock| read_behind(&lock, read))
    }

    pub fn reopen_if_due(&self, commands: u64) -> Result<bool, OpenError> {
        if self.stats().since_open < commands {
            return Ok(false);
        }
        let mut lock = self.database.write();
        // sled holds a lock on its files until the last handle is gone.
        drop(lock.take());
        *lock = Some(open_database(
            &self.data,
            self.data.current()?,
            self.options.cache_bytes,
        )?);
        self.opened_at
            .store(self.commands.load(Ordering::Relaxed), Ordering::Relaxed);
        RwLockWriteGuard::unlock_fair(lock);
        Ok(true)
    }

    /// Hands a command's changes to the dump that is being made, if there is one. The caller holds the lock.
    pub(super) fn record(&self, changes: &Changes) {
        if let Some(waiting) = self.recording.lock().as_mut() {
            waiting.add(changes);
        }
    }

    /// A dump is being made: no object may go.
    pub fn is_recording(&self) -> bool {
        self.recording.lock().is_some()
    }

    /// Says that everything up to this number is durable. The caller holds the lock, so that nobody reads anything newer
    /// than what was published.
    pub(super) fn publish(&self, journal: JournalNumber) {
        let risen = self.durable.send_if_modified(|durable| {
            let risen = journal > *durable;
            *durable = journal.max(*durable);
            risen
        });
        if risen {
            self.reached.note(journal);
        }
    }

    /// The commit thread ends; what it noted is made durable.
    pub(super) fn finish(&self) {
        if let Err(error) = self.reached.sync() {
            fatal::stop_writing(&error, is_disk_full(&error));
        }
    }

    pub(super) fn seen(&self) {
        self.seen_ms.store(self.elapsed_ms(), Ordering::Relaxed);
    }

    pub fn last_seen(&self) -> Duration {
        Duration::from_millis(
            self.elapsed_ms()
                .saturating_sub(self.seen_ms.load(Ordering::Relaxed)),
        )
    }

    fn elapsed_ms(&self) -> u64 {
        whole_ms(self.epoch.elapsed())
    }

    pub(super) fn count(&self, commands: u64, weight: Weight, sync: Duration) {
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.commands.fetch_add(commands, Ordering::Relaxed);
        self.bytes.fetch_add(weight.bytes, Ordering::Relaxed);
        self.log.fetch_add(weight.log(), Ordering::Relaxed);
        self.largest_group.fetch_max(weight.bytes, Ordering::Relaxed);
        self.largest_log.fetch_max(weight.log(), Ordering::Relaxed);
        self.last_sync_ms.store(whole_ms(sync), Ordering::Relaxed);
    }

    pub fn stats(&self) -> Stats {
        let commands = self.commands.load(Ordering::Relaxed);
        Stats {
            groups: self.groups.load(Ordering::Relaxed),
            commands,
            bytes: self.bytes.load(Ordering::Relaxed),
            log: self.log.load(Ordering::Relaxed),
            largest_group: self.largest_group.load(Ordering::Relaxed),
            largest_log: self.largest_log.load(Ordering::Relaxed),
            since_open: commands.saturating_sub(self.opened_at.load(Ordering::Relaxed)),
            last_sync_ms: self.last_sync_ms.load(Ordering::Relaxed),
        }
    }
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn read_behind<T>(lock: &RwLockReadGuard<'_, Option<Database>>, read: impl FnOnce(&dyn View) -> T) -> T {
    read(&opened(lock.as_ref()).view())
}
