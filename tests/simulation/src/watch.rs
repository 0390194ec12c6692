//! The invariants that can be checked on what a command touched, after each command: those of the states' page, from the
//! records alone. The rest, and these again, are checked by `fsck` now and then.

mod deaths;

use std::collections::{BTreeMap, BTreeSet};

use proofkeep_store::codec::{self, Record};
use proofkeep_store::event::{Event, What};
use proofkeep_store::fsck::check_job;
use proofkeep_store::ids::{BootNumber, Digest, JobNumber, JournalNumber, Token};
use proofkeep_store::keys::{self, Family, Key, Sequence};
use proofkeep_store::machine::Step;
use proofkeep_store::records::{
    Attempt, Failure, Job, JobState, Lease, Partition, PartitionState, StoredProof, Subject, Worker,
    WorkerState,
};
use proofkeep_store::view::{MemoryView, View as _};

/// What a command did, for those who keep books of their own.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Partitions that were given up just now.
    pub failed: Vec<(JobNumber, u32, Failure)>,
    /// Jobs that ended just now.
    pub ended: Vec<(JobNumber, JobState)>,
    /// Proofs that were stored just now.
    pub proved: u64,
    /// Attempts that ended just now.
    pub attempts: u64,
    /// Partitions whose process died by its own fault just now: the generation, and whether they were alone in it.
    pub deaths: Vec<(JobNumber, u32, u32, bool)>,
}

/// What must be remembered between two commands.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    boot: BootNumber,
    tokens: BTreeSet<Token>,
}

/// What lay at the keys that a command changed.
pub type Old = BTreeMap<Key, Option<Vec<u8>>>;

struct Look<'a> {
    view: &'a MemoryView,
    old: &'a Old,
    events: Vec<Event>,
    facts: Facts,
}

impl Watch {
    /// Checks everything that a step touched; `view` has its changes already, `old` is what they took the place of.
    ///
    /// # Errors
    /// The invariant that doesn't hold, in words.
    pub fn follow(
        &mut self,
        old: &Old,
        view: &MemoryView,
        step: &Step,
        boot: BootNumber,
    ) -> Result<Facts, String> {
        if boot != self.boot {
            self.boot = boot;
            self.tokens.clear();
        }
        let mut look = Look {
            view,
            old,
            events: Vec::new(),
            facts: Facts::default(),
        };
        look.journal(step)?;
        for (key, value) in &step.changes {
            match key.first().copied() {
                Some(family) if family == Family::Partition as u8 => look.partition(key, value.as_deref())?,
                Some(family) if family == Family::Worker as u8 => look.worker(value.as_deref())?,
                Some(family) if family == Family::Lease as u8 => {
                    self.lease(&look, key, value.as_deref())?;
                }
                Some(family) if family == Family::Job as u8 => look.job(key, value.as_deref())?,
                Some(family) if family == Family::Attempt as u8 => look.attempt(key, value.as_deref())?,
                Some(family) if family == Family::Idempotency as u8 => look.idempotency(key)?,
                Some(family) if family == Family::Counter as u8 => look.counter(key, value.as_deref())?,
                Some(family) if family == Family::Ready as u8 || family == Family::Retry as u8 => {
                    look.queued(key, value.is_some())?;
                }
                _ => {}
            }
        }
        look.counted()?;
        look.deaths()?;
        Ok(look.facts)
    }

    /// A lease is granted once, by the current boot; one that ends leaves nothing that holds it.
    fn lease(&mut self, look: &Look<'_>, key: &Key, value: Option<&[u8]>) -> Result<(), String> {
        let before = look.before::<Lease>(key)?;
        let Some(bytes) = value else {
            let Some(Lease { token, subject, .. }) = before else {
                return Ok(());
            };
            if let Subject::Partition { job, partition, .. } = subject {
                let held: Option<Partition> = look.now(&keys::partition(job, partition))?;
                if held.is_some_and(|held| held.token == Some(token)) {
                    return Err(format!(
                        "lease {token} ended and partition {partition} of job {job} holds it"
                    ));
                }
            }
            return Ok(());
        };
        let lease: Lease = decode(bytes)?;
        if before.is_none() {
            let fresh = self.tokens.insert(lease.token);
            if !fresh || lease.token.boot != self.boot {
                return Err(format!("token {} was granted before", lease.token));
            }
        } else if before.is_some_and(|before| before.subject != lease.subject)
            && !matches!(lease.subject, Subject::Partition { .. })
        {
            return Err(format!("lease {} changed hands", lease.token));
        }
        if let Subject::Partition {
            job,
            partition,
            stage,
        } = lease.subject
        {
            let held: Option<Partition> = look.now(&keys::partition(job, partition))?;
            let holds =
                held.is_some_and(|held| held.token == Some(lease.token) && held.state.stage() == Some(stage));
            if !holds {
                return Err(format!(
                    "lease {} is in force for partition {partition} of job {job}, which doesn't hold it",
                    lease.token
                ));
            }
        }
        Ok(())
    }
}

fn decode<R: Record>(bytes: &[u8]) -> Result<R, String> {
    R::decode(bytes).map_err(|damage| format!("a record is damaged: {damage}"))
}

impl Look<'_> {
    fn now<R: Record>(&self, key: &[u8]) -> Result<Option<R>, String> {
        self.view.record(key).map_err(|error| error.to_string())
    }

    fn before<R: Record>(&self, key: &Key) -> Result<Option<R>, String> {
        match self.old.get(key) {
            Some(Some(bytes)) => decode(bytes).map(Some),
            _ => Ok(None),
        }
    }

    fn has(&self, key: &[u8]) -> bool {
        self.view.0.contains_key(key)
    }

    fn happened(&self, what: impl Fn(&What) -> bool) -> bool {
        self.events.iter().any(|event| what(&event.what))
    }

    /// Events follow each other without a hole, and the last one is what the journal says.
    fn journal(&mut self, step: &Step) -> Result<(), String> {
        let key = keys::sequence(Sequence::Journal);
        let number = |bytes: Option<&Vec<u8>>| match bytes {
            Some(bytes) => codec::read_number(bytes).map_err(|damage| damage.to_string()),
            None => Ok(0),
        };
        let after = number(self.view.0.get(&key))?;
        let before = match self.old.get(&key) {
            Some(old) => number(old.as_ref())?,
            None => after,
        };
        let prefix = keys::family(Family::Event);
        let mut next = before;
        for (key, value) in step.changes.range(prefix.clone()..) {
            if !key.starts_with(&prefix) {
                break;
            }
            let Some(bytes) = value else { continue };
            let event: Event = decode(bytes)?;
            next += 1;
            if event.number != JournalNumber(next) {
                return Err(format!("event {} stands where {next} belongs", event.number));
            }
            self.events.push(event);
        }
        if next != after || step.journal.0 != after {
            return Err(format!("the journal says {after}, the last event is {next}"));
        }
        Ok(())
    }

    fn partition(&mut self, key: &Key, value: Option<&[u8]>) -> Result<(), String> {
        let Some(bytes) = value else { return Ok(()) };
        let partition: Partition = decode(bytes)?;
        let before = self.before::<Partition>(key)?;
        let (job, index) = (partition.job, partition.index);
        let wrong = |what: &str| {
            Err(format!(
                "partition {index} of job {job} is {}: {what}",
                partition.state.name()
            ))
        };
        let was = before.as_ref().map(|before| before.state);
        let attempts = before.as_ref().map_or(0, |before| before.attempts);
        if partition.attempts != attempts && partition.attempts != attempts + 1 {
            return wrong("its attempts don't rise by one");
        }
        if partition.state.stage().is_some() != partition.token.is_some() {
            return wrong("it has a lease and no stage, or the other way round");
        }
        if let Some(token) = partition.token {
            let lease: Option<Lease> = self.now(&keys::lease(token))?;
            let backed = lease.is_some_and(|lease| {
                matches!(lease.subject, Subject::Partition { job: of, partition: at, stage }
                    if of == job && at == index && Some(stage) == partition.state.stage())
            });
            if !backed {
                return wrong("its lease is not in force");
            }
        }
        if (partition.state == PartitionState::Proving) != partition.worker.is_some() {
            return wrong("it has a slot and doesn't prove, or the other way round");
        }
        if let (Some(id), Some(token)) = (partition.worker, partition.token) {
            let worker: Option<Worker> = self.now(&keys::worker(id))?;
            let busy = worker.is_some_and(|worker| {
                matches!(worker.state, WorkerState::Busy { token: held, job: of, partition: at, .. }
                    if held == token && of == job && at == index)
            });
            if !busy {
                return wrong("its slot doesn't work on it");
            }
        }
        let left = before
            .as_ref()
            .and_then(|before| Some((before.worker?, before.token?)));
        if let Some((id, token)) = left.filter(|left| partition.worker != Some(left.0)) {
            let worker: Option<Worker> = self.now(&keys::worker(id))?;
            let busy = worker.is_some_and(
                |worker| matches!(worker.state, WorkerState::Busy { token: held, .. } if held == token),
            );
            if busy {
                return wrong("the slot that it left is busy with it");
            }
        }
        self.index_entries(&partition)?;
        let stored: Option<StoredProof> = self.now(&keys::proof(job, index))?;
        match (partition.state, stored) {
            (PartitionState::Proved, None) => return wrong("its proof isn't there"),
            (PartitionState::Proved, Some(stored)) if Digest::of(&stored.bytes) != stored.digest => {
                return wrong("its proof isn't what was stored");
            }
            (PartitionState::Synthesizing, Some(_)) => return wrong("it is proved again"),
            _ => {}
        }
        if was == Some(PartitionState::Proved)
            && partition.state != PartitionState::Proved
            && !self.happened(|what| matches!(what, What::VerifyRefused { .. } | What::Retried { .. }))
        {
            return wrong("its proof is lost");
        }
        if partition.state == PartitionState::Proved && was != Some(PartitionState::Proved) {
            self.facts.proved += 1;
        }
        if partition.state == PartitionState::Failed
            && was != Some(PartitionState::Failed)
            && let Some(failure) = &partition.failure
        {
            self.facts.failed.push((job, index, failure.clone()));
        }
        Ok(())
    }

    /// Invariant 5.
    fn index_entries(&self, partition: &Partition) -> Result<(), String> {
        let (number, index) = (partition.job, partition.index);
        let Some(job) = self.now::<Job>(&keys::job(number))? else {
            return Err(format!("partition {index} has no job {number}"));
        };
        let ready = self.has(&keys::ready(job.priority, number, index));
        let waiting = partition
            .wake_at
            .is_some_and(|at| self.has(&keys::retry(at, number, index)));
        let open = self.has(&keys::open(number, index));
        let expected = (
            partition.state == PartitionState::Ready,
            partition.state == PartitionState::Waiting,
            partition.state.is_open(),
        );
        if (ready, waiting, open) != expected {
            return Err(format!(
                "partition {index} of job {number} is {} and stands in the queues as {:?}",
                partition.state.name(),
                (ready, waiting, open)
            ));
        }
        Ok(())
    }

    /// Invariant 5 from the other side.
    fn queued(&self, key: &Key, there: bool) -> Result<(), String> {
        let (at, state) = match keys::parse_ready(key) {
            Some((_, job, partition)) => ((job, partition), PartitionState::Ready),
            None => match keys::parse_retry(key) {
                Some((_, job, partition)) => ((job, partition), PartitionState::Waiting),
                None => return Err("a queue entry can't be read".to_owned()),
            },
        };
        let found: Option<Partition> = self.now(&keys::partition(at.0, at.1))?;
        match found {
            Some(found) if there && found.state != state => Err(format!(
                "partition {} of job {} is {} and stands in the queue of those that are {}",
                at.1,
                at.0,
                found.state.name(),
                state.name()
            )),
            None if there => Err(format!("job {} stands in a queue and isn't there", at.0)),
            _ => Ok(()),
        }
    }

    /// Invariant 1.
    fn worker(&self, value: Option<&[u8]>) -> Result<(), String> {
        let Some(bytes) = value else { return Ok(()) };
        let worker: Worker = decode(bytes)?;
        let WorkerState::Busy {
            token,
            job,
            partition,
            ..
        } = worker.state
        else {
            return Ok(());
        };
        let held: Option<Partition> = self.now(&keys::partition(job, partition))?;
        let proves = held.is_some_and(|held| {
            held.state == PartitionState::Proving
                && held.token == Some(token)
                && held.worker == Some(worker.id)
        });
        if proves {
            return Ok(());
        }
        Err(format!(
            "worker {} is busy with partition {partition} of job {job}, which isn't proving there",
            worker.id
        ))
    }

    /// Invariant 2.
    fn attempt(&mut self, key: &Key, value: Option<&[u8]>) -> Result<(), String> {
        let Some(bytes) = value else { return Ok(()) };
        let attempt: Attempt = decode(bytes)?;
        let of = attempt.of;
        let before = self.before::<Attempt>(key)?;
        if before
            .as_ref()
            .is_some_and(|before| before.outcome.is_some() && before.outcome != attempt.outcome)
        {
            return Err(format!("{of:?} ended twice"));
        }
        let is_open = attempt.outcome.is_none();
        if !is_open && before.is_none_or(|before| before.outcome.is_none()) {
            self.facts.attempts += 1;
        }
        let partition: Option<Partition> = self.now(&keys::partition(of.job, of.partition))?;
        let open =
            partition.is_some_and(|partition| partition.state.is_open() && partition.attempts == of.number);
        if open != is_open {
            return Err(format!(
                "{of:?} is open and its partition isn't, or the other way round"
            ));
        }
        Ok(())
    }

    fn job(&mut self, key: &Key, value: Option<&[u8]>) -> Result<(), String> {
        let before = self.before::<Job>(key)?;
        let Some(bytes) = value else {
            return match before {
                Some(before) if !before.state.is_terminal() => {
                    Err(format!("job {} was forgotten before it ended", before.number))
                }
                _ => Ok(()),
            };
        };
        let job: Job = decode(bytes)?;
        let was = before.as_ref().map(|before| before.state);
        if let Some(before) = &before
            && before.state.is_terminal()
            && job.state != before.state
            && job.generation != before.generation + 1
        {
            return Err(format!(
                "job {} was {} and is {} in the same life",
                job.number,
                before.state.name(),
                job.state.name()
            ));
        }
        if !job.state.is_terminal() || was == Some(job.state) {
            return Ok(());
        }
        self.facts.ended.push((job.number, job.state));
        if job.state == JobState::Succeeded
            && (job.tally.proved != job.partitions
                || !self.happened(|what| matches!(what, What::VerifyPassed { .. })))
        {
            return Err(format!(
                "job {} succeeded with {} of {} proofs, or unchecked",
                job.number, job.tally.proved, job.partitions
            ));
        }
        // It has come to an end: look at all of it.
        let report = check_job(self.view, job.number).map_err(|error| error.to_string())?;
        match report.findings.first() {
            Some(finding) => Err(format!("{finding}")),
            None => Ok(()),
        }
    }

    /// Invariant 6.
    fn idempotency(&self, key: &Key) -> Result<(), String> {
        let number = |bytes: &[u8]| codec::read_number(bytes).map_err(|damage| damage.to_string());
        let (Some(Some(old)), Some(new)) = (self.old.get(key), self.view.0.get(key)) else {
            return Ok(());
        };
        let (old, new) = (number(old)?, number(new)?);
        if old != new && self.has(&keys::job(JobNumber(old))) {
            return Err(format!("an idempotency key names job {old} and then job {new}"));
        }
        Ok(())
    }

    /// Invariant 7: they never fall.
    fn counter(&self, key: &Key, value: Option<&[u8]>) -> Result<(), String> {
        let number = |bytes: Option<&[u8]>| match bytes {
            Some(bytes) => codec::read_number(bytes).map_err(|damage| damage.to_string()),
            None => Ok(0),
        };
        let before = number(self.old.get(key).and_then(|old| old.as_deref()))?;
        let after = number(value)?;
        if after < before {
            return Err(format!(
                "counter {} fell from {before} to {after}",
                String::from_utf8_lossy(&key[1..])
            ));
        }
        Ok(())
    }

    /// Invariant 7: they rise by what ended in this command.
    fn counted(&self) -> Result<(), String> {
        let (mut attempts, mut jobs) = (0, 0);
        for (key, old) in self.old {
            if key.first() != Some(&(Family::Counter as u8)) {
                continue;
            }
            let number = |bytes: Option<&Vec<u8>>| {
                bytes
                    .and_then(|bytes| codec::read_number(bytes).ok())
                    .unwrap_or(0)
            };
            let rise = number(self.view.0.get(key)) - number(old.as_ref());
            if key[1..].starts_with(b"attempts/") {
                attempts += rise;
            } else if key[1..].starts_with(b"jobs/") {
                jobs += rise;
            }
        }
        let ended = (self.facts.attempts, self.facts.ended.len() as u64);
        if (attempts, jobs) != ended {
            return Err(format!(
                "{} attempts and {} jobs ended, counted were {attempts} and {jobs}",
                ended.0, ended.1
            ));
        }
        Ok(())
    }
}
