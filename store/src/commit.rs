//! The one thread that writes: take a group of commands, let the machine decide each, apply, make durable, answer.
//!
//! 1. `lanes`: commands wait in two lanes. Ends, checkpoints and cancels come first and are never refused; requests
//!    are bounded, and a full lane says [`CommitError::Busy`].
//! 2. `group`: under the write side of one lock, each command is decided and applied as its own transaction, so that
//!    a refusal leaves the others alone. A group ends at 256 commands, at 256 KiB, or when sled may have written 3 MiB of
//!    log for it.
//! 3. Still under the lock: sled's flush, then `fdatasync` on our own descriptor. Any error ends the process there.
//! 4. The durable journal number is published, the lock is given up, and all are answered, refusals too.

pub(crate) mod fatal;
mod group;
mod lanes;
mod reached;
mod recording;
mod shared;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

pub(crate) use group::Weight;
pub use group::{
    Group, MAX_COMMAND_BYTES, MAX_COMMAND_LOG, MAX_GROUP_BYTES, MAX_GROUP_COMMANDS, MAX_GROUP_LOG,
};
pub(crate) use reached::Reached;
pub(crate) use recording::{Busy, Changes, Overflow, Recording};
pub(crate) use shared::Shared;
pub use shared::Stats;

use crate::clock::Clock;
use crate::error::OpenError;
use crate::ids::{Digest, JobNumber, JournalNumber};
use crate::keys;
use crate::machine::{Command, Machine, Refusal, Reply};
use crate::objects::{ObjectError, Objects, Swept};
use crate::view::{ReadError, View};
use crate::vital::vital;
use group::Writer;
use lanes::Lanes;
pub use lanes::{Queues, Waiting};

/// How much may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Commands in the bounded lane.
    pub requests: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { requests: 1024 }
    }
}

/// A command's outcome, durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// What it came to.
    pub reply: Reply,
    /// The journal's last number after it.
    pub journal: JournalNumber,
}

/// Why a command was not carried out. It changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// A guard said no; what it saw is durable.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Too much waits already.
    #[error("too many requests wait to be stored; try again in a moment")]
    Busy,
    /// The daemon is stopping.
    #[error("the store is closed; the daemon is stopping")]
    Stopped,
    /// A record of this job is damaged, and the command needs it.
    #[error("the store can't decide this: {why}; restart the daemon, or run `proofkeep fsck`")]
    Damaged {
        /// Whose record.
        job: JobNumber,
        /// Which record, and what is wrong with it.
        why: String,
    },
    /// Records that the command needs are damaged, or an object can't be looked at.
    #[error("the store can't decide this: {0}; run `proofkeep fsck`")]
    Unreadable(String),
    /// The command would write more than a command or a record may; a fault of this program.
    #[error("the command would write {found} bytes {what}, the limit is {limit}; please report this")]
    TooLarge {
        /// Where.
        what: String,
        /// Bytes.
        found: u64,
        /// Bytes.
        limit: u64,
    },
}

/// Why a sweep ended early.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// An object.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A record.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The way to the commit thread. Cloning gives another way to the same one.
#[derive(Clone)]
pub struct Handle {
    inner: Arc<Inner>,
}

struct Inner {
    lanes: Arc<Lanes>,
    shared: Arc<Shared>,
    objects: Objects,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Handle {
    pub(crate) fn start(
        machine: Machine,
        clock: Clock,
        limits: Limits,
        shared: Arc<Shared>,
        objects: Objects,
    ) -> std::io::Result<Self> {
        let lanes = Arc::new(Lanes::new(limits.requests));
        let writer = Writer::new(
            machine,
            clock,
            Arc::clone(&lanes),
            Arc::clone(&shared),
            objects.clone(),
        );
        let thread = std::thread::Builder::new()
            .name("commit".to_owned())
            .spawn(move || vital("the commit thread", || writer.run()))?;
        let inner = Inner {
            lanes,
            shared,
            objects,
            thread: Mutex::new(Some(thread)),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Carries out a command; returns when it is durable. A caller that stops waiting changes nothing about it.
    ///
    /// # Errors
    /// See [`CommitError`].
    pub async fn commit(&self, command: Command) -> Result<Committed, CommitError> {
        self.inner
            .lanes
            .push(command)?
            .await
            .unwrap_or(Err(CommitError::Stopped))
    }

    /// The same for a thread that may block; not for asynchronous code.
    ///
    /// # Errors
    /// See [`CommitError`].
    pub fn commit_blocking(&self, command: Command) -> Result<Committed, CommitError> {
        self.inner
            .lanes
            .push(command)?
            .blocking_recv()
            .unwrap_or(Err(CommitError::Stopped))
    }

    /// Puts a command into its lane at once and returns what to wait on; for many commands in a known order.
    ///
    /// # Errors
    /// [`CommitError::Busy`] and [`CommitError::Stopped`].
    pub fn send(&self, command: Command) -> Result<Waiting, CommitError> {
        self.inner.lanes.push(command)
    }

    /// The journal number up to which everything is durable; it rises when a group is.
    #[must_use]
    pub fn durable(&self) -> watch::Receiver<JournalNumber> {
        self.inner.shared.durable.subscribe()
    }

    /// Reads what is durable; see [`Store::read`](crate::Store::read).
    pub fn read<T>(&self, read: impl FnOnce(&dyn View) -> T) -> T {
        self.inner.shared.read(read)
    }

    /// Tries to read for at most `patience`; `None` if the commit thread held its lock all that time.
    pub fn try_read_for<T>(&self, patience: Duration, read: impl FnOnce(&dyn View) -> T) -> Option<T> {
        self.inner.shared.try_read_for(patience, read)
    }

    /// Runs something while nothing is committed and nobody reads. Keep it short.
    pub fn with_commit_lock<T>(&self, exclusive: impl FnOnce(&dyn View) -> T) -> T {
        self.inner
            .shared
            .exclusive(|database| exclusive(&database.view()))
    }

    /// How long ago the commit thread was seen alive; it looks up at least once a second, but while it syncs. Takes no
    /// lock.
    #[must_use]
    pub fn heartbeat(&self) -> Duration {
        self.inner.shared.last_seen()
    }

    /// What was written so far. Takes no lock.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.inner.shared.stats()
    }

    /// Commands that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.inner.lanes.len()
    }

    /// Deletes objects that nobody uploaded again for `older_than` and no record names, a few at a time under the
    /// commit lock. While a dump of the store is made nothing is deleted.
    ///
    /// # Errors
    /// When an object can't be looked at or deleted, or a record can't be read.
    pub fn sweep_objects(&self, older_than: Duration) -> Result<Swept, SweepError> {
        const SLICE: usize = 32;
        let mut total = Swept::default();
        for slice in self.inner.objects.older(older_than)?.chunks(SLICE) {
            let swept = self.with_commit_lock(|view| {
                if self.inner.shared.is_recording() {
                    return Ok(Swept::default());
                }
                self.inner
                    .objects
                    .sweep::<SweepError>(slice, older_than, |digest| is_needed(view, digest))
            })?;
            total.removed += swept.removed;
            total.bytes += swept.bytes;
        }
        Ok(total)
    }

    /// Closes and opens the database again if more than `commands` commands have written since it was opened: sled
    /// takes its snapshots only while opening, and the next start would have to read all of the log since then. Call it
    /// when no lease is out. `true` if it was done.
    ///
    /// # Errors
    /// When it doesn't open again; the store is gone for this process then, and reads end it.
    pub fn reopen_if_due(&self, commands: u64) -> Result<bool, OpenError> {
        self.inner.shared.reopen_if_due(commands)
    }

    /// Refuses new commands, carries out those that wait, and ends the thread. Further calls wait for the same end.
    pub fn stop(&self) {
        self.inner.lanes.close();
        let mut thread = self.inner.thread.lock();
        if let Some(thread) = thread.take() {
            // A panic of that thread has ended the process already.
            let _ = thread.join();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.lanes.close();
        if let Some(thread) = self.thread.get_mut().take() {
            let _ = thread.join();
        }
    }
}

/// Some job or circuit names the object.
fn is_needed(view: &dyn View, digest: Digest) -> Result<bool, SweepError> {
    Ok(!view.scan(&keys::references(digest), None, 1)?.is_empty())
}
