//! Random commands against a small independent model, every invariant checked after every step; then the same against
//! the real store, opened again at random: both must hold the same bytes.
//!
//! Seeds rotate and are printed. `PROOFKEEP_MODEL_SEED` repeats one, `PROOFKEEP_MODEL_CASES` sets how many runs are made
//! (never fewer than the floor).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

mod commands;
mod compare;
mod model;
mod real;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};

use commands::{Op, boot_open, command, patient};
use compare::difference;
use model::Model;
use proofkeep_store::fsck::{Mode, fsck};
use proofkeep_store::ids::{BootNumber, JobNumber, Millis};
use proofkeep_store::machine::{Command, CommandName, Context, Machine, Reply, Rules, StepError};
use proofkeep_store::records::{FailureClass, JobState, PartitionState};
use proofkeep_store::view::MemoryView;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

/// Runs made at least, whatever the environment says.
const FLOOR: u32 = 48;

/// Commands in one run, at most.
const LENGTH: usize = 220;

fn cases(floor: u32) -> u32 {
    let asked = std::env::var("PROOFKEEP_MODEL_CASES")
        .ok()
        .and_then(|text| text.parse().ok());
    asked.unwrap_or(0).max(floor)
}

fn seed() -> u64 {
    let asked = std::env::var("PROOFKEEP_MODEL_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    asked.unwrap_or_else(|| std::hash::RandomState::new().build_hasher().finish())
}

/// Runs `test` on random operations; says the seed first.
fn random(name: &str, seed: u64, cases: u32, length: usize, test: impl Fn(Vec<Op>) -> Result<(), String>) {
    eprintln!("{name}: {cases} runs with PROOFKEEP_MODEL_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 4000,
        ..Config::default()
    };
    let op = any::<(u8, u8, u8, u8)>().prop_map(|(kind, a, b, c)| Op(kind, a, b, c));
    let ops = proptest::collection::vec(op, length / 4..length);
    let result =
        TestRunner::new_with_rng(config, rng).run(&ops, |ops| test(ops).map_err(TestCaseError::fail));
    if let Err(error) = result {
        panic!("{name} with PROOFKEEP_MODEL_SEED={seed}: {error}");
    }
}

/// A machine over a store in memory, and the model of it.
#[derive(Default)]
struct Twin {
    machine: Machine,
    view: MemoryView,
    model: Model,
    boot: BootNumber,
    /// `fsck` stays out, so that only the model can notice something.
    model_alone: bool,
    /// Commands that were carried out, and states that jobs and partitions were seen in.
    seen: BTreeMap<String, u32>,
}

impl Twin {
    /// Carries out one command in both and compares everything.
    fn step(&mut self, now: Millis, command: &Command) -> Result<(), String> {
        if matches!(command, Command::BootOpen { .. }) {
            self.boot = BootNumber(self.boot.0 + 1);
        }
        let context = Context { now, boot: self.boot };
        let step = self.machine.step(&self.view, context, command);
        let reply = match step {
            Ok(step) => {
                if step.reply == Reply::Unchanged && !step.changes.is_empty() {
                    return Err(format!("{command:?} says unchanged and writes"));
                }
                self.view.apply(&step.changes);
                self.note(command, &step.reply);
                Ok(step.reply)
            }
            Err(StepError::Refused(refusal)) => Err(refusal),
            Err(error) => return Err(format!("{command:?}: {error}")),
        };
        let wrong = self.model.follow(command, now, &reply).err();
        let wrong = wrong.or_else(|| difference(&self.model, &self.view));
        if self.model_alone {
            return wrong.map_or(Ok(()), Err);
        }
        let wrong = wrong.or_else(|| {
            let report = fsck(&self.view, Mode::Full, None).unwrap();
            report.findings.first().map(ToString::to_string)
        });
        wrong.map_or(Ok(()), |wrong| Err(format!("{command:?}: {wrong}")))
    }

    fn note(&mut self, command: &Command, reply: &Reply) {
        if !matches!(reply, Reply::Stale | Reply::Unchanged) {
            *self.seen.entry(command.name().name().to_owned()).or_default() += 1;
        }
        for name in self.model.counters.keys() {
            *self.seen.entry(name.clone()).or_default() += 1;
        }
        for job in self.model.jobs.values() {
            *self.seen.entry(format!("job {:?}", job.state)).or_default() += 1;
            for partition in &job.partitions {
                *self
                    .seen
                    .entry(format!("partition {:?}", partition.state))
                    .or_default() += 1;
            }
        }
    }
}

/// One run: a boot, then what the operations mean. A crash is a boot that opens with no word before it.
fn run(mut twin: Twin, ops: &[Op]) -> Result<Twin, String> {
    let mut now = Millis(1_800_000_000_000);
    let mut ids = 0;
    twin.step(now, &boot_open(0))?;
    for op in ops {
        now = pass(now, *op);
        let next = command(*op, &twin.model, now, &mut ids).unwrap_or_else(|| boot_open(op.1));
        twin.step(now, &next)?;
        let repeated = !matches!(next, Command::BootOpen { .. } | Command::Submit(_));
        if op.0 % 16 == 7 && repeated {
            twin.step(now, &next)?;
        }
    }
    Ok(twin)
}

/// Time between two commands: mostly short, now and then an hour, now and then back.
fn pass(now: Millis, op: Op) -> Millis {
    match op.3 {
        250.. => Millis(now.0.saturating_sub(u64::from(op.2) * 60_000)),
        240..=249 => now.after(3_600_000),
        short => now.after(u64::from(short) * 50),
    }
}

#[test]
fn random_commands_do_what_the_model_says() {
    random("model", seed(), cases(FLOOR), LENGTH, |ops| {
        run(Twin::default(), &ops).map(drop)
    });
}

/// Nothing waits for ever: whatever happened before, after a restart a scheduler that does one thing at a time brings every
/// job to its end.
#[test]
fn every_job_comes_to_its_end_whatever_happened_before() {
    random("liveness", seed(), cases(FLOOR), LENGTH, |ops| {
        let twin = Twin {
            model_alone: true,
            ..Twin::default()
        };
        let mut twin = run(twin, &ops)?;
        let mut now = Millis(1_900_000_000_000);
        twin.step(now, &boot_open(0))?;
        if twin.model.paused {
            twin.step(
                now,
                &Command::Resume {
                    actor: "tester".into(),
                },
            )?;
        }
        // A partition has at most six steps an attempt and three attempts that count.
        let partitions: usize = twin.model.jobs.values().map(|job| job.partitions.len()).sum();
        for _ in 0..100 + 40 * partitions {
            let Some(next) = patient(&twin.model, now) else {
                twin.model_alone = false;
                return twin.step(now, &Command::ClockStep { by_ms: 0 });
            };
            now = now.after(1_000);
            if matches!(next, Command::Wake { .. }) {
                now = now.after(30 * 60 * 1000);
            }
            twin.step(now, &next)?;
        }
        let left = twin.model.jobs.iter().find(|(_, job)| !job.state.is_terminal());
        Err(format!("this job never ends: {left:?}"))
    });
}

/// The same with the largest job there is, cancelled, failed, expired, retried and crashed at random.
#[test]
fn the_largest_job_among_random_commands() {
    random("largest", seed(), 6, 80, |ops| {
        let mut twin = Twin {
            model_alone: true,
            ..Twin::default()
        };
        let mut now = Millis(1_800_000_000_000);
        let mut ids = 1;
        twin.step(now, &boot_open(0))?;
        twin.step(now, &Command::Submit(common::submit(1, 1024)))?;
        for op in ops {
            now = pass(now, op);
            let next = command(op, &twin.model, now, &mut ids).unwrap_or_else(|| boot_open(op.1));
            twin.step(now, &next)?;
        }
        for command in [
            Command::Cancel {
                job: JobNumber(1),
                actor: "tester".into(),
            },
            boot_open(1),
            common::retry(JobNumber(1)),
        ] {
            twin.step(now, &command)?;
        }
        twin.model_alone = false;
        twin.step(
            now,
            &Command::Cancel {
                job: JobNumber(1),
                actor: "tester".into(),
            },
        )
    });
}

/// A model run that never gets anywhere proves nothing. This one always makes the same runs.
#[test]
fn random_commands_get_everywhere() {
    let seen = RefCell::new(BTreeMap::<String, u32>::new());
    random("everywhere", 20_260, 100, LENGTH, |ops| {
        let twin = run(
            Twin {
                model_alone: true,
                ..Twin::default()
            },
            &ops,
        )?;
        for (what, times) in twin.seen {
            *seen.borrow_mut().entry(what).or_default() += times;
        }
        Ok(())
    });
    let seen = seen.into_inner();
    eprintln!("seen: {seen:?}");
    let commands = CommandName::ALL.iter().map(|name| name.name().to_owned());
    let jobs = JobState::ALL.iter().map(|state| format!("job {state:?}"));
    let partitions = PartitionState::ALL
        .iter()
        .map(|state| format!("partition {state:?}"));
    let ends = FailureClass::ALL
        .iter()
        .map(|class| format!("attempts/groth16/{}", class.name()));
    let all = commands.chain(jobs).chain(partitions).chain(ends);
    let missed: Vec<String> = all.filter(|what| !seen.contains_key(what)).collect();
    assert!(missed.is_empty(), "no run came to {missed:?}");
}

/// The model can see every fault that a rule prevents, also without `fsck`. Always the same runs as well.
#[test]
fn the_model_alone_notices_each_forgotten_rule() {
    for rule in Rules::NAMES {
        let machine = Machine {
            rules: Rules::without(rule).unwrap(),
        };
        let noticed = RefCell::new(0);
        random(rule, 11, 300, LENGTH, |ops| {
            if *noticed.borrow() == 0 {
                let twin = Twin {
                    machine,
                    model_alone: true,
                    ..Twin::default()
                };
                *noticed.borrow_mut() += u32::from(run(twin, &ops).is_err());
            }
            Ok(())
        });
        assert!(
            noticed.into_inner() > 0,
            "the model does not notice a machine without {rule}"
        );
    }
}
