//! What ended so far, by kind and how.

use crate::codec;
use crate::keys::{self, Family};
use crate::view::{self, ReadError, View};

/// One counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// The proof kind.
    pub kind: String,
    /// A terminal job state for jobs; `ok` or a failure class for attempts.
    pub outcome: String,
    /// How many, pruned jobs included.
    pub value: u64,
}

/// The counters of ended generations and ended attempts. They never fall.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Generations that ended.
    pub jobs: Vec<Count>,
    /// Attempts that ended.
    pub attempts: Vec<Count>,
}

impl Counters {
    /// Generations of any kind that ended as `state`.
    #[must_use]
    pub fn jobs_ended(&self, state: &str) -> u64 {
        self.jobs
            .iter()
            .filter(|count| count.outcome == state)
            .map(|count| count.value)
            .sum()
    }

    fn add(&mut self, name: &str, value: u64) {
        let Some((what, rest)) = name.split_once('/') else {
            return;
        };
        let Some((kind, outcome)) = rest.rsplit_once('/') else {
            return;
        };
        let list = match what {
            "jobs" => &mut self.jobs,
            "attempts" => &mut self.attempts,
            _ => return,
        };
        list.push(Count {
            kind: kind.to_owned(),
            outcome: outcome.to_owned(),
            value,
        });
    }
}

/// Reads every counter.
///
/// # Errors
/// When the store can't be read.
pub fn counters(view: &dyn View) -> Result<Counters, ReadError> {
    let mut counters = Counters::default();
    view::for_each(view, &keys::family(Family::Counter), |key, value| {
        let value = codec::read_number(value).map_err(|damage| ReadError::damaged(key, damage))?;
        counters.add(&String::from_utf8_lossy(&key[1..]), value);
        Ok(())
    })?;
    Ok(counters)
}
