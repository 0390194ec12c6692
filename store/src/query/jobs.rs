//! Lists of jobs. Jobs lie in the order of submission; a page walks that order, newest first unless asked otherwise,
//! and gives up after a fixed number of records, so that a filter that matches nothing costs no more than one that
//! matches everything: it answers an empty page with a cursor.

use super::{Cursor, CursorError};
use crate::codec::Record;
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

/// A page of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPage {
    /// In the order asked for. May be fewer than asked for, or none, with more to come: `next` decides.
    pub jobs: Vec<JobRow>,
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
    let mut rows = Vec::new();
    let mut scanned = 0;
    let family = if filter.only_active() {
        Family::Active
    } else {
        Family::Job
    };
    loop {
        let step = STEP.min(SCANNED - scanned);
        let page = page(view, family, order, last, step)?;
        for (key, value) in &page {
            let Some(number) = keys::parse_job(key) else {
                continue;
            };
            if let Some(job) = job_of(view, family, number, value)?
                && filter.accepts(&job)
            {
                let generation = view::record(view, &keys::generation(number, job.generation))?;
                rows.push(JobRow { job, generation });
            }
            last = Some(number.0);
            if rows.len() == limit {
                break;
            }
        }
        scanned += page.len();
        let next = last.map(|last| Cursor { list, last });
        if rows.len() == limit || scanned >= SCANNED {
            return Ok(JobPage { jobs: rows, next });
        }
        if page.len() < step {
            return Ok(JobPage {
                jobs: rows,
                next: None,
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

fn job_of(
    view: &dyn View,
    family: Family,
    number: JobNumber,
    value: &[u8],
) -> Result<Option<Job>, ReadError> {
    let key = keys::job(number);
    if family == Family::Job {
        return Job::decode(value)
            .map(Some)
            .map_err(|damage| ReadError::damaged(&key, damage));
    }
    view::record(view, &key)
}
