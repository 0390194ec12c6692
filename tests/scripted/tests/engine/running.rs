//! What goes well.

use std::collections::BTreeSet;

use proofkeep_engine::workers::DeviceConfig;
use proofkeep_scripted::{proof_of, witness_of};
use proofkeep_store::query;
use proofkeep_store::records::{JobState, PartitionState};
use serde_json::json;

use crate::Test;
use crate::world::World;

pub const TESTS: &[Test] = &[
    (
        "jobs_of_several_partitions_run_on_several_devices",
        jobs_of_several_partitions_run_on_several_devices,
    ),
    ("the_budget_is_never_exceeded", the_budget_is_never_exceeded),
    (
        "a_cancelled_job_frees_what_it_held",
        a_cancelled_job_frees_what_it_held,
    ),
    ("a_paused_queue_starts_nothing", a_paused_queue_starts_nothing),
    (
        "a_critical_partition_takes_a_slot_and_the_other_goes_on",
        a_critical_partition_takes_a_slot_and_the_other_goes_on,
    ),
    (
        "ended_jobs_beyond_the_limit_are_forgotten",
        ended_jobs_beyond_the_limit_are_forgotten,
    ),
];

fn jobs_of_several_partitions_run_on_several_devices() {
    let world = World::with(|config| {
        let device = |name: &str, slots| DeviceConfig {
            name: name.to_owned(),
            slots,
            threads: 1,
        };
        config.devices = vec![device("cpu:0", 2), device("cpu:1", 1)];
    });
    world.until("both processes", || {
        world.engine().devices().iter().all(|device| device.up)
    });
    let inputs: Vec<_> = (0..4)
        .map(|salt| json!({"salt": salt, "synth_ms": 5, "piece_ms": 10, "finish_ms": 2}))
        .collect();
    let jobs: Vec<_> = (0..3).map(|_| world.submit(&json!(inputs))).collect();
    let mut devices = BTreeSet::new();
    for job in jobs {
        world.succeeded(job);
        for index in 0..4 {
            let detail = world.partition(job, index);
            let public = witness_of(index, u64::from(index)).0;
            assert_eq!(detail.proof.unwrap().bytes, proof_of(&public));
            let [attempt] = &detail.attempts[..] else {
                panic!("{:?}", detail.attempts)
            };
            assert!(attempt.worker.is_some() && attempt.gpu_ms.unwrap() >= 50 && attempt.synth_ms.is_some());
            devices.insert(attempt.device.clone());
        }
    }
    assert_eq!(devices.into_iter().collect::<Vec<_>>(), ["cpu:0", "cpu:1"]);
    world.quiet();
    assert!(world.engine().memory().peak_reserved > 1 << 20);
}

fn the_budget_is_never_exceeded() {
    let world = World::with(|config| config.budget = Some(10 << 20));
    let mut body = world.body(&json!(vec![json!({"synth_ms": 2, "piece_ms": 1}); 12]));
    body["ticket_bytes"] = json!(4 << 20);
    let job = world.submit_body(&body);
    world.until("the end", || {
        let open = world.engine().store().read(query::open_attempts).unwrap();
        assert!(open.len() <= 2, "{} attempts have 4 of 10 MiB each", open.len());
        world.job(job).state.is_terminal()
    });
    world.succeeded(job);
    assert_eq!(world.engine().memory().peak_reserved, 8 << 20);
    body["ticket_bytes"] = json!(11 << 20);
    let problem = world.try_submit(&body, None).unwrap_err();
    assert_eq!((problem.status, problem.code.as_str()), (422, "needs-memory"));
    world.quiet();
}

fn a_cancelled_job_frees_what_it_held() {
    let world = World::new();
    let gate = json!({"stage": "l", "file": world.path("never")});
    let job = world.submit(&json!(vec![json!({"gate": gate}); 6]));
    // Which two of the four witnesses came first is nobody's business.
    world.until("two at the gate", || {
        (0..6).map(|index| world.marked(index, "l")).sum::<u64>() == 2
    });
    world
        .runtime
        .block_on(world.engine().cancel(world.id(job), "test"))
        .unwrap();
    assert_eq!(world.ended(job), JobState::Cancelled);
    world
        .runtime
        .block_on(world.engine().cancel(world.id(job), "test"))
        .unwrap();
    world.quiet();
    let workers = world.engine().store().read(query::workers).unwrap();
    assert!(
        workers
            .iter()
            .all(|worker| worker.state == proofkeep_store::records::WorkerState::Idle)
    );
    // The process lives on and takes the next job.
    let pid = world.worker_pid("cpu:0");
    let next = world.submit(&json!([{}]));
    world.succeeded(next);
    assert_eq!(world.worker_pid("cpu:0"), pid);
    // A retry is the same job's next life.
    world.open_gate("never");
    world
        .runtime
        .block_on(world.engine().retry(world.id(job), Vec::new(), "test"))
        .unwrap();
    world.succeeded(job);
    assert_eq!(world.job(job).generation, 2);
}

fn a_paused_queue_starts_nothing() {
    let world = World::new();
    world.runtime.block_on(world.engine().pause("test")).unwrap();
    let job = world.submit(&json!([{}]));
    world.until("the process", || world.engine().devices()[0].up);
    assert_eq!(world.job(job).state, JobState::Queued);
    assert_eq!(world.marked(0, "synth"), 0);
    world.runtime.block_on(world.engine().resume("test")).unwrap();
    world.succeeded(job);
    world.runtime.block_on(world.engine().drain("test")).unwrap();
    let problem = world.try_submit(&world.body(&json!([{}])), None).unwrap_err();
    assert_eq!(
        (problem.status, problem.code.as_str(), problem.retryable),
        (503, "draining", true)
    );
}

fn a_critical_partition_takes_a_slot_and_the_other_goes_on() {
    let world = World::with(|config| config.devices[0].slots = 1);
    let gate = json!({"stage": "b1", "file": world.path("go")});
    let slow = world.submit(&json!([{"gate": gate, "piece_ms": 1}]));
    world.until_marked(0, "b1", 1);
    world.until("its checkpoint", || {
        world
            .partition(slow, 0)
            .checkpoint
            .is_some_and(|kept| kept.pieces.len() == 3)
    });
    let mut body = world.body(&json!([{"salt": 1}]));
    body["priority"] = json!("critical");
    let urgent = world.submit_body(&body);
    world.succeeded(urgent);
    assert!(!world.job(slow).state.is_terminal());
    world.open_gate("go");
    world.succeeded(slow);
    assert_eq!(world.outcomes(slow), [["preempted", "ok"]]);
    assert_eq!(world.partition(slow, 0).attempts[1].reused, ["h", "l", "a"]);
    assert_eq!(world.partition(slow, 0).partition.counted, 0);
    world.quiet();
}

fn ended_jobs_beyond_the_limit_are_forgotten() {
    let world = World::with(|config| config.max_jobs = Some(2));
    let jobs: Vec<_> = (0..5)
        .map(|salt| world.submit(&json!([{"salt": salt}])))
        .collect();
    let ids: Vec<_> = jobs.iter().map(|job| world.id(*job)).collect();
    for (job, id) in jobs.iter().zip(&ids) {
        world.until("the end of a job", || match world.engine().find(*id) {
            Ok(_) => world.job(*job).state.is_terminal(),
            Err(problem) => problem.code == "pruned",
        });
    }
    world.until("pruning", || {
        ids[..3].iter().all(|id| {
            world
                .engine()
                .find(*id)
                .is_err_and(|problem| problem.status == 410)
        })
    });
    assert!(ids[3..].iter().all(|id| world.engine().find(*id).is_ok()));
    assert_eq!(world.state_of(jobs[4], 0), PartitionState::Proved);
    world.until("the last keys", || {
        world
            .engine()
            .store()
            .read(|view| query::pruning(view, 9))
            .unwrap()
            .is_empty()
    });
    world.quiet();
}
