//! Every state, every command, against the table; and the table against the drawn diagrams.
//!
//! States are reached by commands alone, from an empty store. In each of them every command is tried in all its variants:
//! the lease it names is the partition's own, current or last; every failure class; before and after the deadline.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::*;
use proofkeep_store::event::What;
use proofkeep_store::ids::{JobNumber, JournalNumber, Millis, Token, WorkerId};
use proofkeep_store::keys;
use proofkeep_store::machine::table::{self, ELSEWHERE, Outcome, PARTITION_STATES, Phase};
use proofkeep_store::machine::{Command, CommandName, Reply, Rules, Submit, VerifyVerdict, diagram};
use proofkeep_store::records::{FailureClass, Job, JobState, OnFailure, Partition, PartitionState};
use proofkeep_store::view::record;

const DEVICES: &[(&str, u32)] = &[("cpu:0", 3), ("cuda:0", 1)];
const DEADLINE_MS: u64 = 1_000_000;

/// A world in which one job is in a certain state.
struct Situation {
    name: String,
    world: World,
    job: JobNumber,
    submit: Submit,
}

/// A job as submitted: with a key, a deadline, and so many partitions.
fn begin(name: &str, partitions: u32, change: impl Fn(&mut Submit)) -> Situation {
    let mut world = World::with(Rules::ALL, DEVICES);
    let mut submit = world.submit(partitions);
    submit.idempotency_key = Some("key".into());
    submit.deadline = Some(world.now.after(DEADLINE_MS));
    change(&mut submit);
    let job = world.submitted(submit.clone());
    Situation {
        name: name.into(),
        world,
        job,
        submit,
    }
}

impl Situation {
    fn then(mut self, name: &str, act: impl Fn(&mut World, JobNumber)) -> Self {
        act(&mut self.world, self.job);
        if !name.is_empty() {
            self.name = format!("{}, {name}", self.name);
        }
        self
    }
}

/// Grants a synthesis on the second device.
fn synth_on_cuda(world: &mut World, job: JobNumber, partition: u32) {
    let process = world.process("cuda:0");
    world.run(Command::SynthStart {
        job,
        partition,
        process,
    });
}

/// One partition in every state that a running job can have.
fn every_stage(world: &mut World, job: JobNumber) {
    world.prove(job, 0);
    world.fail(job, 1, FailureClass::TimedOut);
    world.synthesized(job, 2);
    let finishing = world.proving(job, 3, 0);
    world.run(gpu_end(finishing));
    world.proving(job, 4, 1);
    synth_on_cuda(world, job, 5);
    // 6 stays ready.
}

fn going() -> Vec<Situation> {
    let stop = |submit: &mut Submit| submit.on_failure = OnFailure::Stop;
    let once = |submit: &mut Submit| submit.max_attempts = 1;
    vec![
        begin("queued", 2, |_| {}),
        begin("queued again", 2, |_| {}).then("", |world, job| {
            world.prove(job, 0);
            world.cancel(job);
            world.run(retry(job));
        }),
        begin("every stage", 8, |_| {}).then("one failed", |world, job| {
            world.fail(job, 7, FailureClass::Unsatisfied);
            every_stage(world, job);
        }),
        begin("every stage, stop at a failure", 7, stop).then("", every_stage),
        begin("one attempt each, stop at a failure", 6, |submit| {
            stop(submit);
            once(submit);
        })
        .then("", |world, job| {
            world.synthesized(job, 0);
            world.finishing(job, 1);
            world.proving(job, 2, 1);
            world.finishing(job, 3);
            world.synth(job, 4);
            synth_on_cuda(world, job, 5);
        }),
        begin("stop at a failure, one waits", 3, stop).then("", |world, job| {
            world.fail(job, 0, FailureClass::TimedOut);
            for _ in 0..3 {
                world.synth(job, 1);
                world.crash("cpu:0");
            }
            world.synth(job, 1);
        }),
        begin("the last is finished", 2, |_| {}).then("", |world, job| {
            world.prove(job, 0);
            world.finishing(job, 1);
        }),
        begin("the last is finished, one failed", 2, |_| {}).then("", |world, job| {
            world.fail(job, 0, FailureClass::Unsatisfied);
            world.finishing(job, 1);
        }),
        begin("no lease", 3, |_| {}).then("", |world, job| {
            world.fail(job, 0, FailureClass::TimedOut);
            world.synthesized(job, 1);
        }),
        begin("the last attempt", 1, once).then("", |world, job| {
            world.proving(job, 0, 0);
        }),
        begin("the last attempt in synthesis", 1, once).then("", |world, job| {
            world.synth(job, 0);
        }),
        begin("alone", 1, |_| {}).then("in proving", |world, job| {
            for _ in 0..3 {
                world.proving(job, 0, 0);
                world.crash("cpu:0");
            }
            world.proving(job, 0, 0);
        }),
        begin("alone", 1, |_| {}).then("in finishing", |world, job| {
            for _ in 0..3 {
                world.finishing(job, 0);
                world.crash("cpu:0");
            }
            world.finishing(job, 0);
        }),
        begin("all wait", 1, |_| {}).then("", |world, job| world.fail(job, 0, FailureClass::Stalled)),
    ]
}

fn verifying() -> Vec<Situation> {
    let proved = |world: &mut World, job| {
        world.prove(job, 0);
        world.prove(job, 1);
    };
    let checked = move |world: &mut World, job| {
        proved(world, job);
        world.run(Command::VerifyStart { job });
    };
    vec![
        begin("all proved", 2, |_| {}).then("", proved),
        begin("checked", 2, |_| {}).then("", checked),
    ]
}

fn stop(target: &str, world: &mut World, job: JobNumber) {
    match target {
        "cancelled" => drop(world.cancel(job)),
        "expired" => {
            let now = world.now;
            world.now = now.after(DEADLINE_MS);
            world.run(Command::Expire { job });
            world.now = now;
        }
        _ => {
            let gone = failure(FailureClass::InputMissing);
            world.run(Command::FailJob { job, failure: gone });
        }
    }
}

fn stopping() -> Vec<Situation> {
    let mut found = Vec::new();
    for target in ["cancelled", "failed", "expired"] {
        let stop = move |world: &mut World, job| stop(target, world, job);
        found.extend([
            begin("every stage", 8, |_| {}).then(target, |world, job| {
                world.fail(job, 7, FailureClass::Unsatisfied);
                every_stage(world, job);
                stop(world, job);
            }),
            begin("synthesizing", 2, |_| {}).then(target, |world, job| {
                world.synth(job, 0);
                stop(world, job);
            }),
            begin("proving", 2, |_| {}).then(target, |world, job| {
                world.prove(job, 0);
                world.proving(job, 1, 0);
                stop(world, job);
            }),
            begin("finishing", 1, |_| {}).then(target, |world, job| {
                world.finishing(job, 0);
                stop(world, job);
            }),
            begin("on another device", 1, |_| {}).then(target, |world, job| {
                synth_on_cuda(world, job, 0);
                stop(world, job);
            }),
        ]);
    }
    for target in ["cancelled", "failed"] {
        for checked in verifying().into_iter().skip(1) {
            found.push(checked.then(target, |world, job| stop(target, world, job)));
        }
    }
    found
}

fn ended() -> Vec<Situation> {
    let mut found = vec![
        begin("succeeded", 2, |_| {}).then("", |world, job| world.succeed(job)),
        begin("one failed", 3, |submit| submit.on_failure = OnFailure::Stop).then("", |world, job| {
            world.prove(job, 0);
            world.fail(job, 1, FailureClass::Unsatisfied);
        }),
    ];
    for verdict in [
        VerifyVerdict::BadPartitions(vec![1]),
        VerifyVerdict::JoinInvalid(failure(FailureClass::JoinInvalid)),
    ] {
        for checked in verifying().into_iter().skip(1) {
            found.push(checked.then("refused", |world, job| {
                let token = world.job(job).verifying.unwrap();
                world.run(Command::VerifyEnd {
                    token,
                    verdict: verdict.clone(),
                });
            }));
        }
    }
    for target in ["cancelled", "failed", "expired"] {
        found.push(begin("one proved", 2, |_| {}).then(target, |world, job| {
            world.prove(job, 0);
            stop(target, world, job);
        }));
        found.push(begin("one failed", 3, |_| {}).then(target, |world, job| {
            world.prove(job, 0);
            world.fail(job, 1, FailureClass::Unsatisfied);
            stop(target, world, job);
        }));
        found.push(
            begin("proved while it stopped", 1, |_| {}).then(target, |world, job| {
                let token = world.finishing(job, 0);
                stop(target, world, job);
                world.run(proof(token));
            }),
        );
    }
    found
}

/// The lease that a partition holds, or the last it held, or one that nobody ever held.
fn lease_of(world: &World, job: JobNumber, partition: Option<u32>) -> Token {
    let held = match partition {
        Some(index) => world.partition(job, index).token,
        None => world.job(job).verifying,
    };
    let last = world.events().into_iter().rev().find(|event| {
        let granted = match event.what {
            What::SynthStarted { partition: index, .. } | What::ProveStarted { partition: index, .. } => {
                Some(index) == partition
            }
            What::VerifyStarted => partition.is_none(),
            _ => false,
        };
        granted && event.job == Some(job)
    });
    let last = last.map(|event| Token {
        boot: event.boot,
        grant: event.number,
    });
    let forged = Token {
        boot: world.boot,
        grant: JournalNumber(u64::MAX),
    };
    held.or(last).unwrap_or(forged)
}

/// Every variant of a command for this job, with the partition it names and the moment it comes.
fn variants(situation: &Situation, name: CommandName) -> Vec<(Option<u32>, Millis, Command)> {
    let Situation {
        world, job, submit, ..
    } = situation;
    let job = *job;
    let actor = || "tester".to_owned();
    let now = world.now;
    let late = now.after(2 * DEADLINE_MS);
    let count = world.job(job).partitions;
    let of_job = |commands: Vec<Command>| -> Vec<_> {
        commands.into_iter().map(|command| (None, now, command)).collect()
    };
    let each = |command: &dyn Fn(u32) -> Vec<Command>| -> Vec<_> {
        (0..count)
            .flat_map(|index| {
                command(index)
                    .into_iter()
                    .map(move |command| (Some(index), now, command))
            })
            .collect()
    };
    let lease = |index| lease_of(world, job, Some(index));
    let check = lease_of(world, job, None);
    let retry = |damaged: Vec<u32>| Command::Retry {
        job,
        actor: actor(),
        replacement: None,
        damaged,
    };
    match name {
        CommandName::Submit => of_job(vec![Command::Submit(submit.clone())]),
        CommandName::Cancel => of_job(vec![Command::Cancel { job, actor: actor() }]),
        CommandName::Expire => [now, late]
            .into_iter()
            .map(|moment| (None, moment, Command::Expire { job }))
            .collect(),
        CommandName::FailJob => of_job(vec![Command::FailJob {
            job,
            failure: failure(FailureClass::CircuitFailed),
        }]),
        CommandName::Retry => of_job(vec![retry(vec![]), retry(vec![0])]),
        CommandName::Wake => [now, late]
            .into_iter()
            .map(|moment| (None, moment, Command::Wake { job }))
            .collect(),
        CommandName::VerifyStart => of_job(vec![Command::VerifyStart { job }]),
        CommandName::VerifyEnd => of_job(
            [
                VerifyVerdict::Passed,
                VerifyVerdict::BadPartitions(vec![0]),
                VerifyVerdict::JoinInvalid(failure(FailureClass::JoinInvalid)),
            ]
            .into_iter()
            .map(|verdict| Command::VerifyEnd {
                token: check,
                verdict,
            })
            .collect(),
        ),
        CommandName::VerifyDrop => of_job(vec![Command::VerifyDrop { token: check }]),
        CommandName::Prune => of_job(vec![Command::Prune { job }]),
        CommandName::SynthStart => each(&|partition| {
            vec![Command::SynthStart {
                job,
                partition,
                process: world.process("cpu:0"),
            }]
        }),
        CommandName::SynthEnd => each(&|index| vec![synth_end(lease(index))]),
        CommandName::GiveBack => each(&|partition| {
            let attempt = world.partition(job, partition).attempts;
            vec![Command::GiveBack {
                job,
                partition,
                attempt,
            }]
        }),
        CommandName::GpuStart => each(&|partition| {
            let attempt = world.partition(job, partition).attempts;
            vec![Command::GpuStart {
                job,
                partition,
                attempt,
                worker: WorkerId(2),
            }]
        }),
        CommandName::Checkpoint => each(&|index| vec![checkpoint(lease(index), &["a"])]),
        CommandName::GpuEnd => each(&|index| vec![gpu_end(lease(index))]),
        CommandName::ProofStored => each(&|index| vec![proof(lease(index))]),
        CommandName::AttemptFailed => each(&|index| {
            FailureClass::ALL
                .into_iter()
                .map(|class| failed(lease(index), class))
                .collect()
        }),
        CommandName::ProcessLost => {
            let ways = [
                (FailureClass::Interrupted, true),
                (FailureClass::Interrupted, false),
                (FailureClass::OutOfMemory, false),
            ];
            of_job(
                ways.into_iter()
                    .map(|(class, own_fault)| Command::ProcessLost {
                        process: world.process("cpu:0"),
                        failure: failure(class),
                        culprit: None,
                        own_fault,
                        process_peak_bytes: None,
                    })
                    .collect(),
            )
        }
        CommandName::BootOpen => {
            let devices = DEVICES
                .iter()
                .map(|(name, slots)| ((*name).to_owned(), *slots))
                .collect();
            of_job(vec![Command::BootOpen {
                version: "next".into(),
                devices,
            }])
        }
        elsewhere => of_job(vec![other(situation, elsewhere)]),
    }
}

/// A command that touches no job.
fn other(situation: &Situation, name: CommandName) -> Command {
    let device = || "cpu:0".to_owned();
    let actor = || "tester".to_owned();
    let circuit = proofkeep_store::ids::Digest::of(b"nobody's");
    let token = Token {
        boot: situation.world.boot,
        grant: JournalNumber(u64::MAX),
    };
    match name {
        CommandName::ProcessStart => Command::ProcessStart { device: device() },
        CommandName::DeviceSuspend => Command::DeviceSuspend {
            device: device(),
            until: None,
            reason: "hot".into(),
        },
        CommandName::DeviceResume => Command::DeviceResume { device: device() },
        CommandName::Pause => Command::Pause { actor: actor() },
        CommandName::Resume => Command::Resume { actor: actor() },
        CommandName::Drain => Command::Drain { actor: actor() },
        CommandName::BootClose => Command::BootClose,
        CommandName::ClockStep => Command::ClockStep { by_ms: 90_000 },
        CommandName::CircuitAdd => Command::CircuitAdd(common::circuit("square")),
        CommandName::CircuitRemove => Command::CircuitRemove {
            circuit,
            actor: actor(),
        },
        CommandName::ImportStart => Command::ImportStart {
            circuit,
            process: situation.world.process("cpu:0"),
        },
        CommandName::ImportProgress => Command::ImportProgress { token, done: 1 },
        CommandName::ImportEnd => import_end(token),
        CommandName::ImportFailed => Command::ImportFailed {
            token,
            failure: failure(FailureClass::CircuitFailed),
        },
        name => panic!("{} has no variant", name.name()),
    }
}

fn outcome<S: PartialEq + Copy>(reply: &Reply, before: S, after: Option<S>) -> Outcome<S> {
    match (reply, after) {
        (_, None) => Outcome::Gone,
        (_, Some(after)) if after != before => Outcome::To(after),
        (Reply::Stale, _) => Outcome::Stale,
        (Reply::Unchanged, _) => Outcome::Unchanged,
        _ => Outcome::Stays,
    }
}

type Seen<K, S> = BTreeMap<(K, CommandName), BTreeSet<Outcome<S>>>;

#[derive(Default)]
struct Observed {
    jobs: Seen<JobState, JobState>,
    partitions: Seen<(Phase, PartitionState), PartitionState>,
}

impl Observed {
    /// Tries one variant on a copy of the situation and notes what came of it.
    fn try_one(&mut self, situation: &Situation, target: Option<u32>, now: Millis, command: &Command) {
        let Situation { world, job, .. } = situation;
        let name = command.name();
        let mut context = world.context();
        context.now = now;
        if name == CommandName::BootOpen {
            context.boot.0 += 1;
        }
        let before = world.job(*job);
        let count = before.partitions;
        let partitions = target.map_or(0..count, |index| index..index + 1);
        let mut note = |reply: Option<&Reply>, after: &proofkeep_store::view::MemoryView| {
            let job_after = record::<Job>(after, &keys::job(*job)).unwrap();
            let came = reply.map_or(Outcome::Refused, |reply| {
                outcome(reply, before.state, job_after.as_ref().map(|job| job.state))
            });
            self.jobs.entry((before.state, name)).or_default().insert(came);
            for index in partitions.clone() {
                let state = world.state(*job, index);
                // A pruned job's partitions go in slices; the job itself goes at once.
                let there = job_after.is_some();
                let partition = record::<Partition>(after, &keys::partition(*job, index)).unwrap();
                let came = reply.map_or(Outcome::Refused, |reply| {
                    outcome(
                        reply,
                        state,
                        partition.filter(|_| there).map(|partition| partition.state),
                    )
                });
                self.partitions
                    .entry(((Phase::of(before.state), state), name))
                    .or_default()
                    .insert(came);
            }
        };
        match world.machine.step(&world.view, context, command) {
            Err(proofkeep_store::machine::StepError::Refused(_)) => note(None, &world.view),
            Err(error) => panic!("{}: {command:?}: {error}", situation.name),
            Ok(step) => {
                let mut after = world.view.clone();
                after.apply(&step.changes);
                let reply = match step.reply {
                    Reply::Submitted { .. } if step.changes.is_empty() => Reply::Unchanged,
                    reply => reply,
                };
                note(Some(&reply), &after);
                let report =
                    proofkeep_store::fsck::fsck(&after, proofkeep_store::fsck::Mode::Full, None).unwrap();
                assert!(
                    report.is_clean(),
                    "{}: {command:?}: {:?}",
                    situation.name,
                    report.findings
                );
            }
        }
    }
}

#[test]
fn every_command_in_every_state_does_what_the_table_says_and_nothing_else() {
    let mut observed = Observed::default();
    let situations = [going(), verifying(), stopping(), ended()].into_iter().flatten();
    for situation in situations {
        for name in CommandName::ALL {
            for (target, now, command) in variants(&situation, *name) {
                assert_eq!(command.name(), *name);
                if ELSEWHERE.contains(name) {
                    touches_no_job(&situation, &command);
                } else {
                    observed.try_one(&situation, target, now, &command);
                }
            }
        }
    }
    let mut wrong = Vec::new();
    for state in JobState::ALL {
        for name in CommandName::ALL {
            let told = table::job(state, *name).map(|told| told.iter().copied().collect());
            let seen = observed.jobs.get(&(state, *name)).cloned();
            if told != seen {
                wrong.push(format!(
                    "job {state:?}, {}: table {told:?}, machine {seen:?}",
                    name.name()
                ));
            }
        }
    }
    for (phase, state) in PARTITION_STATES {
        for name in CommandName::ALL {
            let told = table::partition(*phase, *state, *name).map(|told| told.iter().copied().collect());
            let seen = observed.partitions.get(&((*phase, *state), *name)).cloned();
            if told != seen {
                wrong.push(format!(
                    "partition {phase:?}/{state:?}, {}: table {told:?}, machine {seen:?}",
                    name.name()
                ));
            }
        }
    }
    for (state, _) in observed.partitions.keys() {
        if !PARTITION_STATES.contains(state) {
            wrong.push(format!("{state:?} is not in the table"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} cells differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

fn touches_no_job(situation: &Situation, command: &Command) {
    let Situation { world, job, .. } = situation;
    let Ok(step) = world.machine.step(&world.view, world.context(), command) else {
        return;
    };
    for key in step.changes.keys() {
        let of_job = keys::parse_job(key) == Some(*job);
        let family = keys::Family::Job as u8..=keys::Family::Needs as u8;
        assert!(
            !(of_job && family.contains(&key[0])),
            "{}: {command:?} writes {key:?}",
            situation.name
        );
    }
}

/// The table is a table: no cell twice, none for a command that is elsewhere, none that says what the default says.
#[test]
fn the_table_says_everything_once() {
    let mut seen = BTreeSet::new();
    for cell in table::JOB {
        assert!(
            seen.insert((format!("{:?}", cell.from), cell.command)),
            "{cell:?} is there twice"
        );
        assert!(!ELSEWHERE.contains(&cell.command), "{cell:?} is elsewhere");
    }
    for cell in table::PARTITION {
        assert!(
            seen.insert((format!("{:?}", cell.from), cell.command)),
            "{cell:?} is there twice"
        );
        assert!(!ELSEWHERE.contains(&cell.command), "{cell:?} is elsewhere");
        assert!(
            PARTITION_STATES.contains(&cell.from),
            "{cell:?} is about no state"
        );
    }
}

/// Set `PROOFKEEP_WRITE_STATES=1` to write the section instead of comparing it.
#[test]
fn the_architecture_page_shows_the_table() {
    const BEGIN: &str = "<!-- states:begin -->\n";
    const END: &str = "<!-- states:end -->";
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../ARCHITECTURE.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page
        .split_once(BEGIN)
        .expect("the page marks where the states begin");
    let (found, after) = rest.split_once(END).expect("the page marks where the states end");
    let expected = format!("\n{}\n", diagram::section());
    if std::env::var_os("PROOFKEEP_WRITE_STATES").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{expected}{END}{after}")).unwrap();
        return;
    }
    assert!(
        found == expected,
        "the diagrams differ from the table; run this test with PROOFKEEP_WRITE_STATES=1 and look at the change"
    );
}
