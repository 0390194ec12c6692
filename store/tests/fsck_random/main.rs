//! Whatever is asked of the machine, in whatever order, by callers that are late, confused or killed: the store stays
//! clean after every single command. The seeds are fixed, so a failure comes back.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../fsck_support/mod.rs"]
mod support;
mod useful;
mod whatever;

use proofkeep_store::ids::{BootNumber, JobNumber, JournalNumber, Token, WorkerId};
use proofkeep_store::keys::{self, Family};
use proofkeep_store::machine::{
    CircuitAdd, Command, ProofStored, Replacement, Reply, StepError, Submit, SynthEnd, VerifyVerdict,
};
use proofkeep_store::query;
use proofkeep_store::records::{
    CircuitState, DeviceState, Failure, FailureClass, JobState, OnFailure, PartitionState, Piece, Priority,
    SourceFiles,
};
use proofkeep_store::view::View;
use support::{World, digest, facts};

/// Two devices, three slots.
const DEVICES: [(&str, u32); 2] = [("cpu:0", 1), ("opencl:0", 2)];
const WORKERS: usize = 3;

/// A small generator of numbers (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % sides as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() {
            None
        } else {
            Some(from[self.roll(from.len())])
        }
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.roll(100) < percent
    }
}

fn devices() -> Vec<(String, u32)> {
    DEVICES
        .iter()
        .map(|(name, slots)| ((*name).to_owned(), *slots))
        .collect()
}

/// Somebody who asks for anything.
struct Crowd {
    world: World,
    dice: Dice,
    tokens: Vec<Token>,
    counts: std::collections::BTreeMap<&'static str, u32>,
}

impl Crowd {
    fn new(seed: u64) -> Self {
        let mut crowd = Self {
            world: World::new(),
            dice: Dice(seed),
            tokens: Vec::new(),
            counts: Default::default(),
        };
        crowd.world.boot = BootNumber(2);
        crowd.world.step(Command::BootOpen {
            version: "test".to_owned(),
            devices: devices(),
        });
        crowd
    }

    fn device(&mut self) -> String {
        DEVICES[self.dice.roll(DEVICES.len())].0.to_owned()
    }

    /// From now on, commands name a worker process of any device.
    fn change_process(&mut self) {
        let live: Vec<_> = query::devices(&self.world.view)
            .unwrap()
            .iter()
            .filter_map(|device| device.process)
            .collect();
        if let Some(process) = self.dice.pick(&live) {
            self.world.process = process;
        }
    }

    fn actor() -> String {
        "local".to_owned()
    }

    fn job(&mut self) -> JobNumber {
        let last = query::last_job(&self.world.view).unwrap().0;
        let active: Vec<JobNumber> = query::active_jobs(&self.world.view, None, 100)
            .unwrap()
            .jobs
            .iter()
            .map(|job| job.number)
            .collect();
        if self.dice.chance(70)
            && let Some(job) = self.dice.pick(&active)
        {
            return job;
        }
        JobNumber(self.dice.roll(last as usize + 2) as u64)
    }

    /// A lease in force, mostly; sometimes one of long ago, or none at all.
    fn token(&mut self) -> Token {
        let live: Vec<Token> = query::leases(&self.world.view)
            .unwrap()
            .iter()
            .map(|lease| lease.token)
            .collect();
        let old = self.tokens.clone();
        let pool = if self.dice.chance(85) { live } else { old };
        self.dice.pick(&pool).unwrap_or(Token {
            boot: BootNumber(1),
            grant: JournalNumber(2),
        })
    }

    fn failure(&mut self) -> Failure {
        let class = self.dice.pick(&FailureClass::ALL).unwrap();
        Failure::new(class, "as the dice fell")
    }

    fn submit(&mut self) -> Submit {
        let partitions = 1 + self.dice.roll(4) as u32;
        let submit = self.world.submission(partitions);
        let priority = self.dice.pick(&Priority::ALL).unwrap();
        let key = self.dice.chance(50).then(|| format!("key-{}", self.dice.roll(4)));
        let on_failure = if self.dice.chance(30) {
            OnFailure::Stop
        } else {
            OnFailure::Continue
        };
        let deadline = self
            .dice
            .chance(20)
            .then(|| self.world.now.after(self.dice.roll(5000) as u64));
        let max_attempts = 1 + self.dice.roll(3) as u32;
        let mut submit = Submit {
            priority,
            idempotency_key: key,
            on_failure,
            deadline,
            max_attempts,
            ..submit
        };
        if submit.idempotency_key.is_some() && self.dice.chance(70) {
            submit.request = digest("the same");
            submit.inline = Some(b"the same".to_vec());
        }
        if self.dice.chance(20) {
            submit.circuit = Some(self.circuit());
        }
        submit
    }

    fn circuit(&mut self) -> proofkeep_store::ids::Digest {
        match self.dice.roll(20) {
            0 => digest("circuit"),
            1..12 => digest("second"),
            _ => digest("made here"),
        }
    }

    fn turn(&mut self) {
        self.change_process();
        let useful = if self.dice.chance(70) { self.useful() } else { None };
        let command = match useful {
            Some(command) => command,
            None => self.command(),
        };
        self.world.now = self.world.now.after(self.dice.roll(800) as u64);
        let name = command.name().name();
        match self.world.try_step(&command) {
            Ok(reply) => {
                *self.counts.entry(name).or_default() +=
                    u32::from(!matches!(reply, Reply::Stale | Reply::Unchanged));
                match reply {
                    Reply::Granted { token, .. } => self.tokens.push(token),
                    Reply::Process(process) => self.world.process = process,
                    _ => {}
                }
            }
            Err(StepError::Refused(_)) => {}
            Err(StepError::Read(error)) => panic!("{name}: {error}"),
        }
    }
}

#[test]
fn the_store_stays_clean_whatever_is_asked() {
    let mut counts = std::collections::BTreeMap::<&str, u32>::new();
    for seed in 0..SEEDS {
        let mut crowd = Crowd::new(seed);
        for _ in 0..250 {
            crowd.turn();
        }
        for (name, count) in crowd.counts {
            *counts.entry(name).or_default() += count;
        }
        assert!(
            crowd
                .world
                .view
                .scan(&keys::family(Family::Event), None, 1)
                .unwrap()
                .len()
                == 1
        );
    }
    for name in proofkeep_store::machine::CommandName::ALL {
        let done = counts.get(name.name()).copied().unwrap_or(0);
        assert!(done > 0, "{} never happened: {counts:?}", name.name());
    }
}

const SEEDS: u64 = 60;
