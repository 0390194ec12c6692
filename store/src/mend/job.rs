//! One job, made again from its journal.

use super::journal::Journal;
use super::{Changes, differences};
use crate::codec::Record as _;
use crate::event::Event;
use crate::ids::{JobNumber, JournalNumber};
use crate::keys::{self, Family, Key};
use crate::machine::{Context, Reply, Rules, Transaction, apply};
use crate::records::{Lease, Subject};
use crate::view::{MemoryView, ReadError, View, for_each};

/// What is keyed by the job first, and made by its events.
const ITS_OWN: [Family; 7] = [
    Family::Job,
    Family::Generation,
    Family::Partition,
    Family::Attempt,
    Family::Active,
    Family::Open,
    Family::Done,
];

/// Indexes whose keys name the job somewhere behind.
const QUEUES: [Family; 3] = [Family::Ready, Family::Retry, Family::Deadline];

/// What is to be written so that the job is what its journal says; or why that can't be known.
pub(super) fn changes(
    view: &dyn View,
    job: JobNumber,
    journal: &Journal,
) -> Result<Result<Changes, String>, ReadError> {
    let numbers = match journal.of(Some(job)) {
        Ok(numbers) => numbers,
        Err(why) => return Ok(Err(why)),
    };
    if view.get(&keys::pruning(job))?.is_some() {
        // It was forgotten, and its keys are being deleted.
        return Ok(Ok(Changes::new()));
    }
    if numbers.is_empty() && view.get(&keys::job(job))?.is_some() {
        return Ok(Err("its journal is gone".to_owned()));
    }
    let told = match replay(view, numbers)? {
        Ok(told) => told,
        Err(why) => return Ok(Err(why)),
    };
    if !numbers.is_empty() && told.get(&keys::job(job))?.is_none() {
        return Ok(Err("its journal doesn't begin with its submission".to_owned()));
    }
    let mut changes = Changes::new();
    for family in ITS_OWN {
        differences(&told, view, &keys::of_job(family, job), &mut changes)?;
    }
    for family in QUEUES {
        let prefix = keys::family(family);
        let of_it = |key: &[u8]| keys::job_of(key) == Some(job);
        differences(
            &part(&told, &prefix, of_it)?,
            &part(view, &prefix, of_it)?,
            &prefix,
            &mut changes,
        )?;
    }
    let leases = keys::family(Family::Lease);
    let found = part(view, &leases, |key| told.0.contains_key(key))?;
    differences(&part(&told, &leases, |_| true)?, &found, &leases, &mut changes)?;
    // A lease of it that its journal ended.
    for_each(view, &leases, |key, value| {
        let of_it = Lease::decode(value).is_ok_and(|lease| match lease.subject {
            Subject::Partition { job: of, .. } | Subject::Verify { job: of } => of == job,
            Subject::Import { .. } => false,
        });
        if of_it && !told.0.contains_key(key) {
            changes.insert(key.to_vec(), None);
        }
        Ok(())
    })?;
    for family in [Family::JobId, Family::Idempotency] {
        for_each(&told, &keys::family(family), |key, value| {
            if view.get(key)?.as_deref() != Some(value) {
                changes.insert(key.to_vec(), Some(value.to_vec()));
            }
            Ok(())
        })?;
    }
    for number in numbers {
        put_back(view, keys::job_event(job, *number), &mut changes)?;
    }
    // Which objects it needs is noted twice; one side makes the other.
    for_each(
        view,
        &keys::of_job(Family::Needs, job),
        |key, _| match keys::parse_needs(key) {
            Some((_, object)) => put_back(view, keys::reference(object, job), &mut changes),
            None => Ok(()),
        },
    )?;
    Ok(Ok(changes))
}

/// An index entry, if it isn't there.
fn put_back(view: &dyn View, key: Key, changes: &mut Changes) -> Result<(), ReadError> {
    if view.get(&key)?.is_none_or(|value| !value.is_empty()) {
        changes.insert(key, Some(Vec::new()));
    }
    Ok(())
}

/// The pairs below `prefix` that `wanted` picks.
fn part(view: &dyn View, prefix: &[u8], wanted: impl Fn(&[u8]) -> bool) -> Result<MemoryView, ReadError> {
    let mut part = MemoryView::default();
    for_each(view, prefix, |key, value| {
        if wanted(key) {
            part.0.insert(key.to_vec(), value.to_vec());
        }
        Ok(())
    })?;
    Ok(part)
}

/// Folds events into an empty store.
pub(super) fn replay(
    view: &dyn View,
    numbers: &[JournalNumber],
) -> Result<Result<MemoryView, String>, ReadError> {
    let mut memory = MemoryView::default();
    for number in numbers {
        let Some(event) = crate::view::record::<Event>(view, &keys::event(*number))? else {
            return Ok(Err(format!("event {number} is gone")));
        };
        let context = Context {
            now: event.at,
            boot: event.boot,
        };
        let mut tx = Transaction::begin(&memory, context, Rules::ALL)?;
        if let Err(error) = apply(&mut tx, &event) {
            return Ok(Err(format!(
                "event {number} ({}) can't be replayed: {error}",
                event.what.name()
            )));
        }
        let changes = tx.finish(Reply::Done).changes;
        memory.apply(&changes);
    }
    Ok(Ok(memory))
}
