use super::*;

#[test]
fn one_is_missing() {
    broken(Invariant::Attempts, "partition 1 of job 4", true, |world| {
        remove(world, &attempt(RUNNING, 1, 1));
    });
}

#[test]
fn one_too_many() {
    broken(
        Invariant::Attempts,
        "attempt 3 at partition 1 of job 4",
        true,
        |world| {
            let mut extra: Attempt = world.record(&attempt(RUNNING, 1, 1));
            extra.of.number = 3;
            world
                .view
                .0
                .insert(keys::attempt(extra.of), codec::Record::encode(&extra));
        },
    );
}

#[test]
fn two_are_open() {
    broken(
        Invariant::Attempts,
        "attempt 1 at partition 1 of job 4",
        true,
        |world| {
            world.change::<Attempt>(attempt(RUNNING, 1, 1), |attempt| {
                attempt.outcome = None;
                attempt.ended_at = None;
                attempt.closed_in = None;
            });
        },
    );
}

#[test]
fn one_ended_without_an_end() {
    broken(
        Invariant::Attempts,
        "attempt 1 at partition 1 of job 4",
        true,
        |world| {
            world.change::<Attempt>(attempt(RUNNING, 1, 1), |attempt| attempt.closed_in = None);
        },
    );
}

#[test]
fn an_open_one_has_ended() {
    broken(
        Invariant::Attempts,
        "attempt 1 at partition 3 of job 4",
        true,
        |world| {
            let boot = world.boot;
            world.change::<Attempt>(attempt(RUNNING, 3, 1), |attempt| {
                attempt.outcome = Some(Outcome::Ok);
                attempt.ended_at = Some(Millis(5));
                attempt.closed_in = Some(boot);
            });
        },
    );
}

#[test]
fn one_is_open_since_an_earlier_boot() {
    broken(
        Invariant::Attempts,
        "attempt 1 at partition 3 of job 4",
        true,
        |world| {
            let mut boot: Boot = world.record(&keys::boot(BootNumber(1)));
            boot.number = BootNumber(2);
            world
                .view
                .0
                .insert(keys::boot(boot.number), codec::Record::encode(&boot));
            world
                .view
                .0
                .insert(keys::sequence(keys::Sequence::Boot), codec::number(2));
        },
    );
}

#[test]
fn the_partition_counts_otherwise() {
    broken(
        Invariant::Attempts,
        "partition 1 of job 4",
        true,
        partition_change(RUNNING, 1, |partition| {
            partition.attempts = 2;
        }),
    );
}

#[test]
fn one_is_of_a_generation_that_never_was() {
    broken(
        Invariant::Attempts,
        "attempt 1 at partition 1 of job 4",
        true,
        |world| {
            world.change::<Attempt>(attempt(RUNNING, 1, 1), |attempt| attempt.generation = 2);
        },
    );
}

#[test]
fn the_index_of_open_ones_lacks_one_or_has_one_too_many() {
    broken(
        Invariant::Attempts,
        "open-attempt entry of partition 4 of job 4",
        true,
        |world| {
            remove(world, &keys::open(RUNNING, 4));
        },
    );
    broken(
        Invariant::Attempts,
        "open-attempt entry of partition 5 of job 4",
        true,
        |world| {
            insert(world, keys::open(RUNNING, 5));
        },
    );
    broken(
        Invariant::Queue,
        "open-attempt entry of partition 0 of job 2",
        true,
        |world| {
            insert(world, keys::open(FAILED, 0));
        },
    );
}

#[test]
fn a_token_was_made_up() {
    broken(Invariant::Attempts, "lease", true, |world| {
        let old = token_of(world, RUNNING, 2);
        let token = Token {
            boot: old.boot,
            grant: JournalNumber(1),
        };
        let mut lease: Lease = world.record(&keys::lease(old));
        lease.token = token;
        remove(world, &keys::lease(old));
        world
            .view
            .0
            .insert(keys::lease(token), codec::Record::encode(&lease));
        world.change::<Partition>(keys::partition(RUNNING, 2), |found| found.token = Some(token));
    });
}

#[test]
fn an_event_acts_under_a_lease_that_was_not_held() {
    broken(Invariant::Attempts, "event", false, |world| {
        let event = event_of(world, DONE, |what| matches!(what, What::ProveEnded { .. }));
        world.change::<Event>(keys::event(event.number), |event| {
            if let What::ProveEnded { token, .. } = &mut event.what {
                token.grant = JournalNumber(1);
            }
        });
    });
}

#[test]
fn a_checkpoint_comes_from_an_attempt_that_never_was() {
    broken(
        Invariant::Attempts,
        "checkpoint of partition 3 of job 4",
        true,
        |world| {
            world.change::<Checkpoint>(keys::checkpoint(RUNNING, 3), |found| found.pieces[0].attempt = 7);
        },
    );
}
