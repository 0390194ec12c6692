use super::*;

#[test]
fn one_keeps_a_checkpoint() {
    broken(Invariant::Terminal, "job 2", false, |world| {
        let mut checkpoint: Checkpoint = world.record(&keys::checkpoint(RUNNING, 3));
        (checkpoint.job, checkpoint.partition) = (FAILED, 1);
        world
            .view
            .0
            .insert(keys::checkpoint(FAILED, 1), codec::Record::encode(&checkpoint));
    });
}

#[test]
fn one_stands_in_the_queue() {
    broken(
        Invariant::Terminal,
        "ready entry of partition 0 of job 3",
        false,
        |world| {
            insert(world, keys::ready(Priority::Normal, CANCELLED, 0));
        },
    );
    broken(
        Invariant::Queue,
        "ready entry of partition 0 of job 3",
        true,
        |world| {
            insert(world, keys::ready(Priority::Normal, CANCELLED, 0));
        },
    );
}

#[test]
fn one_is_active() {
    broken(Invariant::Terminal, "active entry of job 3", false, |world| {
        insert(world, keys::active(CANCELLED))
    });
    broken(Invariant::Index, "active entry of job 3", true, |world| {
        insert(world, keys::active(CANCELLED))
    });
}

#[test]
fn one_holds_a_lease() {
    broken(Invariant::Terminal, "job 1", false, |world| {
        let token = token_of(world, RUNNING, 2);
        world.change::<Job>(keys::job(DONE), |job| job.verifying = Some(token));
    });
    broken(Invariant::Workers, "lease", true, |world| {
        world.change::<Job>(keys::job(VERIFYING), |job| job.state = JobState::Succeeded);
    });
}

#[test]
fn its_life_goes_on() {
    broken(Invariant::Terminal, "generation 1 of job 1", false, |world| {
        world.change::<Generation>(keys::generation(DONE, 1), |generation| generation.ended = None);
    });
    broken(Invariant::Terminal, "generation 1 of job 4", true, |world| {
        world.change::<Generation>(keys::generation(RUNNING, 1), |generation| {
            generation.ended = Some(JobState::Failed);
        });
    });
}

#[test]
fn a_partition_of_it_goes_on() {
    broken(
        Invariant::Terminal,
        "job 2",
        false,
        partition_change(FAILED, 1, |partition| {
            partition.state = PartitionState::Ready;
        }),
    );
}
