//! One sample of each record, and every variant of the small enums.

use super::Samples;
use crate::m0001_initial::*;

pub(super) fn token() -> Token {
    Token {
        boot: 2,
        grant: 1_000_007,
    }
}

pub(super) fn process() -> ProcessId {
    ProcessId { boot: 2, spawn: 300 }
}

pub(super) fn failure(class: FailureClass) -> Failure {
    Failure {
        class,
        code: "a-code".into(),
        detail: "a sentence with an ä".into(),
    }
}

pub(super) fn facts() -> CircuitFacts {
    CircuitFacts {
        constraints: 29_380,
        wires: 29_626,
        public: 9,
        domain_log2: 15,
        key_bytes: 18_000_000,
        insecure: true,
        setup: "{\"kind\":\"local\"}".into(),
    }
}

pub(super) fn files() -> SourceFiles {
    SourceFiles {
        r1cs: Some([1; 32]),
        zkey: Some([2; 32]),
        wasm: None,
        sym: Some([4; 32]),
    }
}

pub(super) fn add(samples: &mut Samples) {
    daemon(samples);
    job(samples);
    partition(samples);
    circuit(samples);
    enums(samples);
}

fn daemon(samples: &mut Samples) {
    let boot = Boot {
        number: 2,
        version: "0.1.0".into(),
        started_at: 1_800_000_000_000,
        ended: Some((1_800_000_000_999, BootEnd::Crashed)),
        spawns: 3,
        interrupted: 70_000,
    };
    samples.add("boot", &boot);
    samples.add("boot.open", &Boot { ended: None, ..boot });
    samples.add(
        "queue",
        &Queue {
            paused: true,
            draining: false,
        },
    );
    let state = DeviceState::Suspended {
        until: Some(250),
        reason: "too hot".into(),
    };
    let device = Device {
        name: "cuda:0".into(),
        slots: 2,
        state,
        process: Some(process()),
    };
    samples.add("device", &device);
    samples.add(
        "device.up",
        &Device {
            state: DeviceState::Up,
            process: None,
            ..device
        },
    );
    let last = LastWork {
        job: 5,
        partition: 6,
        outcome: "ok".into(),
        at: 7,
    };
    let state = WorkerState::Busy {
        token: token(),
        job: 8,
        partition: 9,
        since: 251,
    };
    let worker = Worker {
        id: 1,
        device: "cpu:0".into(),
        slot: 1,
        state,
        last: Some(last),
    };
    samples.add("worker", &worker);
    samples.add(
        "worker.idle",
        &Worker {
            state: WorkerState::Idle,
            last: None,
            ..worker
        },
    );
    let subject = Subject::Partition {
        job: 5,
        partition: 6,
        stage: Stage::Finish,
    };
    let lease = Lease {
        token: token(),
        subject,
        process: Some(process()),
        worker: Some(1),
        granted_at: 10,
    };
    samples.add("lease", &lease);
    let verify = Subject::Verify { job: 5 };
    samples.add(
        "lease.verify",
        &Lease {
            subject: verify,
            process: None,
            worker: None,
            ..lease.clone()
        },
    );
    samples.add(
        "lease.import",
        &Lease {
            subject: Subject::Import { circuit: [9; 32] },
            ..lease
        },
    );
}

fn job(samples: &mut Samples) {
    let job = Job {
        number: 4,
        id: [0x11; 16],
        kind: "circom".into(),
        circuit: Some([5; 32]),
        request: [6; 32],
        request_inline: true,
        idempotency_key: Some("key".into()),
        actor: "local".into(),
        labels: vec![("name".into(), "value".into()), ("k".into(), String::new())],
        priority: Priority::Critical,
        max_attempts: 3,
        on_failure: OnFailure::Stop,
        partitions: 1024,
        ticket_bytes: 1 << 33,
        deadline: Some(1_800_000_000_000),
        created_at: 1_700_000_000_000,
        generation: 2,
        state: JobState::Stopping(StopTarget::Expired),
        tally: Tally {
            proved: 1,
            failed: 2,
            cancelled: 3,
            leases: 4,
        },
        verifying: Some(token()),
        journal: 65_536,
    };
    samples.add("job", &job);
    let generation = Generation {
        job: 4,
        number: 2,
        actor: "local".into(),
        opened_at: 1,
        opened_in: 2,
        started_at: Some(3),
        ended_at: Some(4),
        ended: Some(JobState::Failed),
        failure: Some(failure(FailureClass::Poison)),
    };
    samples.add("generation", &generation);
    let attempt = Attempt {
        of: AttemptRef {
            job: 4,
            partition: 1023,
            number: 3,
        },
        generation: 2,
        opened_in: 1,
        closed_in: Some(2),
        process: process(),
        device: "cpu:0".into(),
        worker: Some(0),
        stage: Stage::Prove,
        outcome: Some(Outcome::Ended(failure(FailureClass::Interrupted))),
        started_at: 11,
        ended_at: Some(12),
        synth_ms: Some(13),
        gpu_started_at: Some(14),
        gpu_ms: Some(15),
        ticket_bytes: 16,
        process_peak_bytes: Some(17),
        witness: Some([7; 32]),
        public: Some([8; 32]),
        reused: vec!["h".into(), "b2".into()],
        saved_ms: 18,
    };
    samples.add("attempt", &attempt);
    samples.add(
        "attempt.ok",
        &Attempt {
            outcome: Some(Outcome::Ok),
            reused: Vec::new(),
            ..attempt
        },
    );
}

fn partition(samples: &mut Samples) {
    let partition = Partition {
        job: 4,
        index: 1023,
        state: PartitionState::Waiting,
        attempts: 3,
        counted: 2,
        token: Some(token()),
        process: Some(process()),
        worker: Some(1),
        wake_at: Some(1_800_000_000_000),
        alone: true,
        out_of_memory: 1,
        poison: Some(Poison {
            stage: Stage::Synth,
            deaths: 2,
            deaths_alone: 1,
        }),
        avoid_device: Some("cuda:0".into()),
        recheck: true,
        failure: Some(failure(FailureClass::OutOfMemory)),
    };
    samples.add("partition", &partition);
    let piece = Piece {
        name: "h".into(),
        bytes: vec![0xfe, 0xfd],
        millis: 600,
        attempt: 3,
    };
    let checkpoint = Checkpoint {
        job: 4,
        partition: 1,
        witness: [7; 32],
        key: [9; 32],
        pieces: vec![piece],
    };
    samples.add("checkpoint", &checkpoint);
    let proof = StoredProof {
        job: 4,
        partition: 1,
        attempt: 3,
        digest: [1; 32],
        bytes: (0..192).collect(),
        public: [2; 32],
        stored_at: 19,
    };
    samples.add("proof", &proof);
}

fn circuit(samples: &mut Samples) {
    let importing = ImportState {
        done: 1,
        total: 70_000,
        token: Some(token()),
        deaths: 1,
    };
    let circuit = Circuit {
        digest: [5; 32],
        name: "sha256".into(),
        files: files(),
        allow_unfinished: true,
        local_setup: false,
        facts: facts(),
        state: CircuitState::Importing(importing),
        vk: Some([6; 32]),
        matrices: None,
        actor: "local".into(),
        added_at: 20,
        ready_at: None,
    };
    samples.add("circuit", &circuit);
    samples.add(
        "circuit.ready",
        &Circuit {
            state: CircuitState::Ready,
            ..circuit.clone()
        },
    );
    let state = CircuitState::Failed(failure(FailureClass::ParamsMismatch));
    samples.add("circuit.failed", &Circuit { state, ..circuit });
}

/// Variants are written as their place in the enum, so each list pins the order.
fn enums(samples: &mut Samples) {
    use FailureClass as F;
    let classes = vec![
        F::InputInvalid,
        F::Unsatisfied,
        F::ParamsMismatch,
        F::InputMissing,
        F::CircuitFailed,
        F::JoinInvalid,
        F::OutOfMemory,
        F::DeviceError,
        F::InvalidProof,
        F::TimedOut,
        F::Stalled,
        F::Interrupted,
        F::Shutdown,
        F::DeviceUnavailable,
        F::Preempted,
        F::Poison,
        F::Cancelled,
    ];
    samples.add("enum.failure_class", &classes);
    samples.add("enum.stage", &vec![Stage::Synth, Stage::Prove, Stage::Finish]);
    samples.add("enum.boot_end", &vec![BootEnd::Clean, BootEnd::Crashed]);
    use Priority as P;
    samples.add("enum.priority", &vec![P::Low, P::Normal, P::High, P::Critical]);
    samples.add("enum.on_failure", &vec![OnFailure::Continue, OnFailure::Stop]);
    use StopTarget as T;
    samples.add("enum.stop_target", &vec![T::Cancelled, T::Failed, T::Expired]);
    use JobState as J;
    let states = vec![
        J::Queued,
        J::Running,
        J::Verifying,
        J::Stopping(T::Cancelled),
        J::Succeeded,
        J::Failed,
        J::Cancelled,
        J::Expired,
    ];
    samples.add("enum.job_state", &states);
    use PartitionState as S;
    let states = vec![
        S::Ready,
        S::Waiting,
        S::Synthesizing,
        S::Synthesized,
        S::Proving,
        S::Finishing,
        S::Proved,
        S::Failed,
        S::Cancelled,
    ];
    samples.add("enum.partition_state", &states);
    samples.add(
        "enum.next",
        &vec![Next::Ready, Next::Waiting(300), Next::Failed, Next::Cancelled],
    );
}
