//! Late, doubled, forged and misplaced words; slots and what lies ahead of them.

use crate::common::*;
use proofkeep_store::ids::{Digest, JobNumber, JournalNumber, ProcessId, Token};
use proofkeep_store::keys;
use proofkeep_store::machine::{Command, ProofStored, Refusal, Reply, Rules, SynthEnd};
use proofkeep_store::query;
use proofkeep_store::records::{FailureClass, PartitionState};

#[test]
fn a_late_word_is_noted_once_and_changes_nothing_else() {
    let mut world = world();
    let job = world.new_job(1);
    let token = world.synth(job, 0);
    world.lose("cpu:0", false);
    world.spawn("cpu:0");
    let again = world.proving(job, 0, 0);
    let before = (world.job(job), world.partition(job, 0), world.busy(0));
    for _ in 0..3 {
        assert_eq!(world.run(synth_end(token)), Reply::Stale);
        assert_eq!(world.run(failed(token, FailureClass::Unsatisfied)), Reply::Stale);
        assert_eq!(world.run(gpu_end(token)), Reply::Stale);
        assert_eq!(world.run(proof(token)), Reply::Stale);
        assert_eq!(world.run(checkpoint(token, &["a"])), Reply::Stale);
    }
    assert_eq!(world.count("stale_ignored"), 1);
    assert_eq!((world.job(job), world.partition(job, 0), world.busy(0)), before);
    assert_eq!(world.busy(0), Some(again));
}

#[test]
fn a_word_of_the_wrong_stage_is_refused() {
    let mut world = world();
    let job = world.new_job(1);
    let token = world.synth(job, 0);
    assert!(matches!(world.refused(gpu_end(token)), Refusal::WrongStage(_)));
    assert!(matches!(world.refused(proof(token)), Refusal::WrongStage(_)));
    assert!(matches!(
        world.refused(checkpoint(token, &["a"])),
        Refusal::WrongStage(_)
    ));
    world.run(synth_end(token));
    let token = world.gpu(job, 0, 1);
    assert!(matches!(world.refused(proof(token)), Refusal::WrongStage(_)));
    assert!(matches!(world.refused(synth_end(token)), Refusal::WrongStage(_)));
    world.run(gpu_end(token));
    assert_eq!(world.run(gpu_end(token)), Reply::Unchanged, "the same word twice");
    assert!(matches!(
        world.refused(checkpoint(token, &["a"])),
        Refusal::WrongStage(_)
    ));
    world.run(proof(token));
    assert_eq!(world.run(proof(token)), Reply::Stale);
    assert_eq!(world.stored(job, 0).unwrap().attempt, 1);
}

#[test]
fn a_checkpoint_of_another_witness_is_refused_and_an_old_one_is_replaced() {
    let mut world = world();
    let job = world.new_job(1);
    let token = world.proving(job, 0, 0);
    let mut foreign = checkpoint(token, &["a"]);
    if let Command::Checkpoint { witness, .. } = &mut foreign {
        *witness = Digest::of(b"another");
    }
    assert!(matches!(
        world.refused(foreign),
        Refusal::OutOfLimits { field: "witness", .. }
    ));
    world.run(checkpoint(token, &["a", "h"]));
    assert_eq!(world.run(checkpoint(token, &["a", "h"])), Reply::Unchanged);
    world.run(failed(token, FailureClass::Preempted));
    assert_eq!(world.state(job, 0), PartitionState::Ready);
    assert_eq!(
        world.checkpoint(job, 0).unwrap().pieces.len(),
        2,
        "a preempted one keeps its pieces"
    );
    let token = world.synth(job, 0);
    let another = Digest::of(b"another");
    let public = Digest::of(b"public");
    world.run(Command::SynthEnd(SynthEnd {
        token,
        synth_ms: 1,
        witness: another,
        public,
    }));
    let token = world.gpu(job, 0, 0);
    let mut command = checkpoint(token, &["b"]);
    if let Command::Checkpoint { witness, .. } = &mut command {
        *witness = another;
    }
    world.run(command);
    assert_eq!(world.checkpoint(job, 0).unwrap().pieces.len(), 1);
    let names: Vec<String> = (0..13).map(|name| name.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut command = checkpoint(token, &names);
    if let Command::Checkpoint { witness, .. } = &mut command {
        *witness = another;
    }
    assert!(matches!(world.refused(command), Refusal::OutOfLimits { .. }));
}

#[test]
fn a_damaged_checkpoint_is_no_checkpoint_and_is_overwritten() {
    let mut world = world();
    let job = world.new_job(1);
    let token = world.proving(job, 0, 0);
    world.run(checkpoint(token, &["a", "h"]));
    let key = keys::checkpoint(job, 0);
    world.view.0.get_mut(&key).unwrap()[9] ^= 1;
    assert!(query::checkpoint(&world.view, job, 0).is_err());
    // Who looks at the job sees the rest of it.
    assert_eq!(
        query::partition(&world.view, job, 0, 1)
            .unwrap()
            .unwrap()
            .checkpoint,
        None
    );
    world.run(checkpoint(token, &["b"]));
    assert_eq!(world.checkpoint(job, 0).unwrap().pieces.len(), 1);
    world.run(gpu_end(token));
    world.run(proof(token));
    assert_eq!(world.state(job, 0), PartitionState::Proved);
}

#[test]
fn a_damaged_proof_is_counted_as_damaged_and_its_neighbours_are_there() {
    let mut world = world();
    let job = world.new_job(3);
    (0..3).for_each(|partition| world.prove(job, partition));
    world.view.0.get_mut(&keys::proof(job, 1)).unwrap()[9] ^= 1;
    let page = query::proofs(&world.view, job, 0, 2).unwrap();
    assert_eq!(
        (page.proofs.len(), &page.damaged[..], page.next),
        (1, &[1][..], Some(2))
    );
    assert_eq!(query::proofs(&world.view, job, 2, 2).unwrap().proofs.len(), 1);
    assert!(query::proof(&world.view, job, 1).is_err());
}

#[test]
fn words_of_an_old_boot_touch_nothing_of_the_new() {
    let mut world = world();
    let job = world.new_job(1);
    let old = world.proving(job, 0, 0);
    let process = world.process("cpu:0");
    world.boot(&[("cpu:0", 2)]);
    let new = world.proving(job, 0, 0);
    assert_eq!(world.run(gpu_end(old)), Reply::Stale);
    assert_eq!(world.run(gpu_end(old)), Reply::Stale);
    assert_eq!(world.count("stale_ignored"), 0, "the notes are the boot's");
    let lost = Command::ProcessLost {
        process,
        failure: failure(FailureClass::Interrupted),
        culprit: None,
        own_fault: true,
        process_peak_bytes: None,
    };
    assert_eq!(world.run(lost), Reply::Unchanged);
    assert_eq!(world.busy(0), Some(new));
    let start = Command::SynthStart {
        job,
        partition: 0,
        process,
    };
    assert!(world.step(&start).is_err());
}

#[test]
fn a_forged_token_or_process_does_nothing() {
    let mut world = world();
    let job = world.new_job(1);
    let token = Token {
        boot: world.boot,
        grant: JournalNumber(1_000_000),
    };
    for command in [
        synth_end(token),
        gpu_end(token),
        proof(token),
        failed(token, FailureClass::Poison),
    ] {
        assert_eq!(world.run(command), Reply::Stale);
    }
    let process = ProcessId {
        boot: world.boot,
        spawn: 99,
    };
    let start = Command::SynthStart {
        job,
        partition: 0,
        process,
    };
    assert!(matches!(world.refused(start), Refusal::UnknownDevice(_)));
    assert!(matches!(
        world.refused(retry(JobNumber(99))),
        Refusal::UnknownJob(_)
    ));
    let token = world.finishing(job, 0);
    let short = ProofStored {
        token,
        bytes: vec![1; 191],
        process_peak_bytes: None,
    };
    assert!(matches!(
        world.refused(Command::ProofStored(short)),
        Refusal::OutOfLimits { .. }
    ));
    world.run(proof(token));
}

#[test]
fn a_device_takes_no_more_than_it_may_have_ahead() {
    let mut world = world();
    let job = world.new_job(6);
    for partition in 0..4 {
        world.synthesized(job, partition);
    }
    let process = world.process("cpu:0");
    let start = Command::SynthStart {
        job,
        partition: 4,
        process,
    };
    assert_eq!(world.refused(start.clone()), Refusal::EnoughAhead);
    world.gpu(job, 0, 0);
    world.run(start);
    let attempt = world.partition(job, 1).attempts;
    let worker = proofkeep_store::ids::WorkerId(0);
    let gpu = |worker| Command::GpuStart {
        job,
        partition: 1,
        attempt,
        worker,
    };
    assert_eq!(world.refused(gpu(worker)), Refusal::SlotTaken);
    world.run(Command::DeviceSuspend {
        device: "cpu:0".into(),
        until: None,
        reason: "hot".into(),
    });
    let free = proofkeep_store::ids::WorkerId(1);
    assert_eq!(world.refused(gpu(free)), Refusal::SlotTaken);
    world.run(Command::GiveBack {
        job,
        partition: 1,
        attempt,
    });
    assert_eq!(world.state(job, 1), PartitionState::Ready);
    assert_eq!(world.attempt(job, 1, 1).outcome.unwrap().name(), "preempted");
    world.run(Command::DeviceResume {
        device: "cpu:0".into(),
    });
    assert!(world.step(&gpu(free)).is_err(), "the attempt is over");
}

#[test]
fn a_slot_of_another_device_is_refused() {
    let mut world = World::with(Rules::ALL, &[("cpu:0", 1), ("cuda:0", 1)]);
    let job = world.new_job(1);
    world.synthesized(job, 0);
    let attempt = world.partition(job, 0).attempts;
    let worker = proofkeep_store::ids::WorkerId(1);
    assert_eq!(
        world.refused(Command::GpuStart {
            job,
            partition: 0,
            attempt,
            worker
        }),
        Refusal::SlotTaken
    );
    let worker = proofkeep_store::ids::WorkerId(9);
    assert!(matches!(
        world.refused(Command::GpuStart {
            job,
            partition: 0,
            attempt,
            worker
        }),
        Refusal::UnknownDevice(_)
    ));
}
