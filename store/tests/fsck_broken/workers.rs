use super::*;

#[test]
fn one_shows_idle_while_its_partition_proves() {
    broken(Invariant::Workers, "partition 3 of job 4", true, |world| {
        world.change::<Worker>(keys::worker(WorkerId(1)), |worker| {
            worker.state = WorkerState::Idle
        });
    });
}

#[test]
fn one_is_busy_under_a_lease_that_ended() {
    broken(Invariant::Workers, "worker 0", true, |world| {
        let token = token_of(world, RUNNING, 2);
        let busy = WorkerState::Busy {
            token,
            job: RUNNING,
            partition: 2,
            since: Millis(1),
        };
        world.change::<Worker>(keys::worker(WorkerId(0)), |worker| worker.state = busy);
    });
}

#[test]
fn two_hold_the_same_lease() {
    broken(Invariant::Workers, "worker 1", true, |world| {
        let state = world.record::<Worker>(&keys::worker(WorkerId(1))).state;
        world.change::<Worker>(keys::worker(WorkerId(0)), |worker| worker.state = state);
    });
}

#[test]
fn one_is_missing() {
    broken(Invariant::Workers, "device cpu:0", true, |world| {
        remove(world, &keys::worker(WorkerId(1)));
    });
}

#[test]
fn a_lease_is_lost() {
    for (index, place) in [(2, "partition 2 of job 4"), (3, "partition 3 of job 4")] {
        broken(Invariant::Workers, place, true, |world| {
            let token = token_of(world, RUNNING, index);
            remove(world, &keys::lease(token));
        });
    }
    broken(Invariant::Workers, "job 5", true, |world| {
        let token = world.record::<Job>(&keys::job(VERIFYING)).verifying.unwrap();
        remove(world, &keys::lease(token));
    });
    broken(Invariant::Workers, "circuit", true, |world| {
        let circuit = world.record::<Circuit>(&keys::circuit(digest("other")));
        let CircuitState::Importing(import) = circuit.state else {
            panic!("it is importing")
        };
        remove(world, &keys::lease(import.token.unwrap()));
    });
}

#[test]
fn a_lease_outlives_what_it_was_for() {
    broken(
        Invariant::Workers,
        "lease",
        true,
        partition_change(RUNNING, 2, |partition| {
            partition.token = None;
            partition.state = PartitionState::Synthesized;
        }),
    );
    broken(Invariant::Workers, "lease", true, |world| {
        world.change::<Job>(keys::job(VERIFYING), |job| job.verifying = None);
    });
}

#[test]
fn a_lease_is_of_an_earlier_boot_or_of_a_dead_process() {
    broken(Invariant::Workers, "lease", true, |world| {
        let key = keys::lease(token_of(world, RUNNING, 2));
        world.change::<Lease>(key, |lease| {
            lease.process = Some(ProcessId {
                boot: lease.token.boot,
                spawn: 99,
            });
        });
    });
    broken(Invariant::Workers, "lease 0-3", true, |world| {
        let token = Token {
            boot: BootNumber(0),
            grant: JournalNumber(3),
        };
        let mut lease: Lease = world.record(&keys::lease(token_of(world, RUNNING, 2)));
        lease.token = token;
        world
            .view
            .0
            .insert(keys::lease(token), codec::Record::encode(&lease));
    });
}

#[test]
fn a_partition_being_finished_keeps_its_worker() {
    broken(
        Invariant::Workers,
        "partition 2 of job 4",
        true,
        partition_change(RUNNING, 2, |partition| {
            partition.worker = Some(WorkerId(0));
        }),
    );
}

#[test]
fn a_ready_partition_holds_a_lease_or_a_process() {
    broken(Invariant::Workers, "partition 5 of job 4", true, |world| {
        let token = token_of(world, RUNNING, 3);
        world.change::<Partition>(keys::partition(RUNNING, 5), |partition| {
            partition.token = Some(token)
        });
    });
    broken(Invariant::Workers, "partition 5 of job 4", true, |world| {
        let process = world.process;
        world.change::<Partition>(keys::partition(RUNNING, 5), |found| found.process = Some(process));
    });
}

#[test]
fn a_device_has_a_process_that_nobody_started() {
    broken(Invariant::Workers, "device cpu:0", true, |world| {
        let boot = world.boot;
        world.change::<Device>(keys::device("cpu:0"), |device| {
            device.process = Some(ProcessId { boot, spawn: 9 });
        });
    });
}
