//! What the machine writes is clean after every single command, in every kind of history.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "fsck_support/mod.rs"]
mod support;

use proofkeep_store::machine::{Command, Replacement, Submit, VerifyVerdict};
use proofkeep_store::records::{Failure, FailureClass, JobState, OnFailure, PartitionState};
use proofkeep_store::{keys, query};
use support::{DEVICE, World, busy_world, digest};

fn job_state(world: &World, job: proofkeep_store::ids::JobNumber) -> JobState {
    query::job_by_number(&world.view, job).unwrap().unwrap().state
}

#[test]
fn an_empty_store_is_clean() {
    let view = proofkeep_store::view::MemoryView::default();
    for mode in [
        proofkeep_store::fsck::Mode::Live,
        proofkeep_store::fsck::Mode::Full,
    ] {
        assert!(proofkeep_store::fsck::fsck(&view, mode, None).unwrap().is_clean());
    }
}

#[test]
fn a_busy_store_is_clean_and_wholly_looked_at() {
    let world = busy_world();
    world.assert_clean("all of it");
    let checked = world.full().checked;
    assert_eq!(checked.records, world.view.0.len() as u64);
    assert_eq!(checked.jobs, 6);
    assert!(
        checked.events > 30 && checked.attempts > 8 && checked.objects >= 5,
        "{checked:?}"
    );
}

#[test]
fn a_job_from_submit_to_success() {
    let mut world = World::new();
    let job = world.submit(3);
    world.succeed(job, 3);
    assert_eq!(job_state(&world, job), JobState::Succeeded);
}

#[test]
fn failures_back_offs_and_retries() {
    let mut world = World::new();
    let job = world.submit(2);
    world.prove(job, 0);
    for _ in 0..3 {
        let token = world.start_proving(job, 1, 0);
        world.checkpoint(token, "a");
        world.fail_attempt(token, FailureClass::InvalidProof);
        world.now = world.now.after(60_000);
        let _ = world.try_step(&Command::Wake { job });
    }
    assert_eq!(job_state(&world, job), JobState::Failed);
    world.retry(job);
    world.prove(job, 1);
    let token = world.verify_start(job);
    world.step(Command::VerifyEnd {
        token,
        verdict: VerifyVerdict::BadPartitions(vec![0]),
    });
    assert_eq!(job_state(&world, job), JobState::Failed);
    world.retry(job);
    world.prove(job, 0);
    let token = world.verify_start(job);
    world.step(Command::VerifyDrop { token });
    let token = world.verify_start(job);
    let failure = Failure::new(FailureClass::JoinInvalid, "the whole does not verify");
    world.step(Command::VerifyEnd {
        token,
        verdict: VerifyVerdict::JoinInvalid(failure),
    });
    world.retry(job);
    let token = world.verify_start(job);
    world.step(Command::VerifyEnd {
        token,
        verdict: VerifyVerdict::Passed,
    });
    assert_eq!(job_state(&world, job), JobState::Succeeded);
    world.step(Command::Retry {
        job,
        actor: "local".into(),
        replacement: None,
        damaged: vec![1],
    });
    world.prove(job, 1);
    assert_eq!(job_state(&world, job), JobState::Verifying);
}

#[test]
fn a_retry_with_other_inputs() {
    let mut world = World::new();
    let job = world.submit(2);
    world.prove(job, 0);
    world.cancel(job);
    let request = digest("a large request");
    let replacement = Replacement {
        request,
        inline: None,
        objects: vec![request, digest("new")],
        partitions: vec![0],
    };
    world.step(Command::Retry {
        job,
        actor: "local".into(),
        replacement: Some(replacement),
        damaged: Vec::new(),
    });
    world.succeed(job, 2);
}

#[test]
fn stopping_with_leases_in_every_stage() {
    let mut world = World::new();
    let job = world.submit(5);
    let finishing = world.start_finishing(job, 0, 0);
    let proving = world.start_proving(job, 1, 0);
    let other = world.start_proving(job, 2, 1);
    world.synthesize(job, 3);
    let (synthesizing, _) = world.synth_start(job, 4);
    world.cancel(job);
    assert!(matches!(job_state(&world, job), JobState::Stopping(_)));
    world.store_proof(finishing);
    world.fail_attempt(proving, FailureClass::Cancelled);
    world.gpu_end(other);
    world.fail_attempt(other, FailureClass::Cancelled);
    world.fail_attempt(synthesizing, FailureClass::Cancelled);
    assert_eq!(job_state(&world, job), JobState::Cancelled);
    world.retry(job);
    let kept: proofkeep_store::records::Partition = world.record(&keys::partition(job, 0));
    assert_eq!(kept.state, PartitionState::Proved);
}

#[test]
fn a_job_that_stops_at_its_first_failure_and_one_that_expires() {
    let mut world = World::new();
    let submit = world.submission(4);
    let job = world.submit_as(Submit {
        on_failure: OnFailure::Stop,
        ..submit
    });
    let (first, _) = world.synth_start(job, 0);
    let (second, _) = world.synth_start(job, 1);
    world.synthesize(job, 2);
    world.fail_attempt(first, FailureClass::Unsatisfied);
    world.fail_attempt(second, FailureClass::Unsatisfied);
    assert_eq!(job_state(&world, job), JobState::Failed);
    let submit = world.submission(2);
    let job = world.submit_as(Submit {
        deadline: Some(world.now.after(1000)),
        ..submit
    });
    let token = world.start_proving(job, 0, 0);
    world.now = world.now.after(2000);
    world.step(Command::Expire { job });
    world.fail_attempt(token, FailureClass::Cancelled);
    assert_eq!(job_state(&world, job), JobState::Expired);
    world.retry(job);
}

#[test]
fn a_boot_that_dies_with_everything_under_way() {
    let mut world = busy_world();
    world.checked = true;
    world.reboot();
    world.reboot();
    world.step(Command::BootClose);
    world.reboot();
}

#[test]
fn processes_that_die_alone_and_with_others() {
    let mut world = World::new();
    let job = world.submit(3);
    for _ in 0..4 {
        let _ = world.start_proving(job, 0, 0);
        let process = world.process;
        world.step(Command::ProcessLost {
            process,
            failure: Failure::new(FailureClass::Interrupted, "signal 11"),
            culprit: None,
            own_fault: true,
            process_peak_bytes: Some(1),
        });
        match world.step(Command::ProcessStart {
            device: DEVICE.to_owned(),
        }) {
            proofkeep_store::machine::Reply::Process(process) => world.process = process,
            other => panic!("{other:?}"),
        }
    }
    let parked: proofkeep_store::records::Partition = world.record(&keys::partition(job, 0));
    assert_eq!(parked.state, PartitionState::Failed);
}

#[test]
fn jobs_are_pruned_with_their_journal() {
    let mut world = busy_world();
    world.checked = true;
    world.prune(support::FAILED);
    world.prune(support::DONE);
    world.prune(support::CANCELLED);
    assert_eq!(query::job_by_number(&world.view, support::DONE).unwrap(), None);
}

#[test]
fn circuits_come_and_go() {
    let mut world = World::new();
    let circuit = world.add_circuit("second");
    let process = world.process;
    let (token, _) = match world.step(Command::ImportStart { circuit, process }) {
        proofkeep_store::machine::Reply::Granted { token, attempt } => (token, attempt),
        other => panic!("{other:?}"),
    };
    let failure = Failure::new(FailureClass::CircuitFailed, "points off the curve");
    world.step(Command::ImportFailed { token, failure });
    world.add_circuit("second");
    world.import("second");
    world.step(Command::CircuitRemove {
        circuit,
        actor: "local".into(),
    });
}
