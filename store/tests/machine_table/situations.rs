//! Jobs in every state, reached by commands alone from an empty store.

use proofkeep_store::ids::JobNumber;
use proofkeep_store::machine::{Command, Rules, Submit, VerifyVerdict};
use proofkeep_store::records::{FailureClass, OnFailure};

use crate::common::*;

pub const DEVICES: &[(&str, u32)] = &[("cpu:0", 3), ("cuda:0", 1)];
pub const DEADLINE_MS: u64 = 1_000_000;

/// A world in which one job is in a certain state.
pub struct Situation {
    pub name: String,
    pub world: World,
    pub job: JobNumber,
    pub submit: Submit,
}

/// A job as submitted: with a key, a deadline, and so many partitions.
pub fn begin(name: &str, partitions: u32, change: impl Fn(&mut Submit)) -> Situation {
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
pub fn synth_on_cuda(world: &mut World, job: JobNumber, partition: u32) {
    let process = world.process("cuda:0");
    world.run(Command::SynthStart {
        job,
        partition,
        process,
    });
}

/// One partition in every state that a running job can have.
pub fn every_stage(world: &mut World, job: JobNumber) {
    world.prove(job, 0);
    world.fail(job, 1, FailureClass::TimedOut);
    world.synthesized(job, 2);
    let finishing = world.proving(job, 3, 0);
    world.run(gpu_end(finishing));
    world.proving(job, 4, 1);
    synth_on_cuda(world, job, 5);
    // 6 stays ready.
}

pub fn going() -> Vec<Situation> {
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

pub fn verifying() -> Vec<Situation> {
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

pub fn stop(target: &str, world: &mut World, job: JobNumber) {
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

pub fn stopping() -> Vec<Situation> {
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

pub fn ended() -> Vec<Situation> {
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
