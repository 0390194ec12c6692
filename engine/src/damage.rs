//! What is damaged in the store, as far as this daemon has met it: named once in the log, and shown by the status.
//!
//! It is no truth of its own: each start and each round of the scrub finds again what is still damaged.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use proofkeep_store::fsck::describe;
use proofkeep_store::ids::{JobNumber, Millis};
use proofkeep_store::keys;

/// Findings that are kept; more are counted.
const KEPT: usize = 256;

/// Something damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// Where, in words: `partition 3 of job 7`.
    pub place: String,
    /// The key in hex; empty for an object.
    pub key: String,
    /// The job whose it is.
    pub job: Option<JobNumber>,
    /// What is wrong.
    pub text: String,
    /// Who met it: `start`, `scheduler` or `scrub`.
    pub by: &'static str,
    /// When.
    pub at: Millis,
}

/// What the status shows of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DamageReport {
    /// What is damaged, the first few hundred.
    pub found: Vec<Damaged>,
    /// How many more there were.
    pub more: u64,
    /// Jobs that are kept out of the queue for it, each with why.
    pub set_aside: BTreeMap<JobNumber, String>,
    /// What the start put back.
    pub mended: Vec<String>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Damage(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// By place.
    found: BTreeMap<String, Damaged>,
    more: u64,
    set_aside: BTreeMap<JobNumber, String>,
    mended: Vec<String>,
}

impl Damage {
    /// Notes a damaged record; says so once.
    pub fn record(&self, by: &'static str, key: &[u8], text: &str, at: Millis) {
        self.note(Damaged {
            place: describe(key),
            key: hex::encode(key),
            job: keys::job_of(key),
            text: text.to_owned(),
            by,
            at,
        });
    }

    /// Notes anything damaged; says so once.
    pub fn note(&self, damaged: Damaged) {
        let mut inner = self.0.lock();
        if inner.found.contains_key(&damaged.place) {
            return;
        }
        tracing::error!(key = damaged.key, "DAMAGED: {}: {}", damaged.place, damaged.text);
        if inner.found.len() >= KEPT {
            inner.more += 1;
            return;
        }
        inner.found.insert(damaged.place.clone(), damaged);
    }

    /// Keeps a job out of the queue until the next start.
    pub fn set_aside(&self, job: JobNumber, why: &str) {
        let mut inner = self.0.lock();
        if inner.set_aside.contains_key(&job) {
            return;
        }
        tracing::error!(%job, "the job is set aside, the others go on: {why}");
        inner.set_aside.insert(job, why.to_owned());
    }

    /// Why a job is kept out of the queue, if it is.
    pub fn why_aside(&self, job: JobNumber) -> Option<String> {
        self.0.lock().set_aside.get(&job).cloned()
    }

    /// What a start put back.
    pub fn mended(&self, what: String) {
        tracing::warn!("put back from the journal: {what}");
        let mut inner = self.0.lock();
        if inner.mended.len() < KEPT {
            inner.mended.push(what);
        }
    }

    /// A round of the scrub is over: what it didn't meet again is whole again.
    pub fn end_of_round(&self, met: impl Fn(&Damaged) -> bool) {
        let mut inner = self.0.lock();
        inner.found.retain(|_, damaged| met(damaged));
        inner.more = 0;
    }

    pub fn report(&self) -> DamageReport {
        let inner = self.0.lock();
        DamageReport {
            found: inner.found.values().cloned().collect(),
            more: inner.more,
            set_aside: inner.set_aside.clone(),
            mended: inner.mended.clone(),
        }
    }
}
