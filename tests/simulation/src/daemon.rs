//! The simulated daemon: threads are turned into steps, and everything that decides is the product's own: lanes, groups,
//! the machine, the accounts, the scheduler, what a process holds and what its words mean.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use proofkeep_engine::budget::Accounts;
use proofkeep_engine::schedule::{Decision, Walk};
use proofkeep_engine::workers::held::Held;
use proofkeep_engine::workers::starts::{Orphans, Starts};
use proofkeep_engine::workers::words::{Act, OnRefusal};
use proofkeep_store::CommitError;
use proofkeep_store::clock::Clock;
use proofkeep_store::commit::{Committed, Group, Queues};
use proofkeep_store::ids::{BootNumber, JobNumber, ProcessId, Token};
use proofkeep_store::machine::Command;
use proofkeep_store::records::Failure;

/// A command on its way, and the number by which its sender knows it.
#[derive(Clone, Debug)]
pub struct Request {
    /// The number.
    pub id: u64,
    /// The command.
    pub command: Command,
}

/// What a command came to.
pub type Outcome = Result<Committed, CommitError>;

/// Where a boot is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// `boot_open` is on its way.
    Opening(u64),
    /// Jobs that lost a file are looked for, those after this one; a command may be on its way.
    Recovering(Option<JobNumber>, VecDeque<u64>),
    /// It works.
    Working,
    /// It was asked to stop, and kills what is left then.
    Stopping(Instant),
    /// `boot_close` is on its way.
    Closing(u64),
}

/// Where the run loop is.
#[derive(Debug)]
pub enum Turn {
    /// It waits to be woken.
    Resting,
    /// It looks after the device of this index; a process may be about to be named.
    Tending(usize, Option<u64>),
    /// What was decided is on its way to the store; whether something was granted.
    Acting(VecDeque<(Decision, u64)>, bool),
}

/// A device with its process.
#[derive(Debug)]
pub struct Run {
    /// Its name.
    pub device: String,
    /// When the next process may be started.
    pub starts: Starts,
    /// The process, until it is buried.
    pub live: Option<Process>,
}

/// A worker process as the daemon knows it.
#[derive(Debug)]
pub struct Process {
    /// Its name.
    pub id: ProcessId,
    /// Started at.
    pub since: Instant,
    /// It said hello.
    pub up: bool,
    /// It was told to quit.
    pub quitting: bool,
    /// It is gone, and the store knows.
    pub gone: bool,
    /// Nothing more comes from it; since when.
    pub closed: Option<Instant>,
    /// What it holds.
    pub held: Held,
    /// We killed it, perhaps for one of its leases.
    pub killed: Option<Option<(Token, Failure)>>,
    /// We killed it since it said nothing that can be understood.
    pub nonsense: bool,
    /// What its reader still has to do about the last word.
    pub acts: VecDeque<Act>,
    /// What its reader waits for.
    pub waits: Option<Waits>,
}

/// What a reader waits for.
#[derive(Clone, Debug)]
pub enum Waits {
    /// The outcome of a word.
    Word(u64, OnRefusal),
    /// The outcome of the process' end.
    Lost(u64, Box<Command>),
}

/// A final check that runs, or whose verdict is on its way.
#[derive(Clone, Debug)]
pub struct Check {
    /// Which job.
    pub job: JobNumber,
    /// Its lease.
    pub token: Token,
    /// The command with its verdict.
    pub sent: Option<u64>,
}

/// One boot of the daemon: all that a crash forgets.
#[derive(Debug)]
pub struct Daemon {
    /// Its number.
    pub boot: BootNumber,
    /// Its clock.
    pub clock: Clock,
    /// The lanes of the commit thread.
    pub queues: Queues<Request>,
    /// The commands that were decided and aren't durable yet; there while the commit thread holds its lock.
    pub group: Option<Group<u64>>,
    /// Answers that their askers didn't read yet.
    pub mail: BTreeMap<u64, Outcome>,
    posted: BTreeSet<u64>,
    last_id: u64,
    /// Memory.
    pub accounts: Accounts,
    /// Where it is.
    pub phase: Phase,
    /// Devices.
    pub runs: Vec<Run>,
    /// The run loop.
    pub turn: Turn,
    /// Something changed since the run loop last looked.
    pub bell: bool,
    /// The next second.
    pub second_at: Instant,
    /// Slow looks.
    pub slow_at: Instant,
    /// The clock stepped.
    pub no_deadlines_until: Option<Instant>,
    /// Where walks have come.
    pub walk: Walk,
    /// Jobs worth a look.
    pub hints: BTreeSet<JobNumber>,
    /// Attempts that nobody holds.
    pub orphans: Orphans,
    /// Final checks.
    pub checks: Vec<Check>,
    /// It was asked to stop when the loop next rests.
    pub order: Option<Instant>,
}

impl Daemon {
    /// A boot that wasn't opened yet.
    #[must_use]
    pub fn new(
        boot: BootNumber,
        clock: Clock,
        (budget, requests): (u64, usize),
        devices: Vec<(String, u32)>,
        now: Instant,
    ) -> Self {
        let version = "simulated".to_owned();
        let mut daemon = Self {
            boot,
            clock,
            queues: Queues::new(requests),
            group: None,
            mail: BTreeMap::new(),
            posted: BTreeSet::new(),
            last_id: 0,
            accounts: Accounts::new(budget),
            phase: Phase::Opening(1),
            runs: Vec::new(),
            turn: Turn::Resting,
            bell: true,
            second_at: now,
            slow_at: now,
            no_deadlines_until: None,
            walk: Walk::default(),
            hints: BTreeSet::new(),
            orphans: Orphans::default(),
            checks: Vec::new(),
            order: None,
        };
        let run = |(device, _): &(String, u32)| Run {
            device: device.clone(),
            starts: Starts::default(),
            live: None,
        };
        daemon.runs = devices.iter().map(run).collect();
        daemon.send(Command::BootOpen { version, devices });
        daemon
    }

    /// Sends a command; its outcome comes by mail, at once if it isn't taken.
    pub fn send(&mut self, command: Command) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        if let Err(error) = self.queues.push(command.lane(), Request { id, command }) {
            self.mail.insert(id, Err(error));
        }
        id
    }

    /// Sends a command whose outcome nobody waits for.
    pub fn post(&mut self, command: Command) {
        let id = self.send(command);
        if self.mail.remove(&id).is_none() {
            self.posted.insert(id);
        }
    }

    /// Answers a command.
    pub fn answer(&mut self, id: u64, outcome: Outcome) {
        if !self.posted.remove(&id) {
            self.mail.insert(id, outcome);
        }
    }

    /// The commit thread holds its lock: nobody reads.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.group.is_some()
    }

    /// Processes that aren't buried.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.runs.iter().filter_map(|run| run.live.as_ref())
    }

    /// The process of that name.
    pub fn process(&mut self, id: ProcessId) -> Option<&mut Process> {
        self.runs
            .iter_mut()
            .filter_map(|run| run.live.as_mut())
            .find(|process| process.id == id)
    }

    /// It was asked to stop and works towards that.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        matches!(self.phase, Phase::Stopping(_) | Phase::Closing(_))
    }
}

impl Process {
    /// A process that was just started.
    #[must_use]
    pub fn new(id: ProcessId, since: Instant) -> Self {
        Self {
            id,
            since,
            up: false,
            quitting: false,
            gone: false,
            closed: None,
            held: Held::default(),
            killed: None,
            nonsense: false,
            acts: VecDeque::new(),
            waits: None,
        }
    }

    /// It said hello and isn't gone.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.up && !self.gone
    }
}
