//! sled's tree as a [`View`], and the one way to make its log durable.
//!
//! Any error of sled is the end of the process: after one, what is in memory and what is on disk may differ, and no
//! later sync can be trusted to say so.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use crate::commit::fatal;
use crate::keys::Key;
use crate::lookout::{Lookout, Opened};
use crate::view::{ReadError, View, prefix_end};

/// An open database.
pub(crate) struct Database {
    /// `None` only while it is being dropped.
    db: Option<sled::Db>,
    /// Our own descriptor of sled's log. sled's flush ends in `sync_file_range`, which orders nothing on the device.
    log: File,
    /// Where sled's files lie, for whoever has to look at them.
    path: PathBuf,
    _opened: Opened,
    /// Until sled has closed: it writes and waits once more then.
    _lookout: Lookout,
}

impl Database {
    /// Takes an open sled database and opens its log a second time.
    pub fn new(db: sled::Db, path: &Path, lookout: Lookout) -> io::Result<Self> {
        let log = OpenOptions::new().read(true).write(true).open(path.join("db"))?;
        Ok(Self {
            db: Some(db),
            log,
            path: path.to_path_buf(),
            _opened: Opened::new(),
            _lookout: lookout,
        })
    }

    /// Makes some changes, all or none. A batch and not sled's `transaction`: the commit thread is the only writer and
    /// has decided under its lock, so there is nothing to retry, and both seal their writes in the log the same way.
    pub fn apply<'a>(
        &self,
        changes: impl IntoIterator<Item = (&'a Key, &'a Option<Vec<u8>>)>,
    ) -> Result<(), sled::Error> {
        let mut batch = sled::Batch::default();
        for (key, value) in changes {
            match value {
                Some(value) => batch.insert(key.as_slice(), value.as_slice()),
                None => batch.remove(key.as_slice()),
            }
        }
        self.db().apply_batch(batch)
    }

    /// Makes everything that was applied durable.
    pub fn sync(&self) -> Result<(), SyncError> {
        self.db().flush().map_err(SyncError::Flush)?;
        self.log.sync_data().map_err(SyncError::Sync)
    }

    fn db(&self) -> &sled::Db {
        self.db
            .as_ref()
            .unwrap_or_else(|| fatal::stop(&"the database was used after it was closed"))
    }

    /// The database as a view. What it shows is durable only while the caller keeps the commit thread from writing.
    pub fn view(&self) -> SledView<'_> {
        SledView {
            tree: self.db(),
            path: &self.path,
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let db = self.db.take();
        // sled syncs once more while it closes, and panics if that fails.
        if catch_unwind(AssertUnwindSafe(|| drop(db))).is_err() {
            fatal::stop(
                &"the store could not be synced while it was closed; check the disk (dmesg, SMART), then start again, \
                  everything acknowledged is kept",
            );
        }
    }
}

/// What failed between applying and being durable.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SyncError {
    #[error("writing its log failed: {0}")]
    Flush(sled::Error),
    #[error("syncing its log to the disk failed: {0}")]
    Sync(io::Error),
}

impl SyncError {
    /// The disk is full.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Flush(error) => fatal::sled_disk_full(error),
            Self::Sync(error) => crate::error::is_disk_full(error),
        }
    }
}

/// A sled tree as a view.
pub(crate) struct SledView<'a> {
    tree: &'a sled::Tree,
    path: &'a Path,
}

type Pairs = Vec<(Key, Vec<u8>)>;

impl SledView<'_> {
    /// Some damage makes sled panic where it should say so; to a reader both are the end.
    fn reading<T>(&self, read: impl FnOnce() -> Result<T, sled::Error>) -> T {
        match catch_unwind(AssertUnwindSafe(read)) {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => fatal::stop_reading(self.path, &error),
            Err(_) => fatal::stop_reading(self.path, &"sled panicked"),
        }
    }
}

type Pair = Result<(sled::IVec, sled::IVec), sled::Error>;

fn owned(read: Pair) -> Result<(Key, Vec<u8>), sled::Error> {
    read.map(|(key, value)| (key.to_vec(), value.to_vec()))
}

/// Up to `limit` pairs, or the first error there is.
fn page(pairs: impl Iterator<Item = Pair>, limit: usize) -> Result<Pairs, sled::Error> {
    pairs.map(owned).take(limit).collect()
}

impl View for SledView<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, ReadError> {
        let value = self.reading(|| self.tree.get(key));
        Ok(value.map(|value| value.to_vec()))
    }

    fn scan(&self, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Pairs, ReadError> {
        // A cursor before the prefix must not end the scan at once.
        let start = match after {
            Some(after) if after >= prefix => Excluded(after),
            _ => Included(prefix),
        };
        Ok(self.reading(|| {
            let pairs = self.tree.range::<&[u8], _>((start, Unbounded));
            // An error has no key and is no end.
            let inside = |pair: &Pair| pair.as_ref().map_or(true, |(key, _)| key.starts_with(prefix));
            page(pairs.take_while(inside), limit)
        }))
    }

    fn scan_back(&self, prefix: &[u8], before: Option<&[u8]>, limit: usize) -> Result<Pairs, ReadError> {
        let end = prefix_end(prefix);
        let end = match (before, &end) {
            (Some(before), Some(end)) if before < end.as_slice() => Excluded(before),
            (Some(before), None) => Excluded(before),
            (_, Some(end)) => Excluded(end.as_slice()),
            (None, None) => Unbounded,
        };
        if matches!(end, Excluded(end) if end <= prefix) {
            return Ok(Vec::new());
        }
        Ok(self.reading(|| page(self.tree.range::<&[u8], _>((Included(prefix), end)).rev(), limit)))
    }
}
