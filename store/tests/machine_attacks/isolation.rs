//! Who must run alone, and who must not be blamed.

use crate::common::*;
use proofkeep_store::machine::{Command, Refusal, Reply};
use proofkeep_store::records::{CircuitState, FailureClass, JobState, PartitionState};

#[test]
fn a_crashing_import_does_not_park_an_innocent_partition() {
    let mut world = world();
    let circuit = world.circuit_added("evil");
    let job = world.new_job(1);
    for _ in 0..2 {
        world.importing(circuit);
        world.synth(job, 0);
        world.crash("cpu:0");
    }
    assert!(world.partition(job, 0).alone);
    // Both must run alone now: neither joins the other.
    world.importing(circuit);
    let process = world.process("cpu:0");
    let start = Command::SynthStart {
        job,
        partition: 0,
        process,
    };
    assert_eq!(world.refused(start.clone()), Refusal::MustRunAlone);
    world.crash("cpu:0");
    let process = world.process("cpu:0");
    assert_eq!(world.run(Command::ImportStart { circuit, process }), Reply::Done);
    assert!(matches!(world.circuit(circuit).state, CircuitState::Failed(_)));
    world.prove(job, 0);
}

#[test]
fn crashing_partitions_do_not_refuse_an_innocent_circuit() {
    let mut world = world();
    let circuit = world.circuit_added("good");
    let job = world.new_job(4);
    for partition in 0..4 {
        for _ in 0..2 {
            let process = world.process("cpu:0");
            match world.step(&Command::ImportStart { circuit, process }) {
                Ok(_) | Err(Refusal::MustRunAlone) => {}
                other => panic!("{other:?}"),
            }
            match world.step(&Command::SynthStart {
                job,
                partition,
                process,
            }) {
                Ok(_) | Err(Refusal::MustRunAlone) => {}
                other => panic!("{other:?}"),
            }
            let busy = world
                .leases()
                .iter()
                .any(|lease| matches!(lease.subject, proofkeep_store::records::Subject::Partition { .. }));
            if busy {
                world.crash("cpu:0");
            } else {
                world.lose("cpu:0", false);
                world.spawn("cpu:0");
            }
        }
    }
    let token = world.importing(circuit);
    world.run(import_end(token));
    assert_eq!(world.circuit(circuit).state, CircuitState::Ready);
}

#[test]
fn a_partition_that_must_run_alone_keeps_imports_away() {
    let mut world = world();
    let circuit = world.circuit_added("good");
    let job = world.new_job(1);
    for _ in 0..2 {
        world.synth(job, 0);
        world.crash("cpu:0");
    }
    world.synth(job, 0);
    let process = world.process("cpu:0");
    assert_eq!(
        world.refused(Command::ImportStart { circuit, process }),
        Refusal::MustRunAlone
    );
    world.crash("cpu:0");
    world.synth(job, 0);
    world.crash("cpu:0");
    let parked = world.partition(job, 0);
    assert_eq!(parked.state, PartitionState::Failed);
    assert_eq!(parked.failure.unwrap().class, FailureClass::Poison);
    assert_eq!(world.job(job).state, JobState::Failed);
}

#[test]
fn deaths_that_are_nobodys_fault_never_isolate() {
    let mut world = world();
    let job = world.new_job(1);
    for _ in 0..10 {
        world.synth(job, 0);
        world.lose("cpu:0", false);
        world.spawn("cpu:0");
    }
    for _ in 0..10 {
        world.synth(job, 0);
        world.boot(&[("cpu:0", 2)]);
    }
    let partition = world.partition(job, 0);
    assert!(!partition.alone && partition.poison.is_none() && partition.counted == 0);
    assert_eq!(partition.attempts, 20);
}

#[test]
fn a_process_killed_for_one_partition_blames_no_other() {
    let mut world = world();
    let job = world.new_job(3);
    for _ in 0..4 {
        for partition in 0..3 {
            if world.state(job, partition) == PartitionState::Waiting {
                world.now = world.now.after(31 * 60 * 1000);
                world.run(Command::Wake { job });
            }
        }
        if world.state(job, 0) == PartitionState::Failed {
            break;
        }
        let culprit = world.synth(job, 0);
        world.synth(job, 1);
        world.synthesized(job, 2);
        let process = world.process("cpu:0");
        world.run(Command::ProcessLost {
            process,
            failure: failure(FailureClass::Interrupted),
            culprit: Some((culprit, failure(FailureClass::Stalled))),
            own_fault: true,
            process_peak_bytes: None,
        });
        world.spawn("cpu:0");
    }
    assert_eq!(
        world.partition(job, 0).failure.unwrap().class,
        FailureClass::Stalled
    );
    for partition in 1..3 {
        let partition = world.partition(job, partition);
        assert_eq!(partition.state, PartitionState::Ready);
        assert!(!partition.alone && partition.poison.is_none() && partition.counted == 0);
    }
}

#[test]
fn an_innocent_neighbour_is_isolated_and_then_proved() {
    let mut world = world();
    let job = world.new_job(2);
    for _ in 0..2 {
        world.synth(job, 0);
        world.synth(job, 1);
        world.crash("cpu:0");
    }
    let process = world.process("cpu:0");
    world.synth(job, 0);
    let crowd = Command::SynthStart {
        job,
        partition: 1,
        process,
    };
    assert_eq!(world.refused(crowd), Refusal::MustRunAlone);
    world.crash("cpu:0");
    world.prove(job, 1);
    world.synth(job, 0);
    world.crash("cpu:0");
    assert_eq!(world.state(job, 0), PartitionState::Failed);
    assert_eq!(world.state(job, 1), PartitionState::Proved);
}

#[test]
fn progress_in_the_stage_clears_the_count_of_deaths() {
    let mut world = world();
    let job = world.new_job(1);
    for round in 0..5 {
        world.synth(job, 0);
        world.crash("cpu:0");
        world.synthesized(job, 0);
        let token = world.gpu(job, 0, 0);
        world.run(checkpoint(token, &[["a", "b", "c", "d", "e"][round]]));
        world.crash("cpu:0");
    }
    let partition = world.partition(job, 0);
    assert!(!partition.alone);
    world.prove(job, 0);
    assert!(world.partition(job, 0).poison.is_none());
}

#[test]
fn deaths_after_progress_still_add_up() {
    let mut world = world();
    let job = world.new_job(1);
    for death in 0..4 {
        let token = world.proving(job, 0, 0);
        // The same piece again is no progress.
        world.run(checkpoint(token, &["a"]));
        assert_eq!(world.partition(job, 0).alone, death >= 2);
        world.crash("cpu:0");
    }
    assert_eq!(
        world.partition(job, 0).failure.unwrap().class,
        FailureClass::Poison
    );
}

/// Found by the simulation: a neighbour that took all the memory cost innocent jobs their last attempt.
#[test]
fn a_neighbour_that_takes_all_memory_costs_nobody_the_last_attempt() {
    let mut world = world();
    let mut submit = world.submit(1);
    submit.max_attempts = 1;
    let job = world.submitted(submit);
    world.fail(job, 0, FailureClass::OutOfMemory);
    let partition = world.partition(job, 0);
    assert_eq!((partition.state, partition.counted), (PartitionState::Ready, 0));
    assert!(partition.alone, "once more, alone");
    world.fail(job, 0, FailureClass::OutOfMemory);
    assert_eq!(world.state(job, 0), PartitionState::Failed);
}

#[test]
fn out_of_memory_is_tried_once_more_and_alone() {
    let mut world = world();
    let job = world.new_job(2);
    world.fail(job, 0, FailureClass::OutOfMemory);
    assert_eq!(world.state(job, 0), PartitionState::Ready);
    world.synth(job, 1);
    let process = world.process("cpu:0");
    let start = Command::SynthStart {
        job,
        partition: 0,
        process,
    };
    assert_eq!(world.refused(start), Refusal::MustRunAlone);
    world.lose("cpu:0", false);
    world.spawn("cpu:0");
    world.synthesized(job, 0);
    assert!(
        world.partition(job, 0).alone,
        "progress does not give it more memory"
    );
    let token = world.gpu(job, 0, 0);
    world.run(failed(token, FailureClass::OutOfMemory));
    assert_eq!(world.state(job, 0), PartitionState::Failed);
}
