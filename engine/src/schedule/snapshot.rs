//! One consistent look at the store, bounded: the front of each index, and a page of the jobs in turn.

use std::collections::{BTreeMap, BTreeSet};

use proofkeep_store::ids::{Digest, JobNumber, JournalNumber, Millis, ProcessId, Token};
use proofkeep_store::keys;
use proofkeep_store::query::{self, PruneWalk, ReadyEntry};
use proofkeep_store::records::{
    Circuit, CircuitState, DeviceState, Failure, FailureClass, Job, JobState, Lease, Partition, Priority,
    Subject, WorkerState,
};
use proofkeep_store::view::{self, ReadError, View};

use crate::budget::AskedKey;
use crate::kinds::groth16::import_bytes;

use super::{Decision, DeviceNow, ImportNow, OpenNow, ReadyNow, Snapshot, is_over};

/// Steps through the ready index in one look; more jobs than this that wait for an import are passed over in several.
const READY_STEPS: usize = 512;
/// Jobs looked at in one slow look.
const ACTIVE_PAGE: usize = 256;
/// Timers taken in one look.
const DUE: usize = 64;
/// Ended jobs walked over, and jobs forgotten, in one slow look.
const DONE_PAGE: usize = 2048;
const PRUNES: usize = 16;

/// How many ended jobs are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// `None`: all.
    pub max_jobs: Option<u64>,
}

/// What the scheduler knows that the store doesn't.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Processes that are up and said hello.
    pub up: BTreeSet<ProcessId>,
    /// Leases that were asked to stop.
    pub asked: BTreeSet<Token>,
    /// Checks that may still be started.
    pub verify_room: usize,
    /// The daemon is stopping.
    pub stopping: bool,
    /// Bytes there are in all; what needs more is passed over.
    pub budget: u64,
    /// Of those, bytes that only critical jobs may use.
    pub reserve: u64,
    /// Deadlines are not swept: the clock stepped a moment ago.
    pub no_deadlines: bool,
}

/// Where the walks through what is too long for one look have come, and what somebody said is worth a look.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    ready_after: Option<ReadyEntry>,
    active_after: Option<JobNumber>,
    done: Option<PruneWalk>,
    /// Jobs to forget, found by the walk, the oldest last.
    prune: Vec<JobNumber>,
    /// The journal when the walk over the ended jobs came to its end.
    done_at: Option<JournalNumber>,
    /// Jobs that may have to be checked as a whole.
    pub hints: BTreeSet<JobNumber>,
    /// Jobs with a record that is damaged: they are passed over, so that they keep nobody else from anything.
    pub set_aside: BTreeSet<JobNumber>,
}

impl Walk {
    /// Jobs that wait for their check and don't get it now are looked at again.
    pub fn remember(&mut self, seen: &Snapshot, decisions: &[Decision]) {
        let starts = |job: &&JobNumber| !decisions.contains(&Decision::VerifyStart(**job));
        self.hints.extend(seen.verify.iter().filter(starts));
    }
}

struct Look<'a> {
    view: &'a dyn View,
    jobs: BTreeMap<JobNumber, Option<Job>>,
    circuits: BTreeMap<Digest, Option<Circuit>>,
    set_aside: BTreeSet<JobNumber>,
    now: Snapshot,
}

/// Looks at everything that decides what is next. `slow`, once a second, also walks on through the jobs.
///
/// # Errors
/// When the store can't be read.
pub fn snapshot(
    view: &dyn View,
    at: Millis,
    live: &Live,
    retention: Retention,
    walk: &mut Walk,
    slow: bool,
) -> Result<Snapshot, ReadError> {
    let mut look = Look {
        view,
        jobs: BTreeMap::new(),
        circuits: BTreeMap::new(),
        set_aside: walk.set_aside.clone(),
        now: Snapshot::default(),
    };
    let queue = query::queue(view)?;
    look.now.paused = queue.paused || queue.draining || live.stopping;
    look.now.stopping = live.stopping;
    look.now.verify_room = live.verify_room;
    look.devices(at, live)?;
    look.open(live)?;
    look.imports()?;
    look.timers(at, live)?;
    look.ready(walk, live)?;
    for number in std::mem::take(&mut walk.hints) {
        look.whole_job(number)?;
    }
    if slow {
        look.walk_active(walk)?;
        look.walk_done(retention, walk)?;
    }
    Ok(look.now)
}

impl Look<'_> {
    /// A job that may be acted on.
    fn job(&mut self, number: JobNumber) -> Result<Option<Job>, ReadError> {
        if self.set_aside.contains(&number) {
            return Ok(None);
        }
        if !self.jobs.contains_key(&number) {
            self.jobs.insert(number, query::job_by_number(self.view, number)?);
        }
        Ok(self.jobs.get(&number).cloned().flatten())
    }

    fn circuit(&mut self, digest: Digest) -> Result<Option<Circuit>, ReadError> {
        if !self.circuits.contains_key(&digest) {
            self.circuits.insert(digest, query::circuit(self.view, digest)?);
        }
        Ok(self.circuits.get(&digest).cloned().flatten())
    }

    fn devices(&mut self, at: Millis, live: &Live) -> Result<(), ReadError> {
        let workers = query::workers(self.view)?;
        for device in query::devices(self.view)? {
            let (up, resume) = match device.state {
                DeviceState::Up => (true, false),
                DeviceState::Suspended { until, .. } => (false, is_over(until, at)),
            };
            let idle = workers
                .iter()
                .filter(|worker| worker.device == device.name && worker.state == WorkerState::Idle)
                .map(|worker| worker.id)
                .collect();
            self.now.devices.push(DeviceNow {
                process: device.process.filter(|process| up && live.up.contains(process)),
                name: device.name,
                slots: device.slots,
                resume,
                idle,
            });
        }
        Ok(())
    }

    fn open(&mut self, live: &Live) -> Result<(), ReadError> {
        for open in query::open_attempts(self.view)? {
            let Some(job) = self.job(open.partition.job)? else {
                continue;
            };
            let token = open.partition.token;
            self.now.open.push(OpenNow {
                attempt: open.attempt.of,
                priority: job.priority,
                state: open.partition.state,
                token,
                process: open.attempt.process,
                alone: open.partition.alone,
                stopping: matches!(job.state, JobState::Stopping(_)),
                asked: token.is_some_and(|token| live.asked.contains(&token)),
            });
        }
        Ok(())
    }

    fn imports(&mut self) -> Result<(), ReadError> {
        for circuit in query::importing(self.view)? {
            let CircuitState::Importing(import) = circuit.state else {
                continue;
            };
            let lease = match import.token {
                Some(token) => view::record::<Lease>(self.view, &keys::lease(token))?,
                None => None,
            };
            match lease {
                Some(Lease {
                    subject: Subject::Import { .. },
                    process: Some(process),
                    ..
                }) => {
                    self.now.importing.insert(process);
                }
                _ => self.now.imports.push(ImportNow {
                    circuit: circuit.digest,
                    bytes: import_bytes(&circuit),
                }),
            }
        }
        Ok(())
    }

    fn timers(&mut self, at: Millis, live: &Live) -> Result<(), ReadError> {
        let due = query::retries_due(self.view, at, DUE)?;
        let due: BTreeSet<JobNumber> = due.iter().map(|due| due.job).collect();
        for number in due {
            if self.job(number)?.is_some_and(|job| job.state.grants()) {
                self.now.due.push(number);
            }
        }
        if !live.no_deadlines {
            for (_, number) in query::deadlines_due(self.view, at, DUE)? {
                if self.job(number)?.is_some_and(|job| job.state.grants()) {
                    self.now.expired.push(number);
                }
            }
        }
        Ok(())
    }

    /// Candidates from the head of the queue on, a few more than there can be room for.
    fn ready(&mut self, walk: &mut Walk, live: &Live) -> Result<(), ReadError> {
        let enough = self
            .now
            .devices
            .iter()
            .map(|device| 2 * device.slots as usize)
            .sum::<usize>()
            + 16;
        let mut after = walk.ready_after.take();
        let mut steps = 0;
        while self.now.ready.len() < enough {
            let page = query::ready_page(self.view, after, 64)?;
            let Some(last) = page.last().copied() else {
                return Ok(());
            };
            after = Some(last);
            for entry in page {
                steps += 1;
                if !self.candidate(entry, live)? {
                    // The whole job is blocked: go on after it.
                    after = Some(ReadyEntry {
                        partition: u32::MAX,
                        ..entry
                    });
                    break;
                }
            }
            if steps >= READY_STEPS {
                walk.ready_after = after.filter(|_| self.now.ready.is_empty());
                return Ok(());
            }
        }
        Ok(())
    }

    /// Takes a ready partition as a candidate; `false` if its whole job is blocked.
    fn candidate(&mut self, entry: ReadyEntry, live: &Live) -> Result<bool, ReadError> {
        let Some(job) = self.job(entry.job)?.filter(|job| job.state.grants()) else {
            return Ok(false);
        };
        let key = match job.circuit {
            None => None,
            Some(digest) => match self.circuit(digest)? {
                Some(Circuit {
                    state: CircuitState::Ready,
                    facts,
                    ..
                }) => Some(AskedKey {
                    key: digest,
                    bytes: facts.key_bytes,
                    private: false,
                }),
                Some(Circuit {
                    state: CircuitState::Failed(failure),
                    ..
                }) => {
                    self.doom(job.number, &failure);
                    return Ok(false);
                }
                _ => return Ok(false),
            },
        };
        let most = match entry.priority {
            Priority::Critical => live.budget,
            _ => live.budget.saturating_sub(live.reserve),
        };
        if job.ticket_bytes.saturating_add(key.map_or(0, |key| key.bytes)) > most {
            // The budget was made smaller since it was submitted; it waits for a larger one.
            return Ok(false);
        }
        let key_of = keys::partition(entry.job, entry.partition);
        let Some(partition) = view::record::<Partition>(self.view, &key_of)? else {
            return Ok(true);
        };
        self.now.ready.push(ReadyNow {
            priority: entry.priority,
            job: entry.job,
            partition: entry.partition,
            attempt: partition.attempts + 1,
            ticket_bytes: job.ticket_bytes,
            key,
            alone: partition.alone,
            avoid_device: partition.avoid_device,
        });
        Ok(true)
    }

    fn doom(&mut self, job: JobNumber, failure: &Failure) {
        if !self.now.doomed.iter().any(|(other, _)| *other == job) {
            let failure = Failure::coded(
                FailureClass::CircuitFailed,
                failure.code.clone(),
                failure.detail.clone(),
            );
            self.now.doomed.push((job, failure));
        }
    }

    /// A job as a whole: is it to be checked, can it go on?
    fn whole_job(&mut self, number: JobNumber) -> Result<(), ReadError> {
        let Some(job) = self.job(number)? else {
            return Ok(());
        };
        if job.state == JobState::Verifying && job.verifying.is_none() && !self.now.verify.contains(&number) {
            self.now.verify.push(number);
        }
        if job.state.grants()
            && let Some(digest) = job.circuit
            && let Some(Circuit {
                state: CircuitState::Failed(failure),
                ..
            }) = self.circuit(digest)?
        {
            self.doom(number, &failure);
        }
        Ok(())
    }

    fn walk_active(&mut self, walk: &mut Walk) -> Result<(), ReadError> {
        let page = query::active_jobs(self.view, walk.active_after, ACTIVE_PAGE)?;
        walk.active_after = page.next;
        for job in page.jobs {
            let number = job.number;
            if self.set_aside.contains(&number) {
                continue;
            }
            self.jobs.insert(number, Some(job));
            self.whole_job(number)?;
        }
        Ok(())
    }

    fn walk_done(&mut self, retention: Retention, walk: &mut Walk) -> Result<(), ReadError> {
        self.now.prune = query::pruning(self.view, PRUNES)?;
        if let Some(max_jobs) = retention.max_jobs
            && walk.prune.is_empty()
        {
            self.find_prunable(max_jobs, walk)?;
        }
        let rest = walk.prune.len().saturating_sub(PRUNES);
        self.now.prune.extend(walk.prune.drain(rest..));
        self.now.prune.retain(|job| !self.set_aside.contains(job));
        Ok(())
    }

    fn find_prunable(&mut self, max_jobs: u64, walk: &mut Walk) -> Result<(), ReadError> {
        let journal = query::last_event(self.view)?;
        if walk.done.is_none() && walk.done_at == Some(journal) {
            return Ok(());
        }
        let page = query::prunable(self.view, max_jobs, walk.done.unwrap_or_default(), DONE_PAGE)?;
        walk.done = page.next;
        if page.next.is_none() {
            walk.done_at = Some(journal);
        }
        walk.prune = page.jobs;
        Ok(())
    }
}
