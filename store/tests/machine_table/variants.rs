//! Every command in all its variants.

use proofkeep_store::event::What;
use proofkeep_store::ids::{JobNumber, JournalNumber, Millis, Token, WorkerId};
use proofkeep_store::machine::{Command, CommandName, VerifyVerdict};
use proofkeep_store::records::{FailureClass, Subject};

use crate::common::*;
use crate::situations::{DEADLINE_MS, DEVICES, Situation};

/// The lease that a partition holds, or the last it held, or one that nobody ever held.
pub fn lease_of(world: &World, job: JobNumber, partition: Option<u32>) -> Token {
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
pub fn variants(situation: &Situation, name: CommandName) -> Vec<(Option<u32>, Millis, Command)> {
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
            let process = world.process("cpu:0");
            let lost = |class, culprit, own_fault| Command::ProcessLost {
                process,
                failure: failure(class),
                culprit,
                own_fault,
                process_peak_bytes: None,
            };
            // Or killed for one of its leases.
            let killed = world.leases().into_iter().filter_map(|lease| {
                let culprit = (lease.token, failure(FailureClass::Stalled));
                matches!(lease.subject, Subject::Partition { .. })
                    .then(|| lost(FailureClass::Interrupted, Some(culprit), false))
            });
            let died = ways
                .into_iter()
                .map(|(class, own_fault)| lost(class, None, own_fault));
            of_job(died.chain(killed).collect())
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
pub fn other(situation: &Situation, name: CommandName) -> Command {
    let device = || "cpu:0".to_owned();
    let actor = || "tester".to_owned();
    let nobodys = proofkeep_store::ids::Digest::of(b"nobody's");
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
        CommandName::CircuitAdd => Command::CircuitAdd(circuit("square")),
        CommandName::CircuitRemove => Command::CircuitRemove {
            circuit: nobodys,
            actor: actor(),
        },
        CommandName::ImportStart => Command::ImportStart {
            circuit: nobodys,
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
