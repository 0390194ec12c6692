//! Puts back what damage took, where another durable record still says it, and takes out of the queue what nobody can put
//! back, so that every other job goes on.
//!
//! Replaying a job's journal rebuilds its records and its entries in the indexes (invariant 8), and replaying the events of
//! no job rebuilds the circuits, their names and the queue. So a damaged record is written anew from the journal, but only
//! when the journal is whole: every event that isn't pruned is there, and each that can't be read is known to be another
//! job's. What is put back is what the journal says already; no state changes, so no event is appended.
//!
//! What has no second source, a job whose journal is damaged too, is set aside: its entries in the queue and its leases go,
//! its records stay as they are. It neither runs nor vanishes, and `fsck` goes on naming it until it is restored.
//!
//! It works on a store that has no commit thread yet. A crash in the middle leaves less to be done by the next start.

mod daemon;
mod job;
mod journal;
mod vital;

use std::collections::{BTreeMap, BTreeSet};

use crate::commit::{Weight, fatal};
use crate::error::OpenError;
use crate::event::Event;
use crate::fsck::{Finding, Mode, Report, fsck};
use crate::ids::JobNumber;
use crate::keys::{self, Family, Key};
use crate::open::Store;
use crate::tree::{Database, SyncError};
use crate::view::{ReadError, View};
use journal::Journal;

/// Keys with what belongs there; `None`: nothing.
pub(crate) type Changes = BTreeMap<Key, Option<Vec<u8>>>;

/// What a look at a store came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mended {
    /// What was wrong and is put back.
    pub mended: Vec<Finding>,
    /// What is still wrong.
    pub left: Vec<Finding>,
    /// Jobs that were taken out of the queue, since they can't be put back; each with why.
    pub set_aside: BTreeMap<JobNumber, String>,
}

impl Store {
    /// What a daemon does before it starts its commit thread: looks at what is live, puts back what it can, and sets aside
    /// what it can't. Bounded by what is live, unless something is damaged.
    ///
    /// # Errors
    /// When a record that every job needs is damaged: then nothing can be started.
    pub fn mend_live(&self) -> Result<Mended, OpenError> {
        self.shared().exclusive(|database| {
            vital::check(self.data().path(), &database.view())?;
            mend(database, Mode::Live).map_err(|source| OpenError::Record {
                path: self.data().path().to_path_buf(),
                source,
            })
        })
    }

    /// Looks at everything and puts back what it can; sets nothing aside. For a store that no daemon has.
    ///
    /// # Errors
    /// As [`mend_live`](Self::mend_live).
    pub fn mend_all(&self) -> Result<Mended, OpenError> {
        self.shared().exclusive(|database| {
            vital::check(self.data().path(), &database.view())?;
            mend(database, Mode::Full).map_err(|source| OpenError::Record {
                path: self.data().path().to_path_buf(),
                source,
            })
        })
    }
}

fn mend(database: &Database, mode: Mode) -> Result<Mended, ReadError> {
    let found = look(&database.view(), mode)?;
    if found.is_empty() {
        return Ok(Mended::default());
    }
    let plan = Plan::new(&database.view(), &found)?;
    write(database, &plan.changes);
    let left = look(&database.view(), mode)?;
    let mended = found
        .into_iter()
        .filter(|was| {
            !left
                .iter()
                .any(|is| (&is.key, is.invariant) == (&was.key, was.invariant))
        })
        .collect();
    let mut set_aside = BTreeMap::new();
    if mode == Mode::Live && !left.is_empty() {
        for finding in left.iter().filter(|finding| stops_its_job(finding)) {
            if let Some(job) = concerned(&database.view(), finding)?.and_then(Concerned::job) {
                let why = plan.refused.get(&job).cloned();
                let why = why.unwrap_or_else(|| format!("{}: {}", finding.place, finding.text));
                set_aside.entry(job).or_insert(why);
            }
        }
        let changes = without(&database.view(), &set_aside, &left)?;
        write(database, &changes);
    }
    Ok(Mended {
        mended,
        left,
        set_aside,
    })
}

/// What is wrong and isn't made anew by every boot.
fn look(view: &dyn View, mode: Mode) -> Result<Vec<Finding>, ReadError> {
    let Report { mut findings, .. } = fsck(view, mode, None)?;
    findings.retain(|finding| {
        !matches!(
            family(finding),
            Some(Family::Device | Family::Worker | Family::Stale)
        )
    });
    Ok(findings)
}

fn bytes(finding: &Finding) -> Key {
    hex::decode(&finding.key).unwrap_or_default()
}

fn family(finding: &Finding) -> Option<Family> {
    Family::of(&bytes(finding))
}

/// A job goes on without its checkpoints, and without a proof that its final check refuses; an attempt without the request
/// fails by itself.
fn stops_its_job(finding: &Finding) -> bool {
    !matches!(
        family(finding),
        Some(Family::Checkpoint | Family::Proof | Family::Quarantine | Family::Request)
    )
}

/// Whose journal makes a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Concerned {
    Job(JobNumber),
    Daemon,
}

impl Concerned {
    fn job(self) -> Option<JobNumber> {
        match self {
            Self::Job(job) => Some(job),
            Self::Daemon => None,
        }
    }
}

fn concerned(view: &dyn View, finding: &Finding) -> Result<Option<Concerned>, ReadError> {
    let key = bytes(finding);
    if let Some(job) = keys::job_of(&key) {
        return Ok(Some(Concerned::Job(job)));
    }
    Ok(match Family::of(&key) {
        Some(
            Family::Circuit | Family::CircuitName | Family::Importing | Family::Queue | Family::Reference,
        ) => Some(Concerned::Daemon),
        Some(Family::Lease) => granted_to(view, &key)?,
        // It points to a job, or should.
        Some(Family::JobId | Family::Idempotency) => named_by(view, &key)?.map(Concerned::Job),
        _ => None,
    })
}

/// For whom the event that named a lease granted it.
fn granted_to(view: &dyn View, lease: &[u8]) -> Result<Option<Concerned>, ReadError> {
    let Some(grant) = lease.last_chunk::<8>() else {
        return Ok(None);
    };
    let event = keys::event(crate::ids::JournalNumber(u64::from_be_bytes(*grant)));
    let event = view.get(&event)?;
    let event = event.and_then(|value| <Event as crate::codec::Record>::decode(&value).ok());
    Ok(event.map(|event| event.job.map_or(Concerned::Daemon, Concerned::Job)))
}

/// The kept job whose id or idempotency key this index key is for. A walk over the jobs: only on damage.
fn named_by(view: &dyn View, key: &[u8]) -> Result<Option<JobNumber>, ReadError> {
    let mut found = None;
    crate::view::for_each(view, &keys::family(Family::Job), |_, value| {
        if let Ok(job) = <crate::records::Job as crate::codec::Record>::decode(value) {
            let named = job.idempotency_key.as_deref().map(keys::idempotency);
            if keys::job_id(job.id) == key || named.as_deref() == Some(key) {
                found = Some(job.number);
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// What is to be written.
struct Plan {
    changes: Changes,
    /// Jobs that can't be put back, each with why.
    refused: BTreeMap<JobNumber, String>,
}

impl Plan {
    fn new(view: &dyn View, found: &[Finding]) -> Result<Self, ReadError> {
        let (mut jobs, mut daemon) = (BTreeSet::new(), false);
        for finding in found {
            match concerned(view, finding)? {
                Some(Concerned::Job(job)) => drop(jobs.insert(job)),
                Some(Concerned::Daemon) => daemon = true,
                None => {}
            }
        }
        let journal = Journal::read(view, jobs.clone())?;
        let mut plan = Self {
            changes: Changes::new(),
            refused: BTreeMap::new(),
        };
        if daemon {
            match daemon::changes(view, &journal)? {
                Ok(changes) => plan.changes.extend(changes),
                Err(why) => tracing::error!("circuits and queue can't be put back: {why}"),
            }
        }
        for job in jobs {
            match job::changes(view, job, &journal)? {
                Ok(changes) => plan.changes.extend(changes),
                Err(why) => drop(plan.refused.insert(job, why)),
            }
        }
        Ok(plan)
    }
}

/// The keys that make a daemon act on these jobs: gone. So are leases that nobody can read, and the imports of circuits that
/// nobody can read, since a boot ends them all.
fn without(
    view: &dyn View,
    jobs: &BTreeMap<JobNumber, String>,
    left: &[Finding],
) -> Result<Changes, ReadError> {
    let mut changes = Changes::new();
    for family in [Family::Ready, Family::Retry, Family::Deadline, Family::Open] {
        crate::view::for_each(view, &keys::family(family), |key, _| {
            if keys::job_of(key).is_none_or(|job| jobs.contains_key(&job)) {
                changes.insert(key.to_vec(), None);
            }
            Ok(())
        })?;
    }
    let damaged = |family: Family| -> BTreeSet<Key> {
        let keys = left.iter().map(bytes);
        keys.filter(|key| Family::of(key) == Some(family)).collect()
    };
    let circuits = damaged(Family::Circuit);
    for circuit in &circuits {
        changes.insert([&[Family::Importing as u8], &circuit[1..]].concat(), None);
    }
    crate::view::for_each(view, &keys::family(Family::Lease), |key, value| {
        use crate::records::{Lease, Subject};
        let goes = match <Lease as crate::codec::Record>::decode(value).map(|lease| lease.subject) {
            Ok(Subject::Partition { job, .. } | Subject::Verify { job }) => jobs.contains_key(&job),
            Ok(Subject::Import { circuit }) => circuits.contains(&keys::circuit(circuit)),
            Err(_) => true,
        };
        if goes {
            changes.insert(key.to_vec(), None);
        }
        Ok(())
    })?;
    Ok(changes)
}

/// Writes changes in groups that obey the rules of every group, each durable before the next.
fn write(database: &Database, changes: &Changes) {
    let mut group = Vec::new();
    let mut weight = Weight::default();
    let commit = |group: &mut Vec<(&Key, &Option<Vec<u8>>)>| {
        let applied = database.apply(group.drain(..)).map_err(SyncError::Flush);
        if let Err(error) = applied.and_then(|()| database.sync()) {
            fatal::stop_writing(&error, error.is_disk_full());
        }
    };
    for (key, value) in changes {
        weight += Weight {
            records: 1,
            bytes: (key.len() + value.as_ref().map_or(0, Vec::len)) as u64,
        };
        group.push((key, value));
        if weight.is_full() {
            commit(&mut group);
            weight = Weight::default();
        }
    }
    if !group.is_empty() {
        commit(&mut group);
    }
}

/// What has to change below `prefix` so that `found` becomes `told`.
fn differences(
    told: &dyn View,
    found: &dyn View,
    prefix: &[u8],
    changes: &mut Changes,
) -> Result<(), ReadError> {
    crate::view::for_each(told, prefix, |key, value| {
        if found.get(key)?.as_deref() != Some(value) {
            changes.insert(key.to_vec(), Some(value.to_vec()));
        }
        Ok(())
    })?;
    crate::view::for_each(found, prefix, |key, _| {
        if told.get(key)?.is_none() {
            changes.insert(key.to_vec(), None);
        }
        Ok(())
    })
}
