//! The world of one run: what there is, what can happen next, and one step of it.

use std::collections::{BTreeMap, BTreeSet};

use proofkeep_store::clock::Clock;
use proofkeep_store::fsck::{Mode, fsck};
use proofkeep_store::ids::{BootNumber, JobNumber, ProcessId};
use proofkeep_store::keys::{self, Sequence};
use proofkeep_store::machine::{Command, Machine, VerifyVerdict};
use proofkeep_store::records::{Failure, FailureClass, Job};
use proofkeep_store::view::View as _;
use proofkeep_store::{codec, query};

use crate::chance::Chance;
use crate::child::{Child, Weather};
use crate::daemon::{Daemon, Phase, Turn};
use crate::disk::{Broken, Disk};
use crate::time::Time;
use crate::trace::{Counts, Trace};
use crate::users::Users;
use crate::watch::Watch;

/// Bytes for tickets and keys.
const BUDGET: u64 = 1 << 30;
/// `fsck` of everything, every so many steps.
const FSCK_EVERY: u64 = 4_000;

/// Sets of devices that a boot may find.
const DEVICES: [&[(&str, u32)]; 4] = [
    &[("cpu:0", 2)],
    &[("cuda:0", 1), ("cpu:0", 1)],
    &[("cpu:0", 1), ("cuda:0", 2), ("cuda:1", 1)],
    &[("cpu:0", 3), ("cuda:0", 1)],
];

/// Everything.
pub struct World {
    pub(crate) time: Time,
    pub(crate) chance: Chance,
    pub(crate) disk: Disk,
    pub(crate) users: Users,
    pub(crate) children: BTreeMap<ProcessId, Child>,
    /// What really happened to partitions: what they may fail for.
    pub(crate) blame: BTreeMap<(u64, u32), BTreeSet<FailureClass>>,
    /// Deaths of processes that were counted for a partition in a generation.
    pub(crate) deaths: BTreeMap<(u64, u32, u32), u32>,
    pub(crate) counts: Counts,
    pub(crate) daemon: Option<Daemon>,
    /// Things go wrong.
    pub(crate) rough: bool,
    pub(crate) machine: Machine,
    pub(crate) watch: Watch,
    trace: Trace,
    steps: u64,
    /// A file that a job needs was lost.
    pub(crate) lost_files: bool,
    /// The daemon crashed in this step.
    pub(crate) gone: bool,
}

/// What can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Boot,
    Recover,
    Decide,
    Sync,
    Loop,
    Reader(usize),
    /// The worker process at that place among those there are, so that it means something where other ones were started.
    Child(usize),
    Check(usize),
    User,
    Answer,
    Time,
    Fault,
}

impl World {
    /// The beginning of a run: an empty disk, and no daemon.
    #[must_use]
    pub fn new(seed: u64, machine: Machine, broken: Broken) -> Self {
        Self {
            time: Time::begin(),
            chance: Chance::new(seed),
            disk: Disk::new(broken),
            users: Users::default(),
            children: BTreeMap::new(),
            blame: BTreeMap::new(),
            deaths: BTreeMap::new(),
            counts: Counts::default(),
            daemon: None,
            rough: true,
            machine,
            watch: Watch::default(),
            trace: Trace::default(),
            steps: 0,
            lost_files: false,
            gone: false,
        }
    }

    /// Steps so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// What happened, how often.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// So many of the last steps are kept in words.
    pub fn keep_lines(&mut self, lines: usize) {
        self.trace.keep(lines);
    }

    /// The last steps in words.
    #[must_use]
    pub fn last(&self) -> Vec<String> {
        self.trace.last()
    }

    /// A number that is the same for the same run: it covers every step and every byte of the store.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut trace = self.trace.clone();
        for (key, value) in &self.disk.view.0 {
            trace.mix(key);
            trace.mix(value);
        }
        trace.fingerprint()
    }

    pub(crate) fn trace(&mut self, line: impl FnOnce() -> String) {
        let line = format!("{:>8} {:>10} ms  {}", self.steps, self.time.passed_ms(), line());
        self.trace.say(line);
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        self.counts.add(what, 1);
    }

    pub(crate) fn count_many(&mut self, what: &'static str, times: u64) {
        self.counts.add(what, times);
    }

    pub(crate) fn weather(&self) -> Weather {
        Weather { rough: self.rough }
    }

    /// One step.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn step(&mut self) -> Result<(), String> {
        self.steps += 1;
        self.chance.step(!self.rough);
        self.time.pass(self.chance.below(12));
        let mut daemon = self.daemon.take();
        let next = match self.chance.remembered() {
            Some(next) if self.is_possible(daemon.as_ref(), next) => next,
            // What made it possible was left out.
            Some(_) => {
                self.daemon = daemon;
                return Ok(());
            }
            None => self.choose(daemon.as_ref()),
        };
        self.chance.chose(next);
        let done = match &mut daemon {
            None => {
                daemon = self.without(next);
                Ok(())
            }
            Some(living) => self.carry_out(living, next),
        };
        done?;
        self.daemon = daemon.filter(|_| !std::mem::take(&mut self.gone));
        if let Some(daemon) = &self.daemon {
            let (reserved, budget) = (daemon.accounts.reserved(), daemon.accounts.budget());
            if reserved > budget {
                return Err(format!("{reserved} bytes are reserved of {budget}"));
            }
            let closed = matches!(&daemon.phase, Phase::Closing(id) if daemon.mail.contains_key(id));
            if closed && !daemon.is_locked() && daemon.queues.is_empty() {
                self.goodbye()?;
            }
        }
        if self.steps.is_multiple_of(FSCK_EVERY) {
            self.fsck()?;
        }
        Ok(())
    }

    /// What can happen next, and one of it.
    fn choose(&mut self, daemon: Option<&Daemon>) -> Next {
        if self.rough {
            let starting =
                daemon.is_some_and(|daemon| !matches!(daemon.phase, Phase::Working | Phase::Stopping(_)));
            let times = 1 + 3 * u64::from(starting) + 4 * u64::from(self.disk.unsynced() > 0);
            if daemon.is_some() && self.chance.below(220) < times {
                return Next::Fault;
            }
        }
        if self.rough && self.chance.one_in(260) {
            return Next::Time;
        }
        let can = self.can(daemon);
        let all: u64 = can.iter().map(|(weight, _)| weight).sum();
        let mut at = self.chance.below(all);
        for (weight, next) in can {
            if at < weight {
                return next;
            }
            at -= weight;
        }
        Next::Time
    }

    /// It can happen now.
    fn is_possible(&self, daemon: Option<&Daemon>, next: Next) -> bool {
        match next {
            Next::Time => true,
            Next::Fault => self.rough && daemon.is_some(),
            next => self.can(daemon).iter().any(|(_, possible)| *possible == next),
        }
    }

    /// What can happen besides faults and time, with its weight.
    fn can(&self, daemon: Option<&Daemon>) -> Vec<(u64, Next)> {
        let mut can = Vec::new();
        match daemon {
            None => can.push((1, Next::Boot)),
            Some(daemon) => {
                self.daemon_can(daemon, &mut can);
                for (place, child) in self.children.values().enumerate() {
                    if child.is_busy() {
                        can.push((4, Next::Child(place)));
                    }
                }
            }
        }
        can
    }

    fn daemon_can(&self, daemon: &Daemon, can: &mut Vec<(u64, Next)>) {
        if daemon.is_locked() {
            can.push((5, Next::Sync));
        }
        let room = daemon.group.as_ref().is_none_or(|group| group.has_room());
        if !daemon.queues.is_empty() && room {
            can.push((10, Next::Decide));
        }
        if self.recovery_can_go_on(daemon) {
            can.push((10, Next::Recover));
        }
        if self.loop_can_go_on(daemon) {
            can.push((8, Next::Loop));
        }
        for index in 0..daemon.runs.len() {
            if self.reader_can_go_on(daemon, index) {
                can.push((6, Next::Reader(index)));
            }
        }
        for (index, check) in daemon.checks.iter().enumerate() {
            let goes_on = match check.sent {
                None => !daemon.is_locked(),
                Some(id) => daemon.mail.contains_key(&id),
            };
            if goes_on {
                can.push((3, Next::Check(index)));
            }
        }
        // The listener opens when recovery is done.
        let serves = matches!(daemon.phase, Phase::Working | Phase::Stopping(_));
        if serves && self.rough && !daemon.is_locked() {
            can.push((2, Next::User));
        }
        if self.answer_waits(daemon) && !daemon.is_locked() {
            can.push((4, Next::Answer));
        }
    }

    fn without(&mut self, next: Next) -> Option<Daemon> {
        if let Next::Time = next {
            self.pass_time();
            return None;
        }
        let boot = BootNumber(self.sequence(Sequence::Boot) + 1);
        let clock = Clock::starting(self.time.wall(), self.time.now());
        let devices = DEVICES[self.chance.index(DEVICES.len())];
        let devices = devices
            .iter()
            .map(|(name, slots)| ((*name).to_owned(), *slots))
            .collect();
        self.trace(|| format!("boot {boot} begins"));
        self.count("boots");
        let limits = (BUDGET, self.chance.index(16) + 1);
        Some(Daemon::new(boot, clock, limits, devices, self.time.now()))
    }

    fn carry_out(&mut self, daemon: &mut Daemon, next: Next) -> Result<(), String> {
        match next {
            Next::Boot => Ok(()),
            Next::Time => {
                self.pass_time();
                Ok(())
            }
            Next::Decide => self.decide(daemon),
            Next::Sync => {
                self.sync(daemon);
                Ok(())
            }
            Next::Recover => self.recover(daemon),
            Next::Loop => {
                self.trace(|| format!("the loop: {}", turn_name(&daemon.turn)));
                self.loop_step(daemon)
            }
            Next::Reader(index) => {
                self.trace(|| format!("the reader of {}", daemon.runs[index].device));
                self.reader_step(daemon, index)
            }
            Next::Child(place) => {
                if let Some(id) = self.children.keys().nth(place).copied() {
                    self.child_step(id);
                }
                Ok(())
            }
            Next::Check(index) => self.check_step(daemon, index),
            Next::User => {
                if self.chance.one_in(12) {
                    self.users.check(&self.disk.view)?;
                }
                if self.chance.one_in(500) || (self.is_draining() && self.chance.one_in(30)) {
                    self.order_stop(daemon);
                } else if self.chance.one_in(4) {
                    self.user_step(daemon);
                }
                Ok(())
            }
            Next::Answer => self.answer_step(daemon),
            Next::Fault => self.fault(daemon),
        }
    }

    /// Nothing else can happen, or something takes long.
    fn pass_time(&mut self) {
        let ms = match self.chance.below(12) {
            0 => self.chance.between(20_000, 100_000),
            1..=3 => self.chance.between(2_000, 12_000),
            _ => self.chance.between(100, 1_500),
        };
        self.trace(|| format!("{ms} ms pass"));
        self.time.pass(ms);
    }

    fn child_step(&mut self, id: ProcessId) {
        let weather = self.weather();
        let Some(child) = self.children.get_mut(&id) else {
            return;
        };
        let (blames, objects) = child.step(&mut self.chance, weather);
        let dead = child.status.is_some();
        for (job, partition, class) in blames {
            self.blame.entry((job, partition)).or_default().insert(class);
        }
        self.disk.objects.extend(objects);
        if dead {
            self.count("deaths of processes");
        }
        self.trace(|| format!("process {id}{}", if dead { " dies" } else { "" }));
    }

    /// A final check comes to its verdict; or its verdict is durable.
    fn check_step(&mut self, daemon: &mut Daemon, index: usize) -> Result<(), String> {
        let check = daemon.checks[index].clone();
        if let Some(id) = check.sent {
            if let Some(Err(error)) = daemon.mail.remove(&id) {
                return Err(format!("the verdict on job {} was refused: {error}", check.job));
            }
            daemon.checks.remove(index);
            daemon.bell = true;
            return Ok(());
        }
        let token = check.token;
        let command = if daemon.is_stopping() {
            Command::VerifyDrop { token }
        } else {
            let verdict = self.verdict(check.job)?;
            Command::VerifyEnd { token, verdict }
        };
        daemon.checks[index].sent = Some(daemon.send(command));
        Ok(())
    }

    fn verdict(&mut self, number: JobNumber) -> Result<VerifyVerdict, String> {
        let read = |error: proofkeep_store::view::ReadError| error.to_string();
        let job: Option<Job> = self.disk.view.record(&keys::job(number)).map_err(read)?;
        let partitions = job.map_or(1, |job| job.partitions);
        Ok(match self.chance.below(80) {
            0 if self.rough => {
                let bad = u32::try_from(self.chance.below(u64::from(partitions))).unwrap_or(0);
                let classes = self.blame.entry((number.0, bad)).or_default();
                classes.insert(FailureClass::InvalidProof);
                VerifyVerdict::BadPartitions(vec![bad])
            }
            1 if self.rough => {
                let failure = Failure::new(FailureClass::JoinInvalid, "the whole doesn't verify");
                VerifyVerdict::JoinInvalid(failure)
            }
            _ => VerifyVerdict::Passed,
        })
    }

    pub(crate) fn sequence(&self, sequence: Sequence) -> u64 {
        self.disk
            .view
            .0
            .get(&keys::sequence(sequence))
            .and_then(|bytes| codec::read_number(bytes).ok())
            .unwrap_or(0)
    }

    pub(crate) fn is_draining(&self) -> bool {
        query::queue(&self.disk.view).is_ok_and(|queue| queue.draining)
    }

    /// Everything is checked.
    ///
    /// # Errors
    /// The first finding.
    pub(crate) fn fsck(&mut self) -> Result<(), String> {
        self.count("full checks");
        let report = fsck(&self.disk.view, Mode::Full, None).map_err(|error| error.to_string())?;
        match report.findings.first() {
            Some(finding) => Err(format!("fsck: {finding}")),
            None => Ok(()),
        }
    }
}

fn turn_name(turn: &Turn) -> String {
    match turn {
        Turn::Resting => "rests".to_owned(),
        Turn::Tending(index, None) => format!("tends device {index}"),
        Turn::Tending(index, Some(_)) => format!("starts a process for device {index}"),
        Turn::Acting(sent, granted) => format!("waits for {} answers, granted: {granted}", sent.len()),
    }
}
