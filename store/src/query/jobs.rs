//! Lists of jobs. Jobs lie in the order of submission; a page walks that order, newest first unless asked otherwise,
//! and gives up after a fixed number of records, so that a filter that matches nothing costs no more than one that
//! matches everything: it answers an empty page with a cursor.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::{Cursor, CursorError};
use crate::codec::{Damage, Record};
use crate::event::{Event, What};
use crate::ids::{Digest, JobNumber, Millis};
use crate::keys::{self, Family, Key};
use crate::records::{Generation, Job, JobState};
use crate::view::{self, ReadError, View};

/// Which jobs by state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateFilter {
    /// Those whose state has this name (`stopping` whatever the target).
    Named(&'static str),
    /// Those that are not terminal.
    Active,
    /// Those that ended.
    Ended,
}

impl StateFilter {
    /// Reads a state's name, `active` or `ended`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "active" => Some(Self::Active),
            "ended" => Some(Self::Ended),
            _ => JobState::ALL
                .iter()
                .map(|state| state.name())
                .find(|name| *name == text)
                .map(Self::Named),
        }
    }

    fn accepts(self, state: JobState) -> bool {
        match self {
            Self::Named(name) => state.name() == name,
            Self::Active => !state.is_terminal(),
            Self::Ended => state.is_terminal(),
        }
    }

    /// No terminal job is wanted, so the short index of active jobs will do.
    fn only_active(self) -> bool {
        JobState::ALL
            .iter()
            .all(|state| !(state.is_terminal() && self.accepts(*state)))
    }
}

/// Which jobs to list; an empty filter lists all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// In one of these states; empty: in any.
    pub states: Vec<StateFilter>,
    /// Of this proof kind.
    pub kind: Option<String>,
    /// Over one of these circuits; `None`: over any or none.
    pub circuits: Option<Vec<Digest>>,
    /// With all these labels; a label without a value asks only that it is there.
    pub labels: Vec<(String, Option<String>)>,
    /// Submitted by this actor.
    pub actor: Option<String>,
    /// Submitted at this moment or later.
    pub since: Option<Millis>,
    /// Submitted before this moment.
    pub until: Option<Millis>,
}

impl JobFilter {
    /// Whether the filter lets `job` through.
    #[must_use]
    pub fn accepts(&self, job: &Job) -> bool {
        let state = self.states.is_empty() || self.states.iter().any(|filter| filter.accepts(job.state));
        let kind = self.kind.as_ref().is_none_or(|kind| *kind == job.kind);
        let circuit = self
            .circuits
            .as_ref()
            .is_none_or(|list| job.circuit.is_some_and(|circuit| list.contains(&circuit)));
        let labels = self.labels.iter().all(|(wanted, value)| {
            job.labels
                .iter()
                .any(|(name, found)| name == wanted && value.as_ref().is_none_or(|value| value == found))
        });
        let actor = self.actor.as_ref().is_none_or(|actor| *actor == job.actor);
        let since = self.since.is_none_or(|since| job.created_at >= since);
        let until = self.until.is_none_or(|until| job.created_at < until);
        state && kind && circuit && labels && actor && since && until
    }

    fn only_active(&self) -> bool {
        !self.states.is_empty() && self.states.iter().all(|filter| filter.only_active())
    }
}

/// In which order jobs are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The last submitted first.
    #[default]
    NewestFirst,
    /// The first submitted first.
    OldestFirst,
}

/// A job in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRow {
    /// The job.
    pub job: Job,
    /// Its current life.
    pub generation: Option<Generation>,
}

/// A job in a list that can't be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedJob {
    /// Its number.
    pub number: JobNumber,
    /// Its id, if some record still says it.
    pub id: Option<Uuid>,
    /// What is wrong.
    pub detail: String,
}

/// A page of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPage {
    /// In the order asked for. May be fewer than asked for, or none, with more to come: `next` decides.
    pub jobs: Vec<JobRow>,
    /// Jobs of this stretch of the list whose record is damaged or gone. Nobody can say whether the filter would let them
    /// through, so every list names them: a damaged job doesn't vanish.
    pub damaged: Vec<DamagedJob>,
    /// Where to go on; `None` at the end of the list.
    pub next: Option<Cursor>,
}

/// Records that one page looks at, whatever the filter.
const SCANNED: usize = 1024;
const STEP: usize = 128;

/// A list of jobs could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The cursor doesn't fit.
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// The store can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Up to `limit` jobs that `filter` lets through, going on at `cursor`.
///
/// # Errors
/// When the cursor is of another list or order, or the store can't be read.
pub fn jobs(
    view: &dyn View,
    filter: &JobFilter,
    order: Order,
    cursor: Option<Cursor>,
    limit: usize,
) -> Result<JobPage, ListError> {
    let list = match order {
        Order::NewestFirst => 1,
        Order::OldestFirst => 2,
    };
    let mut last = cursor.map(|cursor| cursor.of(list)).transpose()?;
    let (mut rows, mut damaged) = (Vec::new(), Vec::new());
    let mut scanned = 0;
    let family = if filter.only_active() {
        Family::Active
    } else {
        Family::Job
    };
    loop {
        let step = STEP.min(SCANNED - scanned);
        let found = page(view, family, order, last, step)?;
        let more = found.len() == step;
        scanned += found.len();
        for number in stretch(view, family, order, last, step, &found)? {
            match row(view, number, filter) {
                Ok(row) => rows.extend(row),
                Err(ReadError::Damaged { damage, place, .. }) => damaged.push(DamagedJob {
                    number,
                    id: id_of(view, number)?,
                    detail: format!("{place} is damaged: {damage}"),
                }),
                Err(error) => return Err(error.into()),
            }
            last = Some(number.0);
            if rows.len() + damaged.len() == limit {
                break;
            }
        }
        let full = rows.len() + damaged.len() == limit || scanned >= SCANNED;
        if full || !more {
            return Ok(JobPage {
                jobs: rows,
                damaged,
                next: last.filter(|_| full).map(|last| Cursor { list, last }),
            });
        }
    }
}

fn page(
    view: &dyn View,
    family: Family,
    order: Order,
    last: Option<u64>,
    limit: usize,
) -> Result<Vec<(Key, Vec<u8>)>, ReadError> {
    let bound = last.map(|last| keys::of_job(family, JobNumber(last)));
    match order {
        Order::NewestFirst => view.scan_back(&keys::family(family), bound.as_deref(), limit),
        Order::OldestFirst => view.scan(&keys::family(family), bound.as_deref(), limit),
    }
}

/// The jobs of a page, and those between them that an index names although their record is gone.
fn stretch(
    view: &dyn View,
    family: Family,
    order: Order,
    last: Option<u64>,
    step: usize,
    found: &[(Key, Vec<u8>)],
) -> Result<Vec<JobNumber>, ReadError> {
    let mut numbers: BTreeSet<JobNumber> = found.iter().filter_map(|(key, _)| keys::parse_job(key)).collect();
    if family == Family::Job {
        let end = found.last().filter(|_| found.len() == step);
        let end = end.and_then(|(key, _)| keys::parse_job(key));
        let inside = |number: &JobNumber| match order {
            Order::NewestFirst => end.is_none_or(|end| *number > end),
            Order::OldestFirst => end.is_none_or(|end| *number < end),
        };
        for index in [Family::Active, Family::Done] {
            let named = page(view, index, order, last, step)?;
            numbers.extend(
                named
                    .iter()
                    .filter_map(|(key, _)| keys::parse_job(key))
                    .filter(inside),
            );
        }
    }
    let mut numbers: Vec<JobNumber> = numbers.into_iter().collect();
    if order == Order::NewestFirst {
        numbers.reverse();
    }
    Ok(numbers)
}

/// The job's row, if the filter lets it through.
fn row(view: &dyn View, number: JobNumber, filter: &JobFilter) -> Result<Option<JobRow>, ReadError> {
    let key = keys::job(number);
    let job: Job = view::record(view, &key)?.ok_or_else(|| ReadError::damaged(&key, Damage::Gone))?;
    if !filter.accepts(&job) {
        return Ok(None);
    }
    let generation = view::record(view, &keys::generation(number, job.generation))?;
    Ok(Some(JobRow { job, generation }))
}

/// The id of a job, from its record or from the event that submitted it.
///
/// # Errors
/// When the store can't be read.
pub fn id_of(view: &dyn View, number: JobNumber) -> Result<Option<Uuid>, ReadError> {
    let job = view.get(&keys::job(number))?;
    if let Some(job) = job.and_then(|value| Job::decode(&value).ok()) {
        return Ok(Some(job.id));
    }
    let first = view.scan(&keys::of_job(Family::JobEvent, number), None, 1)?;
    let Some(event) = first.first().and_then(|(key, _)| key.get(9..)) else {
        return Ok(None);
    };
    let event = view.get(&[&[Family::Event as u8], event].concat())?;
    Ok(
        match event
            .and_then(|value| Event::decode(&value).ok())
            .map(|event| event.what)
        {
            Some(What::Submitted(submitted)) => Some(submitted.id),
            _ => None,
        },
    )
}
