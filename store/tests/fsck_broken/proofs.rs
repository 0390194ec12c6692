use super::*;

#[test]
fn one_is_missing() {
    broken(
        Invariant::Proofs,
        "proof of partition 1 of job 1",
        false,
        |world| {
            remove(world, &keys::proof(DONE, 1));
        },
    );
    broken(
        Invariant::Proofs,
        "proof of partition 0 of job 4",
        true,
        |world| {
            remove(world, &keys::proof(RUNNING, 0));
        },
    );
}

#[test]
fn one_is_not_what_its_digest_says() {
    broken(
        Invariant::Proofs,
        "proof of partition 1 of job 1",
        false,
        |world| {
            world.change::<StoredProof>(keys::proof(DONE, 1), |proof| proof.bytes[100] ^= 1);
        },
    );
}

#[test]
fn one_is_another_than_the_journal_stored() {
    broken(
        Invariant::Proofs,
        "proof of partition 1 of job 1",
        false,
        |world| {
            world.change::<StoredProof>(keys::proof(DONE, 1), |proof| {
                proof.bytes[100] ^= 1;
                proof.digest = Digest::of(&proof.bytes);
            });
        },
    );
}

#[test]
fn one_is_there_for_a_partition_that_is_not_proved() {
    broken(
        Invariant::Proofs,
        "proof of partition 5 of job 4",
        true,
        |world| {
            let mut proof: StoredProof = world.record(&keys::proof(RUNNING, 0));
            proof.partition = 5;
            world
                .view
                .0
                .insert(keys::proof(RUNNING, 5), codec::Record::encode(&proof));
        },
    );
}

#[test]
fn no_attempt_made_it() {
    broken(
        Invariant::Proofs,
        "proof of partition 0 of job 4",
        true,
        |world| {
            world.change::<StoredProof>(keys::proof(RUNNING, 0), |proof| proof.attempt = 2);
        },
    );
}

#[test]
fn a_job_succeeded_without_all_of_them() {
    broken(
        Invariant::Proofs,
        "job 1",
        false,
        partition_change(DONE, 1, |partition| {
            partition.state = PartitionState::Cancelled;
        }),
    );
}

#[test]
fn a_job_succeeded_without_its_final_check() {
    broken(Invariant::Proofs, "event", false, |world| {
        let event = event_of(world, DONE, |what| matches!(what, What::VerifyPassed { .. }));
        let token = event.what.token().unwrap();
        world.change::<Event>(keys::event(event.number), |event| {
            event.what = What::VerifyDropped { token }
        });
    });
}

#[test]
fn a_proved_partition_keeps_a_checkpoint() {
    broken(
        Invariant::Proofs,
        "checkpoint of partition 0 of job 4",
        true,
        |world| {
            let mut checkpoint: Checkpoint = world.record(&keys::checkpoint(RUNNING, 3));
            checkpoint.partition = 0;
            world
                .view
                .0
                .insert(keys::checkpoint(RUNNING, 0), codec::Record::encode(&checkpoint));
        },
    );
}
