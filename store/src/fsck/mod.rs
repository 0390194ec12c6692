//! Checks what must hold in every store, whatever happened to the machine, and changes nothing.
//!
//! Everything is read through one [`View`]. What is wrong is a [`Finding`], never an error: an error means that the
//! storage itself could not be read. [`Mode::Live`] looks at what the next command could trip over (jobs that haven't
//! ended, indexes, leases, workers, boots) and is quick enough for every start; [`Mode::Full`] looks at everything.

mod checker;
mod circuits;
mod counters;
mod daemon;
mod edges;
mod indexes;
mod job;
mod journal;
mod live;
mod names;
mod partition;
mod records;
mod replay;
mod whole;

use std::fmt;

use crate::ids::{Digest, JobNumber};
use crate::keys::{self, Family, Key};
use crate::view::{ReadError, View};
use checker::Checker;

pub use edges::{job_edge, partition_edge};
pub use names::describe;

/// Which promise a finding breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// 1: a worker is busy with a lease exactly if one partition is proving under it; every other stage has one lease.
    Workers,
    /// 2: at most one open attempt a partition, attempt numbers rise by one, tokens never repeat.
    Attempts,
    /// 3: `proved` means a stored proof with the right digest; `succeeded` means that all are proved and were verified.
    Proofs,
    /// 4: a job that ended has no lease, no queue entry and no checkpoint.
    Terminal,
    /// 5: `ready` and `waiting` partitions stand once in their queues, others don't.
    Queue,
    /// 6: one idempotency key, one job, one request.
    Keys,
    /// 7: counters count what ended.
    Counters,
    /// 8: the journal has no holes but pruned jobs, and replaying it rebuilds the records.
    Journal,
    /// 9: only the edges that are drawn occur.
    Edges,
    /// An index says something else than the records.
    Index,
    /// A record can't be read, or is not what belongs at its key.
    Record,
    /// A derived or repeated fact differs from what it is derived from.
    Derived,
    /// An object that a record names is missing or damaged.
    Object,
}

impl Invariant {
    /// Every promise.
    pub const ALL: [Self; 13] = [
        Self::Workers,
        Self::Attempts,
        Self::Proofs,
        Self::Terminal,
        Self::Queue,
        Self::Keys,
        Self::Counters,
        Self::Journal,
        Self::Edges,
        Self::Index,
        Self::Record,
        Self::Derived,
        Self::Object,
    ];

    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Workers => "workers",
            Self::Attempts => "attempts",
            Self::Proofs => "proofs",
            Self::Terminal => "terminal",
            Self::Queue => "queue",
            Self::Keys => "keys",
            Self::Counters => "counters",
            Self::Journal => "journal",
            Self::Edges => "edges",
            Self::Index => "index",
            Self::Record => "record",
            Self::Derived => "derived",
            Self::Object => "object",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which promise is broken.
    pub invariant: Invariant,
    /// Where, in words: `job 7`, `partition 3 of job 7`, …
    pub place: String,
    /// The key in hex, for whoever has to look at the bytes.
    pub key: String,
    /// What is wrong: what was expected, what is there.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}: {}", self.invariant, self.place, self.text)
    }
}

/// How much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// What is live: jobs that haven't ended, the queue's indexes, leases, workers, boots.
    Live,
    /// Everything.
    Full,
}

/// Says whether an object is there and is what its digest says.
pub type ObjectCheck<'a> = &'a dyn Fn(Digest) -> bool;

/// How much was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Keys whose values were read one by one.
    pub records: u64,
    /// Jobs.
    pub jobs: u64,
    /// Partitions.
    pub partitions: u64,
    /// Attempts.
    pub attempts: u64,
    /// Events of the journal that were replayed.
    pub events: u64,
    /// Objects.
    pub objects: u64,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The first ten thousand things that are wrong.
    pub findings: Vec<Finding>,
    /// How many more there were.
    pub more: u64,
    /// How much was looked at.
    pub checked: Checked,
}

impl Report {
    /// Nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

/// Checks the store. `object_ok` is asked about each object that a job or circuit needs; without it objects are left out.
///
/// # Errors
/// When the storage can't be read.
pub fn fsck(view: &dyn View, mode: Mode, object_ok: Option<ObjectCheck<'_>>) -> Result<Report, ReadError> {
    let mut checker = Checker::new(view, object_ok)?;
    live::check(&mut checker)?;
    circuits::check(&mut checker, mode)?;
    indexes::check(&mut checker, mode)?;
    match mode {
        Mode::Live => {
            for number in checker.jobs_in(Family::Active)? {
                job::check(&mut checker, number, false)?;
            }
        }
        Mode::Full => {
            records::check(&mut checker)?;
            let jobs = checker.jobs_in(Family::Job)?;
            let mut recount = counters::Recount::default();
            for number in &jobs {
                if let Some(whole) = job::check(&mut checker, *number, true)? {
                    recount.add(&whole);
                }
            }
            recount.compare(&mut checker)?;
            journal::check(&mut checker, &jobs)?;
        }
    }
    if object_ok.is_some() {
        indexes::check_objects(&mut checker)?;
    }
    Ok(checker.into_report())
}

/// Checks values by themselves: each can be read, and is what belongs at its key. For scrubbing in the background.
///
/// # Errors
/// When the storage can't be read.
pub fn check_values(view: &dyn View, page: &[(Key, Vec<u8>)]) -> Result<Vec<Finding>, ReadError> {
    let mut checker = Checker::new(view, None)?;
    for (key, value) in page {
        records::check_one(&mut checker, key, value);
    }
    Ok(checker.into_report().findings)
}

/// Checks one job fully, its journal included: for scrubbing in the background, job by job.
///
/// # Errors
/// When the storage can't be read.
pub fn check_job(view: &dyn View, number: JobNumber) -> Result<Report, ReadError> {
    let mut checker = Checker::new(view, None)?;
    if view.get(&keys::job(number))?.is_some() {
        job::check(&mut checker, number, true)?;
    }
    Ok(checker.into_report())
}
