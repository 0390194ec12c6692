//! Faults of the reference system's peers; no rule of the machine stands for them alone.

use proofkeep_store::machine::{Admission, Command, Reply, VerifyVerdict};
use proofkeep_store::records::{FailureClass, JobState, PartitionState};

use crate::common::*;

#[test]
fn a_cancelled_job_is_no_cached_answer_after_a_restart() {
    let mut world = world();
    let mut submit = world.submit(1);
    submit.idempotency_key = Some("k".into());
    let job = world.submitted(submit.clone());
    world.cancel(job);
    world.boot(&[("cpu:0", 2)]);
    let reply = world.run(Command::Submit(submit));
    assert!(matches!(
        reply,
        Reply::Submitted {
            admission: Admission::Reopened,
            generation: 2,
            ..
        }
    ));
    world.succeed(job);
}

#[test]
fn timeouts_spend_the_retry_budget() {
    let mut world = world();
    let job = world.new_job(1);
    for _ in 0..3 {
        world.fail(job, 0, FailureClass::TimedOut);
        world.now = world.now.after(60_000);
        let _ = world.step(&Command::Wake { job });
    }
    assert_eq!(world.job(job).state, JobState::Failed);
    assert_eq!(world.attempts(job, 0).len(), 3);
}

#[test]
fn eight_identical_submits_make_one_job() {
    let mut world = world();
    let mut submit = world.submit(4);
    submit.idempotency_key = Some("k".into());
    let job = world.submitted(submit.clone());
    let before = world.view.clone();
    for parallel in 0..7 {
        submit.id = uuid::Uuid::from_u128(100 + parallel);
        let reply = world.run(Command::Submit(submit.clone()));
        assert!(
            matches!(reply, Reply::Submitted { job: same, admission: Admission::Existing, .. } if same == job)
        );
    }
    assert_eq!(world.view, before, "a repeat writes nothing");
}

#[test]
fn an_unclean_stop_empties_no_table_and_leaves_a_row_for_the_attempt_that_died() {
    let mut world = world();
    let mut jobs = Vec::new();
    for _ in 0..5 {
        jobs.push(world.new_job(2));
    }
    world.synthesized(jobs[0], 0);
    let proving = world.gpu(jobs[0], 0, 1);
    world.run(checkpoint(proving, &["a", "b1"]));
    world.boot(&[("cpu:0", 2)]);
    for job in &jobs {
        assert!(!world.job(*job).state.is_terminal());
        assert_eq!(world.state(*job, 0), PartitionState::Ready);
    }
    let attempt = world.attempt(jobs[0], 0, 1);
    assert_eq!(attempt.outcome.unwrap().name(), "interrupted");
    assert_eq!((attempt.opened_in.0, attempt.closed_in.unwrap().0), (1, 2));
    assert_eq!(world.checkpoint(jobs[0], 0).unwrap().pieces.len(), 2);
    for job in jobs {
        world.succeed(job);
    }
}

#[test]
fn a_cancel_is_no_stub() {
    let mut world = world();
    let job = world.new_job(4);
    let synthesizing = world.synth(job, 0);
    let proving = world.proving(job, 1, 1);
    let finishing = world.finishing(job, 2);
    world.cancel(job);
    for token in [synthesizing, proving, finishing] {
        assert_eq!(world.job(job).state.name(), "stopping");
        world.run(failed(token, FailureClass::Cancelled));
    }
    assert_eq!(world.job(job).state, JobState::Cancelled);
    assert!(world.leases().is_empty() && world.busy(1).is_none());
    assert_eq!(world.counter("jobs/groth16/cancelled"), 1);
}

#[test]
fn a_batch_that_fails_its_final_check_says_so_after_the_work() {
    let mut world = world();
    let job = world.new_job(2);
    world.prove(job, 0);
    world.prove(job, 1);
    let token = granted(world.run(Command::VerifyStart { job }));
    let verdict = VerifyVerdict::JoinInvalid(failure(FailureClass::JoinInvalid));
    world.run(Command::VerifyEnd { token, verdict });
    assert_eq!(world.job(job).state, JobState::Failed);
    assert_eq!(
        world.generation(job).failure.unwrap().class,
        FailureClass::JoinInvalid
    );
    assert!(
        world.stored(job, 0).is_some(),
        "the partitions' proofs stay downloadable"
    );
}
