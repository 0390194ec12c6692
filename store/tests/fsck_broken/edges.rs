use super::*;

#[test]
fn the_journal_jumps_over_a_state() {
    broken(Invariant::Edges, "event", false, |world| {
        let event = event_of(world, DONE, |what| matches!(what, What::ProveStarted { .. }));
        let (token, partition) = (
            Token {
                boot: event.boot,
                grant: event.number,
            },
            0,
        );
        world.change::<Event>(keys::event(event.number), |event| {
            event.what = What::ProveEnded {
                token,
                partition,
                gpu_ms: 1,
                reused: Vec::new(),
                saved_ms: 0,
            };
        });
    });
    broken(Invariant::Edges, "event", false, |world| {
        let event = event_of(world, CANCELLED, |what| matches!(what, What::Ended { .. }));
        world.change::<Event>(keys::event(event.number), |event| {
            event.what = What::Ended {
                state: JobState::Failed,
            };
        });
    });
}

#[test]
fn a_job_is_in_a_state_that_its_partitions_contradict() {
    broken(Invariant::Edges, "job 4", true, |world| {
        world.change::<Job>(keys::job(RUNNING), |job| job.state = JobState::Queued);
    });
    // R4: the last partition is proved and the job doesn't move.
    broken(Invariant::Edges, "job 5", true, |world| {
        world.change::<Job>(keys::job(VERIFYING), |job| job.state = JobState::Running);
    });
    // R9: a job that failed never ends.
    broken(Invariant::Edges, "job 6", true, |world| {
        world.change::<Job>(keys::job(QUEUED), |job| {
            job.state = JobState::Stopping(StopTarget::Failed)
        });
    });
    broken(Invariant::Proofs, "job 6", true, |world| {
        world.change::<Job>(keys::job(QUEUED), |job| job.state = JobState::Verifying);
    });
}

#[test]
fn a_partition_is_in_a_state_that_its_fields_contradict() {
    broken(
        Invariant::Edges,
        "partition 5 of job 4",
        true,
        partition_change(RUNNING, 5, |partition| {
            partition.state = PartitionState::Failed;
        }),
    );
    broken(
        Invariant::Edges,
        "partition 5 of job 4",
        true,
        partition_change(RUNNING, 5, |partition| {
            partition.state = PartitionState::Cancelled;
        }),
    );
    broken(
        Invariant::Edges,
        "partition 5 of job 4",
        true,
        partition_change(RUNNING, 5, |partition| {
            partition.counted = 3;
        }),
    );
}
