//! The simulated store: an ordered map whose last changes aren't durable yet, and objects.

use std::collections::{BTreeMap, BTreeSet};

use proofkeep_store::ids::Digest;
use proofkeep_store::keys::Key;
use proofkeep_store::view::MemoryView;

/// What a change took the place of.
type Undo = Vec<(Key, Option<Vec<u8>>)>;

/// A disk.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    /// Everything that was written, durable or not.
    pub view: MemoryView,
    /// One entry a command that isn't durable yet, in order.
    undo: Vec<Undo>,
    /// Objects; each is synced before anybody names it.
    pub objects: BTreeSet<Digest>,
    /// A disk that is broken, to show that this is noticed.
    broken: Broken,
}

/// What a disk does wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Broken {
    /// Nothing.
    #[default]
    Not,
    /// It says that it synced and didn't.
    IgnoresSyncs,
    /// A cut leaves half of a command.
    TearsCommands,
}

impl Disk {
    /// An empty disk.
    #[must_use]
    pub fn new(broken: Broken) -> Self {
        Self {
            broken,
            ..Self::default()
        }
    }

    /// Applies one command's changes: all of them, but not durably.
    pub fn apply(&mut self, changes: &BTreeMap<Key, Option<Vec<u8>>>) {
        let before = |key: &Key| (key.clone(), self.view.0.get(key).cloned());
        self.undo.push(changes.keys().map(before).collect());
        self.view.apply(changes);
    }

    /// Makes everything durable.
    pub fn sync(&mut self) {
        if self.broken != Broken::IgnoresSyncs {
            self.undo.clear();
        }
    }

    /// Commands that aren't durable yet.
    #[must_use]
    pub fn unsynced(&self) -> usize {
        self.undo.len()
    }

    /// The machine stops: of the commands that weren't durable, the first `kept` survive, each whole.
    pub fn cut(&mut self, kept: usize) {
        while self.undo.len() > kept {
            let mut undo = self.undo.pop().unwrap_or_default();
            if self.broken == Broken::TearsCommands && self.undo.len() == kept {
                undo.truncate(undo.len() / 2);
            }
            for (key, value) in undo {
                match value {
                    Some(value) => self.view.0.insert(key, value),
                    None => self.view.0.remove(&key),
                };
            }
        }
        self.undo.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_keeps_whole_commands_from_the_front() {
        let change = |pairs: &[(&str, Option<&str>)]| {
            let pair = |(key, value): &(&str, Option<&str>)| {
                (
                    key.as_bytes().to_vec(),
                    value.map(|text| text.as_bytes().to_vec()),
                )
            };
            pairs.iter().map(pair).collect::<BTreeMap<_, _>>()
        };
        let mut disk = Disk::default();
        disk.apply(&change(&[("a", Some("1")), ("b", Some("1"))]));
        disk.sync();
        let durable = disk.view.clone();
        disk.apply(&change(&[("a", None), ("c", Some("2"))]));
        let first = disk.view.clone();
        disk.apply(&change(&[("a", Some("3")), ("b", None), ("c", None)]));
        assert_eq!(disk.unsynced(), 2);
        let mut other = disk.clone();
        other.cut(1);
        assert_eq!((&other.view, other.unsynced()), (&first, 0));
        disk.cut(0);
        assert_eq!(disk.view, durable);
    }
}
