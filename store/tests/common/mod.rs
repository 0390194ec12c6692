//! What the machine's tests share: a machine over a store in memory, checked by `fsck` after every step.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;

use proofkeep_store::commit::{MAX_COMMAND_BYTES, MAX_COMMAND_LOG};
use proofkeep_store::fsck::{Mode, fsck};
use proofkeep_store::ids::{
    BootNumber, Digest, JobNumber, JournalNumber, Millis, ProcessId, Token, WorkerId,
};
use proofkeep_store::keys::{self, Family, Sequence};
use proofkeep_store::machine::{
    Admission, Command, Context, Machine, Refusal, Reply, Rules, StepError, Submit, VerifyVerdict,
};
use proofkeep_store::records::{
    Attempt, AttemptRef, Checkpoint, Circuit, Device, FailureClass, Generation, Job, JobState, Lease,
    Partition, PartitionState, StoredProof, Worker, WorkerState,
};
use proofkeep_store::view::{MemoryView, View, record, records};
use proofkeep_store::{codec, event::Event};

mod build;
pub use build::*;

/// A machine over a store in memory.
pub struct World {
    pub machine: Machine,
    pub view: MemoryView,
    pub now: Millis,
    pub boot: BootNumber,
    /// `fsck` looks at everything after every step.
    pub checked: bool,
    /// The most bytes of log that each command has come to.
    pub largest: BTreeMap<&'static str, u64>,
    ids: u64,
}

/// A world with every rule, booted with `cpu:0` of two slots and a live process on it.
pub fn world() -> World {
    World::with(Rules::ALL, &[("cpu:0", 2)])
}

impl World {
    /// A world that keeps these rules; one that misses any is not checked by `fsck`.
    pub fn with(rules: Rules, devices: &[(&str, u32)]) -> Self {
        let mut world = Self::empty(rules);
        world.boot(devices);
        world
    }

    /// The same before its first boot.
    pub fn empty(rules: Rules) -> Self {
        Self {
            machine: Machine { rules },
            view: MemoryView::default(),
            now: Millis(1_800_000_000_000),
            boot: BootNumber(0),
            checked: rules == Rules::ALL,
            largest: BTreeMap::new(),
            ids: 0,
        }
    }

    pub fn context(&self) -> Context {
        Context {
            now: self.now,
            boot: self.boot,
        }
    }

    /// What the machine says, with nothing changed.
    pub fn ask(&self, command: &Command) -> Result<Reply, Refusal> {
        match self.machine.step(&self.view, self.context(), command) {
            Ok(step) => Ok(step.reply),
            Err(StepError::Refused(refusal)) => Err(refusal),
            Err(StepError::Read(error)) => panic!("{command:?}: {error}"),
        }
    }

    /// Carries out one command and checks everything.
    pub fn step(&mut self, command: &Command) -> Result<Reply, Refusal> {
        let step = match self.machine.step(&self.view, self.context(), command) {
            Ok(step) => step,
            Err(StepError::Refused(refusal)) => return Err(refusal),
            Err(StepError::Read(error)) => panic!("{command:?}: {error}"),
        };
        self.weigh(command, &step.changes);
        let before = self.journal();
        if matches!(step.reply, Reply::Unchanged) {
            assert!(step.changes.is_empty(), "{command:?} says unchanged and writes");
        }
        self.view.apply(&step.changes);
        assert_eq!(self.journal(), step.journal);
        assert!(step.journal >= before);
        if self.checked {
            self.check(command);
        }
        Ok(step.reply)
    }

    /// What the commit thread would refuse as too large must not come up.
    fn weigh(&mut self, command: &Command, changes: &BTreeMap<keys::Key, Option<Vec<u8>>>) {
        let mut bytes = 0;
        for (key, value) in changes {
            let size = key.len() + value.as_ref().map_or(0, Vec::len);
            assert!(
                size <= codec::MAX_RECORD,
                "{}: a record of {size} bytes",
                command.name().name()
            );
            bytes += size as u64;
        }
        // As the commit thread estimates sled's log.
        let log = 6 * bytes + 512 * changes.len() as u64;
        let name = command.name().name();
        assert!(bytes <= MAX_COMMAND_BYTES, "{name} writes {bytes} bytes");
        assert!(log <= MAX_COMMAND_LOG, "{name} writes {log} bytes of log");
        let largest = self.largest.entry(name).or_default();
        *largest = log.max(*largest);
    }

    /// Everything that `fsck` checks.
    pub fn check(&self, after: &Command) {
        let report = fsck(&self.view, Mode::Full, None).unwrap();
        let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        assert!(findings.is_empty(), "after {after:?}:\n{}", findings.join("\n"));
    }

    /// The first thing that `fsck` finds wrong, for worlds that miss a rule.
    pub fn finding(&self) -> Option<String> {
        let report = fsck(&self.view, Mode::Full, None).unwrap();
        report.findings.first().map(ToString::to_string)
    }

    /// The same, where it must be carried out.
    pub fn run(&mut self, command: Command) -> Reply {
        match self.step(&command) {
            Ok(reply) => reply,
            Err(refusal) => panic!("{command:?}: {refusal}"),
        }
    }

    /// Carries it out and says that it was refused.
    pub fn refused(&mut self, command: Command) -> Refusal {
        let before = self.view.clone();
        let refusal = self.step(&command).expect_err("expected a refusal");
        assert_eq!(self.view, before);
        refusal
    }

    // Boots and processes.

    /// Opens the next boot; an open one counts as a crash. Starts a process on every device.
    pub fn boot(&mut self, devices: &[(&str, u32)]) -> BootNumber {
        self.boot_bare(devices);
        for (device, _) in devices {
            self.spawn(device);
        }
        self.boot
    }

    /// The same with no process.
    pub fn boot_bare(&mut self, devices: &[(&str, u32)]) {
        self.boot = BootNumber(self.sequence(Sequence::Boot) + 1);
        let devices = devices
            .iter()
            .map(|(name, slots)| ((*name).to_owned(), *slots))
            .collect();
        let reply = self.run(Command::BootOpen {
            version: "test".into(),
            devices,
        });
        assert_eq!(reply, Reply::Booted(self.boot));
    }

    pub fn spawn(&mut self, device: &str) -> ProcessId {
        match self.run(Command::ProcessStart {
            device: device.into(),
        }) {
            Reply::Process(process) => process,
            other => panic!("{other:?}"),
        }
    }

    pub fn process(&self, device: &str) -> ProcessId {
        self.device(device).process.expect("a live process")
    }

    /// The process dies by its own fault, or is killed.
    pub fn lose(&mut self, device: &str, own_fault: bool) {
        let process = self.process(device);
        let reply = self.run(Command::ProcessLost {
            process,
            failure: failure(FailureClass::Interrupted),
            culprit: None,
            own_fault,
            process_peak_bytes: Some(1 << 20),
        });
        assert_eq!(reply, Reply::Done);
    }

    /// Dies by its own fault and is started again.
    pub fn crash(&mut self, device: &str) {
        self.lose(device, true);
        self.spawn(device);
    }

    // Jobs.

    /// A submit with as many partitions; change what matters.
    pub fn submit(&mut self, partitions: u32) -> Submit {
        self.ids += 1;
        submit(self.ids, partitions)
    }

    pub fn submitted(&mut self, submit: Submit) -> JobNumber {
        match self.run(Command::Submit(submit)) {
            Reply::Submitted {
                job,
                admission: Admission::Created,
                ..
            } => job,
            other => panic!("{other:?}"),
        }
    }

    pub fn new_job(&mut self, partitions: u32) -> JobNumber {
        let submit = self.submit(partitions);
        self.submitted(submit)
    }

    /// Grants a synthesis on the first device.
    pub fn synth(&mut self, job: JobNumber, partition: u32) -> Token {
        let process = self.process("cpu:0");
        granted(self.run(Command::SynthStart {
            job,
            partition,
            process,
        }))
    }

    pub fn synthesized(&mut self, job: JobNumber, partition: u32) {
        let token = self.synth(job, partition);
        self.run(synth_end(token));
    }

    /// Grants a slot for a synthesized partition.
    pub fn gpu(&mut self, job: JobNumber, partition: u32, worker: u32) -> Token {
        let attempt = self.partition(job, partition).attempts;
        granted(self.run(Command::GpuStart {
            job,
            partition,
            attempt,
            worker: WorkerId(worker),
        }))
    }

    pub fn proving(&mut self, job: JobNumber, partition: u32, worker: u32) -> Token {
        self.synthesized(job, partition);
        self.gpu(job, partition, worker)
    }

    pub fn finishing(&mut self, job: JobNumber, partition: u32) -> Token {
        let token = self.proving(job, partition, 0);
        self.run(gpu_end(token));
        token
    }

    pub fn prove(&mut self, job: JobNumber, partition: u32) {
        let token = self.finishing(job, partition);
        self.run(proof(token));
    }

    /// Fails the partition once, as a whole attempt.
    pub fn fail(&mut self, job: JobNumber, partition: u32, class: FailureClass) {
        let token = self.synth(job, partition);
        self.run(failed(token, class));
    }

    /// Proves all and passes the final check.
    pub fn succeed(&mut self, job: JobNumber) {
        for index in 0..self.job(job).partitions {
            if self.state(job, index) == PartitionState::Ready {
                self.prove(job, index);
            }
        }
        let token = granted(self.run(Command::VerifyStart { job }));
        self.run(Command::VerifyEnd {
            token,
            verdict: VerifyVerdict::Passed,
        });
        assert_eq!(self.job(job).state, JobState::Succeeded);
    }

    pub fn cancel(&mut self, job: JobNumber) -> Reply {
        self.run(Command::Cancel {
            job,
            actor: "tester".into(),
        })
    }

    pub fn prune(&mut self, job: JobNumber) {
        for _ in 0..1000 {
            if self.run(Command::Prune { job }) == Reply::Done {
                return;
            }
        }
        panic!("pruning never ends");
    }

    // Circuits.

    pub fn circuit_added(&mut self, name: &str) -> Digest {
        let add = circuit(name);
        let digest = add.circuit;
        self.run(Command::CircuitAdd(add));
        digest
    }

    pub fn importing(&mut self, circuit: Digest) -> Token {
        let process = self.process("cpu:0");
        granted(self.run(Command::ImportStart { circuit, process }))
    }

    pub fn imported(&mut self, name: &str) -> Digest {
        let circuit = self.circuit_added(name);
        let token = self.importing(circuit);
        self.run(import_end(token));
        circuit
    }

    // Reading.

    pub fn sequence(&self, sequence: Sequence) -> u64 {
        self.view
            .get(&keys::sequence(sequence))
            .unwrap()
            .map_or(0, |bytes| codec::read_number(&bytes).unwrap())
    }

    pub fn journal(&self) -> JournalNumber {
        JournalNumber(self.sequence(Sequence::Journal))
    }

    pub fn job(&self, job: JobNumber) -> Job {
        record(&self.view, &keys::job(job))
            .unwrap()
            .expect("the job is there")
    }

    pub fn generation(&self, job: JobNumber) -> Generation {
        let number = self.job(job).generation;
        record(&self.view, &keys::generation(job, number))
            .unwrap()
            .unwrap()
    }

    pub fn partition(&self, job: JobNumber, partition: u32) -> Partition {
        record(&self.view, &keys::partition(job, partition))
            .unwrap()
            .expect("the partition is there")
    }

    pub fn state(&self, job: JobNumber, partition: u32) -> PartitionState {
        self.partition(job, partition).state
    }

    pub fn attempts(&self, job: JobNumber, partition: u32) -> Vec<Attempt> {
        records(&self.view, &keys::attempts(job, partition)).unwrap()
    }

    pub fn attempt(&self, job: JobNumber, partition: u32, number: u32) -> Attempt {
        record(
            &self.view,
            &keys::attempt(AttemptRef {
                job,
                partition,
                number,
            }),
        )
        .unwrap()
        .unwrap()
    }

    pub fn checkpoint(&self, job: JobNumber, partition: u32) -> Option<Checkpoint> {
        record(&self.view, &keys::checkpoint(job, partition)).unwrap()
    }

    pub fn stored(&self, job: JobNumber, partition: u32) -> Option<StoredProof> {
        record(&self.view, &keys::proof(job, partition)).unwrap()
    }

    pub fn circuit(&self, circuit: Digest) -> Circuit {
        record(&self.view, &keys::circuit(circuit)).unwrap().unwrap()
    }

    pub fn device(&self, name: &str) -> Device {
        record(&self.view, &keys::device(name))
            .unwrap()
            .expect("the device is there")
    }

    pub fn worker(&self, id: u32) -> Worker {
        record(&self.view, &keys::worker(WorkerId(id))).unwrap().unwrap()
    }

    /// The token that a worker is busy with.
    pub fn busy(&self, id: u32) -> Option<Token> {
        match self.worker(id).state {
            WorkerState::Idle => None,
            WorkerState::Busy { token, .. } => Some(token),
        }
    }

    pub fn leases(&self) -> Vec<Lease> {
        records(&self.view, &keys::family(Family::Lease)).unwrap()
    }

    pub fn events(&self) -> Vec<Event> {
        records(&self.view, &keys::family(Family::Event)).unwrap()
    }

    /// How many events have this name.
    pub fn count(&self, name: &str) -> usize {
        self.events()
            .iter()
            .filter(|event| event.what.name() == name)
            .count()
    }

    pub fn counter(&self, name: &str) -> u64 {
        self.view
            .get(&keys::counter(name))
            .unwrap()
            .map_or(0, |bytes| codec::read_number(&bytes).unwrap())
    }
}
