//! The status is one consistent read, and cuzk's shape says the same.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "fsck_support/mod.rs"]
mod support;

use proofkeep_store::ids::{Millis, WorkerId};
use proofkeep_store::machine::Command;
use proofkeep_store::query::{
    self, CuzkMemory, JobStatus, Status, StatusLimits, Surroundings, WaitReason, cell, cuzk,
};
use proofkeep_store::records::{FailureClass, JobState, PartitionState, Priority};
use support::{DONE, QUEUED, RUNNING, VERIFYING, World, busy_world};

fn read(world: &World) -> Status {
    query::status(&world.view, world.now, StatusLimits::default()).unwrap()
}

fn job(status: &Status, number: proofkeep_store::ids::JobNumber) -> &JobStatus {
    status.jobs.iter().find(|job| job.job.number == number).unwrap()
}

#[test]
fn it_shows_every_job_partition_and_worker() {
    let world = busy_world();
    let status = read(&world);
    let numbers: Vec<u64> = status.jobs.iter().map(|job| job.job.number.0).collect();
    assert_eq!(numbers, [4, 5, 6], "those with open attempts first");
    let running = job(&status, RUNNING);
    let states: Vec<PartitionState> = running
        .partitions
        .iter()
        .map(|partition| partition.state)
        .collect();
    use PartitionState::{Finishing, Proved, Proving, Ready, Synthesized, Waiting};
    assert_eq!(states, [Proved, Waiting, Finishing, Proving, Synthesized, Ready]);
    assert_eq!(running.cells, None);
    assert_eq!(running.summary.running, 3);
    let proving = &running.partitions[3];
    assert_eq!(proving.worker, Some(WorkerId(1)));
    assert_eq!((proving.attempt, proving.synth_ms), (1, Some(120)));
    assert!(
        proving.gpu_ms.is_some_and(|millis| millis > 0),
        "it counts while it runs"
    );
    assert_eq!(running.partitions[2].gpu_ms, Some(900));
    assert_eq!(running.partitions[1].failure, Some(FailureClass::DeviceError));
    assert!(running.partitions[1].wake_at.is_some());
    let stages = status.stages;
    assert_eq!(
        (
            stages.synthesizing,
            stages.synthesized,
            stages.proving,
            stages.finishing
        ),
        (0, 1, 1, 1)
    );
    assert_eq!(status.workers.len(), 2);
    assert!(status.workers[0].busy.is_none() && status.workers[0].last.is_some());
    assert_eq!(status.workers[1].job, Some(running.job.id));
    assert_eq!(status.importing.len(), 1);
    assert_eq!(job(&status, VERIFYING).job.state, JobState::Verifying);
    assert_eq!(status.counters.jobs_ended("succeeded"), 1);
    assert_eq!(status.boot.as_ref().unwrap().boot.number, world.boot);
    assert_eq!(
        (status.journal.0, status.journal_kept),
        (query::last_event(&world.view).unwrap().0, status.journal.0)
    );
}

#[test]
fn the_queue_is_counted_by_priority() {
    let mut world = busy_world();
    let urgent = world.submission(3);
    world.submit_as(proofkeep_store::machine::Submit {
        priority: Priority::Critical,
        ..urgent
    });
    let status = read(&world);
    assert_eq!((status.queue.depth.count, status.queue.depth.more), (6, false));
    assert_eq!(status.queue.waiting.count, 1);
    let first = &status.queue.by_priority[0];
    assert_eq!((first.priority, first.ready.count), (Priority::Critical, 3));
    let normal = status
        .queue
        .by_priority
        .iter()
        .find(|queue| queue.priority == Priority::Normal)
        .unwrap();
    assert_eq!(normal.ready.count, 3);
    assert!(normal.oldest_ms.unwrap() > first.oldest_ms.unwrap());
    let limits = StatusLimits {
        counted: 4,
        ..StatusLimits::default()
    };
    let short = query::status(&world.view, world.now, limits).unwrap();
    assert_eq!((short.queue.depth.count, short.queue.depth.more), (4, true));
}

#[test]
fn it_says_why_a_job_waits() {
    let mut world = busy_world();
    assert_eq!(job(&read(&world), QUEUED).reason, None);
    world.step(Command::DeviceSuspend {
        device: "cpu:0".into(),
        until: None,
        reason: "hot".into(),
    });
    assert_eq!(
        job(&read(&world), QUEUED).reason,
        Some(WaitReason::DeviceSuspended)
    );
    world.step(Command::Pause {
        actor: "local".into(),
    });
    assert_eq!(job(&read(&world), QUEUED).reason, Some(WaitReason::Paused));
    assert_eq!(job(&read(&world), RUNNING).reason, None, "it does not wait");
    let mut submit = world.submission(1);
    submit.circuit = Some(support::digest("other"));
    let importing = world.submit_as(submit);
    assert_eq!(
        job(&read(&world), importing).reason,
        Some(WaitReason::CircuitImporting)
    );

    let mut world = World::new();
    let waiting = world.submit(1);
    let (token, _) = world.synth_start(waiting, 0);
    world.fail_attempt(token, FailureClass::TimedOut);
    assert_eq!(
        query::job(&world.view, waiting).unwrap().unwrap().reason,
        job(&read(&world), waiting).reason
    );
    assert!(matches!(job(&read(&world), waiting).reason, Some(WaitReason::BackingOff(at)) if at > world.now));
}

#[test]
fn beyond_the_limit_open_partitions_are_full_and_the_rest_are_cells() {
    let mut world = World::new();
    world.checked = false;
    let large = world.submit(40);
    world.prove(large, 0);
    world.start_proving(large, 1, 0);
    let other = world.submit(30);
    let limits = StatusLimits {
        partitions: 35,
        cells: 60,
        ..StatusLimits::default()
    };
    let status = query::status(&world.view, world.now, limits).unwrap();
    let drawn = job(&status, large);
    assert_eq!(drawn.partitions.len(), 1, "the one with an open attempt");
    assert_eq!(drawn.partitions[0].index, 1);
    let cells = drawn.cells.as_ref().unwrap();
    assert_eq!(cells.len(), 40);
    assert!(cells.starts_with("#p...."), "{cells}");
    assert_eq!(job(&status, other).partitions.len(), 30);
    let shape = cuzk(&status, &Surroundings::default());
    assert_eq!(shape.pipelines[0].partitions.len(), 40);
    assert_eq!(shape.pipelines[0].partitions[0].state, "done");
    assert_eq!(shape.pipelines[0].partitions[1].state, "gpu");
    let limits = StatusLimits {
        partitions: 1,
        cells: 40,
        ..StatusLimits::default()
    };
    let status = query::status(&world.view, world.now, limits).unwrap();
    assert_eq!(
        (
            job(&status, other).cells.as_ref(),
            job(&status, other).partitions.len()
        ),
        (None, 0)
    );
}

#[test]
fn every_state_has_a_cell_of_its_own() {
    let mut cells: Vec<char> = PartitionState::ALL.into_iter().map(cell).collect();
    cells.sort_unstable();
    cells.dedup();
    assert_eq!(cells.len(), PartitionState::ALL.len());
}

#[test]
fn cuzks_shape_says_the_same() {
    let mut world = busy_world();
    let memory = CuzkMemory {
        total_bytes: 10,
        used_bytes: 4,
        available_bytes: 6,
    };
    let surroundings = Surroundings {
        memory,
        max_concurrent: 4,
        ..Surroundings::default()
    };
    let shape = cuzk(&read(&world), &surroundings);
    assert_eq!(shape.memory, memory);
    assert_eq!(shape.synthesis.max_concurrent, 4);
    let running = &shape.pipelines[0];
    let states: Vec<&str> = running
        .partitions
        .iter()
        .map(|partition| partition.state)
        .collect();
    assert_eq!(
        states,
        ["done", "pending", "synth_done", "gpu", "synth_done", "pending"]
    );
    assert_eq!((running.total_partitions, running.partitions_done), (6, 1));
    let buffers = shape.buffers;
    assert_eq!(
        (
            buffers.synth_in_flight,
            buffers.provers_in_flight,
            buffers.pending_handles
        ),
        (0, 2, 1)
    );
    assert_eq!(shape.gpu_workers[0].state, "idle");
    assert_eq!(shape.gpu_workers[1].state, "proving");
    assert_eq!(shape.gpu_workers[1].current_job.as_ref(), Some(&running.job_id));
    assert_eq!(shape.gpu_workers[1].current_partition, Some(3));
    let counters = &shape.counters;
    assert_eq!(
        (
            counters.total_completed,
            counters.total_failed,
            counters.queue_depth
        ),
        (1, 1, 3)
    );
    assert_eq!(
        shape.pipelines.len(),
        6,
        "three in flight and three that ended a moment ago"
    );
    world.now = world.now.after(31_000);
    assert_eq!(cuzk(&read(&world), &surroundings).pipelines.len(), 3);
}

#[test]
fn a_job_that_ended_and_is_tried_again_is_shown_once() {
    let mut world = busy_world();
    world.retry(support::FAILED);
    let status = read(&world);
    let shown = status
        .jobs
        .iter()
        .chain(&status.recent)
        .filter(|job| job.job.number == support::FAILED);
    assert_eq!(shown.count(), 1);
    assert!(status.recent.iter().any(|job| job.job.number == DONE));
}

#[test]
fn every_snapshot_of_a_history_agrees_with_itself() {
    let mut world = World::new();
    world.checked = false;
    let check = |world: &World| {
        let status = read(world);
        let busy: Vec<_> = status
            .workers
            .iter()
            .filter_map(|worker| worker.busy.map(|busy| (worker.id, busy)))
            .collect();
        let mut proving = 0;
        for job in &status.jobs {
            for partition in &job.partitions {
                let held = busy.iter().filter(|(id, (number, index, _))| {
                    Some(*id) == partition.worker && *number == job.job.number && *index == partition.index
                });
                let expected = usize::from(partition.state == PartitionState::Proving);
                assert_eq!(held.count(), expected, "{partition:?}");
                proving += expected;
            }
            let proved = job
                .partitions
                .iter()
                .filter(|partition| partition.state == PartitionState::Proved);
            assert_eq!(proved.count(), job.summary.proved as usize);
            assert!(job.summary.proved < job.summary.total || job.job.state != JobState::Running);
        }
        assert_eq!(proving, busy.len());
        assert_eq!(proving, status.stages.proving as usize);
    };
    for _ in 0..3 {
        let job = world.submit(3);
        check(&world);
        for partition in 0..3 {
            let attempt = world.synthesize(job, partition);
            check(&world);
            let command = Command::GpuStart {
                job,
                partition,
                attempt,
                worker: WorkerId(partition % 2),
            };
            let (token, _) = world.grant(command);
            check(&world);
            world.gpu_end(token);
            check(&world);
            world.store_proof(token);
            check(&world);
        }
    }
    assert_eq!(read(&world).at, world.now);
    assert!(world.now > Millis(support::START));
}
