//! What a run did: counts, the last steps in words, and a fingerprint of everything.

use std::collections::{BTreeMap, VecDeque};

/// Steps that are kept in words.
const KEPT: usize = 50;

/// How often things happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(pub BTreeMap<&'static str, u64>);

impl Counts {
    /// It happened so many times more.
    pub fn add(&mut self, what: &'static str, times: u64) {
        *self.0.entry(what).or_default() += times;
    }

    /// How often it happened.
    #[must_use]
    pub fn get(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    /// Adds those of another run.
    pub fn merge(&mut self, other: &Self) {
        for (what, times) in &other.0 {
            self.add(what, *times);
        }
    }
}

/// The last steps and the fingerprint of all.
#[derive(Clone, Debug)]
pub struct Trace {
    last: VecDeque<String>,
    kept: usize,
    fingerprint: u64,
}

impl Default for Trace {
    fn default() -> Self {
        Self {
            last: VecDeque::new(),
            kept: KEPT,
            fingerprint: 0xcbf2_9ce4_8422_2325,
        }
    }
}

impl Trace {
    /// Says what was done in a step.
    pub fn say(&mut self, line: String) {
        self.mix(line.as_bytes());
        if self.last.len() >= self.kept {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    /// Keeps so many of the last steps.
    pub fn keep(&mut self, lines: usize) {
        self.kept = lines;
    }

    /// Makes the fingerprint depend on these bytes (FNV-1a).
    pub fn mix(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.fingerprint = (self.fingerprint ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// The same for the same run, byte for byte.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The last steps.
    #[must_use]
    pub fn last(&self) -> Vec<String> {
        self.last.iter().cloned().collect()
    }
}
