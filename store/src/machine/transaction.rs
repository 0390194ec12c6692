//! One command's changes: reads see them at once, the store sees them all or none.

use std::collections::BTreeMap;

use super::{Context, Refusal, Reply, Rules, Step, StepError, apply};
use crate::codec::{self, Record};
use crate::event::{Event, What};
use crate::ids::{BootNumber, JobNumber, JournalNumber, Token};
use crate::keys::{self, Key, Sequence};
use crate::records::{
    Attempt, AttemptRef, Boot, Circuit, Device, Generation, Job, Lease, Partition, PartitionState, Queue,
    Subject, Worker,
};
use crate::view::{ReadError, View};

/// Late words that a boot keeps in mind, so that opening the next one, which forgets them, stays small. Beyond them the
/// oldest lease may be noted a second time.
const STALE_NOTES: usize = 256;

/// Final checks and imports at once.
const SIDE_LEASES: usize = 32;

/// A transaction with this much in it takes up nothing more that can wait: the largest job can still be stopped in it.
const HEAVY_BYTES: usize = 96 << 10;
const HEAVY_RECORDS: usize = 1500;

/// An overlay over a view, with the typed reads and writes that the handlers use.
///
/// Every write of a job or a partition goes through `put_job` and
/// `put_partition`, which keep the indexes: nobody can forget one.
pub struct Transaction<'a> {
    view: &'a dyn View,
    /// The moment and the boot.
    pub context: Context,
    /// The rules that are kept.
    pub rules: Rules,
    changes: BTreeMap<Key, Option<Vec<u8>>>,
    journal: JournalNumber,
    first: JournalNumber,
}

impl<'a> Transaction<'a> {
    /// A transaction with no changes yet.
    ///
    /// # Errors
    /// When the journal's number can't be read.
    pub fn begin(view: &'a dyn View, context: Context, rules: Rules) -> Result<Self, ReadError> {
        let mut tx = Self {
            view,
            context,
            rules,
            changes: BTreeMap::new(),
            journal: JournalNumber(0),
            first: JournalNumber(0),
        };
        tx.journal = JournalNumber(tx.sequence(Sequence::Journal)?);
        tx.first = tx.journal;
        Ok(tx)
    }

    /// The changes, with the journal's number among them if it moved.
    #[must_use]
    pub fn finish(mut self, reply: Reply) -> Step {
        if self.journal != self.first {
            self.set_sequence(Sequence::Journal, self.journal.0);
        }
        Step {
            changes: self.changes,
            reply,
            journal: self.journal,
        }
    }

    /// Appends an event and folds it into the records; returns its number.
    pub(super) fn emit(&mut self, job: Option<JobNumber>, what: What) -> Result<JournalNumber, StepError> {
        self.journal = self.journal.next();
        let event = Event {
            number: self.journal,
            boot: self.context.boot,
            at: self.context.now,
            job,
            what,
        };
        self.put(keys::event(event.number), &event);
        if let Some(job) = job {
            self.set(keys::job_event(job, event.number), Vec::new());
        }
        apply(self, &event)?;
        Ok(event.number)
    }

    /// The token of a lease that the event with this number, written by this boot, grants.
    pub(super) fn token(&self, boot: BootNumber, grant: JournalNumber, seed: u32) -> Token {
        let grant = if self.rules.tokens_never_repeat {
            grant
        } else {
            JournalNumber(u64::from(seed) + 1)
        };
        Token { boot, grant }
    }

    /// The token that the next event will grant.
    pub(super) fn next_token(&self, seed: u32) -> Token {
        self.token(self.context.boot, self.journal.next(), seed)
    }

    // Bytes.

    /// The value at `key`, changes of this transaction included.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, ReadError> {
        match self.changes.get(key) {
            Some(change) => Ok(change.clone()),
            None => self.view.get(key),
        }
    }

    /// Writes `value` at `key`.
    pub(super) fn set(&mut self, key: Key, value: Vec<u8>) {
        self.changes.insert(key, Some(value));
    }

    /// Deletes `key`, if there is anything.
    pub(super) fn delete(&mut self, key: Key) -> Result<bool, ReadError> {
        let there = self.get(&key)?.is_some();
        if there {
            self.changes.insert(key, None);
        }
        Ok(there)
    }

    /// Every pair below `prefix`, changes of this transaction included. For small families only.
    pub(super) fn pairs(&self, prefix: &[u8]) -> Result<BTreeMap<Key, Vec<u8>>, ReadError> {
        let mut pairs = BTreeMap::new();
        crate::view::for_each(self.view, prefix, |key, value| {
            pairs.insert(key.to_vec(), value.to_vec());
            Ok(())
        })?;
        for (key, change) in self.changes.range(prefix.to_vec()..) {
            if !key.starts_with(prefix) {
                break;
            }
            match change {
                Some(value) => pairs.insert(key.clone(), value.clone()),
                None => pairs.remove(key),
            };
        }
        Ok(pairs)
    }

    /// At most `limit` keys below `prefix` that this transaction hasn't deleted yet.
    pub(super) fn some_keys(&self, prefix: &[u8], limit: usize) -> Result<Vec<Key>, ReadError> {
        Ok(self
            .view
            .scan(prefix, None, limit)?
            .into_iter()
            .map(|(key, _)| key)
            .filter(|key| !matches!(self.changes.get(key), Some(None)))
            .collect())
    }

    // Records.

    /// The record at `key`.
    pub(super) fn record<R: Record>(&self, key: &[u8]) -> Result<Option<R>, ReadError> {
        self.get(key)?
            .map(|bytes| R::decode(&bytes).map_err(|damage| ReadError::damaged(key, damage)))
            .transpose()
    }

    /// Every record below `prefix`; for small families only.
    pub(super) fn records<R: Record>(&self, prefix: &[u8]) -> Result<Vec<R>, ReadError> {
        self.pairs(prefix)?
            .iter()
            .map(|(key, bytes)| R::decode(bytes).map_err(|damage| ReadError::damaged(key, damage)))
            .collect()
    }

    /// Writes a record.
    pub(super) fn put<R: Record>(&mut self, key: Key, record: &R) {
        self.set(key, record.encode());
    }

    /// A number; 0 if there is none.
    pub(super) fn number(&self, key: &[u8]) -> Result<u64, ReadError> {
        self.get(key)?.map_or(Ok(0), |bytes| {
            codec::read_number(&bytes).map_err(|damage| ReadError::damaged(key, damage))
        })
    }

    /// A number that may be missing.
    pub(super) fn number_at(&self, key: &[u8]) -> Result<Option<u64>, ReadError> {
        self.get(key)?
            .map(|bytes| codec::read_number(&bytes).map_err(|damage| ReadError::damaged(key, damage)))
            .transpose()
    }

    /// A digest that may be missing.
    pub(super) fn digest_at(&self, key: &[u8]) -> Result<Option<crate::ids::Digest>, ReadError> {
        self.get(key)?
            .map(|bytes| codec::read_digest(&bytes).map_err(|damage| ReadError::damaged(key, damage)))
            .transpose()
    }

    /// Writes a number.
    pub(super) fn set_number(&mut self, key: Key, number: u64) {
        self.set(key, codec::number(number));
    }

    /// The last number of a sequence.
    pub(super) fn sequence(&self, sequence: Sequence) -> Result<u64, ReadError> {
        self.number(&keys::sequence(sequence))
    }

    /// Moves a sequence.
    pub(super) fn set_sequence(&mut self, sequence: Sequence, number: u64) {
        self.set_number(keys::sequence(sequence), number);
    }

    /// Adds one to a counter.
    pub(super) fn count(&mut self, name: &str) -> Result<(), ReadError> {
        if self.rules.ends_are_counted {
            let key = keys::counter(name);
            let number = self.number(&key)?;
            self.set_number(key, number + 1);
        }
        Ok(())
    }

    /// A job that must be there.
    pub(super) fn job(&self, number: JobNumber) -> Result<Job, StepError> {
        Ok(self
            .record(&keys::job(number))?
            .ok_or(Refusal::UnknownJob(number))?)
    }

    /// A partition that must be there.
    pub(super) fn partition(&self, job: JobNumber, partition: u32) -> Result<Partition, StepError> {
        Ok(self
            .record(&keys::partition(job, partition))?
            .ok_or(Refusal::UnknownPartition { job, partition })?)
    }

    /// A partition's current or last attempt, if it ever had one.
    pub(super) fn last_attempt(&self, partition: &Partition) -> Result<Option<Attempt>, ReadError> {
        let of = AttemptRef {
            job: partition.job,
            partition: partition.index,
            number: partition.attempts,
        };
        self.record(&keys::attempt(of))
    }

    /// A job's current generation.
    pub(super) fn generation(&self, job: &Job) -> Result<Option<Generation>, ReadError> {
        self.record(&keys::generation(job.number, job.generation))
    }

    /// A circuit that must be there.
    pub(super) fn circuit(&self, digest: crate::ids::Digest) -> Result<Circuit, StepError> {
        Ok(self
            .record(&keys::circuit(digest))?
            .ok_or(Refusal::UnknownCircuit(digest))?)
    }

    /// A device that must be there.
    pub(super) fn device(&self, name: &str) -> Result<Device, StepError> {
        Ok(self
            .record(&keys::device(name))?
            .ok_or_else(|| Refusal::UnknownDevice(name.to_owned()))?)
    }

    /// Refuses unless the current boot is open: nothing is granted before `boot_open` or after `boot_close`.
    pub(super) fn open_boot(&self) -> Result<Boot, StepError> {
        let boot: Option<Boot> = self.record(&keys::boot(self.context.boot))?;
        Ok(boot.filter(|boot| boot.ended.is_none()).ok_or(Refusal::NoBoot)?)
    }

    /// What the operator asked of the queue.
    pub(super) fn queue(&self) -> Result<Queue, ReadError> {
        Ok(self.record(&keys::queue())?.unwrap_or_default())
    }

    /// A lease in force.
    pub(super) fn lease(&self, token: Token) -> Result<Option<Lease>, ReadError> {
        self.record(&keys::lease(token))
    }

    /// Every open attempt's partition, as far as it can be read: the daemon's own work goes on when one is damaged, which
    /// the next start puts back.
    pub(super) fn open_partitions(&self) -> Result<Vec<Partition>, StepError> {
        let mut found = Vec::new();
        for key in self.pairs(&keys::family(keys::Family::Open))?.keys() {
            if let Some((job, partition)) = keys::parse_pair(&key[1..]) {
                match self.partition(job, partition) {
                    Err(
                        StepError::Read(ReadError::Damaged { .. })
                        | StepError::Refused(Refusal::UnknownPartition { .. }),
                    ) => {}
                    partition => found.push(partition?),
                }
            }
        }
        Ok(found)
    }

    /// Writes a job and its places in the indexes.
    pub(super) fn put_job(&mut self, job: &Job) -> Result<(), ReadError> {
        let number = job.number;
        if job.state.is_terminal() {
            self.delete(keys::active(number))?;
            self.set(keys::done(number), Vec::new());
        } else {
            self.set(keys::active(number), Vec::new());
            self.delete(keys::done(number))?;
        }
        if let Some(at) = job.deadline {
            let key = keys::deadline(at, number);
            if job.state.grants() {
                self.set(key, Vec::new());
            } else {
                self.delete(key)?;
            }
        }
        self.put(keys::job(number), job);
        Ok(())
    }

    /// Writes a partition and its places in the indexes: what its former state had goes, what its new state needs comes.
    pub(super) fn put_partition(&mut self, job: &Job, partition: &Partition) -> Result<(), ReadError> {
        let (number, index) = (partition.job, partition.index);
        let key = keys::partition(number, index);
        if let Some(before) = self.record::<Partition>(&key)? {
            match before.state {
                PartitionState::Ready => {
                    self.delete(keys::ready(job.priority, number, index))?;
                }
                PartitionState::Waiting => {
                    if let Some(at) = before.wake_at {
                        self.delete(keys::retry(at, number, index))?;
                    }
                }
                _ => {}
            }
            if before.state.is_open() && !partition.state.is_open() {
                self.delete(keys::open(number, index))?;
            }
        }
        match partition.state {
            PartitionState::Ready => self.set(keys::ready(job.priority, number, index), Vec::new()),
            PartitionState::Waiting => {
                if let Some(at) = partition.wake_at {
                    self.set(keys::retry(at, number, index), Vec::new());
                }
            }
            state if state.is_open() => self.set(keys::open(number, index), Vec::new()),
            _ => {}
        }
        self.put(key, partition);
        Ok(())
    }

    /// The leases in force that can be read.
    pub(super) fn leases(&self) -> Result<Vec<Lease>, ReadError> {
        let leases = self.pairs(&keys::family(keys::Family::Lease))?;
        Ok(leases
            .values()
            .filter_map(|bytes| Lease::decode(bytes).ok())
            .collect())
    }

    /// Puts a lease in force.
    pub(super) fn grant(&mut self, lease: &Lease) {
        self.put(keys::lease(lease.token), lease);
    }

    /// Ends a lease; says whether it was in force.
    pub(super) fn end_lease(&mut self, token: Token) -> Result<bool, ReadError> {
        self.delete(keys::lease(token))
    }

    /// Frees a worker if it still holds this lease; says so.
    pub(super) fn free_worker(
        &mut self,
        id: crate::ids::WorkerId,
        token: Token,
        outcome: &str,
        at: crate::ids::Millis,
    ) -> Result<bool, ReadError> {
        use crate::records::{LastWork, WorkerState};
        let key = keys::worker(id);
        let Some(mut worker) = self.record::<Worker>(&key)? else {
            return Ok(false);
        };
        let WorkerState::Busy {
            token: held,
            job,
            partition,
            ..
        } = worker.state
        else {
            return Ok(false);
        };
        if held != token && self.rules.end_names_its_lease {
            return Ok(false);
        }
        worker.state = WorkerState::Idle;
        worker.last = Some(LastWork {
            job,
            partition,
            outcome: outcome.to_owned(),
            at,
        });
        self.put(key, &worker);
        Ok(true)
    }

    /// Notes, once a lease, that a late word came under it. The notes end with the boot, so a word under a lease of
    /// another boot, whose processes are gone, isn't noted.
    pub(super) fn stale(&mut self, token: Token, word: &str) -> Result<Reply, StepError> {
        let key = keys::stale(token);
        if token.boot == self.context.boot && self.get(&key)?.is_none() {
            let mut notes = self.some_keys(&keys::family(keys::Family::Stale), STALE_NOTES)?;
            if notes.len() >= STALE_NOTES {
                self.delete(notes.swap_remove(0))?;
            }
            self.set(key, Vec::new());
            self.emit(
                None,
                What::StaleIgnored {
                    token,
                    word: word.to_owned(),
                },
            )?;
        }
        Ok(Reply::Stale)
    }

    /// The changes are so many that what can wait should wait for the next transaction.
    pub(super) fn is_heavy(&self) -> bool {
        let bytes: usize = self
            .changes
            .iter()
            .map(|(key, value)| key.len() + value.as_ref().map_or(0, Vec::len))
            .sum();
        bytes > HEAVY_BYTES || self.changes.len() > HEAVY_RECORDS
    }

    /// Leases of the daemon itself and of imports: few, since the next boot ends them all in one transaction.
    pub(super) fn check_side_leases(&self) -> Result<(), StepError> {
        let leases = self.leases()?;
        let aside = leases
            .iter()
            .filter(|lease| !matches!(lease.subject, Subject::Partition { .. }));
        if aside.count() >= SIDE_LEASES {
            return Err(Refusal::EnoughAhead.into());
        }
        Ok(())
    }

    /// The partition that a lease is for.
    pub(super) fn leased_partition(&self, lease: &Lease) -> Result<Option<(Job, Partition)>, StepError> {
        match lease.subject {
            Subject::Partition { job, partition, .. } => {
                Ok(Some((self.job(job)?, self.partition(job, partition)?)))
            }
            _ => Ok(None),
        }
    }
}
