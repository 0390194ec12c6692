use super::*;

#[test]
fn one_was_raised_lowered_lost_or_made_up() {
    let name = keys::jobs_counter("groth16", JobState::Succeeded);
    for number in [0, 2, u64::MAX] {
        broken(
            Invariant::Counters,
            "counter jobs/groth16/succeeded",
            false,
            |world| {
                world.view.0.insert(keys::counter(&name), codec::number(number));
            },
        );
    }
    broken(
        Invariant::Counters,
        "counter jobs/groth16/succeeded",
        false,
        |world| {
            remove(world, &keys::counter(&name));
        },
    );
    broken(Invariant::Counters, "counter attempts/other/ok", false, |world| {
        world
            .view
            .0
            .insert(keys::counter("attempts/other/ok"), codec::number(1));
    });
}

#[test]
fn it_forgets_what_pruned_jobs_had() {
    broken(
        Invariant::Counters,
        "counter jobs/groth16/succeeded",
        false,
        |world| {
            world.prune(DONE);
            world.assert_clean("pruning");
            let name = keys::jobs_counter("groth16", JobState::Succeeded);
            remove(world, &keys::pruned_counter(&name));
        },
    );
}

#[test]
fn the_jobs_own_count_is_wrong() {
    broken(Invariant::Derived, "job 4", true, |world| {
        world.change::<Job>(keys::job(RUNNING), |job| job.tally.proved += 1);
    });
    broken(Invariant::Derived, "job 4", true, |world| {
        world.change::<Job>(keys::job(RUNNING), |job| job.tally.leases -= 1);
    });
}
