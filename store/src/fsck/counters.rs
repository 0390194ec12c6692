//! Invariant 7: each counter is what can be counted, plus what pruned jobs had.

use std::collections::BTreeMap;

use super::Invariant;
use super::checker::Checker;
use super::whole::Whole;
use crate::keys::{self, Family};
use crate::query;
use crate::view::ReadError;

/// What ended, by the names of the counters.
#[derive(Default)]
pub(super) struct Recount(BTreeMap<String, u64>);

impl Recount {
    pub(super) fn add(&mut self, whole: &Whole) {
        let kind = &whole.job.kind;
        for state in whole
            .generations
            .values()
            .filter_map(|generation| generation.ended)
        {
            *self.0.entry(keys::jobs_counter(kind, state)).or_default() += 1;
        }
        for outcome in whole
            .attempts
            .values()
            .filter_map(|attempt| attempt.outcome.as_ref())
        {
            *self
                .0
                .entry(keys::attempts_counter(kind, outcome.name()))
                .or_default() += 1;
        }
    }

    pub(super) fn compare(mut self, checker: &mut Checker<'_>) -> Result<(), ReadError> {
        checker.walk(&keys::family(Family::PrunedCounter), |checker, key, value| {
            let name = String::from_utf8_lossy(&key[1..]).into_owned();
            if let Some(pruned) = checker.decode_number(key, value)
                && name.contains('/')
            {
                *self.0.entry(name).or_default() += pruned;
            }
            Ok(())
        })?;
        let mut told = BTreeMap::new();
        checker.walk(&keys::family(Family::Counter), |checker, key, value| {
            let name = String::from_utf8_lossy(&key[1..]).into_owned();
            told.extend(checker.decode_number(key, value).map(|number| (name, number)));
            Ok(())
        })?;
        for (name, counted) in &self.0 {
            let found = told.remove(name).unwrap_or(0);
            let text = format!("it says {found}; counted are {counted}, those of pruned jobs included");
            checker.find_if(found != *counted, Invariant::Counters, &keys::counter(name), text);
        }
        for (name, found) in told {
            let other = name == query::PRUNED_EVENTS || found == 0;
            let text = format!("it says {found}; counted are none");
            checker.find_if(!other, Invariant::Counters, &keys::counter(&name), text);
        }
        Ok(())
    }
}
