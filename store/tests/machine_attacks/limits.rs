//! What is too large, and what must end all the same.

use crate::common::*;
use proofkeep_store::ids::{Digest, JobNumber, JournalNumber, Millis, Token};
use proofkeep_store::machine::{Command, Refusal, Replacement, Reply, Rules, Submit, VerifyVerdict};
use proofkeep_store::records::{FailureClass, JobState, OnFailure, PartitionState};

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
    assert_eq!(world.job(job).state, JobState::Failed);
    assert_eq!(
        world.job(job).tally.failed,
        512,
        "as many as fit; the next final check finds the others"
    );
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
    let mut end = import_end(token);
    if let Command::ImportEnd { facts, .. } = &mut end {
        facts.setup = "x".repeat(5000);
    }
    assert!(matches!(
        world.refused(end),
        Refusal::OutOfLimits { field: "setup", .. }
    ));
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

/// A submit whose record is as large as may be.
fn wordy(world: &mut World, partitions: u32) -> Submit {
    let mut submit = world.submit(partitions);
    submit.kind = "k".repeat(64);
    submit.actor = "a".repeat(64);
    submit.idempotency_key = Some(format!("{:0128}", submit.id.as_u128() % 1_000_000));
    submit.labels = (0..16)
        .map(|label| (format!("{label:02}"), "x".repeat(62)))
        .collect();
    submit.circuit = None;
    submit.deadline = Some(Millis(u64::MAX));
    submit
}

#[test]
fn the_fullest_daemon_opens_again_in_one_transaction() {
    let device = "d".repeat(32);
    let mut world = World::with(Rules::ALL, &[(&device, 32)]);
    world.checked = false;
    let process = world.process(&device);
    let started = |world: &mut World| {
        let submit = wordy(world, 1);
        let job = world.submitted(submit);
        let token = granted(world.run(Command::SynthStart {
            job,
            partition: 0,
            process,
        }));
        (job, token)
    };
    for _ in 0..32 {
        let (job, token) = started(&mut world);
        world.run(synth_end(token));
        let token = world.gpu(job, 0, 0);
        world.run(gpu_end(token));
        world.run(proof(token));
        world.run(Command::VerifyStart { job });
    }
    for slot in 0..64 {
        let (job, token) = started(&mut world);
        world.run(synth_end(token));
        let token = world.gpu(job, 0, slot % 32);
        if slot < 32 {
            world.run(gpu_end(token));
        }
    }
    for _ in 0..64 {
        started(&mut world);
    }
    let submit = wordy(&mut world, 1);
    let job = world.submitted(submit);
    let more = Command::SynthStart {
        job,
        partition: 0,
        process,
    };
    assert_eq!(world.refused(more), Refusal::EnoughAhead);
    for late in 0..400 {
        let token = Token {
            boot: world.boot,
            grant: JournalNumber(1_000_000 + late),
        };
        assert_eq!(world.run(gpu_end(token)), Reply::Stale);
        assert_eq!(world.run(gpu_end(token)), Reply::Stale);
    }
    assert_eq!(world.count("stale_ignored"), 400);
    world.check(&Command::BootClose);
    let crowd: Vec<(&str, u32)> = vec![(&device, 33)];
    let crowd = crowd
        .iter()
        .map(|(name, slots)| ((*name).to_owned(), *slots))
        .collect();
    let boot = world.boot;
    world.boot.0 += 1;
    let open = Command::BootOpen {
        version: "test".into(),
        devices: crowd,
    };
    assert!(matches!(world.refused(open), Refusal::OutOfLimits { .. }));
    world.boot = boot;
    // The most that can be open, with every job asked to stop: each ends with its attempt.
    for number in 1..=160 {
        world.cancel(JobNumber(number));
    }
    world.boot(&[(&device, 32)]);
    assert_eq!(world.count("attempt_ended"), 128);
    assert!(world.leases().is_empty());
    world.check(&Command::BootClose);
}

#[test]
fn one_death_that_stops_many_large_jobs_is_heard_in_parts() {
    let mut world = World::with(Rules::ALL, &[("cpu:0", 4)]);
    world.checked = false;
    let mut jobs = Vec::new();
    for _ in 0..8 {
        let mut submit = wordy(&mut world, 1024);
        submit.on_failure = OnFailure::Stop;
        submit.max_attempts = 1;
        let job = world.submitted(submit);
        world.synth(job, 0);
        jobs.push(job);
    }
    let process = world.process("cpu:0");
    let lost = Command::ProcessLost {
        process,
        // No death costs all of them the last attempt today; the machine doesn't rely on it.
        failure: failure(FailureClass::TimedOut),
        culprit: None,
        own_fault: false,
        process_peak_bytes: None,
    };
    let mut parts = 1;
    while world.run(lost.clone()) == Reply::More {
        parts += 1;
        world.check(&lost);
    }
    assert!(parts > 1);
    assert_eq!(world.run(lost.clone()), Reply::Unchanged);
    assert_eq!(world.count("process_lost"), 1);
    for job in jobs {
        assert_eq!(world.job(job).state, JobState::Failed);
    }
    world.check(&lost);
}

#[test]
fn the_largest_job_is_refused_retried_and_woken_within_the_limits() {
    let device = "d".repeat(32);
    let mut world = World::with(Rules::ALL, &[(&device, 2)]);
    world.checked = false;
    let process = world.process(&device);
    let submit = wordy(&mut world, 1024);
    let job = world.submitted(submit);
    for partition in 0..1024 {
        let token = granted(world.run(Command::SynthStart {
            job,
            partition,
            process,
        }));
        world.run(failed(token, FailureClass::DeviceError));
    }
    world.now = world.now.after(10_000);
    world.run(Command::Wake { job });
    for partition in 0..1024 {
        let token = granted(world.run(Command::SynthStart {
            job,
            partition,
            process,
        }));
        world.run(synth_end(token));
        let token = world.gpu(job, partition, 0);
        world.run(checkpoint(token, &["a"]));
        world.run(gpu_end(token));
        world.run(proof(token));
    }
    let all: Vec<u32> = (0..1024).collect();
    let token = granted(world.run(Command::VerifyStart { job }));
    let refused = Command::VerifyEnd {
        token,
        verdict: VerifyVerdict::BadPartitions(all.clone()),
    };
    let mut other = World::with(Rules::ALL, &[]);
    other.view = world.view.clone();
    other.checked = false;
    other.boot = world.boot;
    other.run(refused);
    assert_eq!(other.job(job).tally.failed, 512);
    other.run(retry(job));
    assert_eq!(other.job(job).tally.proved, 512);
    world.run(Command::VerifyEnd {
        token,
        verdict: VerifyVerdict::Passed,
    });
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
fn a_job_with_thousands_of_lives_is_still_pruned() {
    let mut world = world();
    world.checked = false;
    let submit = wordy(&mut world, 1);
    let job = world.submitted(submit);
    for _ in 0..8000 {
        world.cancel(job);
        world.run(retry(job));
    }
    world.cancel(job);
    world.prune(job);
    world.check(&Command::BootClose);
}
