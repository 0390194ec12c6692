//! What commits change while a dump is being made.
//!
//! A dump reads the store in slices while commits go on, so what it has read already may change behind it. The commit
//! thread hands over every change that it makes meanwhile; written behind what was read, in order, they make the dump
//! one state: that after the last of them. Handing over costs the commit thread no waiting.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Shared;
use crate::ids::JournalNumber;
use crate::keys::Key;

/// Changes that may wait to be written. More means that the dump is written far more slowly than the store is.
const MOST_WAITING: u64 = 64 << 20;

/// The changes of one command.
pub(crate) type Changes = BTreeMap<Key, Option<Vec<u8>>>;

/// Another dump is being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

/// More changes waited than may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overflow;

/// What waits to be written.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    changes: Vec<Changes>,
    bytes: u64,
    overflow: bool,
    /// No change is wanted any more; the objects still are.
    closed: bool,
}

impl Waiting {
    pub fn add(&mut self, changes: &Changes) {
        if self.closed || self.overflow {
            return;
        }
        self.bytes += changes
            .iter()
            .map(|(key, value)| (key.len() + value.as_ref().map_or(0, Vec::len) + 64) as u64)
            .sum::<u64>();
        if self.bytes > MOST_WAITING {
            self.overflow = true;
            self.changes = Vec::new();
        } else {
            self.changes.push(changes.clone());
        }
    }

    fn take(&mut self) -> Result<Vec<Changes>, Overflow> {
        self.bytes = 0;
        if self.overflow {
            return Err(Overflow);
        }
        Ok(std::mem::take(&mut self.changes))
    }
}

/// Every change is recorded, and no object is swept, while this lives.
pub(crate) struct Recording {
    shared: Arc<Shared>,
    /// The last durable journal number when it began.
    pub began: JournalNumber,
}

impl Recording {
    /// Begins between two groups.
    pub fn begin(shared: &Arc<Shared>) -> Result<Self, Busy> {
        let began = shared.read(|_| {
            let mut recording = shared.recording.lock();
            if recording.is_some() {
                return Err(Busy);
            }
            *recording = Some(Waiting::default());
            Ok(*shared.durable.borrow())
        })?;
        Ok(Self {
            shared: Arc::clone(shared),
            began,
        })
    }

    /// The store that is recorded.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// What was changed since this was last asked, in order. All of it is durable: the commit thread holds the lock until
    /// its changes are.
    pub fn take(&self) -> Result<Vec<Changes>, Overflow> {
        self.shared.read(|_| self.waiting(Waiting::take))
    }

    /// Ends between two groups: the last changes, and the journal number of the state that they lead to. Objects are
    /// still kept from the sweeper.
    pub fn close(&self) -> Result<(Vec<Changes>, JournalNumber), Overflow> {
        self.shared.read(|_| {
            let last = self.waiting(|waiting| {
                waiting.closed = true;
                waiting.take()
            })?;
            Ok((last, *self.shared.durable.borrow()))
        })
    }

    fn waiting<T: Default>(
        &self,
        with: impl FnOnce(&mut Waiting) -> Result<T, Overflow>,
    ) -> Result<T, Overflow> {
        match self.shared.recording.lock().as_mut() {
            Some(waiting) => with(waiting),
            None => Ok(T::default()),
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        *self.shared.recording.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn what_waits_is_bounded_and_too_much_is_said() {
        let mut waiting = Waiting::default();
        let one: Changes = [(b"key".to_vec(), Some(vec![0; 1 << 20]))].into();
        for _ in 0..63 {
            waiting.add(&one);
        }
        assert_eq!(waiting.take().unwrap().len(), 63);
        for _ in 0..70 {
            waiting.add(&one);
        }
        assert!(waiting.changes.is_empty(), "it is given up at once");
        assert_eq!(waiting.take(), Err(Overflow));
        waiting.add(&one);
        assert_eq!(waiting.take(), Err(Overflow));
    }

    #[test]
    fn after_the_end_nothing_more_is_taken() {
        let mut waiting = Waiting {
            closed: true,
            ..Waiting::default()
        };
        waiting.add(&[(b"key".to_vec(), None)].into());
        assert_eq!(waiting.take(), Ok(Vec::new()));
    }
}
