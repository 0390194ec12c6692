//! One group: decide, apply, make durable, answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

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

/// One command writes at most this many bytes of keys and values. With the group before it that is 768 KiB, some
/// 4.5 MiB of log: less than a segment, as sled needs between two syncs.
pub const MAX_COMMAND_BYTES: usize = 512 << 10;

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

/// What a group has come to so far.
#[derive(Default)]
struct Group {
    answers: Vec<(Answer, Result<Committed, CommitError>)>,
    writes: u64,
    bytes: u64,
    journal: Option<JournalNumber>,
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
        Self { machine, clock, lanes, shared, objects, boot }
    }

    /// Works until the lanes are closed and empty.
    pub fn run(mut self) {
        loop {
            self.shared.seen();
            match self.lanes.wait(HEARTBEAT) {
                Wake::Work => self.group(),
                Wake::Idle => {}
                Wake::Closed => return,
            }
        }
    }

    fn group(&mut self) {
        let lock = self.shared.lock();
        // Unwinding would let readers see what isn't durable, so a panic ends the process before the lock does.
        let group = catch_unwind(AssertUnwindSafe(|| self.decide_all(lock.database())))
            .unwrap_or_else(|_| fatal::stop(&"the commit thread panicked; stopping, so that nothing is answered that isn't stored"));
        if group.writes > 0 {
            if let Err(error) = lock.database().sync() {
                fatal::stop_writing(&error, error.is_disk_full());
            }
            self.shared.count(group.writes, group.bytes);
        }
        lock.release();
        if let Some(journal) = group.journal {
            self.shared.durable.send_if_modified(|durable| {
                let risen = journal > *durable;
                *durable = journal.max(*durable);
                risen
            });
        }
        for (answer, outcome) in group.answers {
            // A caller that stopped waiting is no reason to stop.
            let _ = answer.send(outcome);
        }
    }

    fn decide_all(&self, database: &Database) -> Group {
        let mut group = Group::default();
        while group.has_room() {
            let Some(Request { command, answer }) = self.lanes.pop() else { break };
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
        group: &mut Group,
    ) -> Result<Committed, CommitError> {
        let missing = self.objects.missing(&command.objects());
        let missing = missing.map_err(|error| CommitError::Unreadable(error.to_string()))?;
        if !missing.is_empty() {
            return Err(Refusal::BlobMissing(missing).into());
        }
        let context = Context { now: self.clock.now(), boot: self.boot };
        let step = self.machine.step(&database.view(), context, command).map_err(|error| match error {
            StepError::Refused(refusal) => CommitError::Refused(refusal),
            StepError::Read(ReadError::Storage(why)) => fatal::stop_writing(&why, false),
            StepError::Read(damaged) => CommitError::Unreadable(damaged.to_string()),
        })?;
        let bytes = check_size(&step)?;
        if !step.changes.is_empty() {
            if let Err(error) = database.apply(&step.changes) {
                fatal::stop_writing(&error, fatal::sled_disk_full(&error));
            }
            group.writes += 1;
            group.bytes += bytes as u64;
            group.journal = Some(step.journal);
        }
        Ok(Committed { reply: step.reply, journal: step.journal })
    }
}

impl Group {
    fn has_room(&self) -> bool {
        (self.answers.len() as u64) < MAX_GROUP_COMMANDS && self.bytes < MAX_GROUP_BYTES
    }
}

/// Bytes of keys and values that a step writes.
fn check_size(step: &Step) -> Result<usize, CommitError> {
    let mut total = 0;
    for (key, value) in &step.changes {
        let found = key.len() + value.as_ref().map_or(0, Vec::len);
        if found > MAX_RECORD {
            let what = format!("in the record at {}", hex::encode(key));
            return Err(CommitError::TooLarge { what, found, limit: MAX_RECORD });
        }
        total += found;
    }
    if total > MAX_COMMAND_BYTES {
        return Err(CommitError::TooLarge { what: "in all".to_owned(), found: total, limit: MAX_COMMAND_BYTES });
    }
    Ok(total)
}
