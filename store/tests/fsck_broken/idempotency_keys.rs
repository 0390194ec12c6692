use super::*;

#[test]
fn one_points_to_another_job() {
    broken(Invariant::Keys, "idempotency key done", false, |world| {
        world
            .view
            .0
            .insert(keys::idempotency("done"), codec::number(QUEUED.0));
    });
}

#[test]
fn one_is_lost() {
    broken(Invariant::Keys, "idempotency key done", false, |world| {
        remove(world, &keys::idempotency("done"));
    });
}

#[test]
fn two_name_one_job() {
    broken(Invariant::Keys, "idempotency key again", false, |world| {
        world
            .view
            .0
            .insert(keys::idempotency("again"), codec::number(DONE.0));
    });
}

#[test]
fn the_request_is_another() {
    broken(Invariant::Keys, "request of job 1", false, |world| {
        world
            .view
            .0
            .insert(keys::request(DONE), codec::bytes(b"another request"));
    });
}
