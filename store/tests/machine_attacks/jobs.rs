//! Jobs: keys, retries, final checks, stopping, circuits.

use crate::common::*;
use proofkeep_store::ids::Digest;
use proofkeep_store::keys;
use proofkeep_store::machine::{Admission, Command, Refusal, Replacement, Reply, Rules, VerifyVerdict};
use proofkeep_store::records::{Failure, FailureClass, JobState, OnFailure, PartitionState, StopTarget};
use proofkeep_store::view::View;

#[test]
fn one_job_goes_its_whole_way() {
    let mut world = world();
    let job = world.new_job(3);
    assert_eq!(world.job(job).state, JobState::Queued);
    world.succeed(job);
    assert_eq!(world.counter("jobs/groth16/succeeded"), 1);
    assert_eq!(world.counter("attempts/groth16/ok"), 3);
    world.prune(job);
    assert!(world.view.get(&keys::job(job)).unwrap().is_none());
}

#[test]
fn an_invalid_proof_drops_checkpoints_and_asks_for_another_look_in_every_life() {
    let mut world = world();
    let job = world.new_job(1);
    let token = world.proving(job, 0, 0);
    world.run(checkpoint(token, &["a", "h"]));
    world.run(gpu_end(token));
    world.run(failed(token, FailureClass::InvalidProof));
    assert!(world.checkpoint(job, 0).is_none());
    assert!(world.partition(job, 0).recheck);
    assert_eq!(world.partition(job, 0).avoid_device.as_deref(), Some("cpu:0"));
    world.cancel(job);
    world.run(retry(job));
    assert!(world.partition(job, 0).recheck);
    world.prove(job, 0);
    let token = granted(world.run(Command::VerifyStart { job }));
    let verdict = VerifyVerdict::BadPartitions(vec![0]);
    world.run(Command::VerifyEnd { token, verdict });
    world.run(retry(job));
    assert!(world.partition(job, 0).recheck);
}

#[test]
fn a_refused_proof_is_quarantined_and_proved_alone_again() {
    let mut world = world();
    let job = world.new_job(3);
    for partition in 0..3 {
        world.prove(job, partition);
    }
    let token = granted(world.run(Command::VerifyStart { job }));
    let verdict = VerifyVerdict::BadPartitions(vec![2, 1, 1, 2, 1]);
    world.run(Command::VerifyEnd { token, verdict });
    assert_eq!(world.job(job).state, JobState::Failed);
    assert_eq!(
        world.generation(job).failure.unwrap().class,
        FailureClass::InvalidProof
    );
    assert!(world.view.get(&keys::quarantine(job, 1)).unwrap().is_some());
    assert!(world.stored(job, 1).is_none() && world.stored(job, 0).is_some());
    world.run(retry(job));
    assert_eq!(world.state(job, 0), PartitionState::Proved);
    assert_eq!(world.state(job, 1), PartitionState::Ready);
    world.succeed(job);
    assert_eq!(world.attempts(job, 0).len(), 1);
    assert_eq!(world.attempts(job, 1).len(), 2);
}

#[test]
fn a_repeat_is_answered_even_when_the_budget_has_shrunk() {
    let mut world = world();
    let mut submit = world.submit(1);
    submit.idempotency_key = Some("k".into());
    let job = world.submitted(submit.clone());
    submit.budget_bytes = 1;
    submit.id = uuid::Uuid::from_u128(77);
    let existing = |admission| Reply::Submitted {
        job,
        id: world_id(1),
        generation: 1,
        admission,
    };
    assert_eq!(
        world.run(Command::Submit(submit.clone())),
        existing(Admission::Existing)
    );
    world.cancel(job);
    assert!(matches!(
        world.refused(Command::Submit(submit.clone())),
        Refusal::NeedsMemory { .. }
    ));
    submit.budget_bytes = u64::MAX;
    world.run(Command::Drain {
        actor: "tester".into(),
    });
    assert_eq!(world.refused(Command::Submit(submit)), Refusal::Draining);
}

#[test]
fn a_key_answers_with_the_job_in_every_state_of_it() {
    let mut world = world();
    let mut submit = world.submit(2);
    submit.idempotency_key = Some("porep-1000-1".into());
    let job = world.submitted(submit.clone());
    let admission = |world: &mut World| match world.run(Command::Submit(submit.clone())) {
        Reply::Submitted {
            job: found,
            generation,
            admission,
            ..
        } => {
            assert_eq!(found, job);
            (generation, admission)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(admission(&mut world), (1, Admission::Existing));
    world.prove(job, 0);
    assert_eq!(admission(&mut world), (1, Admission::Existing));
    let token = world.synth(job, 1);
    world.cancel(job);
    assert_eq!(world.job(job).state, JobState::Stopping(StopTarget::Cancelled));
    assert_eq!(admission(&mut world), (1, Admission::Existing));
    world.run(synth_end(token));
    assert_eq!(world.job(job).state, JobState::Cancelled);
    assert_eq!(admission(&mut world), (2, Admission::Reopened));
    assert_eq!(
        world.state(job, 0),
        PartitionState::Proved,
        "a stored proof is kept"
    );
    world.succeed(job);
    assert_eq!(admission(&mut world), (2, Admission::Existing));
    assert_eq!(world.attempts(job, 1).len(), 2, "attempt numbers run on");
    world.prune(job);
    let mut again = submit.clone();
    assert!(matches!(
        world.refused(Command::Submit(again.clone())),
        Refusal::DuplicateId(_)
    ));
    again.id = uuid::Uuid::from_u128(9);
    let next = world.submitted(again);
    assert!(next > job, "job numbers are never used again");
}

#[test]
fn replaced_inputs_are_proved_again_and_nothing_else() {
    let mut world = world();
    let job = world.new_job(3);
    world.prove(job, 0);
    world.prove(job, 1);
    world.fail(job, 2, FailureClass::Unsatisfied);
    assert_eq!(world.job(job).state, JobState::Failed);
    let inline = b"{\"replaced\":true}".to_vec();
    let replacement = Replacement {
        request: Digest::of(&inline),
        inline: Some(inline),
        objects: vec![Digest::of(b"new witness")],
        partitions: vec![1, 2],
    };
    world.run(Command::Retry {
        job,
        actor: "tester".into(),
        replacement: Some(replacement),
        damaged: vec![],
    });
    assert_eq!(world.state(job, 0), PartitionState::Proved);
    assert_eq!(world.state(job, 1), PartitionState::Ready);
    assert!(world.stored(job, 1).is_none());
    world.succeed(job);
}

#[test]
fn a_succeeded_job_is_retried_only_for_damage() {
    let mut world = world();
    let job = world.new_job(2);
    world.succeed(job);
    assert!(matches!(
        world.refused(retry(job)),
        Refusal::JobState(JobState::Succeeded)
    ));
    assert!(matches!(
        world.refused(Command::Cancel {
            job,
            actor: "t".into()
        }),
        Refusal::JobState(_)
    ));
    let gone = failure(FailureClass::InputMissing);
    assert!(matches!(
        world.refused(Command::FailJob { job, failure: gone }),
        Refusal::JobState(_)
    ));
    world.run(Command::Retry {
        job,
        actor: "tester".into(),
        replacement: None,
        damaged: vec![1],
    });
    assert_eq!(world.state(job, 0), PartitionState::Proved);
    world.succeed(job);
    assert_eq!(world.counter("jobs/groth16/succeeded"), 2);
}

#[test]
fn a_retry_with_nothing_left_to_prove_is_verified_again() {
    let mut world = world();
    let job = world.new_job(2);
    world.prove(job, 0);
    world.prove(job, 1);
    assert_eq!(world.job(job).state, JobState::Verifying);
    let token = granted(world.run(Command::VerifyStart { job }));
    assert_eq!(world.run(Command::VerifyStart { job }), Reply::Unchanged);
    world.cancel(job);
    assert_eq!(world.job(job).state, JobState::Stopping(StopTarget::Cancelled));
    world.run(Command::VerifyEnd {
        token,
        verdict: VerifyVerdict::Passed,
    });
    assert_eq!(world.job(job).state, JobState::Cancelled, "the first reason wins");
    world.run(retry(job));
    assert_eq!(world.job(job).state, JobState::Verifying);
    let token = granted(world.run(Command::VerifyStart { job }));
    world.run(Command::VerifyDrop { token });
    assert_eq!(world.job(job).state, JobState::Verifying);
    assert_eq!(
        world.run(Command::VerifyEnd {
            token,
            verdict: VerifyVerdict::Passed
        }),
        Reply::Stale
    );
    let token = granted(world.run(Command::VerifyStart { job }));
    let verdict = VerifyVerdict::JoinInvalid(failure(FailureClass::JoinInvalid));
    world.run(Command::VerifyEnd { token, verdict });
    assert_eq!(world.job(job).state, JobState::Failed);
    assert_eq!(
        world.generation(job).failure.unwrap().class,
        FailureClass::JoinInvalid
    );
}

#[test]
fn a_job_stops_once_and_frees_what_holds_no_lease_at_once() {
    let mut world = World::with(Rules::ALL, &[("cpu:0", 2)]);
    let mut submit = world.submit(6);
    submit.on_failure = OnFailure::Stop;
    submit.deadline = Some(world.now.after(10));
    let job = world.submitted(submit);
    world.prove(job, 0);
    let finishing = world.finishing(job, 1);
    let proving = world.proving(job, 2, 0);
    world.synthesized(job, 3);
    let synthesizing = world.synth(job, 4);
    world.run(failed(synthesizing, FailureClass::Unsatisfied));
    assert_eq!(world.job(job).state, JobState::Stopping(StopTarget::Failed));
    assert_eq!(world.state(job, 3), PartitionState::Cancelled);
    assert_eq!(world.state(job, 5), PartitionState::Cancelled);
    assert_eq!(world.cancel(job), Reply::Unchanged);
    world.now = world.now.after(100);
    assert!(matches!(
        world.refused(Command::Expire { job }),
        Refusal::JobState(_)
    ));
    assert_eq!(world.busy(0), Some(proving), "stopping only asks");
    assert_eq!(world.run(checkpoint(proving, &["a"])), Reply::Unchanged);
    world.run(proof(finishing));
    assert_eq!(
        world.state(job, 1),
        PartitionState::Proved,
        "a verified proof is kept for a retry"
    );
    world.lose("cpu:0", true);
    assert_eq!(world.job(job).state, JobState::Failed);
    assert_eq!(world.busy(0), None);
    assert_eq!(
        world.generation(job).failure.unwrap().class,
        FailureClass::Unsatisfied
    );
    assert_eq!(world.attempt(job, 2, 1).outcome.unwrap().name(), "interrupted");
}

#[test]
fn two_partitions_of_a_stopping_job_in_one_process_end_once() {
    let mut world = world();
    let mut submit = world.submit(4);
    submit.on_failure = OnFailure::Stop;
    submit.max_attempts = 1;
    let job = world.submitted(submit);
    let stalled = world.synth(job, 0);
    world.synthesized(job, 1);
    world.synth(job, 2);
    let process = world.process("cpu:0");
    world.run(Command::ProcessLost {
        process,
        failure: failure(FailureClass::Interrupted),
        culprit: Some((stalled, failure(FailureClass::Stalled))),
        own_fault: false,
        process_peak_bytes: None,
    });
    assert_eq!(world.job(job).state, JobState::Failed);
    assert_eq!(world.count("ended"), 1);
    assert_eq!(world.count("attempt_ended"), 3);
}

#[test]
fn a_circuit_in_use_stays_and_a_failed_one_takes_no_jobs() {
    let mut world = world();
    let circuit = world.circuit_added("square");
    let mut submit = world.submit(1);
    submit.circuit = Some(circuit);
    let job = world.submitted(submit);
    let remove = Command::CircuitRemove {
        circuit,
        actor: "tester".into(),
    };
    assert_eq!(world.refused(remove.clone()), Refusal::CircuitInUse { jobs: 1 });
    let process = world.process("cpu:0");
    let start = Command::SynthStart {
        job,
        partition: 0,
        process,
    };
    assert_eq!(world.refused(start.clone()), Refusal::CircuitNotReady);
    let token = world.importing(circuit);
    let reason: Failure = failure(FailureClass::CircuitFailed);
    world.run(Command::ImportFailed {
        token,
        failure: reason.clone(),
    });
    assert!(matches!(world.refused(start), Refusal::CircuitFailed(_)));
    world.run(Command::FailJob { job, failure: reason });
    assert_eq!(world.job(job).state, JobState::Failed);
    assert!(matches!(world.refused(retry(job)), Refusal::CircuitFailed(_)));
    world.run(remove);
    assert!(matches!(world.refused(retry(job)), Refusal::UnknownCircuit(_)));
    world.imported("square");
    world.run(retry(job));
    world.succeed(job);
}

fn world_id(seed: u64) -> uuid::Uuid {
    submit(seed, 1).id
}
