//! Lives of the daemon, and what each one's recovery did. Nothing of that is stored: it follows from the attempts that
//! the boot closed for an earlier one, and from what came after them.

use std::collections::BTreeSet;

use super::last_event;
use crate::codec::Record;
use crate::event::{Event, What};
use crate::ids::{BootNumber, JobNumber, JournalNumber};
use crate::keys::{self, Family};
use crate::records::{Attempt, AttemptRef, Boot, BootEnd, Outcome};
use crate::view::{self, ReadError, View};

/// What a boot found half done, and what that saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Attempts of earlier boots that it closed, as its record says.
    pub interrupted: u32,
    /// Those attempts, as far as their jobs are kept.
    pub attempts: Vec<AttemptRef>,
    /// Partitions of their jobs that were proved before and were not proved again.
    pub partitions_kept: u32,
    /// Pieces of unfinished proofs that the next attempts took over.
    pub checkpoints_reused: u32,
    /// What those pieces had cost on a device, in milliseconds.
    pub saved_ms: u64,
}

/// One boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootReport {
    /// Its record.
    pub boot: Boot,
    /// How the boot before it ended; `None` if there was none.
    pub before: Option<BootEnd>,
    /// What its recovery did.
    pub recovered: Recovered,
}

/// Events after a boot's first one that are read to find what its recovery closed.
const RECOVERY_EVENTS: usize = 2048;

/// The current boot, or the last one.
///
/// # Errors
/// When the store can't be read.
pub fn current_boot(view: &dyn View) -> Result<Option<BootReport>, ReadError> {
    boot_report(view, super::last_boot(view)?)
}

/// One boot; `None` if there was none of that number.
///
/// # Errors
/// When the store can't be read.
pub fn boot_report(view: &dyn View, number: BootNumber) -> Result<Option<BootReport>, ReadError> {
    let Some(boot) = view::record::<Boot>(view, &keys::boot(number))? else {
        return Ok(None);
    };
    let before = match number.0.checked_sub(1) {
        Some(before) => view::record::<Boot>(view, &keys::boot(BootNumber(before)))?,
        None => None,
    };
    let recovered = recovered(view, &boot)?;
    Ok(Some(BootReport {
        boot,
        before: before.and_then(|boot| boot.ended).map(|(_, end)| end),
        recovered,
    }))
}

/// Up to `limit` boots before `before`, the last first.
///
/// # Errors
/// When the store can't be read.
pub fn boots(
    view: &dyn View,
    before: Option<BootNumber>,
    limit: usize,
) -> Result<Vec<BootReport>, ReadError> {
    let before = before.map(keys::boot);
    let mut reports = Vec::new();
    for (key, value) in view.scan_back(&keys::family(Family::Boot), before.as_deref(), limit)? {
        let boot = Boot::decode(&value).map_err(|damage| ReadError::damaged(&key, damage))?;
        reports.extend(boot_report(view, boot.number)?);
    }
    Ok(reports)
}

/// The number of the first event that a boot wrote and that is kept: a search by halves, since boots only rise along
/// the journal.
///
/// # Errors
/// When the store can't be read.
pub fn first_event_of(view: &dyn View, boot: BootNumber) -> Result<Option<JournalNumber>, ReadError> {
    let (mut low, mut high) = (0, last_event(view)?.0);
    // Every event up to `low` is of an earlier boot; the first event after `high`, if any, is not.
    while low < high {
        let middle = low + (high - low) / 2;
        match first_after(view, middle)? {
            Some(event) if event.boot < boot => low = event.number.0,
            _ => high = middle,
        }
    }
    Ok(first_after(view, low)?
        .filter(|event| event.boot == boot)
        .map(|event| event.number))
}

fn first_after(view: &dyn View, number: u64) -> Result<Option<Event>, ReadError> {
    let after = keys::event(JournalNumber(number));
    let page = view.scan(&keys::family(Family::Event), Some(&after), 1)?;
    page.first()
        .map(|(key, value)| Event::decode(value).map_err(|damage| ReadError::damaged(key, damage)))
        .transpose()
}

fn recovered(view: &dyn View, boot: &Boot) -> Result<Recovered, ReadError> {
    let mut recovered = Recovered {
        interrupted: boot.interrupted,
        ..Recovered::default()
    };
    if boot.interrupted == 0 {
        return Ok(recovered);
    }
    recovered.attempts = closed_for_others(view, boot)?;
    let mut jobs = BTreeSet::new();
    for of in &recovered.attempts {
        jobs.insert(of.job);
        if let Some(next) = next_in_boot(view, *of, boot.number)? {
            recovered.checkpoints_reused += u32::try_from(next.reused.len()).unwrap_or(u32::MAX);
            recovered.saved_ms += next.saved_ms;
        }
    }
    for job in jobs {
        recovered.partitions_kept += kept(view, job, boot)?;
    }
    Ok(recovered)
}

/// Attempts of earlier boots that ended in this one, from the events at its beginning.
fn closed_for_others(view: &dyn View, boot: &Boot) -> Result<Vec<AttemptRef>, ReadError> {
    let mut found = Vec::new();
    let Some(first) = first_event_of(view, boot.number)? else {
        return Ok(found);
    };
    let after = keys::event(JournalNumber(first.0 - 1));
    for (key, value) in view.scan(&keys::family(Family::Event), Some(&after), RECOVERY_EVENTS)? {
        let event = Event::decode(&value).map_err(|damage| ReadError::damaged(&key, damage))?;
        if event.boot != boot.number || found.len() >= boot.interrupted as usize {
            break;
        }
        let (Some(job), What::AttemptEnded(end)) = (event.job, &event.what) else {
            continue;
        };
        let of = AttemptRef {
            job,
            partition: end.partition,
            number: end.attempt,
        };
        let attempt = view::record::<Attempt>(view, &keys::attempt(of))?;
        if attempt.is_some_and(|attempt| attempt.opened_in < boot.number) {
            found.push(of);
        }
    }
    Ok(found)
}

/// The attempt after `of` that this boot opened and that came as far as the device's end.
fn next_in_boot(view: &dyn View, of: AttemptRef, boot: BootNumber) -> Result<Option<Attempt>, ReadError> {
    let prefix = keys::attempts(of.job, of.partition);
    for (key, value) in view.scan(&prefix, Some(&keys::attempt(of)), 8)? {
        let attempt = Attempt::decode(&value).map_err(|damage| ReadError::damaged(&key, damage))?;
        if attempt.opened_in != boot {
            return Ok(None);
        }
        if !attempt.reused.is_empty() || attempt.outcome == Some(Outcome::Ok) {
            return Ok(Some(attempt));
        }
    }
    Ok(None)
}

/// Partitions of `job` whose proof is older than this boot.
fn kept(view: &dyn View, job: JobNumber, boot: &Boot) -> Result<u32, ReadError> {
    let proofs = super::proofs(view, job, 0, crate::machine::MAX_PARTITIONS as usize)?.proofs;
    let older = proofs
        .iter()
        .filter(|proof| proof.stored_at <= boot.started_at)
        .count();
    Ok(u32::try_from(older).unwrap_or(u32::MAX))
}
