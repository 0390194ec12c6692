//! Invariant 8, what belongs to no job: folding those events gives boots, devices, circuits and the queue again. They
//! are never pruned, so the whole story is there.

use std::fmt::Debug;

use super::Invariant;
use super::checker::Checker;
use super::replay::differ;
use crate::codec::Record;
use crate::event::Event;
use crate::keys::{self, Family, Key};
use crate::machine::{Context, Reply, Rules, Transaction, apply};
use crate::records::{Boot, Circuit, Device, Queue};
use crate::view::{MemoryView, ReadError, View};

/// A replay of the events of no job.
#[derive(Default)]
pub(super) struct Daemon {
    memory: MemoryView,
    broken: bool,
}

impl Daemon {
    /// Folds the next event, if it belongs to no job.
    pub(super) fn fold(
        &mut self,
        checker: &mut Checker<'_>,
        key: &[u8],
        event: &Event,
    ) -> Result<(), ReadError> {
        if event.job.is_some() || self.broken {
            return Ok(());
        }
        let context = Context {
            now: event.at,
            boot: event.boot,
        };
        let mut tx = Transaction::begin(&self.memory, context, Rules::ALL)?;
        match apply(&mut tx, event) {
            Ok(()) => {
                let changes = tx.finish(Reply::Done).changes;
                self.memory.apply(&changes);
            }
            Err(error) => {
                self.broken = true;
                let text = format!("it can't be replayed ({}): {error}", event.what.name());
                checker.find(Invariant::Journal, key, text);
            }
        }
        Ok(())
    }

    /// Compares what the events make with what is kept.
    pub(super) fn compare(&self, checker: &mut Checker<'_>) -> Result<(), ReadError> {
        if self.broken {
            return Ok(());
        }
        self.records::<Circuit>(checker, Family::Circuit, |_| {})?;
        self.records::<Device>(checker, Family::Device, |_| {})?;
        self.records::<Queue>(checker, Family::Queue, |_| {})?;
        // How many attempts a boot interrupted is told by the events of their jobs, which may be pruned.
        self.records::<Boot>(checker, Family::Boot, |boot| boot.interrupted = 0)?;
        self.both_ways(checker, Family::CircuitName, |checker, key, told, found| {
            let text = "the journal says that it points to another circuit";
            checker.find_if(told != found, Invariant::Journal, key, text);
        })
    }

    fn records<R: Record + Debug + PartialEq>(
        &self,
        checker: &mut Checker<'_>,
        family: Family,
        leave_out: impl Fn(&mut R),
    ) -> Result<(), ReadError> {
        self.both_ways(checker, family, |checker, key, told, found| {
            let (Some(mut told), Some(mut found)) =
                (checker.decode::<R>(key, told), checker.decode::<R>(key, found))
            else {
                return;
            };
            leave_out(&mut told);
            leave_out(&mut found);
            differ(checker, key, &told, Some(&found));
        })
    }

    /// Calls `compare` for each key that both have, and names each that only one has.
    fn both_ways(
        &self,
        checker: &mut Checker<'_>,
        family: Family,
        compare: impl Fn(&mut Checker<'_>, &Key, &[u8], &[u8]),
    ) -> Result<(), ReadError> {
        let prefix = keys::family(family);
        for (key, told) in self.memory.scan(&prefix, None, usize::MAX)? {
            match checker.view.get(&key)? {
                Some(found) => compare(checker, &key, &told, &found),
                None => checker.find(
                    Invariant::Journal,
                    &key,
                    "the journal makes it and it is not there",
                ),
            }
        }
        checker.walk(&prefix, |checker, key, _| {
            let known = self.memory.get(key)?.is_some();
            checker.find_if(!known, Invariant::Journal, key, "the journal knows nothing of it");
            Ok(())
        })
    }
}
