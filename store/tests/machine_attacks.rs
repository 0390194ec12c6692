//! Attacks on the state machine: each test is named after what must not work.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::*;
use proofkeep_store::ids::{BootNumber, Digest, JobNumber, JournalNumber, Millis, ProcessId, Token};
use proofkeep_store::keys;
use proofkeep_store::machine::{
    Admission, Command, ProofStored, Refusal, Replacement, Reply, Rules, SynthEnd, VerifyVerdict,
};
use proofkeep_store::records::{
    CircuitState, Failure, FailureClass, JobState, OnFailure, PartitionState, StopTarget,
};
use proofkeep_store::view::View;

#[test]
fn one_job_goes_its_whole_way() {
    let mut world = world();
    let job = world.new_job(3);
    assert_eq!(world.job(job).state, JobState::Queued);
    world.succeed(job);
    assert_eq!(world.counter("jobs/groth16/succeeded"), 1);
    assert_eq!(world.counter("attempts/groth16/ok"), 3);
    world.prune(job);
    assert!(world.view.get(&keys::job(job)).unwrap().is_none());
}

#[test]
fn nothing_is_granted_before_a_boot_or_after_its_end() {
    let mut world = World::empty(Rules::ALL);
    assert_eq!(world.refused(Command::BootClose), Refusal::NoBoot);
    assert_eq!(
        world.refused(Command::ProcessStart {
            device: "cpu:0".into()
        }),
        Refusal::NoBoot
    );
    world.boot(&[("cpu:0", 2)]);
    let job = world.new_job(2);
    world.synthesized(job, 0);
    let all_proved = world.new_job(1);
    world.prove(all_proved, 0);
    let circuit = world.circuit_added("square");
    let process = world.process("cpu:0");
    assert_eq!(world.run(Command::BootClose), Reply::Done);
    assert_eq!(world.run(Command::BootClose), Reply::Unchanged);
    assert_eq!(world.count("boot_closed"), 1);
    let attempt = world.partition(job, 0).attempts;
    for command in [
        Command::ProcessStart {
            device: "cpu:0".into(),
        },
        Command::SynthStart {
            job,
            partition: 1,
            process,
        },
        Command::GpuStart {
            job,
            partition: 0,
            attempt,
            worker: proofkeep_store::ids::WorkerId(0),
        },
        Command::VerifyStart { job: all_proved },
        Command::ImportStart { circuit, process },
    ] {
        assert_eq!(world.refused(command), Refusal::NoBoot);
    }
    world.boot(&[("cpu:0", 2)]);
    assert_eq!(world.state(job, 0), PartitionState::Ready);
}

#[test]
fn resuming_the_queue_does_not_end_a_drain() {
    let mut world = world();
    world.run(Command::Drain {
        actor: "tester".into(),
    });
    world.run(Command::Pause {
        actor: "tester".into(),
    });
    world.run(Command::Resume {
        actor: "tester".into(),
    });
    let submit = world.submit(1);
    assert_eq!(world.refused(Command::Submit(submit.clone())), Refusal::Draining);
    assert_eq!(
        world.run(Command::Resume {
            actor: "tester".into()
        }),
        Reply::Unchanged
    );
    world.boot(&[("cpu:0", 2)]);
    world.submitted(submit);
}

#[test]
fn a_pause_outlives_the_boot_and_stops_new_syntheses_only() {
    let mut world = world();
    let job = world.new_job(2);
    world.synthesized(job, 0);
    world.run(Command::Pause {
        actor: "tester".into(),
    });
    let process = world.process("cpu:0");
    assert_eq!(
        world.refused(Command::SynthStart {
            job,
            partition: 1,
            process
        }),
        Refusal::Paused
    );
    let token = world.gpu(job, 0, 0);
    world.run(gpu_end(token));
    world.run(proof(token));
    world.boot(&[("cpu:0", 2)]);
    let process = world.process("cpu:0");
    assert_eq!(
        world.refused(Command::SynthStart {
            job,
            partition: 1,
            process
        }),
        Refusal::Paused
    );
    world.run(Command::Resume {
        actor: "tester".into(),
    });
    world.prove(job, 1);
}

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

#[test]
fn an_invalid_proof_drops_checkpoints_and_asks_for_another_look_in_every_life() {
    let mut world = world();
    let job = world.new_job(1);
    let token = world.proving(job, 0, 0);
    world.run(checkpoint(token, &["a", "h"]));
    world.run(gpu_end(token));
    world.run(failed(token, FailureClass::InvalidProof));
    assert!(world.checkpoint(job, 0).is_none());
    assert!(world.partition(job, 0).recheck);
    assert_eq!(world.partition(job, 0).avoid_device.as_deref(), Some("cpu:0"));
    world.cancel(job);
    world.run(retry(job));
    assert!(world.partition(job, 0).recheck);
    world.prove(job, 0);
    let token = granted(world.run(Command::VerifyStart { job }));
    let verdict = VerifyVerdict::BadPartitions(vec![0]);
    world.run(Command::VerifyEnd { token, verdict });
    world.run(retry(job));
    assert!(world.partition(job, 0).recheck);
}

#[test]
fn a_refused_proof_is_quarantined_and_proved_alone_again() {
    let mut world = world();
    let job = world.new_job(3);
    for partition in 0..3 {
        world.prove(job, partition);
    }
    let token = granted(world.run(Command::VerifyStart { job }));
    let verdict = VerifyVerdict::BadPartitions(vec![2, 1, 1, 2, 1]);
    world.run(Command::VerifyEnd { token, verdict });
    assert_eq!(world.job(job).state, JobState::Failed);
    assert_eq!(
        world.generation(job).failure.unwrap().class,
        FailureClass::InvalidProof
    );
    assert!(world.view.get(&keys::quarantine(job, 1)).unwrap().is_some());
    assert!(world.stored(job, 1).is_none() && world.stored(job, 0).is_some());
    world.run(retry(job));
    assert_eq!(world.state(job, 0), PartitionState::Proved);
    assert_eq!(world.state(job, 1), PartitionState::Ready);
    world.succeed(job);
    assert_eq!(world.attempts(job, 0).len(), 1);
    assert_eq!(world.attempts(job, 1).len(), 2);
}

#[test]
fn a_thousand_bad_partitions_named_over_and_over_still_fit_one_record() {
    let mut world = world();
    world.checked = false;
    let job = world.new_job(1024);
    for partition in 0..1024 {
        world.prove(job, partition);
    }
    let token = granted(world.run(Command::VerifyStart { job }));
    let all: Vec<u32> = (0..1024).chain(0..1024).chain(0..1024).collect();
    world.run(Command::VerifyEnd {
        token,
        verdict: VerifyVerdict::BadPartitions(all.clone()),
    });
    assert_eq!(world.job(job).tally.failed, 1024);
    world.run(Command::Retry {
        job,
        actor: "tester".into(),
        replacement: None,
        damaged: all,
    });
    assert_eq!(world.job(job).state, JobState::Queued);
    world.check(&Command::BootClose);
}

#[test]
fn a_large_job_is_cancelled_woken_expired_and_pruned_within_the_limits() {
    let mut world = world();
    world.checked = false;
    let mut submit = world.submit(1024);
    submit.deadline = Some(world.now.after(1_000_000));
    submit.labels = (0..16)
        .map(|label| (format!("{label:02}"), "x".repeat(62)))
        .collect();
    let job = world.submitted(submit);
    for partition in 0..1024 {
        world.fail(job, partition, FailureClass::TimedOut);
    }
    world.now = world.now.after(10_000);
    world.run(Command::Wake { job });
    assert_eq!(world.state(job, 1023), PartitionState::Ready);
    world.cancel(job);
    assert_eq!(world.job(job).state, JobState::Cancelled);
    world.run(retry(job));
    world.now = world.now.after(1_000_000);
    world.run(Command::Expire { job });
    assert_eq!(world.job(job).state, JobState::Expired);
    world.run(retry(job));
    assert_eq!(
        world.job(job).deadline,
        None,
        "a deadline that has passed would end the next life at once"
    );
    world.cancel(job);
    world.check(&Command::BootClose);
    world.prune(job);
    world.check(&Command::BootClose);
    world.new_job(1);
}

#[test]
fn an_end_with_a_text_without_end_still_ends() {
    let mut world = world();
    let job = world.new_job(2);
    let token = world.synth(job, 0);
    let mut failure = failure(FailureClass::InputInvalid);
    failure.detail = "ä".repeat(10_000);
    failure.code = "x".repeat(10_000);
    world.run(Command::AttemptFailed {
        token,
        failure: failure.clone(),
        process_peak_bytes: None,
    });
    assert!(world.partition(job, 0).failure.unwrap().detail.len() <= 1024);
    world.synth(job, 1);
    let process = world.process("cpu:0");
    world.run(Command::ProcessLost {
        process,
        failure: failure.clone(),
        culprit: None,
        own_fault: false,
        process_peak_bytes: None,
    });
    let other = world.new_job(1);
    world.run(Command::FailJob {
        job: other,
        failure: failure.clone(),
    });
    world.spawn("cpu:0");
    let circuit = world.circuit_added("square");
    let token = world.importing(circuit);
    world.run(Command::ImportFailed {
        token,
        failure: failure.clone(),
    });
    let job = world.new_job(1);
    let token = world.proving(job, 0, 0);
    let reused = vec!["long".repeat(1000); 1000];
    world.run(Command::GpuEnd {
        token,
        gpu_ms: 1,
        reused,
        saved_ms: 0,
    });
    world.run(proof(token));
    let token = granted(world.run(Command::VerifyStart { job }));
    world.run(Command::VerifyEnd {
        token,
        verdict: VerifyVerdict::JoinInvalid(failure),
    });
    assert_eq!(world.job(job).state, JobState::Failed);
}

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
fn a_repeat_is_answered_even_when_the_budget_has_shrunk() {
    let mut world = world();
    let mut submit = world.submit(1);
    submit.idempotency_key = Some("k".into());
    let job = world.submitted(submit.clone());
    submit.budget_bytes = 1;
    submit.id = uuid::Uuid::from_u128(77);
    let existing = |admission| Reply::Submitted {
        job,
        id: world_id(1),
        generation: 1,
        admission,
    };
    assert_eq!(
        world.run(Command::Submit(submit.clone())),
        existing(Admission::Existing)
    );
    world.cancel(job);
    assert!(matches!(
        world.refused(Command::Submit(submit.clone())),
        Refusal::NeedsMemory { .. }
    ));
    submit.budget_bytes = u64::MAX;
    world.run(Command::Drain {
        actor: "tester".into(),
    });
    assert_eq!(world.refused(Command::Submit(submit)), Refusal::Draining);
}

fn world_id(seed: u64) -> uuid::Uuid {
    submit(seed, 1).id
}

#[test]
fn a_key_answers_with_the_job_in_every_state_of_it() {
    let mut world = world();
    let mut submit = world.submit(2);
    submit.idempotency_key = Some("porep-1000-1".into());
    let job = world.submitted(submit.clone());
    let admission = |world: &mut World| match world.run(Command::Submit(submit.clone())) {
        Reply::Submitted {
            job: found,
            generation,
            admission,
            ..
        } => {
            assert_eq!(found, job);
            (generation, admission)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(admission(&mut world), (1, Admission::Existing));
    world.prove(job, 0);
    assert_eq!(admission(&mut world), (1, Admission::Existing));
    let token = world.synth(job, 1);
    world.cancel(job);
    assert_eq!(world.job(job).state, JobState::Stopping(StopTarget::Cancelled));
    assert_eq!(admission(&mut world), (1, Admission::Existing));
    world.run(synth_end(token));
    assert_eq!(world.job(job).state, JobState::Cancelled);
    assert_eq!(admission(&mut world), (2, Admission::Reopened));
    assert_eq!(
        world.state(job, 0),
        PartitionState::Proved,
        "a stored proof is kept"
    );
    world.succeed(job);
    assert_eq!(admission(&mut world), (2, Admission::Existing));
    assert_eq!(world.attempts(job, 1).len(), 2, "attempt numbers run on");
    world.prune(job);
    let mut again = submit.clone();
    assert!(matches!(
        world.refused(Command::Submit(again.clone())),
        Refusal::DuplicateId(_)
    ));
    again.id = uuid::Uuid::from_u128(9);
    let next = world.submitted(again);
    assert!(next > job, "job numbers are never used again");
}

#[test]
fn a_request_is_what_its_digest_says() {
    let mut world = world();
    let mut submit = world.submit(1);
    submit.request = Digest::of(b"another");
    assert!(matches!(
        world.refused(Command::Submit(submit.clone())),
        Refusal::OutOfLimits { .. }
    ));
    submit.inline = None;
    assert!(matches!(
        world.refused(Command::Submit(submit.clone())),
        Refusal::OutOfLimits { .. }
    ));
    submit.objects = vec![submit.request];
    let job = world.submitted(submit);
    world.cancel(job);
    let inline = vec![b' '; 3000];
    let mut replacement = Replacement {
        request: Digest::of(&inline),
        inline: Some(inline),
        objects: vec![],
        partitions: vec![0],
    };
    let retry = |replacement: &Replacement| Command::Retry {
        job,
        actor: "tester".into(),
        replacement: Some(replacement.clone()),
        damaged: vec![],
    };
    assert!(matches!(
        world.refused(retry(&replacement)),
        Refusal::OutOfLimits { .. }
    ));
    let inline = b"{}".to_vec();
    replacement.request = Digest::of(&inline);
    replacement.inline = Some(inline);
    replacement.partitions = vec![1];
    assert!(matches!(
        world.refused(retry(&replacement)),
        Refusal::UnknownPartition { .. }
    ));
    replacement.partitions = vec![0];
    world.run(retry(&replacement));
    assert_eq!(world.job(job).request, replacement.request);
}

#[test]
fn replaced_inputs_are_proved_again_and_nothing_else() {
    let mut world = world();
    let job = world.new_job(3);
    world.prove(job, 0);
    world.prove(job, 1);
    world.fail(job, 2, FailureClass::Unsatisfied);
    assert_eq!(world.job(job).state, JobState::Failed);
    let inline = b"{\"replaced\":true}".to_vec();
    let replacement = Replacement {
        request: Digest::of(&inline),
        inline: Some(inline),
        objects: vec![Digest::of(b"new witness")],
        partitions: vec![1, 2],
    };
    world.run(Command::Retry {
        job,
        actor: "tester".into(),
        replacement: Some(replacement),
        damaged: vec![],
    });
    assert_eq!(world.state(job, 0), PartitionState::Proved);
    assert_eq!(world.state(job, 1), PartitionState::Ready);
    assert!(world.stored(job, 1).is_none());
    world.succeed(job);
}

#[test]
fn a_succeeded_job_is_retried_only_for_damage() {
    let mut world = world();
    let job = world.new_job(2);
    world.succeed(job);
    assert!(matches!(
        world.refused(retry(job)),
        Refusal::JobState(JobState::Succeeded)
    ));
    assert!(matches!(
        world.refused(Command::Cancel {
            job,
            actor: "t".into()
        }),
        Refusal::JobState(_)
    ));
    let gone = failure(FailureClass::InputMissing);
    assert!(matches!(
        world.refused(Command::FailJob { job, failure: gone }),
        Refusal::JobState(_)
    ));
    world.run(Command::Retry {
        job,
        actor: "tester".into(),
        replacement: None,
        damaged: vec![1],
    });
    assert_eq!(world.state(job, 0), PartitionState::Proved);
    world.succeed(job);
    assert_eq!(world.counter("jobs/groth16/succeeded"), 2);
}

#[test]
fn a_retry_with_nothing_left_to_prove_is_verified_again() {
    let mut world = world();
    let job = world.new_job(2);
    world.prove(job, 0);
    world.prove(job, 1);
    assert_eq!(world.job(job).state, JobState::Verifying);
    let token = granted(world.run(Command::VerifyStart { job }));
    assert_eq!(world.run(Command::VerifyStart { job }), Reply::Unchanged);
    world.cancel(job);
    assert_eq!(world.job(job).state, JobState::Stopping(StopTarget::Cancelled));
    world.run(Command::VerifyEnd {
        token,
        verdict: VerifyVerdict::Passed,
    });
    assert_eq!(world.job(job).state, JobState::Cancelled, "the first reason wins");
    world.run(retry(job));
    assert_eq!(world.job(job).state, JobState::Verifying);
    let token = granted(world.run(Command::VerifyStart { job }));
    world.run(Command::VerifyDrop { token });
    assert_eq!(world.job(job).state, JobState::Verifying);
    assert_eq!(
        world.run(Command::VerifyEnd {
            token,
            verdict: VerifyVerdict::Passed
        }),
        Reply::Stale
    );
    let token = granted(world.run(Command::VerifyStart { job }));
    let verdict = VerifyVerdict::JoinInvalid(failure(FailureClass::JoinInvalid));
    world.run(Command::VerifyEnd { token, verdict });
    assert_eq!(world.job(job).state, JobState::Failed);
    assert_eq!(
        world.generation(job).failure.unwrap().class,
        FailureClass::JoinInvalid
    );
}

#[test]
fn a_job_stops_once_and_frees_what_holds_no_lease_at_once() {
    let mut world = World::with(Rules::ALL, &[("cpu:0", 2)]);
    let mut submit = world.submit(6);
    submit.on_failure = OnFailure::Stop;
    submit.deadline = Some(world.now.after(10));
    let job = world.submitted(submit);
    world.prove(job, 0);
    let finishing = world.finishing(job, 1);
    let proving = world.proving(job, 2, 0);
    world.synthesized(job, 3);
    let synthesizing = world.synth(job, 4);
    world.run(failed(synthesizing, FailureClass::Unsatisfied));
    assert_eq!(world.job(job).state, JobState::Stopping(StopTarget::Failed));
    assert_eq!(world.state(job, 3), PartitionState::Cancelled);
    assert_eq!(world.state(job, 5), PartitionState::Cancelled);
    assert_eq!(world.cancel(job), Reply::Unchanged);
    world.now = world.now.after(100);
    assert!(matches!(
        world.refused(Command::Expire { job }),
        Refusal::JobState(_)
    ));
    assert_eq!(world.busy(0), Some(proving), "stopping only asks");
    assert_eq!(world.run(checkpoint(proving, &["a"])), Reply::Unchanged);
    world.run(proof(finishing));
    assert_eq!(
        world.state(job, 1),
        PartitionState::Proved,
        "a verified proof is kept for a retry"
    );
    world.lose("cpu:0", true);
    assert_eq!(world.job(job).state, JobState::Failed);
    assert_eq!(world.busy(0), None);
    assert_eq!(
        world.generation(job).failure.unwrap().class,
        FailureClass::Unsatisfied
    );
    assert_eq!(world.attempt(job, 2, 1).outcome.unwrap().name(), "interrupted");
}

#[test]
fn two_partitions_of_a_stopping_job_in_one_process_end_once() {
    let mut world = world();
    let mut submit = world.submit(4);
    submit.on_failure = OnFailure::Stop;
    submit.max_attempts = 1;
    let job = world.submitted(submit);
    world.synth(job, 0);
    world.synthesized(job, 1);
    world.synth(job, 2);
    let process = world.process("cpu:0");
    world.run(Command::ProcessLost {
        process,
        failure: failure(FailureClass::OutOfMemory),
        culprit: None,
        own_fault: false,
        process_peak_bytes: None,
    });
    assert_eq!(world.job(job).state, JobState::Failed);
    assert_eq!(world.count("ended"), 1);
    assert_eq!(world.count("attempt_ended"), 3);
}

#[test]
fn recovery_is_one_transaction_and_a_second_crash_changes_nothing() {
    let mut world = World::with(Rules::ALL, &[("cpu:0", 2), ("cuda:0", 1)]);
    let circuit = world.circuit_added("square");
    let import = world.importing(circuit);
    world.run(Command::ImportProgress {
        token: import,
        done: 40,
    });
    let job = world.new_job(6);
    world.prove(job, 0);
    world.finishing(job, 1);
    let proving = world.proving(job, 2, 1);
    world.run(checkpoint(proving, &["a"]));
    world.synthesized(job, 3);
    world.synth(job, 4);
    let verifying = world.new_job(1);
    world.prove(verifying, 0);
    let verify = granted(world.run(Command::VerifyStart { job: verifying }));
    let stopping = world.new_job(2);
    world.synth(stopping, 0);
    world.cancel(stopping);
    world.boot(&[("cuda:0", 1), ("cpu:0", 2)]);
    let once: Vec<_> = (0..6).map(|index| world.partition(job, index)).collect();
    world.boot(&[("cuda:0", 1), ("cpu:0", 2)]);
    let twice: Vec<_> = (0..6).map(|index| world.partition(job, index)).collect();
    assert_eq!(once, twice);
    assert!(world.leases().is_empty());
    assert_eq!(world.state(job, 0), PartitionState::Proved);
    for index in 1..6 {
        assert_eq!(world.state(job, index), PartitionState::Ready);
    }
    assert!(world.checkpoint(job, 2).is_some());
    assert_eq!(world.attempt(job, 3, 1).closed_in, Some(BootNumber(2)));
    assert_eq!(world.job(stopping).state, JobState::Cancelled);
    assert_eq!(world.job(verifying).state, JobState::Verifying);
    assert_eq!(
        world.run(Command::VerifyEnd {
            token: verify,
            verdict: VerifyVerdict::Passed
        }),
        Reply::Stale
    );
    let CircuitState::Importing(import) = world.circuit(circuit).state else {
        panic!("not importing")
    };
    assert_eq!((import.done, import.token, import.deaths), (40, None, 0));
    assert_eq!(world.worker(0).device, "cuda:0");
    assert!(world.busy(0).is_none() && world.busy(1).is_none());
    world.succeed(verifying);
}

#[test]
fn a_boot_opens_once() {
    let mut world = world();
    let open = Command::BootOpen {
        version: "x".into(),
        devices: vec![("cpu:0".into(), 1)],
    };
    assert_eq!(world.refused(open.clone()), Refusal::AlreadyOpen);
    world.boot = BootNumber(7);
    assert_eq!(world.refused(open), Refusal::AlreadyOpen);
    world.boot = BootNumber(2);
    let twice = vec![("cpu:0".into(), 1), ("cpu:0".into(), 1)];
    let open = Command::BootOpen {
        version: "x".into(),
        devices: twice,
    };
    assert!(matches!(world.refused(open), Refusal::OutOfLimits { .. }));
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
fn a_clock_that_jumps_keeps_nobody_waiting_longer_than_a_back_off() {
    let mut world = world();
    let job = world.new_job(1);
    world.fail(job, 0, FailureClass::TimedOut);
    assert_eq!(world.refused(Command::Wake { job }), Refusal::NotDue);
    world.now = Millis(1_000_000);
    world.run(Command::ClockStep {
        by_ms: -1_799_999_000_000,
    });
    world.run(Command::Wake { job });
    assert_eq!(world.state(job, 0), PartitionState::Ready);
    world.fail(job, 0, FailureClass::TimedOut);
    world.now = Millis(u64::MAX);
    world.run(Command::Wake { job });
    world.fail(job, 0, FailureClass::TimedOut);
    assert_eq!(world.state(job, 0), PartitionState::Failed);
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
fn a_circuit_in_use_stays_and_a_failed_one_takes_no_jobs() {
    let mut world = world();
    let circuit = world.circuit_added("square");
    let mut submit = world.submit(1);
    submit.circuit = Some(circuit);
    let job = world.submitted(submit);
    let remove = Command::CircuitRemove {
        circuit,
        actor: "tester".into(),
    };
    assert_eq!(world.refused(remove.clone()), Refusal::CircuitInUse { jobs: 1 });
    let process = world.process("cpu:0");
    let start = Command::SynthStart {
        job,
        partition: 0,
        process,
    };
    assert_eq!(world.refused(start.clone()), Refusal::CircuitNotReady);
    let token = world.importing(circuit);
    let reason: Failure = failure(FailureClass::CircuitFailed);
    world.run(Command::ImportFailed {
        token,
        failure: reason.clone(),
    });
    assert!(matches!(world.refused(start), Refusal::CircuitFailed(_)));
    world.run(Command::FailJob { job, failure: reason });
    assert_eq!(world.job(job).state, JobState::Failed);
    assert!(matches!(world.refused(retry(job)), Refusal::CircuitFailed(_)));
    world.run(remove);
    assert!(matches!(world.refused(retry(job)), Refusal::UnknownCircuit(_)));
    world.imported("square");
    world.run(retry(job));
    world.succeed(job);
}
