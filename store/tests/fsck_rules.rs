//! A machine that forgets one of its rules writes a store that `fsck` refuses: each fault of the reference system would
//! be seen. (`keys_pin_the_request` is left out: forgetting it gives a wrong answer and writes nothing wrong.)
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "fsck_support/mod.rs"]
mod support;

use proofkeep_store::fsck::Invariant;
use proofkeep_store::machine::{Command, Machine, Rules, Submit};
use proofkeep_store::records::FailureClass;
use support::World;

/// Runs the same history with all rules and without one: clean, and not.
#[track_caller]
fn caught(rule: &str, invariant: Invariant, history: impl Fn(&mut World)) {
    let mut world = World::new();
    world.checked = false;
    history(&mut world);
    world.assert_clean("a history with all rules");
    let mut world = World::new();
    world.checked = false;
    world.machine = Machine {
        rules: Rules::without(rule).unwrap(),
    };
    history(&mut world);
    let report = world.full();
    let all: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    let named = report
        .findings
        .iter()
        .any(|finding| finding.invariant == invariant);
    assert!(
        named,
        "without {rule}, expected [{invariant}], found:\n{}",
        all.join("\n")
    );
}

#[test]
fn r1_a_late_end_clears_the_partition_that_came_after() {
    caught("end_names_its_lease", Invariant::Attempts, |world| {
        let job = world.submit(3);
        let late = world.start_finishing(job, 0, 0);
        world.store_proof(late);
        world.start_proving(job, 1, 0);
        world.step(Command::GpuEnd {
            token: late,
            gpu_ms: 1,
            reused: Vec::new(),
            saved_ms: 0,
        });
    });
}

#[test]
fn r3_a_token_is_used_again() {
    caught("tokens_never_repeat", Invariant::Attempts, |world| {
        let job = world.submit(1);
        world.synth_start(job, 0);
    });
}

#[test]
fn r4_all_is_proved_and_the_job_stays() {
    caught("last_proof_moves_the_job", Invariant::Edges, |world| {
        let job = world.submit(1);
        world.prove(job, 0);
    });
}

#[test]
fn r5_the_slot_is_held_while_the_proof_is_finished() {
    caught("finishing_frees_the_slot", Invariant::Workers, |world| {
        let job = world.submit(1);
        world.start_finishing(job, 0, 0);
    });
}

#[test]
fn r6_a_failure_is_shown_as_done() {
    caught("failure_is_not_success", Invariant::Proofs, |world| {
        let job = world.submit(2);
        let token = world.start_finishing(job, 0, 0);
        world.fail_attempt(token, FailureClass::DeviceError);
    });
}

#[test]
fn r7_a_stopped_job_keeps_its_worker() {
    caught("stopping_frees_workers", Invariant::Workers, |world| {
        let job = world.submit(2);
        let token = world.start_proving(job, 0, 0);
        world.cancel(job);
        world.fail_attempt(token, FailureClass::Cancelled);
    });
}

#[test]
fn r8_an_end_leaves_its_lease() {
    caught("every_end_ends_the_lease", Invariant::Workers, |world| {
        let job = world.submit(2);
        let (token, _) = world.synth_start(job, 0);
        world.fail_attempt(token, FailureClass::Shutdown);
    });
}

#[test]
fn r9_a_failed_job_never_leaves() {
    caught("failed_jobs_end", Invariant::Edges, |world| {
        let job = world.submit(1);
        let (token, _) = world.synth_start(job, 0);
        world.fail_attempt(token, FailureClass::Unsatisfied);
    });
}

#[test]
fn r10_an_end_is_not_counted() {
    caught("ends_are_counted", Invariant::Counters, |world| {
        let job = world.submit(1);
        world.succeed(job, 1);
    });
}

#[test]
fn r11_two_jobs_share_a_key() {
    caught("keys_are_unique", Invariant::Keys, |world| {
        for _ in 0..2 {
            let submit = world.submission(1);
            let (request, inline) = (support::digest("the same"), Some(b"the same".to_vec()));
            let idempotency_key = Some("key".to_owned());
            world.step(Command::Submit(Submit {
                request,
                inline,
                idempotency_key,
                ..submit
            }));
        }
    });
}
