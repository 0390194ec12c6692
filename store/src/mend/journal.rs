//! The journal, as far as it can be believed.

use std::collections::{BTreeMap, BTreeSet};

use crate::codec::{self, Record as _};
use crate::event::Event;
use crate::ids::{JobNumber, JournalNumber};
use crate::keys::{self, Family, Sequence};
use crate::query::PRUNED_EVENTS;
use crate::view::{ReadError, View, for_each};

/// One walk along it.
pub(super) struct Journal {
    /// The events of the jobs that were asked for, and of no job.
    events: BTreeMap<Option<JobNumber>, Vec<JournalNumber>>,
    /// Events that can't be read, with the job that they are known to be of.
    unreadable: BTreeMap<u64, Option<JobNumber>>,
    /// Events that are gone and went with no pruned job.
    lost: u64,
}

impl Journal {
    /// Walks along all of it, remembering the events of these jobs.
    pub fn read(view: &dyn View, wanted: BTreeSet<JobNumber>) -> Result<Self, ReadError> {
        let (mut kept, mut highest) = (0, 0);
        let mut journal = Self {
            events: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            lost: 0,
        };
        for_each(view, &keys::family(Family::Event), |key, value| {
            let Some(number) = key.last_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes)) else {
                return Ok(());
            };
            (kept, highest) = (kept + 1, number);
            match Event::decode(value) {
                Ok(event) if event.number.0 == number => {
                    if event.job.is_none_or(|job| wanted.contains(&job)) {
                        journal.events.entry(event.job).or_default().push(event.number);
                    }
                }
                _ => drop(journal.unreadable.insert(number, None)),
            }
            Ok(())
        })?;
        if !journal.unreadable.is_empty() {
            for_each(view, &keys::family(Family::JobEvent), |key, _| {
                let number = key
                    .last_chunk::<8>()
                    .map_or(0, |bytes| u64::from_be_bytes(*bytes));
                if let Some(of) = journal.unreadable.get_mut(&number) {
                    *of = keys::parse_job(key);
                }
                Ok(())
            })?;
        }
        let number = |key: &[u8]| -> Result<u64, ReadError> {
            view.get(key)?.map_or(Ok(0), |value| {
                codec::read_number(&value).map_err(|damage| ReadError::damaged(key, damage))
            })
        };
        let last = number(&keys::sequence(Sequence::Journal))?;
        let pruned = number(&keys::pruned_counter(PRUNED_EVENTS))?;
        // One beyond the last number is as wrong as one that is missing.
        journal.lost = last.abs_diff(kept + pruned).max(highest.saturating_sub(last));
        Ok(journal)
    }

    /// Every event of a job, or of no job, in order; or why they can't be had.
    pub fn of(&self, job: Option<JobNumber>) -> Result<&[JournalNumber], String> {
        if self.lost > 0 {
            return Err(format!(
                "the journal has lost {} events, and nobody knows whose",
                self.lost
            ));
        }
        for (number, of) in &self.unreadable {
            match of {
                None => {
                    return Err(format!(
                        "event {number} can't be read, and nobody knows whose it is"
                    ));
                }
                of if *of == job => {
                    return Err(format!("event {number} of its journal can't be read either"));
                }
                Some(_) => {}
            }
        }
        Ok(self.events.get(&job).map_or(&[], Vec::as_slice))
    }
}
