use super::*;

#[test]
fn an_entry_of_a_job_is_missing() {
    broken(Invariant::Index, "active entry of job 6", false, |world| {
        remove(world, &keys::active(QUEUED));
    });
    broken(Invariant::Index, "ended entry of job 1", false, |world| {
        remove(world, &keys::done(DONE));
    });
    broken(Invariant::Index, "job id", false, |world| {
        let id = world.record::<Job>(&keys::job(DONE)).id;
        remove(world, &keys::job_id(id));
    });
    broken(Invariant::Index, "deadline entry of job 4", true, |world| {
        let at = world.record::<Job>(&keys::job(RUNNING)).deadline.unwrap();
        remove(world, &keys::deadline(at, RUNNING));
    });
}

#[test]
fn an_entry_of_a_job_is_too_many() {
    broken(Invariant::Index, "ended entry of job 6", false, |world| {
        insert(world, keys::done(QUEUED))
    });
    broken(Invariant::Index, "deadline entry of job 6", true, |world| {
        insert(world, keys::deadline(Millis(9), QUEUED));
    });
    broken(Invariant::Index, "job id", false, |world| {
        world
            .view
            .0
            .insert(keys::job_id(uuid::Uuid::from_u128(99)), codec::number(DONE.0));
    });
    broken(Invariant::Index, "event 1 of job 1", false, |world| {
        insert(world, keys::job_event(DONE, JournalNumber(1)));
    });
}

#[test]
fn a_reference_is_missing_or_too_many() {
    broken(Invariant::Index, "job 1 needs object", false, |world| {
        remove(world, &keys::reference(digest("witness"), DONE));
    });
    broken(Invariant::Index, "job 1 needs object", false, |world| {
        remove(world, &keys::needs(DONE, digest("witness")));
    });
    broken(Invariant::Index, "needs object", false, |world| {
        let circuit = world.circuit;
        remove(world, &keys::circuit_reference(digest("vk circuit"), circuit));
    });
    broken(Invariant::Index, "needs object", false, |world| {
        let circuit = world.circuit;
        insert(world, keys::circuit_reference(digest("something"), circuit));
    });
}

#[test]
fn a_circuit_is_not_where_it_should_be() {
    broken(Invariant::Index, "importing entry", true, |world| {
        remove(world, &keys::importing(digest("other")));
    });
    broken(Invariant::Index, "importing entry", true, |world| {
        let circuit = world.circuit;
        insert(world, keys::importing(circuit));
    });
    broken(Invariant::Index, "circuit name circuit", true, |world| {
        world
            .view
            .0
            .insert(keys::circuit_name("circuit"), codec::digest(digest("nowhere")));
    });
    broken(Invariant::Record, "job 4", true, |world| {
        let circuit = world.circuit;
        remove(world, &keys::circuit(circuit));
    });
}

#[test]
fn an_object_is_gone() {
    let world = busy_world();
    let gone = digest("witness");
    let report = fsck(&world.view, Mode::Full, Some(&|object| object != gone)).unwrap();
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    assert_eq!(report.findings[0].invariant, Invariant::Object);
}
