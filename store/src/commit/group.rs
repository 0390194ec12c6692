//! One group: decide, apply, make durable, answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::lanes::{Lanes, Request, Wake};
use super::{CommitError, Committed, Shared, fatal};
use crate::clock::Clock;
use crate::codec::MAX_RECORD;
use crate::ids::JournalNumber;
use crate::machine::{Command, Context, Machine, Refusal, Step, StepError};
use crate::objects::Objects;
use crate::tree::Database;
use crate::view::ReadError;

/// A group ends when it has this many commands.
pub const MAX_GROUP_COMMANDS: u64 = 256;

/// A group ends when its commands have written this many bytes of keys and values.
pub const MAX_GROUP_BYTES: u64 = 256 << 10;

/// One command writes at most this many bytes of keys and values.
pub const MAX_COMMAND_BYTES: u64 = 512 << 10;

/// A group ends when sled may have written this many bytes of log for it.
pub const MAX_GROUP_LOG: u64 = 3 << 20;

/// One command makes sled write at most this many bytes of log. With the group before it that is 7 MiB: less than a
/// segment, as sled needs between two syncs.
pub const MAX_COMMAND_LOG: u64 = 4 << 20;

const _: () = assert!(MAX_GROUP_LOG + MAX_COMMAND_LOG < crate::format::SEGMENT_SIZE);

/// The commit thread shows itself at least this often while it has nothing to do.
const HEARTBEAT: Duration = Duration::from_secs(1);

type Answer = oneshot::Sender<Result<Committed, CommitError>>;

/// What the commit thread has.
pub(super) struct Writer {
    machine: Machine,
    clock: Clock,
    lanes: Arc<Lanes>,
    shared: Arc<Shared>,
    objects: Objects,
    boot: crate::ids::BootNumber,
}

/// What changes weigh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weight {
    /// Keys, written or deleted.
    pub records: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
}

impl Weight {
    /// The most bytes of log that sled writes for them: it writes each change, and every tenth change of a leaf (16
    /// records) the whole leaf, and more when it splits a leaf or empties an old segment. Measured with records from 8
    /// bytes to 4 KiB: at most 64 % of this. `tests/io_log.rs` holds it to that.
    pub fn log(self) -> u64 {
        6 * self.bytes + 512 * self.records
    }

    /// Nothing more may be written before the next sync.
    pub fn is_full(self) -> bool {
        self.bytes >= MAX_GROUP_BYTES || self.log() >= MAX_GROUP_LOG
    }
}

impl std::ops::AddAssign for Weight {
    fn add_assign(&mut self, other: Self) {
        self.records += other.records;
        self.bytes += other.bytes;
    }
}

/// What a group has come to so far. Pure, but for the answers that it keeps.
#[derive(Debug)]
pub struct Group<A> {
    /// What was decided, for whom; to be told when the group is durable.
    pub answers: Vec<(A, Result<Committed, CommitError>)>,
    /// Commands that wrote something.
    pub writes: u64,
    /// What they wrote.
    pub(crate) weight: Weight,
    /// The journal's last number, if it moved.
    pub journal: Option<JournalNumber>,
}

impl<A> Default for Group<A> {
    fn default() -> Self {
        Self {
            answers: Vec::new(),
            writes: 0,
            weight: Weight::default(),
            journal: None,
        }
    }
}

impl Writer {
    pub fn new(
        machine: Machine,
        clock: Clock,
        lanes: Arc<Lanes>,
        shared: Arc<Shared>,
        objects: Objects,
    ) -> Self {
        let boot = objects.boot();
        Self {
            machine,
            clock,
            lanes,
            shared,
            objects,
            boot,
        }
    }

    /// Works until the lanes are closed and empty.
    pub fn run(mut self) {
        loop {
            self.shared.seen();
            match self.lanes.wait(HEARTBEAT) {
                Wake::Work => self.group(),
                Wake::Idle => {}
                Wake::Closed => return self.shared.finish(),
            }
        }
    }

    fn group(&mut self) {
        let lock = self.shared.lock();
        // Unwinding would let readers see what isn't durable, so a panic ends the process before the lock does.
        let group =
            catch_unwind(AssertUnwindSafe(|| self.decide_all(lock.database()))).unwrap_or_else(|_| {
                fatal::stop(
                    &"the commit thread panicked; stopping, so that nothing is answered that isn't stored",
                )
            });
        if group.writes > 0 {
            let start = Instant::now();
            if let Err(error) = lock.database().sync() {
                fatal::stop_writing(&error, error.is_disk_full());
            }
            self.shared.count(group.writes, group.weight, start.elapsed());
        }
        if let Some(journal) = group.journal {
            self.shared.publish(journal);
        }
        lock.release();
        for (answer, outcome) in group.answers {
            // A caller that stopped waiting is no reason to stop.
            let _ = answer.send(outcome);
        }
    }

    fn decide_all(&self, database: &Database) -> Group<Answer> {
        let mut group = Group::default();
        while group.has_room() || !self.shared.bounds_groups() {
            let Some(Request { command, answer }) = self.lanes.pop() else {
                break;
            };
            let outcome = self.carry_out(database, &command, &mut group);
            group.answers.push((answer, outcome));
            self.shared.seen();
        }
        group
    }

    fn carry_out(
        &self,
        database: &Database,
        command: &Command,
        group: &mut Group<Answer>,
    ) -> Result<Committed, CommitError> {
        let missing = self.objects.missing(&command.objects());
        let missing = missing.map_err(|error| CommitError::Unreadable(error.to_string()))?;
        if !missing.is_empty() {
            return Err(Refusal::BlobMissing(missing).into());
        }
        let context = Context {
            now: self.clock.now(),
            boot: self.boot,
        };
        let step = self
            .machine
            .step(&database.view(), context, command)
            .map_err(|error| match error {
                StepError::Refused(refusal) => CommitError::Refused(refusal),
                StepError::Read(ReadError::Storage(why)) => fatal::stop_writing(&why, false),
                StepError::Read(damaged) => match damaged.job() {
                    Some(job) => CommitError::Damaged {
                        job,
                        why: damaged.to_string(),
                    },
                    None => CommitError::Unreadable(damaged.to_string()),
                },
            })?;
        group.take(&step)?;
        if !step.changes.is_empty() {
            if let Err(error) = database.apply(&step.changes) {
                fatal::stop_writing(&error, fatal::sled_disk_full(&error));
            }
            self.shared.record(&step.changes);
        }
        Ok(Committed {
            reply: step.reply,
            journal: step.journal,
        })
    }
}

impl<A> Group<A> {
    /// Another command may be decided before the next sync.
    #[must_use]
    pub fn has_room(&self) -> bool {
        (self.answers.len() as u64) < MAX_GROUP_COMMANDS && !self.weight.is_full()
    }

    /// Takes a step into the group; its changes are to be applied then.
    ///
    /// # Errors
    /// [`CommitError::TooLarge`] when it would write more than one command may; nothing is to be applied then.
    pub fn take(&mut self, step: &Step) -> Result<(), CommitError> {
        let weight = weigh(step)?;
        if !step.changes.is_empty() {
            self.writes += 1;
            self.weight += weight;
            self.journal = Some(step.journal);
        }
        Ok(())
    }
}

/// What a step's changes weigh, if that is not too much.
fn weigh(step: &Step) -> Result<Weight, CommitError> {
    let mut weight = Weight::default();
    for (key, value) in &step.changes {
        let found = key.len() + value.as_ref().map_or(0, Vec::len);
        if found > MAX_RECORD {
            let what = format!("in the record at {}", hex::encode(key));
            return Err(CommitError::TooLarge {
                what,
                found: found as u64,
                limit: MAX_RECORD as u64,
            });
        }
        weight += Weight {
            records: 1,
            bytes: found as u64,
        };
    }
    let too_large = |what: &str, found, limit| CommitError::TooLarge {
        what: what.to_owned(),
        found,
        limit,
    };
    if weight.bytes > MAX_COMMAND_BYTES {
        return Err(too_large("in all", weight.bytes, MAX_COMMAND_BYTES));
    }
    if weight.log() > MAX_COMMAND_LOG {
        return Err(too_large("of log", weight.log(), MAX_COMMAND_LOG));
    }
    Ok(weight)
}
