//! Reading for a check: damage becomes a finding, once, and reads as nothing.

use std::collections::BTreeSet;

use super::{Checked, Finding, Invariant, ObjectCheck, Report, describe};
use crate::codec::{self, Damage, Record};
use crate::ids::{BootNumber, Digest, JobNumber, JournalNumber};
use crate::keys::{self, Family, Key};
use crate::query;
use crate::view::{ReadError, View};

const LIMIT: usize = 10_000;
const PAGE: usize = 256;

/// What all checks share.
pub(super) struct Checker<'a> {
    pub(super) view: &'a dyn View,
    object_ok: Option<ObjectCheck<'a>>,
    report: Report,
    damaged: BTreeSet<Key>,
    /// The last boot.
    pub(super) boot: BootNumber,
    /// The last event.
    pub(super) journal: JournalNumber,
}

impl<'a> Checker<'a> {
    pub(super) fn new(view: &'a dyn View, object_ok: Option<ObjectCheck<'a>>) -> Result<Self, ReadError> {
        let report = Report::default();
        let (boot, journal) = (BootNumber(0), JournalNumber(0));
        let mut checker = Self {
            view,
            object_ok,
            report,
            damaged: BTreeSet::new(),
            boot,
            journal,
        };
        checker.boot = BootNumber(
            checker
                .number(&keys::sequence(keys::Sequence::Boot))?
                .unwrap_or(0),
        );
        checker.journal = JournalNumber(
            checker
                .number(&keys::sequence(keys::Sequence::Journal))?
                .unwrap_or(0),
        );
        Ok(checker)
    }

    pub(super) fn into_report(self) -> Report {
        self.report
    }

    pub(super) fn checked(&mut self) -> &mut Checked {
        &mut self.report.checked
    }

    /// Notes that something is wrong at `key`.
    pub(super) fn find(&mut self, invariant: Invariant, key: &[u8], text: impl Into<String>) {
        if self.report.findings.len() >= LIMIT {
            self.report.more += 1;
            return;
        }
        let (place, key) = (describe(key), hex::encode(key));
        self.report.findings.push(Finding {
            invariant,
            place,
            key,
            text: text.into(),
        });
    }

    /// The same, if `wrong`.
    pub(super) fn find_if(&mut self, wrong: bool, invariant: Invariant, key: &[u8], text: impl Into<String>) {
        if wrong {
            self.find(invariant, key, text);
        }
    }

    /// The same about a record that isn't there, unless it is there and was found damaged.
    pub(super) fn missing(&mut self, invariant: Invariant, key: &[u8], text: impl Into<String>) {
        if !self.damaged.contains(key) {
            self.find(invariant, key, text);
        }
    }

    fn damage(&mut self, key: &[u8], damage: &Damage) {
        if self.damaged.insert(key.to_vec()) {
            let text = format!("it can't be read: {damage}; restore it from a backup");
            self.find(Invariant::Record, key, text);
        }
    }

    fn keep<T>(&mut self, key: &[u8], read: Result<T, Damage>) -> Option<T> {
        read.map_err(|damage| self.damage(key, &damage)).ok()
    }

    /// Reads a record's bytes.
    pub(super) fn decode<R: Record>(&mut self, key: &[u8], value: &[u8]) -> Option<R> {
        self.keep(key, R::decode(value))
    }

    /// Reads a number's bytes.
    pub(super) fn decode_number(&mut self, key: &[u8], value: &[u8]) -> Option<u64> {
        self.keep(key, codec::read_number(value))
    }

    /// Reads a digest's bytes.
    pub(super) fn decode_digest(&mut self, key: &[u8], value: &[u8]) -> Option<Digest> {
        self.keep(key, codec::read_digest(value))
    }

    /// Reads bytes that mean nothing to the store.
    pub(super) fn decode_bytes(&mut self, key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
        self.keep(key, codec::read_bytes(value))
    }

    /// The record at `key`.
    pub(super) fn get<R: Record>(&mut self, key: &[u8]) -> Result<Option<R>, ReadError> {
        Ok(self.view.get(key)?.and_then(|value| self.decode(key, &value)))
    }

    /// The number at `key`.
    pub(super) fn number(&mut self, key: &[u8]) -> Result<Option<u64>, ReadError> {
        Ok(self
            .view
            .get(key)?
            .and_then(|value| self.decode_number(key, &value)))
    }

    /// Something lies at `key`.
    pub(super) fn has(&self, key: &[u8]) -> Result<bool, ReadError> {
        Ok(self.view.get(key)?.is_some())
    }

    /// Every readable record below `prefix`.
    pub(super) fn records<R: Record>(&mut self, prefix: &[u8]) -> Result<Vec<R>, ReadError> {
        let mut records = Vec::new();
        self.walk(prefix, |checker, key, value| {
            records.extend(checker.decode::<R>(key, value));
            Ok(())
        })?;
        Ok(records)
    }

    /// Calls `visit` for every pair below `prefix`.
    pub(super) fn walk(
        &mut self,
        prefix: &[u8],
        mut visit: impl FnMut(&mut Self, &[u8], &[u8]) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let view = self.view;
        let mut after: Option<Key> = None;
        loop {
            let page = view.scan(prefix, after.as_deref(), PAGE)?;
            for (key, value) in &page {
                visit(self, key, value)?;
            }
            match page.into_iter().next_back() {
                Some((key, _)) => after = Some(key),
                None => return Ok(()),
            }
        }
    }

    /// The job numbers in a family that is keyed by a job alone.
    pub(super) fn jobs_in(&mut self, family: Family) -> Result<Vec<JobNumber>, ReadError> {
        let mut jobs = Vec::new();
        self.walk(&keys::family(family), |_, key, _| {
            jobs.extend(keys::parse_job(key));
            Ok(())
        })?;
        Ok(jobs)
    }

    /// Says whether an object is there; counts it.
    pub(super) fn object_ok(&mut self, digest: Digest) -> bool {
        self.report.checked.objects += 1;
        self.object_ok.is_none_or(|ok| ok(digest))
    }

    /// Events that went with pruned jobs.
    pub(super) fn pruned_events(&mut self) -> Result<u64, ReadError> {
        Ok(self
            .number(&keys::pruned_counter(query::PRUNED_EVENTS))?
            .unwrap_or(0))
    }
}
