//! Circuits whose import makes the key: one key for a description, never half of one and half of another.

use crate::common::*;
use proofkeep_store::ids::Digest;
use proofkeep_store::machine::{CircuitAdd, Command, Refusal, Reply};
use proofkeep_store::records::{CircuitState, FailureClass, ImportState, SourceFiles};

/// A description as the daemon makes it: something random is in its digest.
fn asked(name: &str, random: u8) -> CircuitAdd {
    CircuitAdd {
        circuit: Digest([random; 32]),
        ..local_circuit(name)
    }
}

fn add(world: &mut World, add: CircuitAdd) -> Reply {
    world.run(Command::CircuitAdd(add))
}

fn remove(circuit: Digest) -> Command {
    Command::CircuitRemove {
        circuit,
        actor: "tester".into(),
    }
}

fn import(world: &World, circuit: Digest) -> ImportState {
    match world.circuit(circuit).state {
        CircuitState::Importing(import) => import,
        other => panic!("expected an import, found {other:?}"),
    }
}

#[test]
fn the_same_description_is_the_same_circuit_until_it_is_removed() {
    let mut world = world();
    let first = asked("square", 1).circuit;
    assert_eq!(add(&mut world, asked("square", 1)), Reply::Done);
    assert_eq!(add(&mut world, asked("square", 2)), Reply::Unchanged);
    // Under another name too, also once it is ready.
    assert_eq!(add(&mut world, asked("other", 3)), Reply::Done);
    let token = world.importing(first);
    world.run(local_import_end(token));
    assert_eq!(add(&mut world, asked("square", 4)), Reply::Unchanged);
    assert_eq!(add(&mut world, asked("third", 5)), Reply::Done);
    assert_eq!(world.count("circuit_added"), 1);
    // Other files are another circuit.
    let other = CircuitAdd {
        files: SourceFiles {
            wasm: Some(Digest::of(b"wasm")),
            ..asked("square", 6).files
        },
        ..asked("square", 6)
    };
    let taken = world.refused(Command::CircuitAdd(other.clone()));
    assert_eq!(taken, Refusal::NameTaken(first));
    assert_eq!(
        add(
            &mut world,
            CircuitAdd {
                replace: true,
                ..other
            }
        ),
        Reply::Done
    );
    // Once it is gone its key is gone, so the next one has another digest.
    world.run(remove(first));
    assert_eq!(add(&mut world, asked("again", 7)), Reply::Done);
    assert_eq!(world.circuit(asked("again", 7).circuit).files.zkey, None);
}

#[test]
fn a_failed_import_may_be_asked_for_again() {
    let mut world = world();
    let circuit = asked("square", 1).circuit;
    add(&mut world, asked("square", 1));
    let token = world.importing(circuit);
    world.run(Command::ImportFailed {
        token,
        failure: failure(FailureClass::CircuitFailed),
    });
    assert_eq!(add(&mut world, asked("square", 2)), Reply::Done);
    assert_eq!(import(&world, circuit).token, None);
    let token = world.importing(circuit);
    world.run(local_import_end(token));
    assert_eq!(world.circuit(circuit).state, CircuitState::Ready);
}

#[test]
fn an_import_that_was_cut_off_begins_anew() {
    let mut world = world();
    let circuit = asked("square", 1).circuit;
    add(&mut world, asked("square", 1));
    let first = world.importing(circuit);
    world.run(Command::ImportProgress {
        token: first,
        done: 70,
    });
    world.lose("cpu:0", false);
    world.spawn("cpu:0");
    let second = world.importing(circuit);
    assert_eq!(import(&world, circuit).done, 0);
    // The key of the first try comes too late to be the circuit's.
    assert_eq!(world.run(local_import_end(first)), Reply::Stale);
    assert_eq!(world.circuit(circuit).files.zkey, None);
    // Sent again under the same lease it begins anew as well, and says so.
    world.run(Command::ImportProgress {
        token: second,
        done: 70,
    });
    world.run(Command::ImportProgress {
        token: second,
        done: 20,
    });
    assert_eq!(import(&world, circuit).done, 20);
    world.run(local_import_end(second));
    assert_eq!(
        world.circuit(circuit).files.zkey,
        Some(Digest::of(b"a key that was made"))
    );
}

#[test]
fn one_that_crashes_its_worker_each_time_is_refused_however_far_it_comes() {
    let mut world = world();
    let circuit = asked("evil", 1).circuit;
    add(&mut world, asked("evil", 1));
    for _ in 0..3 {
        let token = world.importing(circuit);
        world.run(Command::ImportProgress { token, done: 90 });
        world.crash("cpu:0");
    }
    let process = world.process("cpu:0");
    assert_eq!(world.run(Command::ImportStart { circuit, process }), Reply::Done);
    assert!(matches!(world.circuit(circuit).state, CircuitState::Failed(_)));
}

#[test]
fn an_import_ends_with_a_key_when_it_was_to_make_one_and_only_then() {
    let mut world = world();
    let (made, given) = (asked("square", 1).circuit, world.circuit_added("given"));
    add(&mut world, asked("square", 1));
    let token = world.importing(made);
    assert!(matches!(
        world.refused(import_end(token)),
        Refusal::OutOfLimits { field: "zkey", .. }
    ));
    world.run(local_import_end(token));
    let token = world.importing(given);
    assert!(matches!(
        world.refused(local_import_end(token)),
        Refusal::OutOfLimits { field: "zkey", .. }
    ));
    world.run(import_end(token));
    let with_a_key = CircuitAdd {
        files: SourceFiles {
            zkey: Some(Digest::of(b"zkey")),
            ..asked("both", 2).files
        },
        ..asked("both", 2)
    };
    let without_constraints = CircuitAdd {
        files: SourceFiles::default(),
        ..asked("none", 3)
    };
    for bad in [with_a_key, without_constraints] {
        assert!(matches!(
            world.refused(Command::CircuitAdd(bad)),
            Refusal::OutOfLimits { field: "files", .. }
        ));
    }
}

#[test]
fn a_circuit_under_import_is_not_removed_and_its_refusal_says_how_far_it_is() {
    let mut world = world();
    let circuit = world.circuit_added("square");
    let token = world.importing(circuit);
    world.run(Command::ImportProgress { token, done: 30 });
    assert_eq!(
        world.refused(remove(circuit)),
        Refusal::ImportUnderWay { done: 30, total: 100 }
    );
    world.lose("cpu:0", false);
    world.run(remove(circuit));
}
