//! Ends of the daemon, in order and not.

use std::fs::File;

use proofkeep_engine::recover::device_lock;
use proofkeep_engine::service::{Engine, StartError};
use proofkeep_store::OpenError;
use proofkeep_store::ids::BootNumber;
use proofkeep_store::query;
use proofkeep_store::records::{BootEnd, JobState};
use serde_json::json;

use crate::Test;
use crate::world::{World, heard, until_there};

pub const TESTS: &[Test] = &[
    (
        "a_shutdown_saves_what_is_finished_and_the_next_boot_goes_on",
        a_shutdown_saves_what_is_finished_and_the_next_boot_goes_on,
    ),
    (
        "kill_9_of_the_daemon_loses_nothing_that_was_finished",
        kill_9_of_the_daemon_loses_nothing_that_was_finished,
    ),
    (
        "a_job_whose_file_is_gone_fails_at_boot",
        a_job_whose_file_is_gone_fails_at_boot,
    ),
    (
        "a_second_daemon_is_told_who_has_the_directory",
        a_second_daemon_is_told_who_has_the_directory,
    ),
    ("many_crashes_leave_no_trace", many_crashes_leave_no_trace),
];

fn a_shutdown_saves_what_is_finished_and_the_next_boot_goes_on() {
    let mut world = World::new();
    let gate = json!({"stage": "b1", "file": world.path("go")});
    let job = world.submit(&json!([{"gate": gate, "piece_ms": 2}, {"gate": gate, "salt": 1}]));
    world.until_marked(0, "b1", 1);
    world.until_marked(1, "b1", 1);
    world.shutdown();
    world.start();
    let boot = world
        .engine()
        .store()
        .read(|view| query::boot_report(view, BootNumber(2)))
        .unwrap()
        .unwrap();
    assert_eq!(boot.before, Some(BootEnd::Clean));
    assert_eq!(
        boot.recovered.interrupted, 0,
        "a clean shutdown leaves nothing open"
    );
    world.open_gate("go");
    world.succeeded(job);
    assert_eq!(world.outcomes_of(job, 0), ["shutdown", "ok"]);
    assert_eq!(world.partition(job, 0).attempts[1].reused, ["h", "l", "a"]);
    assert_eq!(world.partition(job, 0).partition.counted, 0);
    assert_eq!(world.marked(0, "h"), 1);
    world.quiet();
    world.shutdown();
}

fn kill_9_of_the_daemon_loses_nothing_that_was_finished() {
    let mut world = World::new();
    world.shutdown();
    let gate = json!({"stage": "b1", "file": world.path("go")});
    let body = world.body(&json!([{"salt": 5}, {"gate": gate, "piece_ms": 2}]));
    let mut daemon = world.daemon(&body);
    heard(&mut daemon, b'c');
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    // Its worker process doesn't outlive it.
    let lock = File::open(device_lock(&world.config.data_dir, "cpu:0")).unwrap();
    until_there("the end of the orphan", || lock.try_lock().is_ok());
    drop(lock);
    world.start();
    let boot = world
        .engine()
        .store()
        .read(|view| query::boot_report(view, BootNumber(3)))
        .unwrap()
        .unwrap();
    assert_eq!(boot.before, Some(BootEnd::Crashed));
    let again = world.try_submit(&body, Some("the-job")).unwrap();
    assert_eq!(
        again.admission,
        proofkeep_store::machine::Admission::Existing,
        "an acknowledged job is there"
    );
    world.open_gate("go");
    world.succeeded(again.job);
    assert_eq!(world.outcomes_of(again.job, 1), ["interrupted", "ok"]);
    assert_eq!(world.partition(again.job, 1).attempts[1].reused, ["h", "l", "a"]);
    assert_eq!(world.outcomes_of(again.job, 0).last().unwrap(), "ok");
    let boot = world
        .engine()
        .store()
        .read(|view| query::boot_report(view, BootNumber(3)))
        .unwrap()
        .unwrap();
    assert!(
        boot.recovered.checkpoints_reused >= 3 && boot.recovered.saved_ms >= 6,
        "{boot:?}"
    );
    world.quiet();
}

fn a_job_whose_file_is_gone_fails_at_boot() {
    let mut world = World::new();
    world.runtime.block_on(world.engine().pause("test")).unwrap();
    let needed = world.engine().store().objects().put(b"an input").unwrap();
    let mut body = world.body(&json!([{}]));
    body["needs"] = json!(needed.to_string());
    let job = world.submit_body(&body);
    world.shutdown();
    std::fs::remove_file(
        world
            .config
            .data_dir
            .join("objects")
            .join(&needed.hex()[..2])
            .join(needed.hex()),
    )
    .unwrap();
    world.start();
    assert_eq!(world.job(job).state, JobState::Failed);
    let generation = world
        .engine()
        .store()
        .read(|view| query::generations(view, job, 1))
        .unwrap()
        .remove(0);
    assert_eq!(generation.failure.unwrap().class.name(), "input_missing");
    // A retry needs the file.
    let id = world.id(job);
    world.engine().store().objects().put(b"an input").unwrap();
    world.runtime.block_on(world.engine().resume("test")).unwrap();
    world
        .runtime
        .block_on(world.engine().retry(id, Vec::new(), "test"))
        .unwrap();
    world.succeeded(job);
}

fn a_second_daemon_is_told_who_has_the_directory() {
    let world = World::new();
    match Engine::start(world.config.clone()) {
        Err(StartError::Open(OpenError::Locked { pid, .. })) => {
            assert_eq!(pid, std::process::id().to_string())
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("two daemons share a directory"),
    }
}

fn many_crashes_leave_no_trace() {
    let mut world = World::new();
    let inputs: Vec<_> = (0..12)
        .map(|salt| json!({"salt": salt, "synth_ms": 3, "piece_ms": 3}))
        .collect();
    let job = world.submit(&json!(inputs));
    for round in 0..8 {
        let proved = u64::from(world.job(job).tally.proved);
        world.until("some progress", || {
            world.job(job).state.is_terminal() || u64::from(world.job(job).tally.proved) > proved
        });
        if round % 2 == 0 {
            world.abandon()
        } else {
            world.shutdown()
        }
        world.start();
    }
    world.succeeded(job);
    for index in 0..12 {
        let outcomes = world.outcomes_of(job, index);
        assert_eq!(
            outcomes.iter().filter(|outcome| *outcome == "ok").count(),
            1,
            "proved once: {outcomes:?}"
        );
        assert_eq!(world.partition(job, index).partition.counted, 0);
    }
    world.quiet();
}
