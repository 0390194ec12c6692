//! The journal, by page.

use crate::event::Event;
use crate::ids::{JobNumber, JournalNumber};
use crate::keys::{self, Family};
use crate::view::{self, ReadError, View};

/// A page of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPage {
    /// In the order of their numbers.
    pub events: Vec<Event>,
    /// The event to go on after, when there may be more.
    pub next: Option<JournalNumber>,
    /// The number of the last event of the whole journal, as of this read.
    pub last: JournalNumber,
}

/// Up to `limit` events of all jobs, those after `after`. Events of pruned jobs are missing.
///
/// # Errors
/// When the store can't be read.
pub fn events(view: &dyn View, after: JournalNumber, limit: usize) -> Result<EventPage, ReadError> {
    let page = view.scan(&keys::family(Family::Event), Some(&keys::event(after)), limit)?;
    let mut events = Vec::with_capacity(page.len());
    for (key, value) in &page {
        events.push(decode(key, value)?);
    }
    finish(view, events, page.len() == limit)
}

/// Up to `limit` events of one job, those after `after`.
///
/// # Errors
/// When the store can't be read.
pub fn job_events(
    view: &dyn View,
    job: JobNumber,
    after: JournalNumber,
    limit: usize,
) -> Result<EventPage, ReadError> {
    let prefix = keys::of_job(Family::JobEvent, job);
    let page = view.scan(&prefix, Some(&keys::job_event(job, after)), limit)?;
    let mut events = Vec::with_capacity(page.len());
    for (key, _) in &page {
        if let Some(number) = journal_number(&key[prefix.len()..])
            && let Some(found) = event(view, number)?
        {
            events.push(found);
        }
    }
    finish(view, events, page.len() == limit)
}

/// One event; `None` if there is none of that number, or if it was pruned with its job.
///
/// # Errors
/// When the store can't be read.
pub fn event(view: &dyn View, number: JournalNumber) -> Result<Option<Event>, ReadError> {
    view::record(view, &keys::event(number))
}

fn finish(view: &dyn View, events: Vec<Event>, full: bool) -> Result<EventPage, ReadError> {
    let next = events.last().map(|event| event.number).filter(|_| full);
    Ok(EventPage {
        events,
        next,
        last: super::last_event(view)?,
    })
}

fn decode(key: &[u8], value: &[u8]) -> Result<Event, ReadError> {
    use crate::codec::Record;
    Event::decode(value).map_err(|damage| ReadError::damaged(key, damage))
}

fn journal_number(bytes: &[u8]) -> Option<JournalNumber> {
    Some(JournalNumber(u64::from_be_bytes(bytes.try_into().ok()?)))
}
