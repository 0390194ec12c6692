//! A store in memory, driven by the real machine: what the tests of `fsck` and of the queries look at.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proofkeep_store::codec::Record;
use proofkeep_store::fsck::{Mode, Report, fsck};
use proofkeep_store::ids::{BootNumber, Digest, JobNumber, Millis, ProcessId, Token, WorkerId};
use proofkeep_store::keys::Key;
use proofkeep_store::machine::{
    CircuitAdd, Command, Context, Machine, ProofStored, Reply, Step, StepError, Submit, SynthEnd,
    VerifyVerdict,
};
use proofkeep_store::records::{
    CircuitFacts, Failure, FailureClass, OnFailure, Piece, Priority, SourceFiles,
};
use proofkeep_store::view::{self, MemoryView};
use uuid::Uuid;

pub const DEVICE: &str = "cpu:0";
pub const START: u64 = 1_700_000_000_000;

pub struct World {
    pub view: MemoryView,
    pub machine: Machine,
    pub now: Millis,
    pub boot: BootNumber,
    pub process: ProcessId,
    pub circuit: Digest,
    /// Check everything after every command.
    pub checked: bool,
    ids: u128,
}

pub fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

pub fn facts() -> CircuitFacts {
    CircuitFacts {
        constraints: 8,
        wires: 9,
        public: 2,
        domain_log2: 4,
        key_bytes: 4096,
        insecure: true,
        setup: "{}".to_owned(),
    }
}

impl World {
    /// A store with one boot, one device of two slots, its process, and one circuit that is ready.
    pub fn new() -> Self {
        let mut world = Self {
            view: MemoryView::default(),
            machine: Machine::default(),
            now: Millis(START),
            boot: BootNumber(0),
            process: ProcessId {
                boot: BootNumber(0),
                spawn: 0,
            },
            circuit: digest("circuit"),
            checked: true,
            ids: 1,
        };
        world.reboot();
        world.add_circuit("circuit");
        world.import("circuit");
        world
    }

    pub fn try_step(&mut self, command: &Command) -> Result<Reply, StepError> {
        self.now = self.now.after(10);
        let context = Context {
            now: self.now,
            boot: self.boot,
        };
        let Step { changes, reply, .. } = self.machine.step(&self.view, context, command)?;
        self.view.apply(&changes);
        if self.checked {
            self.assert_clean(command.name().name());
        }
        Ok(reply)
    }

    pub fn step(&mut self, command: Command) -> Reply {
        match self.try_step(&command) {
            Ok(reply) => reply,
            Err(error) => panic!("{}: {error}", command.name().name()),
        }
    }

    pub fn grant(&mut self, command: Command) -> (Token, u32) {
        match self.step(command) {
            Reply::Granted { token, attempt } => (token, attempt),
            other => panic!("expected a lease, found {other:?}"),
        }
    }

    pub fn full(&self) -> Report {
        fsck(&self.view, Mode::Full, Some(&|_| true)).unwrap()
    }

    pub fn live(&self) -> Report {
        fsck(&self.view, Mode::Live, None).unwrap()
    }

    pub fn assert_clean(&self, after: &str) {
        for report in [self.live(), self.full()] {
            let text: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
            assert!(report.is_clean(), "after {after}:\n{}", text.join("\n"));
        }
    }

    /// The daemon dies, if it lived, and begins again with its one device.
    pub fn reboot(&mut self) {
        self.boot = BootNumber(self.boot.0 + 1);
        let devices = vec![(DEVICE.to_owned(), 2)];
        self.step(Command::BootOpen {
            version: "test".to_owned(),
            devices,
        });
        match self.step(Command::ProcessStart {
            device: DEVICE.to_owned(),
        }) {
            Reply::Process(process) => self.process = process,
            other => panic!("expected a process, found {other:?}"),
        }
    }

    pub fn add_circuit(&mut self, name: &str) -> Digest {
        let circuit = digest(name);
        self.step(Command::CircuitAdd(CircuitAdd {
            name: name.to_owned(),
            circuit,
            files: SourceFiles {
                r1cs: Some(digest("r1cs")),
                zkey: Some(digest(&format!("zkey {name}"))),
                ..SourceFiles::default()
            },
            allow_unfinished: true,
            local_setup: false,
            replace: false,
            facts: facts(),
            total: 100,
            actor: "local".to_owned(),
        }));
        circuit
    }

    pub fn import(&mut self, name: &str) {
        let (circuit, process) = (digest(name), self.process);
        let (token, _) = self.grant(Command::ImportStart { circuit, process });
        self.step(Command::ImportProgress { token, done: 50 });
        let (vk, matrices) = (digest(&format!("vk {name}")), digest(&format!("matrices {name}")));
        self.step(Command::ImportEnd {
            token,
            facts: facts(),
            zkey: None,
            vk,
            matrices,
        });
    }

    pub fn submission(&mut self, partitions: u32) -> Submit {
        self.ids += 1;
        let request = format!("request {}", self.ids).into_bytes();
        Submit {
            id: Uuid::from_u128(self.ids),
            kind: "groth16".to_owned(),
            circuit: Some(self.circuit),
            request: Digest::of(&request),
            inline: Some(request),
            objects: vec![digest("witness")],
            idempotency_key: None,
            actor: "local".to_owned(),
            labels: vec![("order".to_owned(), self.ids.to_string())],
            priority: Priority::Normal,
            max_attempts: 3,
            on_failure: OnFailure::Continue,
            partitions,
            ticket_bytes: 1 << 20,
            budget_bytes: 1 << 30,
            deadline: None,
        }
    }

    pub fn submit_as(&mut self, submit: Submit) -> JobNumber {
        match self.step(Command::Submit(submit)) {
            Reply::Submitted { job, .. } => job,
            other => panic!("expected a job, found {other:?}"),
        }
    }

    pub fn submit(&mut self, partitions: u32) -> JobNumber {
        let submit = self.submission(partitions);
        self.submit_as(submit)
    }

    pub fn synth_start(&mut self, job: JobNumber, partition: u32) -> (Token, u32) {
        let process = self.process;
        self.grant(Command::SynthStart {
            job,
            partition,
            process,
        })
    }

    /// Up to `synthesized`; answers the attempt.
    pub fn synthesize(&mut self, job: JobNumber, partition: u32) -> u32 {
        let (token, attempt) = self.synth_start(job, partition);
        let end = SynthEnd {
            token,
            synth_ms: 120,
            witness: digest("w"),
            public: digest("public"),
        };
        self.step(Command::SynthEnd(end));
        attempt
    }

    /// Up to `proving`; answers the lease.
    pub fn start_proving(&mut self, job: JobNumber, partition: u32, worker: u32) -> Token {
        let attempt = self.synthesize(job, partition);
        self.grant(Command::GpuStart {
            job,
            partition,
            attempt,
            worker: WorkerId(worker),
        })
        .0
    }

    pub fn checkpoint(&mut self, token: Token, name: &str) {
        let piece = Piece {
            name: name.to_owned(),
            bytes: vec![7; 96],
            millis: 800,
            attempt: 0,
        };
        let (witness, key) = (digest("w"), digest("key"));
        self.step(Command::Checkpoint {
            token,
            witness,
            key,
            pieces: vec![piece],
        });
    }

    /// Up to `finishing`; answers the lease.
    pub fn start_finishing(&mut self, job: JobNumber, partition: u32, worker: u32) -> Token {
        let token = self.start_proving(job, partition, worker);
        self.gpu_end(token);
        token
    }

    pub fn gpu_end(&mut self, token: Token) {
        self.step(Command::GpuEnd {
            token,
            gpu_ms: 900,
            reused: Vec::new(),
            saved_ms: 0,
        });
    }

    pub fn store_proof(&mut self, token: Token) {
        self.step(Command::ProofStored(ProofStored {
            token,
            bytes: vec![3; 192],
            process_peak_bytes: Some(5 << 20),
        }));
    }

    pub fn prove(&mut self, job: JobNumber, partition: u32) {
        let token = self.start_finishing(job, partition, 0);
        self.store_proof(token);
    }

    pub fn verify_start(&mut self, job: JobNumber) -> Token {
        self.grant(Command::VerifyStart { job }).0
    }

    /// Proves all partitions and the whole.
    pub fn succeed(&mut self, job: JobNumber, partitions: u32) {
        for partition in 0..partitions {
            self.prove(job, partition);
        }
        let token = self.verify_start(job);
        self.step(Command::VerifyEnd {
            token,
            verdict: VerifyVerdict::Passed,
        });
    }

    pub fn fail_attempt(&mut self, token: Token, class: FailureClass) {
        let failure = Failure::new(class, "as the test wants it");
        self.step(Command::AttemptFailed {
            token,
            failure,
            process_peak_bytes: None,
        });
    }

    pub fn cancel(&mut self, job: JobNumber) {
        self.step(Command::Cancel {
            job,
            actor: "local".to_owned(),
        });
    }

    pub fn retry(&mut self, job: JobNumber) {
        let actor = "local".to_owned();
        self.step(Command::Retry {
            job,
            actor,
            replacement: None,
            damaged: Vec::new(),
        });
    }

    pub fn prune(&mut self, job: JobNumber) {
        while self.step(Command::Prune { job }) == Reply::More {}
    }

    pub fn record<R: Record>(&self, key: &[u8]) -> R {
        view::record(&self.view, key)
            .unwrap()
            .expect("the record is there")
    }

    /// Changes a record by hand.
    pub fn change<R: Record>(&mut self, key: Key, change: impl FnOnce(&mut R)) {
        let mut record = self.record::<R>(&key);
        change(&mut record);
        self.view.0.insert(key, record.encode());
    }
}

/// A store in which something of everything is under way.
pub fn busy_world() -> World {
    let mut world = World::new();
    world.checked = false;
    let done = world.submission(2);
    let done = world.submit_as(Submit {
        idempotency_key: Some("done".to_owned()),
        ..done
    });
    assert_eq!(done, DONE);
    world.succeed(done, 2);
    let failed = world.submit(2);
    assert_eq!(failed, FAILED);
    world.prove(failed, 0);
    let (token, _) = world.synth_start(failed, 1);
    world.fail_attempt(token, FailureClass::Unsatisfied);
    let cancelled = world.submit(1);
    world.cancel(cancelled);
    assert_eq!(cancelled, CANCELLED);
    let running = world.submission(6);
    let deadline = Some(world.now.after(3_600_000));
    let running = world.submit_as(Submit { deadline, ..running });
    assert_eq!(running, RUNNING);
    world.prove(running, 0);
    let token = world.start_proving(running, 1, 1);
    world.fail_attempt(token, FailureClass::DeviceError);
    world.start_finishing(running, 2, 0);
    let token = world.start_proving(running, 3, 1);
    world.checkpoint(token, "h");
    world.synthesize(running, 4);
    let verifying = world.submit(1);
    assert_eq!(verifying, VERIFYING);
    world.prove(verifying, 0);
    world.verify_start(verifying);
    let queued = world.submit(2);
    assert_eq!(queued, QUEUED);
    let other = world.add_circuit("other");
    let process = world.process;
    world.grant(Command::ImportStart {
        circuit: other,
        process,
    });
    world
}

/// It succeeded; its idempotency key is `done`.
pub const DONE: JobNumber = JobNumber(1);
/// It failed: partition 0 is proved, partition 1 was unsatisfied.
pub const FAILED: JobNumber = JobNumber(2);
/// It was cancelled before anything began.
pub const CANCELLED: JobNumber = JobNumber(3);
/// It runs: proved, waiting, finishing, proving with a checkpoint, synthesized, ready.
pub const RUNNING: JobNumber = JobNumber(4);
/// Its final check is under way.
pub const VERIFYING: JobNumber = JobNumber(5);
/// It waits.
pub const QUEUED: JobNumber = JobNumber(6);
