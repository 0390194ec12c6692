//! Invariant 8, the journal itself: no holes but those that pruned jobs left, and boots that only rise.

use std::collections::{BTreeMap, BTreeSet};

use super::Invariant;
use super::checker::Checker;
use super::daemon::Daemon;
use super::indexes::owner;
use crate::event::{Event, What};
use crate::ids::JobNumber;
use crate::keys::{self, Family, Sequence};
use crate::view::ReadError;

/// What a walk along the journal has seen.
#[derive(Default)]
struct Seen {
    last: u64,
    boot: u64,
    missing: u64,
    /// The first number after the last hole.
    last_hole: Option<u64>,
    last_prune: u64,
    pruned: BTreeSet<JobNumber>,
    submitted: BTreeMap<JobNumber, u64>,
}

pub(super) fn check(checker: &mut Checker<'_>, jobs: &[JobNumber]) -> Result<(), ReadError> {
    let mut seen = Seen::default();
    let mut daemon = Daemon::default();
    checker.walk(&keys::family(Family::Event), |checker, key, value| {
        match checker.decode::<Event>(key, value) {
            Some(event) => {
                daemon.fold(checker, key, &event)?;
                see(checker, &mut seen, key, &event)
            }
            None => {
                // A damaged event is there; it isn't a hole.
                seen.last += 1;
                Ok(())
            }
        }
    })?;
    daemon.compare(checker)?;
    let sequence = keys::sequence(Sequence::Journal);
    let last = checker.journal.0;
    let text = format!("the last event is said to be {last}, found is {}", seen.last);
    checker.find_if(last != seen.last, Invariant::Journal, &sequence, text);
    if let Some(hole) = seen.last_hole.filter(|hole| *hole > seen.last_prune) {
        let text = "events are missing before it and no job was pruned since";
        checker.find(
            Invariant::Journal,
            &keys::event(crate::ids::JournalNumber(hole)),
            text,
        );
    }
    let pruned = checker.pruned_events()?;
    let text = format!(
        "{pruned} events went with pruned jobs, {} are missing",
        seen.missing
    );
    checker.find_if(pruned != seen.missing, Invariant::Journal, &sequence, text);
    job_numbers(checker, jobs, &seen)
}

fn see(checker: &mut Checker<'_>, seen: &mut Seen, key: &[u8], event: &Event) -> Result<(), ReadError> {
    let number = event.number.0;
    if number > seen.last + 1 {
        seen.missing += number - seen.last - 1;
        seen.last_hole = Some(number);
    }
    seen.last = number;
    let text = format!(
        "it is of boot {}, and one of boot {} came before it",
        event.boot, seen.boot
    );
    checker.find_if(event.boot.0 < seen.boot, Invariant::Journal, key, text);
    seen.boot = seen.boot.max(event.boot.0);
    if let What::Pruned { job, .. } = event.what {
        seen.pruned.insert(job);
        seen.last_prune = number;
    }
    let Some(job) = event.job else { return Ok(()) };
    if let What::Submitted(_) = event.what
        && let Some(before) = seen.submitted.insert(job, number)
    {
        checker.find(
            Invariant::Journal,
            key,
            format!("event {before} submitted job {job} already"),
        );
    }
    owner(checker, key, job)?;
    let entry = keys::job_event(job, event.number);
    let there = checker.has(&entry)?;
    checker.find_if(!there, Invariant::Index, &entry, "it is missing");
    Ok(())
}

/// Job numbers are never used again and none is lost: each is kept, or was pruned.
fn job_numbers(checker: &mut Checker<'_>, jobs: &[JobNumber], seen: &Seen) -> Result<(), ReadError> {
    let key = keys::sequence(Sequence::Job);
    let last = checker.number(&key)?.unwrap_or(0);
    let kept: BTreeSet<JobNumber> = jobs.iter().copied().collect();
    for number in (1..=last).map(JobNumber) {
        let gone = !kept.contains(&number) && !seen.pruned.contains(&number);
        checker.find_if(
            gone,
            Invariant::Journal,
            &keys::job(number),
            "it is missing and was not pruned",
        );
    }
    for number in kept.iter().filter(|number| number.0 > last || number.0 == 0) {
        let text = format!("the last job is said to be {last}");
        checker.find(Invariant::Journal, &keys::job(*number), text);
    }
    for number in kept.intersection(&seen.pruned) {
        checker.find(
            Invariant::Journal,
            &keys::job(*number),
            "the journal says that it was pruned",
        );
    }
    Ok(())
}
