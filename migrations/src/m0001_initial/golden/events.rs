//! One sample of each event.

use super::Samples;
use super::samples::{facts, failure, files, process, token};
use crate::m0001_initial::*;

pub(super) fn add(samples: &mut Samples) {
    for (name, what) in jobs()
        .into_iter()
        .chain(partitions())
        .chain(daemon())
        .chain(circuits())
    {
        let job = name.starts_with("event.job").then_some(4);
        samples.add(
            name,
            &Event {
                number: 1_000_007,
                boot: 2,
                at: 1_800_000_000_000,
                job,
                what,
            },
        );
    }
}

fn jobs() -> Vec<(&'static str, What)> {
    let submitted = Submitted {
        id: [0x11; 16],
        kind: "circom".into(),
        circuit: Some([5; 32]),
        request: [6; 32],
        request_inline: false,
        idempotency_key: Some("key".into()),
        actor: "local".into(),
        labels: vec![("name".into(), "value".into())],
        priority: Priority::High,
        max_attempts: 3,
        on_failure: OnFailure::Continue,
        partitions: 10,
        ticket_bytes: 1 << 33,
        deadline: Some(1_800_000_000_000),
    };
    let stopping = What::Stopping {
        target: StopTarget::Failed,
        actor: "local".into(),
        failure: Some(failure(FailureClass::InputMissing)),
    };
    let retried = What::Retried {
        generation: 2,
        actor: "local".into(),
        request: [6; 32],
        request_inline: true,
        replaced: vec![0, 250, 251, 1023],
    };
    vec![
        ("event.job.submitted", What::Submitted(submitted)),
        ("event.job.stopping", stopping),
        (
            "event.job.ended",
            What::Ended {
                state: JobState::Succeeded,
            },
        ),
        ("event.job.retried", retried),
        ("event.job.verify_started", What::VerifyStarted),
        ("event.job.verify_passed", What::VerifyPassed { token: token() }),
        (
            "event.job.verify_refused",
            What::VerifyRefused {
                token: token(),
                partitions: vec![3],
            },
        ),
        (
            "event.job.join_refused",
            What::JoinRefused {
                token: token(),
                failure: failure(FailureClass::JoinInvalid),
            },
        ),
        ("event.job.verify_dropped", What::VerifyDropped { token: token() }),
        (
            "event.job.stale_ignored",
            What::StaleIgnored {
                token: token(),
                word: "gpu_end".into(),
            },
        ),
    ]
}

fn partitions() -> Vec<(&'static str, What)> {
    let synth_started = What::SynthStarted {
        partition: 1,
        attempt: 2,
        process: process(),
        device: "cpu:0".into(),
        ticket_bytes: 1 << 20,
    };
    let synth_ended = What::SynthEnded {
        token: token(),
        partition: 1,
        synth_ms: 500,
        witness: [7; 32],
        public: [8; 32],
    };
    let checkpointed = What::Checkpointed {
        token: token(),
        partition: 1,
        witness: [7; 32],
        key: [9; 32],
        pieces: vec![("h".into(), 600)],
    };
    let prove_ended = What::ProveEnded {
        token: token(),
        partition: 1,
        gpu_ms: 700,
        reused: vec!["h".into()],
        saved_ms: 600,
    };
    let proof_stored = What::ProofStored {
        token: token(),
        partition: 1,
        digest: [1; 32],
        process_peak_bytes: Some(1 << 30),
    };
    let attempt_ended = What::AttemptEnded(AttemptEnd {
        partition: 1,
        attempt: 2,
        failure: failure(FailureClass::DeviceError),
        next: Next::Waiting(1_800_000_000_000),
        counted: true,
        crashed: false,
        alone: true,
        drop_checkpoints: false,
        process_peak_bytes: None,
    });
    vec![
        ("event.job.synth_started", synth_started),
        ("event.job.synth_ended", synth_ended),
        (
            "event.job.prove_started",
            What::ProveStarted {
                partition: 1,
                worker: 3,
            },
        ),
        ("event.job.checkpointed", checkpointed),
        ("event.job.prove_ended", prove_ended),
        ("event.job.proof_stored", proof_stored),
        ("event.job.attempt_ended", attempt_ended),
        ("event.job.woken", What::Woken { partition: 1 }),
    ]
}

fn daemon() -> Vec<(&'static str, What)> {
    let lost = What::ProcessLost {
        process: process(),
        device: "cpu:0".into(),
        cause: "signal 11".into(),
        own_fault: true,
    };
    let suspended = What::DeviceSuspended {
        device: "cpu:0".into(),
        until: Some(300),
        reason: "too hot".into(),
    };
    vec![
        (
            "event.boot_opened",
            What::BootOpened {
                version: "0.1.0".into(),
                devices: vec![("cpu:0".into(), 2)],
            },
        ),
        ("event.boot_closed", What::BootClosed),
        (
            "event.process_started",
            What::ProcessStarted {
                process: process(),
                device: "cpu:0".into(),
            },
        ),
        ("event.process_lost", lost),
        ("event.device_suspended", suspended),
        (
            "event.device_resumed",
            What::DeviceResumed {
                device: "cpu:0".into(),
            },
        ),
        (
            "event.paused",
            What::Paused {
                actor: "local".into(),
            },
        ),
        (
            "event.resumed",
            What::Resumed {
                actor: "local".into(),
            },
        ),
        (
            "event.draining",
            What::Draining {
                actor: "local".into(),
            },
        ),
        ("event.clock_stepped", What::ClockStepped { by_ms: -3_600_000 }),
        (
            "event.pruned",
            What::Pruned {
                job: 4,
                id: [0x11; 16],
            },
        ),
    ]
}

fn circuits() -> Vec<(&'static str, What)> {
    let added = What::CircuitAdded {
        circuit: [5; 32],
        name: "sha256".into(),
        files: files(),
        allow_unfinished: false,
        local_setup: true,
        facts: facts(),
        total: 70_000,
        actor: "local".into(),
    };
    let ended = What::ImportEnded {
        token: token(),
        circuit: [5; 32],
        facts: facts(),
        zkey: Some([8; 32]),
        vk: [6; 32],
        matrices: [7; 32],
    };
    let failed = What::ImportFailed {
        token: token(),
        circuit: [5; 32],
        failure: failure(FailureClass::CircuitFailed),
    };
    vec![
        ("event.circuit_added", added),
        (
            "event.circuit_named",
            What::CircuitNamed {
                name: "sha256".into(),
                circuit: [5; 32],
            },
        ),
        (
            "event.import_started",
            What::ImportStarted {
                circuit: [5; 32],
                process: process(),
            },
        ),
        (
            "event.import_progressed",
            What::ImportProgressed {
                token: token(),
                circuit: [5; 32],
                done: 69_999,
            },
        ),
        ("event.import_ended", ended),
        ("event.import_failed", failed),
        (
            "event.import_interrupted",
            What::ImportInterrupted {
                token: token(),
                circuit: [5; 32],
                crashed: true,
            },
        ),
        (
            "event.circuit_removed",
            What::CircuitRemoved {
                circuit: [5; 32],
                actor: "local".into(),
            },
        ),
    ]
}
