use super::*;

#[test]
fn a_ready_partition_is_not_in_it() {
    broken(
        Invariant::Queue,
        "ready entry of partition 1 of job 6",
        true,
        |world| {
            remove(world, &keys::ready(Priority::Normal, QUEUED, 1));
        },
    );
}

#[test]
fn a_ready_partition_stands_in_it_twice() {
    broken(
        Invariant::Queue,
        "ready entry of partition 1 of job 6",
        true,
        |world| {
            insert(world, keys::ready(Priority::High, QUEUED, 1));
        },
    );
}

#[test]
fn a_partition_at_work_stands_in_it() {
    broken(
        Invariant::Queue,
        "ready entry of partition 3 of job 4",
        true,
        |world| {
            insert(world, keys::ready(Priority::Normal, RUNNING, 3));
        },
    );
}

#[test]
fn a_partition_of_no_job_stands_in_it() {
    broken(
        Invariant::Queue,
        "ready entry of partition 0 of job 77",
        true,
        |world| {
            insert(world, keys::ready(Priority::Normal, JobNumber(77), 0));
        },
    );
}

#[test]
fn a_waiting_partition_will_not_wake() {
    broken(
        Invariant::Queue,
        "waiting entry of partition 1 of job 4",
        true,
        |world| {
            let at = world
                .record::<Partition>(&keys::partition(RUNNING, 1))
                .wake_at
                .unwrap();
            remove(world, &keys::retry(at, RUNNING, 1));
        },
    );
    broken(
        Invariant::Queue,
        "partition 1 of job 4",
        true,
        partition_change(RUNNING, 1, |partition| {
            partition.wake_at = None;
        }),
    );
}

#[test]
fn a_waiting_partition_wakes_twice() {
    broken(
        Invariant::Queue,
        "waiting entry of partition 1 of job 4",
        true,
        |world| {
            insert(world, keys::retry(Millis(3), RUNNING, 1));
        },
    );
}
