//! Reading, without saying from where: the state machine, the queries and `fsck` see a [`View`], never sled.

mod readable;

use std::collections::BTreeMap;

use crate::codec::{Damage, Record};
use crate::fsck::describe;
use crate::ids::JobNumber;
use crate::keys::{self, Key};

pub use readable::Readable;

/// Keys and values in key order, read as of one moment.
pub trait View {
    /// The value at `key`.
    ///
    /// # Errors
    /// When the storage can't be read.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, ReadError>;

    /// Up to `limit` pairs whose keys start with `prefix`, in key order, beginning after `after` if it is given.
    ///
    /// # Errors
    /// When the storage can't be read.
    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Key, Vec<u8>)>, ReadError>;

    /// The same backwards: the last keys first, beginning before `before` if it is given.
    ///
    /// # Errors
    /// When the storage can't be read.
    fn scan_back(
        &self,
        prefix: &[u8],
        before: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Key, Vec<u8>)>, ReadError>;

    /// The record at `key`.
    ///
    /// # Errors
    /// When the storage can't be read, or what lies there is damaged.
    fn record<R: Record>(&self, key: &[u8]) -> Result<Option<R>, ReadError>
    where
        Self: Sized,
    {
        record(self, key)
    }
}

/// [`View::record`] for a view behind a `dyn`.
///
/// # Errors
/// When the storage can't be read, or what lies there is damaged.
pub fn record<R: Record>(view: &dyn View, key: &[u8]) -> Result<Option<R>, ReadError> {
    view.get(key)?
        .map(|bytes| R::decode(&bytes).map_err(|damage| ReadError::damaged(key, damage)))
        .transpose()
}

/// Every record below `prefix`, read page by page.
///
/// # Errors
/// When the storage can't be read, or a record is damaged.
pub fn records<R: Record>(view: &dyn View, prefix: &[u8]) -> Result<Vec<R>, ReadError> {
    let mut found = Vec::new();
    for_each(view, prefix, |key, value| {
        found.push(R::decode(value).map_err(|damage| ReadError::damaged(key, damage))?);
        Ok(())
    })?;
    Ok(found)
}

/// Calls `visit` for every pair below `prefix`, reading page by page.
///
/// # Errors
/// When the storage can't be read, or `visit` fails.
pub fn for_each(
    view: &dyn View,
    prefix: &[u8],
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    const PAGE: usize = 256;
    let mut after: Option<Key> = None;
    loop {
        let page = view.scan(prefix, after.as_deref(), PAGE)?;
        for (key, value) in &page {
            visit(key, value)?;
        }
        if page.len() < PAGE {
            return Ok(());
        }
        after = page.into_iter().next_back().map(|(key, _)| key);
    }
}

/// Why something could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// What lies at a key is not what was written there.
    #[error("{place} (key {key}) is damaged: {damage}")]
    Damaged {
        /// The key, in hex.
        key: String,
        /// Where that is, in words.
        place: String,
        /// The job it belongs to, if it is one's.
        job: Option<JobNumber>,
        /// What is wrong.
        damage: Damage,
    },
    /// The storage engine failed.
    #[error("the store can't be read: {0}")]
    Storage(String),
}

impl ReadError {
    /// The job whose record is damaged, if it is one's.
    #[must_use]
    pub fn job(&self) -> Option<JobNumber> {
        match self {
            Self::Damaged { job, .. } => *job,
            Self::Storage(_) => None,
        }
    }

    /// A damaged record at `key`.
    #[must_use]
    pub fn damaged(key: &[u8], damage: Damage) -> Self {
        Self::Damaged {
            key: hex::encode(key),
            place: describe(key),
            job: keys::job_of(key),
            damage,
        }
    }
}

/// A view that lies in memory: for models, for replays, and for trying a machine without a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryView(pub BTreeMap<Key, Vec<u8>>);

impl MemoryView {
    /// Makes the changes of one step.
    pub fn apply(&mut self, changes: &BTreeMap<Key, Option<Vec<u8>>>) {
        for (key, value) in changes {
            match value {
                Some(value) => self.0.insert(key.clone(), value.clone()),
                None => self.0.remove(key),
            };
        }
    }
}

impl View for MemoryView {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, ReadError> {
        Ok(self.0.get(key).cloned())
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Key, Vec<u8>)>, ReadError> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let start = after.map_or(Included(prefix), Excluded);
        Ok(self
            .0
            .range::<[u8], _>((start, Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix))
            .take(limit)
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect())
    }

    fn scan_back(
        &self,
        prefix: &[u8],
        before: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Key, Vec<u8>)>, ReadError> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let end = match before {
            Some(before) => Excluded(before.to_vec()),
            None => prefix_end(prefix).map_or(Unbounded, Excluded),
        };
        Ok(self
            .0
            .range((Included(prefix.to_vec()), end))
            .rev()
            .take(limit)
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect())
    }
}

/// The first key after everything that starts with `prefix`; `None` if there is no such key.
#[must_use]
pub fn prefix_end(prefix: &[u8]) -> Option<Key> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            return Some(end);
        }
        end.pop();
    }
    None
}
