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
/// A process that ran for this long, or that was given something to do, starts the back-off anew.
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

    /// A process that was started at `since` is gone. `had_work`: it was granted something.
    ///
    /// The back-off is for processes that can't start. One that was given work could: what it dies of then is the work's
    /// doing, which is bounded there (a partition that kills its process is parked, an import refused), and the healthy
    /// jobs of the device must not wait for it.
    /// Answers how long the next start is put off, if it is.
    pub fn gone(&mut self, had_work: bool, since: Instant, now: Instant) -> Option<Duration> {
        let good = had_work || now.duration_since(since) >= GOOD_RUN;
        self.short = if good { 0 } else { self.short + 1 };
        let wait = back_off(self.short);
        self.at = Some(now + wait);
        (!wait.is_zero()).then_some(wait)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_processes_that_never_had_work_put_the_next_start_off() {
        let now = Instant::now();
        let mut starts = Starts::default();
        // A poisoned partition kills its process as often as it may: the device has a worker again at once.
        for _ in 0..50 {
            assert_eq!(starts.gone(true, now, now), None);
            assert!(starts.is_due(now));
        }
        // One that ends by itself may have been unlucky; from the second on it is a pattern.
        let waits = (0..9).map(|_| starts.gone(false, now, now));
        let seconds: Vec<_> = waits.map(|wait| wait.map_or(0, |wait| wait.as_secs())).collect();
        assert_eq!(seconds, [0, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert!(!starts.is_due(now) && starts.is_due(now + LONGEST));
        // One that ran for long, or was given work, can start.
        assert_eq!(starts.gone(false, now, now + GOOD_RUN), None);
        assert_eq!(starts.gone(false, now, now), None);
        assert_eq!(starts.gone(false, now, now), Some(Duration::from_secs(1)));
        assert_eq!(starts.gone(true, now, now), None);
    }
}
