use super::*;

#[test]
fn an_event_is_lost() {
    broken(Invariant::Journal, "job 2", false, |world| {
        let event = event_of(world, FAILED, |what| matches!(what, What::AttemptEnded(_)));
        remove(world, &keys::event(event.number));
    });
    broken(Invariant::Journal, "event", false, |world| {
        let event = event_of(world, FAILED, |what| matches!(what, What::AttemptEnded(_)));
        remove(world, &keys::event(event.number));
        remove(world, &keys::job_event(FAILED, event.number));
    });
}

#[test]
fn its_number_is_ahead_or_behind() {
    for step in [-1_i64, 1] {
        broken(Invariant::Journal, "sequence", false, |world| {
            let key = keys::sequence(keys::Sequence::Journal);
            let last = codec::read_number(&world.view.0[&key]).unwrap();
            world
                .view
                .0
                .insert(key, codec::number(last.saturating_add_signed(step)));
        });
    }
}

#[test]
fn boots_fall() {
    broken(Invariant::Journal, "event 3", false, |world| {
        world.change::<Event>(keys::event(JournalNumber(2)), |event| event.boot = BootNumber(9));
    });
}

#[test]
fn it_tells_another_story_than_the_records() {
    broken(Invariant::Journal, "job 1", false, |world| {
        world.change::<Job>(keys::job(DONE), |job| job.labels.clear());
    });
    broken(Invariant::Journal, "generation 1 of job 1", false, |world| {
        world.change::<Generation>(keys::generation(DONE, 1), |found| {
            found.actor = "nobody".to_owned()
        });
    });
    broken(
        Invariant::Journal,
        "partition 1 of job 2",
        false,
        partition_change(FAILED, 1, |partition| {
            partition.counted = 0;
        }),
    );
    broken(
        Invariant::Journal,
        "attempt 1 at partition 1 of job 1",
        false,
        |world| {
            world.change::<Attempt>(attempt(DONE, 1, 1), |attempt| attempt.gpu_ms = Some(1));
        },
    );
}

#[test]
fn it_knows_nothing_of_a_record() {
    broken(
        Invariant::Journal,
        "attempt 2 at partition 0 of job 3",
        false,
        |world| {
            let mut extra: Attempt = world.record(&attempt(FAILED, 1, 1));
            extra.of = AttemptRef {
                job: CANCELLED,
                partition: 0,
                number: 2,
            };
            world
                .view
                .0
                .insert(keys::attempt(extra.of), codec::Record::encode(&extra));
        },
    );
}

#[test]
fn a_job_is_lost() {
    broken(Invariant::Journal, "job 3", false, |world| {
        remove(world, &keys::job(CANCELLED));
    });
}

#[test]
fn a_job_was_pruned_and_is_there() {
    broken(Invariant::Journal, "job 3", false, |world| {
        let job: Job = world.record(&keys::job(CANCELLED));
        world.prune(CANCELLED);
        world
            .view
            .0
            .insert(keys::job(CANCELLED), codec::Record::encode(&job));
    });
}

#[test]
fn a_boot_is_lost_or_two_are_open() {
    broken(Invariant::Journal, "boot 3", true, |world| {
        world.reboot();
        world.reboot();
        remove(world, &keys::boot(BootNumber(2)));
    });
    broken(Invariant::Journal, "boot 1", true, |world| {
        world.reboot();
        world.change::<Boot>(keys::boot(BootNumber(1)), |boot| boot.ended = None);
    });
}

#[test]
fn it_tells_another_story_than_the_records_of_no_job() {
    broken(Invariant::Journal, "circuit name circuit", false, |world| {
        remove(world, &keys::circuit_name("circuit"));
    });
    broken(Invariant::Journal, "circuit", false, |world| {
        let key = keys::circuit(world.circuit);
        world.change::<Circuit>(key, |circuit| circuit.facts.insecure = false);
    });
    broken(Invariant::Journal, "the queue", false, |world| {
        world.step(proofkeep_store::machine::Command::Pause {
            actor: "local".to_owned(),
        });
        remove(world, &keys::queue());
    });
    broken(Invariant::Journal, "boot 1", false, |world| {
        world.change::<Boot>(keys::boot(BootNumber(1)), |boot| {
            boot.version = "other".to_owned()
        });
    });
}
