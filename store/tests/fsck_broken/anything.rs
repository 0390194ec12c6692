use super::*;

/// Losing it is allowed: a default takes its place, or nothing says that it was there.
fn may_go(key: &[u8]) -> bool {
    let family = |family: Family| key[0] == family as u8;
    family(Family::Checkpoint) || family(Family::Quarantine) || family(Family::Pruned)
}

#[test]
fn no_key_can_be_lost_unnoticed() {
    let mut world = busy_world();
    world.prune(CANCELLED);
    world.assert_clean("all of it");
    for key in world.view.0.keys().filter(|key| !may_go(key)) {
        let mut view = world.view.clone();
        view.0.remove(key);
        let report = fsck(&view, Mode::Full, None).unwrap();
        assert!(
            !report.is_clean(),
            "nobody missed {}",
            proofkeep_store::fsck::describe(key)
        );
    }
}

#[test]
fn no_bit_can_flip_unnoticed() {
    let world = busy_world();
    for (count, (key, value)) in world
        .view
        .0
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .enumerate()
    {
        let mut view = world.view.clone();
        let mut value = value.clone();
        let place = count * 7919 % (value.len() * 8);
        value[place / 8] ^= 1 << (place % 8);
        view.0.insert(key.clone(), value);
        let report = fsck(&view, Mode::Full, None).unwrap();
        let named = report
            .findings
            .iter()
            .any(|finding| finding.invariant == Invariant::Record && finding.key == hex::encode(key));
        assert!(named, "nobody saw {}", proofkeep_store::fsck::describe(key));
    }
}

#[test]
fn a_record_at_the_key_of_another_is_named() {
    broken(Invariant::Record, "job 1", false, |world| {
        let bytes = world.view.0[&keys::job(FAILED)].clone();
        world.view.0.insert(keys::job(DONE), bytes);
    });
    broken(Invariant::Record, "key fe", false, |world| {
        world.view.0.insert(vec![0xfe, 1], Vec::new());
    });
    broken(Invariant::Index, "active entry of job 6", false, |world| {
        world.view.0.insert(keys::active(QUEUED), vec![1]);
    });
    broken(Invariant::Index, "partition 0 of job 99", false, |world| {
        let partition = Partition::new(JobNumber(99), 0);
        world.view.0.insert(
            keys::partition(JobNumber(99), 0),
            codec::Record::encode(&partition),
        );
    });
}

#[test]
fn a_partition_beyond_the_last_is_named() {
    broken(Invariant::Record, "partition 9 of job 4", true, |world| {
        let partition = Partition::new(RUNNING, 9);
        world
            .view
            .0
            .insert(keys::partition(RUNNING, 9), codec::Record::encode(&partition));
    });
}

#[test]
fn a_stage_is_not_the_leases() {
    broken(Invariant::Workers, "partition 3 of job 4", true, |world| {
        let key = keys::lease(token_of(world, RUNNING, 3));
        world.change::<Lease>(key, |lease| {
            lease.subject = Subject::Partition {
                job: RUNNING,
                partition: 3,
                stage: Stage::Finish,
            };
        });
    });
}
