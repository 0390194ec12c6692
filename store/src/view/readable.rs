//! A view in which damage is no obstacle: a value that isn't what was written is none, and is remembered.
//!
//! For those who look at many jobs at once, such as the scheduler or a status page: one damaged record must not hide all the
//! others. Whoever decides something about a record reads it through the plain view, where damage is an error.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::{ReadError, View};
use crate::codec::envelope;
use crate::keys::{Family, Key};

/// See the module.
pub struct Readable<'a> {
    view: &'a dyn View,
    damaged: RefCell<BTreeMap<Key, String>>,
}

impl<'a> Readable<'a> {
    /// What of `view` can be read.
    #[must_use]
    pub fn new(view: &'a dyn View) -> Self {
        Self {
            view,
            damaged: RefCell::default(),
        }
    }

    /// What was met and could not be read: keys, each with what is wrong there.
    #[must_use]
    pub fn damaged(self) -> BTreeMap<Key, String> {
        self.damaged.into_inner()
    }

    fn is_whole(&self, key: &[u8], value: &[u8]) -> bool {
        let Some(kind) = Family::of(key).and_then(Family::kind) else {
            return true;
        };
        match envelope::open(kind, value) {
            Ok(_) => true,
            Err(damage) => {
                self.damaged.borrow_mut().insert(key.to_vec(), damage.to_string());
                false
            }
        }
    }

    /// Pages of the view until `limit` whole pairs are found or there are no more: a short page means an end to whoever
    /// asks.
    fn page(
        &self,
        from: Option<&[u8]>,
        limit: usize,
        next: impl Fn(Option<&[u8]>, usize) -> Result<Vec<(Key, Vec<u8>)>, ReadError>,
    ) -> Result<Vec<(Key, Vec<u8>)>, ReadError> {
        let mut found = Vec::new();
        let mut from = from.map(<[u8]>::to_vec);
        loop {
            let wanted = limit - found.len();
            let page = next(from.as_deref(), wanted)?;
            let (count, last) = (page.len(), page.last().map(|(key, _)| key.clone()));
            found.extend(page.into_iter().filter(|(key, value)| self.is_whole(key, value)));
            if found.len() >= limit || count < wanted {
                return Ok(found);
            }
            from = last;
        }
    }
}

impl View for Readable<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, ReadError> {
        let value = self.view.get(key)?;
        Ok(value.filter(|value| self.is_whole(key, value)))
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Key, Vec<u8>)>, ReadError> {
        self.page(after, limit, |after, limit| self.view.scan(prefix, after, limit))
    }

    fn scan_back(
        &self,
        prefix: &[u8],
        before: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Key, Vec<u8>)>, ReadError> {
        self.page(before, limit, |before, limit| {
            self.view.scan_back(prefix, before, limit)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::codec::number;
    use crate::keys;
    use crate::view::MemoryView;

    #[test]
    fn damage_is_none_and_a_page_is_full_all_the_same() {
        let mut memory = MemoryView::default();
        for name in ["a", "b", "c", "d", "e"] {
            memory.0.insert(keys::counter(name), number(7));
        }
        for name in ["b", "c"] {
            memory.0.get_mut(&keys::counter(name)).unwrap()[3] ^= 1;
        }
        memory
            .0
            .insert(keys::active(crate::ids::JobNumber(1)), Vec::new());
        let readable = Readable::new(&memory);
        assert_eq!(readable.get(&keys::counter("b")).unwrap(), None);
        assert!(
            readable
                .get(&keys::active(crate::ids::JobNumber(1)))
                .unwrap()
                .is_some()
        );
        let names =
            |page: Vec<(Key, Vec<u8>)>| -> Vec<Key> { page.into_iter().map(|(key, _)| key).collect() };
        let counters = keys::family(Family::Counter);
        let of = |names: &[&str]| -> Vec<Key> { names.iter().map(|name| keys::counter(name)).collect() };
        assert_eq!(names(readable.scan(&counters, None, 2).unwrap()), of(&["a", "d"]));
        assert_eq!(
            names(readable.scan(&counters, None, 9).unwrap()),
            of(&["a", "d", "e"])
        );
        assert_eq!(
            names(readable.scan_back(&counters, None, 3).unwrap()),
            of(&["e", "d", "a"])
        );
        assert_eq!(
            readable.damaged().into_keys().collect::<Vec<_>>(),
            of(&["b", "c"])
        );
    }
}
