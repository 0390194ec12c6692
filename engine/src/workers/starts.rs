//! When a process is started again, when one that says nothing is given up, and which one lost an attempt. Pure.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use proofkeep_store::ids::ProcessId;
use proofkeep_store::records::AttemptRef;

/// A process must say hello within this.
const HELLO: Duration = Duration::from_secs(30);
/// A process whose socket is closed must be gone within this.
const CLOSED: Duration = Duration::from_secs(5);
/// An attempt that is open in the store and unknown to its process is ended after this.
const ORPHANED: Duration = Duration::from_secs(10);
/// A process that ran for this long, or that finished something, starts the back-off anew.
const GOOD_RUN: Duration = Duration::from_secs(60);
/// The longest back-off between two starts.
const LONGEST: Duration = Duration::from_secs(60);

/// The starts of one device's processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Starts {
    /// Not before then.
    at: Option<Instant>,
    /// Short runs in a row.
    short: u32,
}

impl Starts {
    /// A process may be started now.
    #[must_use]
    pub fn is_due(&self, now: Instant) -> bool {
        self.at.is_none_or(|at| at <= now)
    }

    /// A process that was started at `since` is gone.
    pub fn gone(&mut self, useful: bool, since: Instant, now: Instant) {
        let good = useful || now.duration_since(since) >= GOOD_RUN;
        self.short = if good { 1 } else { self.short + 1 };
        self.at = Some(now + back_off(self.short));
    }

    /// A process could not be started.
    pub fn failed(&mut self, now: Instant) {
        self.short += 1;
        self.at = Some(now + back_off(self.short));
    }

    /// The store refused to name a process.
    pub fn refused(&mut self, now: Instant) {
        self.at = Some(now + LONGEST);
    }
}

fn back_off(short: u32) -> Duration {
    match short {
        0 | 1 => Duration::ZERO,
        more => Duration::from_secs(1 << (more - 2).min(6)).min(LONGEST),
    }
}

/// A process, started at `since`, whose socket was closed at `closed`, is silent for too long.
#[must_use]
pub fn is_dumb(up: bool, since: Instant, closed: Option<Instant>, now: Instant) -> bool {
    let late = !up && now.duration_since(since) > HELLO;
    late || closed.is_some_and(|at| now.duration_since(at) > CLOSED)
}

/// Open attempts that no process holds, since when they were seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orphans(Vec<(ProcessId, AttemptRef, Instant)>);

impl Orphans {
    /// Takes what is seen now in place of what was seen before; answers the processes that are to be killed, since an
    /// attempt that its live process doesn't know could never end.
    pub fn see(&mut self, seen: Vec<(ProcessId, AttemptRef)>, now: Instant) -> BTreeSet<ProcessId> {
        let since = |process, attempt| {
            let before = self.0.iter().find(|(id, of, _)| *id == process && *of == attempt);
            before.map_or(now, |(_, _, since)| *since)
        };
        let seen: Vec<_> = seen
            .into_iter()
            .map(|(process, attempt)| (process, attempt, since(process, attempt)))
            .collect();
        let old = seen
            .iter()
            .filter(|(_, _, since)| now.duration_since(*since) > ORPHANED);
        let lost = old.map(|(process, _, _)| *process).collect();
        self.0 = seen;
        lost
    }
}
