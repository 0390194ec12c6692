//! What goes wrong, and who pays for it.

use proofkeep_store::records::{JobState, PartitionState};
use rustix::process::Signal;
use serde_json::json;

use crate::Test;
use crate::world::{World, quick_patience};

pub const TESTS: &[Test] = &[
    (
        "a_killed_worker_costs_one_attempt_and_no_finished_piece",
        a_killed_worker_costs_one_attempt_and_no_finished_piece,
    ),
    ("poison_parks_only_the_guilty", poison_parks_only_the_guilty),
    (
        "out_of_memory_is_tried_once_more_alone",
        out_of_memory_is_tried_once_more_alone,
    ),
    (
        "a_hang_is_noticed_and_its_process_killed",
        a_hang_is_noticed_and_its_process_killed,
    ),
    (
        "who_does_not_answer_a_cancel_is_killed",
        who_does_not_answer_a_cancel_is_killed,
    ),
    (
        "orderly_failures_end_as_their_class_says",
        orderly_failures_end_as_their_class_says,
    ),
    (
        "an_invalid_proof_never_passes_and_never_poisons_the_retry",
        an_invalid_proof_never_passes_and_never_poisons_the_retry,
    ),
    (
        "on_failure_stop_ends_the_job_at_once",
        on_failure_stop_ends_the_job_at_once,
    ),
    (
        "a_panic_costs_its_own_attempt_only",
        a_panic_costs_its_own_attempt_only,
    ),
];

fn a_killed_worker_costs_one_attempt_and_no_finished_piece() {
    let world = World::new();
    let gate = json!({"stage": "b1", "file": world.path("go")});
    let job = world.submit(&json!([{"gate": gate, "piece_ms": 3}]));
    world.until_marked(0, "b1", 1);
    world.until("its checkpoint", || {
        world
            .partition(job, 0)
            .checkpoint
            .is_some_and(|kept| kept.pieces.len() == 3)
    });
    let before = world.worker_pid("cpu:0");
    world.signal_worker("cpu:0", Signal::KILL);
    world.open_gate("go");
    world.succeeded(job);
    assert_ne!(world.worker_pid("cpu:0"), before);
    assert_eq!(world.outcomes(job), [["interrupted", "ok"]]);
    let detail = world.partition(job, 0);
    assert_eq!(detail.attempts[1].reused, ["h", "l", "a"]);
    assert_eq!(detail.attempts[1].saved_ms, 9);
    assert_eq!(
        detail.partition.counted, 0,
        "nobody is to blame for a SIGKILL from outside"
    );
    assert_eq!(
        [world.marked(0, "h"), world.marked(0, "a"), world.marked(0, "b1")],
        [1, 1, 2]
    );
    world.quiet();
}

fn poison_parks_only_the_guilty() {
    let world = World::new();
    let crash = json!({"stage": "prove", "how": "segv"});
    let slow = json!({"piece_ms": 20});
    let job = world.submit(&json!([{"crash": crash}, slow, slow, slow]));
    let neighbour = world.submit(&json!([slow, slow]));
    world.succeeded(neighbour);
    assert_eq!(world.ended(job), JobState::Failed);
    let guilty = world.partition(job, 0);
    assert_eq!(guilty.partition.state, PartitionState::Failed);
    assert_eq!(guilty.partition.failure.unwrap().code, "crashes-its-worker");
    let ends: Vec<_> = guilty.attempts.iter().map(|attempt| &attempt.outcome).collect();
    assert_eq!(ends.len(), 4, "two with neighbours, two alone: {ends:?}");
    for index in 1..4 {
        assert_eq!(world.state_of(job, index), PartitionState::Proved);
        assert_eq!(world.partition(job, index).partition.counted, 0);
    }
    world.quiet();
}

fn out_of_memory_is_tried_once_more_alone() {
    let world = World::new();
    let greedy = |times| json!([{"crash": {"stage": "synth", "how": "allocate", "times": times}}]);
    let job = world.submit(&greedy(1));
    world.succeeded(job);
    assert_eq!(world.outcomes(job), [["out_of_memory", "ok"]]);
    assert!(world.partition(job, 0).partition.alone || world.partition(job, 0).attempts.len() == 2);
    let hopeless = World::new();
    let job = hopeless.submit(&greedy(9));
    assert_eq!(hopeless.ended(job), JobState::Failed);
    assert_eq!(hopeless.outcomes(job), [["out_of_memory", "out_of_memory"]]);
    hopeless.quiet();
}

fn a_hang_is_noticed_and_its_process_killed() {
    let world = World::with(|config| config.patience = quick_patience());
    let hang = json!({"stage": "l", "how": "hang", "times": 1});
    let gate = json!({"stage": "a", "file": world.path("go")});
    let job = world.submit(&json!([{"crash": hang}, {"gate": gate}]));
    world.until_marked(1, "a", 1);
    world.until("the end of the hung attempt", || {
        world.partition(job, 0).attempts[0].outcome.is_some()
    });
    world.open_gate("go");
    world.succeeded(job);
    assert_eq!(world.outcomes(job), [["stalled", "ok"], ["interrupted", "ok"]]);
    assert_eq!(world.partition(job, 0).partition.counted, 1);
    assert_eq!(
        world.partition(job, 1).partition.counted,
        0,
        "its neighbour is innocent"
    );
    assert_eq!(world.partition(job, 0).attempts[1].reused, ["h"]);
    world.quiet();
}

fn who_does_not_answer_a_cancel_is_killed() {
    let world = World::with(|config| config.patience = quick_patience());
    let deaf = json!({"stage": "l", "how": "deaf"});
    let job = world.submit(&json!([{"crash": deaf}]));
    world.until_marked(0, "l", 1);
    let before = world.worker_pid("cpu:0");
    world
        .runtime
        .block_on(world.engine().cancel(world.id(job), "test"))
        .unwrap();
    assert_eq!(world.ended(job), JobState::Cancelled);
    world.succeeded(world.submit(&json!([{"salt": 1}])));
    assert_ne!(world.worker_pid("cpu:0"), before);
    world.quiet();
}

fn orderly_failures_end_as_their_class_says() {
    let world = World::new();
    let fail =
        |class: &str, stage: &str, times| json!({"fail": {"stage": stage, "class": class, "times": times}});
    let job = world.submit(&json!([
        fail("device_error", "prove", 1),
        fail("unsatisfied", "synth", 9),
        fail("device_error", "finish", 9),
        {"salt": 1},
    ]));
    assert_eq!(world.ended(job), JobState::Failed);
    let outcomes = world.outcomes(job);
    assert_eq!(outcomes[0], ["device_error", "ok"]);
    assert_eq!(outcomes[1], ["unsatisfied"]);
    assert_eq!(outcomes[2], ["device_error"; 3]);
    assert_eq!(outcomes[3], ["ok"]);
    assert_eq!(
        world.partition(job, 0).attempts[1]
            .outcome
            .as_ref()
            .unwrap()
            .name(),
        "ok"
    );
    world.quiet();
    // The retry proves what is missing, no more.
    world
        .runtime
        .block_on(world.engine().retry(world.id(job), Vec::new(), "test"))
        .unwrap();
    assert_eq!(world.ended(job), JobState::Failed);
    assert_eq!(world.outcomes(job)[3], ["ok"]);
    assert_eq!(world.outcomes(job)[1], ["unsatisfied", "unsatisfied"]);
    // With other inputs for the two that can't be proved it succeeds.
    let replace = json!({"replace": {"1": {"salt": 7}, "2": {"salt": 8}}});
    world
        .runtime
        .block_on(
            world
                .engine()
                .retry(world.id(job), replace.to_string().into_bytes(), "test"),
        )
        .unwrap();
    world.succeeded(job);
    world.quiet();
}

fn an_invalid_proof_never_passes_and_never_poisons_the_retry() {
    let world = World::new();
    let spoil = |stage: &str| json!({"crash": {"stage": stage, "how": "invalid_proof", "times": 1}});
    // In `finish` only the daemon can tell; a spoilt piece is found by the worker's own check.
    let job = world.submit(&json!([spoil("finish"), spoil("a")]));
    world.succeeded(job);
    assert_eq!(
        world.outcomes(job),
        [["invalid_proof", "ok"], ["invalid_proof", "ok"]]
    );
    for index in 0..2 {
        let second = &world.partition(job, index).attempts[1];
        assert!(
            second.reused.is_empty(),
            "the checkpoints of a proof that didn't verify are dropped"
        );
        assert_eq!(world.marked(index, "h"), 2);
    }
    world.quiet();
}

fn on_failure_stop_ends_the_job_at_once() {
    let world = World::new();
    let never = json!({"gate": {"stage": "l", "file": world.path("never")}});
    let gate = json!({"stage": "synth", "file": world.path("go")});
    let fail = json!({"stage": "synth", "class": "unsatisfied"});
    let mut body = world.body(&json!([never, {"gate": gate, "fail": fail}, never]));
    body["on_failure"] = json!("stop");
    let job = world.submit_body(&body);
    world.until_marked(0, "l", 1);
    world.open_gate("go");
    assert_eq!(world.ended(job), JobState::Failed);
    assert_eq!(world.state_of(job, 0), PartitionState::Cancelled);
    assert_eq!(world.state_of(job, 1), PartitionState::Failed);
    world.quiet();
}

fn a_panic_costs_its_own_attempt_only() {
    let world = World::new();
    let panic = json!({"stage": "l", "how": "panic", "times": 1});
    let job = world.submit(&json!([{"crash": panic}, {"piece_ms": 10}]));
    world.succeeded(job);
    assert_eq!(world.outcomes_of(job, 1), ["ok"]);
    assert_eq!(world.outcomes_of(job, 0).len(), 2);
    world.quiet();
}
