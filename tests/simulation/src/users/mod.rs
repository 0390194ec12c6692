//! Users: what they ask for, and the ledger of what was answered. An answer that a user heard must hold for ever, whatever
//! crashes; a call that got no answer may have happened or not, and is safe to repeat.

mod wish;

use std::collections::{BTreeMap, VecDeque};

use proofkeep_store::ids::{Digest, JobNumber, JournalNumber};
use proofkeep_store::keys::{self, Sequence};
use proofkeep_store::machine::{Admission, Command, Refusal, Reply, Submit};
use proofkeep_store::records::{
    Generation, Job, JobState, Partition, PartitionState, Queue, StopTarget, StoredProof,
};
use proofkeep_store::view::{MemoryView, View as _};
use proofkeep_store::{CommitError, codec};
use uuid::Uuid;

use crate::daemon::{Daemon, Outcome};
use crate::world::World;

/// Acknowledged journal numbers that are kept to be looked for.
const ACKNOWLEDGED: usize = 500;

/// A job that a user was told of.
#[derive(Clone, Debug)]
struct Known {
    id: Uuid,
    generation: u32,
    /// The life in which a cancel was acknowledged.
    cancelled: Option<u32>,
    ended: Option<(u32, JobState)>,
    proofs: BTreeMap<u32, (u32, Digest)>,
}

/// A call that waits for its answer.
#[derive(Clone, Debug)]
struct Call {
    mail: u64,
    command: Command,
}

/// All users with their ledger.
#[derive(Clone, Debug, Default)]
pub struct Users {
    known: BTreeMap<JobNumber, Known>,
    keys: BTreeMap<String, (JobNumber, Digest)>,
    calls: VecDeque<Call>,
    /// Submits whose answer was lost.
    unsure: Vec<Submit>,
    next: u64,
    /// What was last acknowledged, if nothing came after it.
    paused: Option<bool>,
    acknowledged: VecDeque<(JournalNumber, Digest)>,
    last: JournalNumber,
}

fn number(view: &MemoryView, sequence: Sequence) -> u64 {
    view.0
        .get(&keys::sequence(sequence))
        .and_then(|bytes| codec::read_number(bytes).ok())
        .unwrap_or(0)
}

impl Users {
    /// Calls wait for answers.
    #[must_use]
    pub fn wait(&self) -> bool {
        !self.calls.is_empty()
    }

    /// The daemon is gone: nobody hears an answer any more.
    pub fn lose_calls(&mut self) {
        for call in self.calls.drain(..) {
            match call.command {
                Command::Submit(submit) => self.unsure.push(submit),
                Command::Pause { .. } | Command::Resume { .. } => self.paused = None,
                _ => {}
            }
        }
    }

    /// Holds the ledger against what is durable.
    ///
    /// # Errors
    /// What was acknowledged and isn't there.
    pub fn check(&mut self, view: &MemoryView) -> Result<(), String> {
        let journal = number(view, Sequence::Journal);
        if journal < self.last.0 {
            return Err(format!(
                "event {} was acknowledged, the last one is {journal}",
                self.last
            ));
        }
        for (at, digest) in &self.acknowledged {
            if let Some(bytes) = view.0.get(&keys::event(*at))
                && Digest::of(bytes) != *digest
            {
                return Err(format!(
                    "event {at} is another one than the one that was acknowledged"
                ));
            }
        }
        let queue: Queue = get(view, &keys::queue())?.unwrap_or_default();
        if self.paused.is_some_and(|paused| paused != queue.paused) {
            return Err(format!(
                "the queue is paused: {}, acknowledged was the opposite",
                queue.paused
            ));
        }
        let mut forgotten = Vec::new();
        for (job, known) in &mut self.known {
            match get::<Job>(view, &keys::job(*job))? {
                Some(found) => known.compare(view, &found)?,
                None if view.0.contains_key(&keys::pruned(known.id)) => forgotten.push(*job),
                None => return Err(format!("job {job} was acknowledged and is not there")),
            }
        }
        for job in forgotten {
            self.known.remove(&job);
            self.keys.retain(|_, (named, _)| *named != job);
        }
        Ok(())
    }

    fn acknowledge(&mut self, view: &MemoryView, journal: JournalNumber) {
        self.last = self.last.max(journal);
        if let Some(bytes) = view.0.get(&keys::event(journal)) {
            self.acknowledged.push_back((journal, Digest::of(bytes)));
            if self.acknowledged.len() > ACKNOWLEDGED {
                self.acknowledged.pop_front();
            }
        }
    }
}

fn get<R: codec::Record>(view: &MemoryView, key: &[u8]) -> Result<Option<R>, String> {
    view.record(key).map_err(|error| error.to_string())
}

impl Known {
    fn compare(&mut self, view: &MemoryView, job: &Job) -> Result<(), String> {
        let number = job.number;
        if job.id != self.id || job.generation < self.generation {
            return Err(format!(
                "job {number} is another one, or in an earlier life, than acknowledged"
            ));
        }
        self.generation = job.generation;
        if let Some((generation, state)) = self.ended
            && generation == job.generation
            && state != job.state
        {
            return Err(format!(
                "job {number} was {}, and is {}",
                state.name(),
                job.state.name()
            ));
        }
        if job.state.is_terminal() {
            self.ended = Some((job.generation, job.state));
        }
        if let Some(life) = self.cancelled {
            let generation: Option<Generation> = get(view, &keys::generation(number, life))?;
            let ended = generation.and_then(|generation| generation.ended);
            let stops = matches!(job.state, JobState::Stopping(_)) && job.generation == life;
            if ended != Some(JobState::Cancelled) && !stops {
                return Err(format!(
                    "the cancel of job {number} was acknowledged and didn't happen"
                ));
            }
        }
        for index in 0..job.partitions {
            let partition: Option<Partition> = get(view, &keys::partition(number, index))?;
            let proved = partition.is_some_and(|found| found.state == PartitionState::Proved);
            let stored: Option<StoredProof> = get(view, &keys::proof(number, index))?;
            let Some(stored) = stored.filter(|_| proved) else {
                continue;
            };
            if let Some((life, digest)) = self.proofs.get(&index)
                && *life == job.generation
                && *digest != stored.digest
            {
                return Err(format!(
                    "partition {index} of job {number} was shown another proof before"
                ));
            }
            self.proofs.insert(index, (job.generation, stored.digest));
        }
        Ok(())
    }
}

impl World {
    /// A user does something.
    pub(crate) fn user_step(&mut self, daemon: &mut Daemon) {
        let Some(command) = self.wish(daemon) else { return };
        self.call(daemon, command);
    }

    /// Sends a user's command.
    pub(crate) fn call(&mut self, daemon: &mut Daemon, command: Command) {
        self.trace(|| format!("a user asks: {}", command.name().name()));
        if matches!(command, Command::Pause { .. } | Command::Resume { .. }) {
            self.users.paused = None;
        }
        let mail = daemon.send(command.clone());
        self.users.calls.push_back(Call { mail, command });
    }

    /// The answers to some call are there.
    pub(crate) fn answer_waits(&self, daemon: &Daemon) -> bool {
        self.users
            .calls
            .iter()
            .any(|call| daemon.mail.contains_key(&call.mail))
    }

    /// A user hears an answer and writes it into the ledger.
    pub(crate) fn answer_step(&mut self, daemon: &mut Daemon) -> Result<(), String> {
        let there = |call: &Call| daemon.mail.contains_key(&call.mail);
        let Some(index) = self.users.calls.iter().position(there) else {
            return Ok(());
        };
        let Some(Call { mail, command }) = self.users.calls.remove(index) else {
            return Ok(());
        };
        let Some(outcome) = daemon.mail.remove(&mail) else {
            return Ok(());
        };
        if let Ok(committed) = &outcome {
            self.users.acknowledge(&self.disk.view, committed.journal);
        }
        self.counts.add("answers", 1);
        self.heard(daemon, command, outcome)
    }

    fn heard(&mut self, daemon: &mut Daemon, command: Command, outcome: Outcome) -> Result<(), String> {
        let view = &self.disk.view;
        match (command, outcome) {
            (Command::Submit(submit), Ok(committed)) => {
                let Reply::Submitted {
                    job, id, admission, ..
                } = committed.reply
                else {
                    return Err(format!("a submit was answered {:?}", committed.reply));
                };
                Self::hint(daemon, job);
                return self.submitted(submit, job, id, admission);
            }
            (Command::Submit(submit), Err(CommitError::Refused(Refusal::IdempotencyMismatch { .. }))) => {
                let key = submit.idempotency_key.unwrap_or_default();
                let named = self.users.keys.get(&key).copied();
                if let Some((job, request)) = named
                    && request == submit.request
                    && get::<Job>(view, &keys::job(job))?.is_some_and(|job| job.request == request)
                {
                    return Err(format!(
                        "the same request under key {key} was taken for another one"
                    ));
                }
            }
            (Command::Cancel { job, .. }, Ok(committed)) if committed.reply == Reply::Done => {
                let Some(found) = get::<Job>(view, &keys::job(job))? else {
                    return Ok(());
                };
                let mut life = None;
                for number in 1..=found.generation {
                    let generation: Option<Generation> = get(view, &keys::generation(job, number))?;
                    let ended = generation.and_then(|generation| generation.ended);
                    let stops = found.state == JobState::Stopping(StopTarget::Cancelled);
                    if ended == Some(JobState::Cancelled) || (stops && number == found.generation) {
                        life = Some(number);
                    }
                }
                if life.is_none() {
                    return Err(format!(
                        "the cancel of job {job} was acknowledged and didn't happen"
                    ));
                }
                if let Some(known) = self.users.known.get_mut(&job) {
                    known.cancelled = life;
                }
            }
            (Command::Retry { job, .. }, Ok(_)) => Self::hint(daemon, job),
            (Command::Pause { .. }, Ok(_)) => self.settle_pause(true),
            (Command::Resume { .. }, Ok(_)) => self.settle_pause(false),
            _ => {}
        }
        Ok(())
    }

    fn settle_pause(&mut self, paused: bool) {
        let other = |call: &Call| matches!(call.command, Command::Pause { .. } | Command::Resume { .. });
        if !self.users.calls.iter().any(other) {
            self.users.paused = Some(paused);
        }
    }

    fn submitted(
        &mut self,
        submit: Submit,
        job: JobNumber,
        id: Uuid,
        admission: Admission,
    ) -> Result<(), String> {
        let there: Option<Job> = get(&self.disk.view, &keys::job(job))?;
        let named = submit
            .idempotency_key
            .as_ref()
            .and_then(|key| self.users.keys.get(key).copied());
        if let Some((other, request)) = named {
            let lives = get::<Job>(&self.disk.view, &keys::job(other))?;
            if lives.is_some() && other != job {
                return Err(format!("one key names jobs {other} and {job}"));
            }
            if lives.is_some_and(|lives| lives.request == request) && request != submit.request {
                return Err(format!("another request was answered with job {job} for its key"));
            }
        }
        if admission == Admission::Created && id != submit.id {
            return Err(format!("job {job} was created under another id"));
        }
        if admission == Admission::Created && self.users.known.contains_key(&job) {
            return Err(format!("job {job} was acknowledged twice as a new one"));
        }
        if let Some(key) = submit.idempotency_key {
            self.users.keys.insert(key, (job, submit.request));
        }
        self.counts
            .add("jobs acknowledged", u64::from(admission == Admission::Created));
        // It may have been forgotten between the answer's sync and its hearing.
        if there.is_some() {
            self.users.known.entry(job).or_insert(Known {
                id,
                generation: 1,
                cancelled: None,
                ended: None,
                proofs: BTreeMap::new(),
            });
        }
        Ok(())
    }
}
