//! The thread that looks at the whole store, once a day unless it is told otherwise; see [`proofkeep_store::scrub`].
//!
//! It works for 5 ms and rests for 95. How far it came is noted in `run/scrub`, so that a daemon that is started often gets
//! through a round all the same; a note that is lost only means another round.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use proofkeep_store::fsck::Finding;
use proofkeep_store::ids::Millis;
use proofkeep_store::scrub::{Overseer, Position, Scrub, Scrubbed};

use crate::damage::Damaged;
use crate::shared::Core;

/// After a slice of work.
const REST: Duration = Duration::from_millis(95);
/// How often the note is written while a round is under way.
const NOTE_EVERY: Duration = Duration::from_secs(60);
/// The longest wait before the clock is looked at again.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// What the status shows of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubReport {
    /// From the end of a round to the next one, in milliseconds; 0: never.
    pub every_ms: u64,
    /// What is being looked at; `None` between two rounds.
    pub phase: Option<&'static str>,
    /// How far the round has come there.
    pub position: String,
    /// How much this round, or the last one, has looked at.
    pub scrubbed: Scrubbed,
    /// Rounds that this daemon finished.
    pub rounds: u64,
    /// When the last round ended, an earlier daemon's included.
    pub ended_at: Option<Millis>,
    /// What this round, or the last one, found.
    pub findings: u64,
}

/// The running thread.
pub(crate) struct Scrubbing {
    report: Arc<Mutex<ScrubReport>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Scrubbing {
    /// Starts it. `every` of zero starts nothing.
    pub fn start(core: Arc<Core>, note: PathBuf, every: Duration) -> io::Result<Self> {
        let report = Arc::new(Mutex::new(ScrubReport {
            every_ms: u64::try_from(every.as_millis()).unwrap_or(u64::MAX),
            ..ScrubReport::default()
        }));
        let (stop, stopped) = channel();
        let mut scrubbing = Self {
            report: Arc::clone(&report),
            stop: Some(stop),
            thread: None,
        };
        if !every.is_zero() {
            let rounds = Rounds {
                core,
                note,
                every,
                report,
                stopped,
                noted: Mutex::new(Instant::now()),
                met: Mutex::default(),
            };
            let thread = std::thread::Builder::new().name("scrub".to_owned());
            scrubbing.thread = Some(thread.spawn(move || rounds.run())?);
        }
        Ok(scrubbing)
    }

    pub fn report(&self) -> ScrubReport {
        self.report.lock().clone()
    }

    /// Tells it to end, at the latest after the slice that is under way.
    pub fn halt(&mut self) {
        drop(self.stop.take());
    }

    /// The same, and waits for it.
    pub fn stop(&mut self) {
        self.halt();
        if let Some(thread) = self.thread.take() {
            // A panic in it was reported by its hook.
            let _ = thread.join();
        }
    }
}

struct Rounds {
    core: Arc<Core>,
    note: PathBuf,
    every: Duration,
    report: Arc<Mutex<ScrubReport>>,
    stopped: Receiver<()>,
    noted: Mutex<Instant>,
    /// Places that this round found something at.
    met: Mutex<BTreeSet<String>>,
}

impl Rounds {
    fn run(&self) {
        let (mut position, mut scrubbed, ended) = read_note(&self.note);
        self.report.lock().ended_at = ended;
        loop {
            // A round that was cut off goes on at once.
            if position == Position::begin() && !self.wait_until_due() {
                return;
            }
            let whole = scrubbed == Scrubbed::default();
            {
                let mut report = self.report.lock();
                (report.phase, report.position) = (Some(position.phase()), position.place());
                (report.scrubbed, report.findings) = (scrubbed, 0);
            }
            let scrub = Scrub::new(&self.core.handle, &self.core.objects, self);
            match catch_unwind(AssertUnwindSafe(|| scrub.run(position, scrubbed))) {
                Ok(Ok(true)) => self.ended(whole),
                Ok(Ok(false)) => return self.write_note(),
                Ok(Err(error)) => self.failed(&error.to_string()),
                Err(_) => self.failed("the check panicked; this is a fault of proofkeep, please report it"),
            }
            (position, scrubbed) = (Position::begin(), Scrubbed::default());
        }
    }

    /// The round ended before it was through; the next one begins when it is due.
    fn failed(&self, why: &str) {
        tracing::error!("the store could not be checked: {why}");
        let mut report = self.report.lock();
        report.phase = None;
        report.ended_at = Some(self.core.clock.now());
    }

    /// `false`: told to stop.
    fn wait_until_due(&self) -> bool {
        loop {
            let now = self.core.clock.now();
            let every = u64::try_from(self.every.as_millis()).unwrap_or(u64::MAX);
            let left = match self.report.lock().ended_at {
                // One that lies ahead was noted before the clock went back.
                Some(ended) if ended <= now => every.saturating_sub(now.since(ended)),
                _ => 0,
            };
            if left == 0 {
                return true;
            }
            if !self.sleep(Duration::from_millis(left).min(LOOK_EVERY)) {
                return false;
            }
        }
    }

    fn sleep(&self, time: Duration) -> bool {
        self.stopped.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
    }

    fn ended(&self, whole: bool) {
        let met = std::mem::take(&mut *self.met.lock());
        if whole {
            self.core
                .damage
                .end_of_round(|damaged| damaged.by == "start" || met.contains(&damaged.place));
        }
        let report = {
            let mut report = self.report.lock();
            report.phase = None;
            report.position.clear();
            report.rounds += 1;
            report.ended_at = Some(self.core.clock.now());
            report.clone()
        };
        self.write_note();
        let Scrubbed {
            records,
            jobs,
            objects,
            bytes,
        } = report.scrubbed;
        tracing::info!(
            records,
            jobs,
            objects,
            bytes,
            damaged = report.findings,
            "the whole store was checked"
        );
    }

    fn write_note(&self) {
        *self.noted.lock() = Instant::now();
        let report = self.report.lock().clone();
        let Scrubbed {
            records,
            jobs,
            objects,
            bytes,
        } = report.scrubbed;
        let text = format!(
            "{} {} {records} {jobs} {objects} {bytes} {} .\n",
            report.phase.unwrap_or("none"),
            if report.position.is_empty() {
                "-"
            } else {
                &report.position
            },
            report.ended_at.map_or(0, |at| at.0),
        );
        if let Err(error) = written(&self.note, &text) {
            tracing::warn!(
                "{} can't be written: {error}; the next start checks the store from its beginning",
                self.note.display()
            );
        }
    }
}

/// Replaces the note, which is its owner's like everything in the data directory.
fn written(note: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(note)?;
    file.write_all(text.as_bytes())
}

impl Overseer for Rounds {
    fn rest(&self) -> ControlFlow<()> {
        if self.noted.lock().elapsed() >= NOTE_EVERY {
            self.write_note();
        }
        if self.sleep(REST) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }

    fn found(&self, finding: Finding) {
        self.report.lock().findings += 1;
        self.met.lock().insert(finding.place.clone());
        let key = hex::decode(&finding.key).unwrap_or_default();
        self.core.damage.note(Damaged {
            job: proofkeep_store::keys::job_of(&key),
            place: finding.place,
            key: finding.key,
            text: finding.text,
            by: "scrub",
            at: self.core.clock.now(),
        });
    }

    fn reached(&self, position: &Position, scrubbed: Scrubbed) {
        let mut report = self.report.lock();
        (report.phase, report.position) = (Some(position.phase()), position.place());
        report.scrubbed = scrubbed;
    }
}

/// Where the last daemon was, and when its last round ended; the beginning, if nothing readable is there.
fn read_note(note: &PathBuf) -> (Position, Scrubbed, Option<Millis>) {
    let text = fs::read_to_string(note).unwrap_or_default();
    parse_note(&text).unwrap_or((Position::begin(), Scrubbed::default(), None))
}

fn parse_note(text: &str) -> Option<(Position, Scrubbed, Option<Millis>)> {
    let mut words = text.split_whitespace();
    let (phase, place) = (words.next()?, words.next()?);
    let mut number = || words.next()?.parse::<u64>().ok();
    let scrubbed = Scrubbed {
        records: number()?,
        jobs: number()?,
        objects: number()?,
        bytes: number()?,
    };
    let ended = number()?;
    // Its last character: one that was cut off is none.
    (words.next()? == ".").then_some(())?;
    let ended = (ended > 0).then_some(Millis(ended));
    Some(
        match Position::parse(phase, if place == "-" { "" } else { place }) {
            Some(position) => (position, scrubbed, ended),
            None => (Position::begin(), Scrubbed::default(), ended),
        },
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn a_note_that_was_cut_off_begins_anew() {
        let note = "jobs 7 100 3 0 0 5000 .\n";
        let (position, scrubbed, ended) = parse_note(note).unwrap();
        assert_eq!(position, Position::Jobs(proofkeep_store::ids::JobNumber(7)));
        assert_eq!(
            (scrubbed.records, scrubbed.jobs, ended),
            (100, 3, Some(Millis(5000)))
        );
        for cut in 0..note.len() - 2 {
            assert_eq!(parse_note(&note[..cut]), None, "{cut}");
        }
        let between = parse_note("none - 1 2 3 4 5000 .\n").unwrap();
        assert_eq!(
            between,
            (Position::begin(), Scrubbed::default(), Some(Millis(5000)))
        );
    }
}
