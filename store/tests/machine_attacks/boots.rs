//! Boots, crashes, clocks, and what an operator asks of the queue.

use crate::common::*;
use proofkeep_store::ids::{BootNumber, Millis};
use proofkeep_store::machine::{Command, Refusal, Reply, Rules, VerifyVerdict};
use proofkeep_store::records::{CircuitState, FailureClass, JobState, PartitionState};

#[test]
fn nothing_is_granted_before_a_boot_or_after_its_end() {
    let mut world = World::empty(Rules::ALL);
    assert_eq!(world.refused(Command::BootClose), Refusal::NoBoot);
    assert_eq!(
        world.refused(Command::ProcessStart {
            device: "cpu:0".into()
        }),
        Refusal::NoBoot
    );
    world.boot(&[("cpu:0", 2)]);
    let job = world.new_job(2);
    world.synthesized(job, 0);
    let all_proved = world.new_job(1);
    world.prove(all_proved, 0);
    let circuit = world.circuit_added("square");
    let process = world.process("cpu:0");
    assert_eq!(world.run(Command::BootClose), Reply::Done);
    assert_eq!(world.run(Command::BootClose), Reply::Unchanged);
    assert_eq!(world.count("boot_closed"), 1);
    let attempt = world.partition(job, 0).attempts;
    for command in [
        Command::ProcessStart {
            device: "cpu:0".into(),
        },
        Command::SynthStart {
            job,
            partition: 1,
            process,
        },
        Command::GpuStart {
            job,
            partition: 0,
            attempt,
            worker: proofkeep_store::ids::WorkerId(0),
        },
        Command::VerifyStart { job: all_proved },
        Command::ImportStart { circuit, process },
    ] {
        assert_eq!(world.refused(command), Refusal::NoBoot);
    }
    world.boot(&[("cpu:0", 2)]);
    assert_eq!(world.state(job, 0), PartitionState::Ready);
}

#[test]
fn resuming_the_queue_does_not_end_a_drain() {
    let mut world = world();
    world.run(Command::Drain {
        actor: "tester".into(),
    });
    world.run(Command::Pause {
        actor: "tester".into(),
    });
    world.run(Command::Resume {
        actor: "tester".into(),
    });
    let submit = world.submit(1);
    assert_eq!(world.refused(Command::Submit(submit.clone())), Refusal::Draining);
    assert_eq!(
        world.run(Command::Resume {
            actor: "tester".into()
        }),
        Reply::Unchanged
    );
    world.boot(&[("cpu:0", 2)]);
    world.submitted(submit);
}

#[test]
fn a_pause_outlives_the_boot_and_stops_new_syntheses_only() {
    let mut world = world();
    let job = world.new_job(2);
    world.synthesized(job, 0);
    world.run(Command::Pause {
        actor: "tester".into(),
    });
    let process = world.process("cpu:0");
    assert_eq!(
        world.refused(Command::SynthStart {
            job,
            partition: 1,
            process
        }),
        Refusal::Paused
    );
    let token = world.gpu(job, 0, 0);
    world.run(gpu_end(token));
    world.run(proof(token));
    world.boot(&[("cpu:0", 2)]);
    let process = world.process("cpu:0");
    assert_eq!(
        world.refused(Command::SynthStart {
            job,
            partition: 1,
            process
        }),
        Refusal::Paused
    );
    world.run(Command::Resume {
        actor: "tester".into(),
    });
    world.prove(job, 1);
}

#[test]
fn recovery_is_one_transaction_and_a_second_crash_changes_nothing() {
    let mut world = World::with(Rules::ALL, &[("cpu:0", 2), ("cuda:0", 1)]);
    let circuit = world.circuit_added("square");
    let import = world.importing(circuit);
    world.run(Command::ImportProgress {
        token: import,
        done: 40,
    });
    let job = world.new_job(6);
    world.prove(job, 0);
    world.finishing(job, 1);
    let proving = world.proving(job, 2, 1);
    world.run(checkpoint(proving, &["a"]));
    world.synthesized(job, 3);
    world.synth(job, 4);
    let verifying = world.new_job(1);
    world.prove(verifying, 0);
    let verify = granted(world.run(Command::VerifyStart { job: verifying }));
    let stopping = world.new_job(2);
    world.synth(stopping, 0);
    world.cancel(stopping);
    world.boot(&[("cuda:0", 1), ("cpu:0", 2)]);
    let once: Vec<_> = (0..6).map(|index| world.partition(job, index)).collect();
    world.boot(&[("cuda:0", 1), ("cpu:0", 2)]);
    let twice: Vec<_> = (0..6).map(|index| world.partition(job, index)).collect();
    assert_eq!(once, twice);
    assert!(world.leases().is_empty());
    assert_eq!(world.state(job, 0), PartitionState::Proved);
    for index in 1..6 {
        assert_eq!(world.state(job, index), PartitionState::Ready);
    }
    assert!(world.checkpoint(job, 2).is_some());
    assert_eq!(world.attempt(job, 3, 1).closed_in, Some(BootNumber(2)));
    assert_eq!(world.job(stopping).state, JobState::Cancelled);
    assert_eq!(world.job(verifying).state, JobState::Verifying);
    assert_eq!(
        world.run(Command::VerifyEnd {
            token: verify,
            verdict: VerifyVerdict::Passed
        }),
        Reply::Stale
    );
    let CircuitState::Importing(import) = world.circuit(circuit).state else {
        panic!("not importing")
    };
    assert_eq!((import.done, import.token, import.deaths), (40, None, 0));
    assert_eq!(world.worker(0).device, "cuda:0");
    assert!(world.busy(0).is_none() && world.busy(1).is_none());
    world.succeed(verifying);
}

#[test]
fn a_boot_opens_once() {
    let mut world = world();
    let open = Command::BootOpen {
        version: "x".into(),
        devices: vec![("cpu:0".into(), 1)],
    };
    assert_eq!(world.refused(open.clone()), Refusal::AlreadyOpen);
    world.boot = BootNumber(7);
    assert_eq!(world.refused(open), Refusal::AlreadyOpen);
    world.boot = BootNumber(2);
    let twice = vec![("cpu:0".into(), 1), ("cpu:0".into(), 1)];
    let open = Command::BootOpen {
        version: "x".into(),
        devices: twice,
    };
    assert!(matches!(world.refused(open), Refusal::OutOfLimits { .. }));
}

#[test]
fn a_clock_that_jumps_keeps_nobody_waiting_longer_than_a_back_off() {
    let mut world = world();
    let job = world.new_job(1);
    world.fail(job, 0, FailureClass::TimedOut);
    assert_eq!(world.refused(Command::Wake { job }), Refusal::NotDue);
    world.now = Millis(1_000_000);
    world.run(Command::ClockStep {
        by_ms: -1_799_999_000_000,
    });
    world.run(Command::Wake { job });
    assert_eq!(world.state(job, 0), PartitionState::Ready);
    world.fail(job, 0, FailureClass::TimedOut);
    world.now = Millis(u64::MAX);
    world.run(Command::Wake { job });
    world.fail(job, 0, FailureClass::TimedOut);
    assert_eq!(world.state(job, 0), PartitionState::Failed);
}
