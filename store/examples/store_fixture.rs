//! Makes a small store with a record of every kind, for `tests/fixtures/`: `store_fixture DIRECTORY`.
//!
//! `DIRECTORY/data` is a data directory as a daemon leaves it that was killed while it worked, and
//! `DIRECTORY/records.txt` says what is in it: a line for each record, key and value in hex.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use proofkeep_store::clock::Clock;
use proofkeep_store::ids::{Digest, JobNumber, ProcessId, Token, WorkerId};
use proofkeep_store::machine::{
    CircuitAdd, Command, Machine, ProofStored, Reply, Rules, Submit, SynthEnd, VerifyVerdict,
};
use proofkeep_store::records::{
    CircuitFacts, Failure, FailureClass, OnFailure, Piece, Priority, SourceFiles,
};
use proofkeep_store::view::View;
use proofkeep_store::{Handle, Limits, Objects, Options, Store};
use uuid::Uuid;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let directory = std::env::args().nth(1).ok_or("usage: store_fixture DIRECTORY")?;
    let directory = Path::new(&directory);
    let store = Store::open(&directory.join("data"), &Options::default())?;
    let handle = store.start(Machine { rules: Rules::ALL }, Clock::start(), Limits::default())?;
    let maker = Maker {
        handle: &handle,
        objects: store.objects(),
    };
    maker.history()?;
    handle.stop();
    let mut text = String::new();
    for (key, value) in store.read(|view: &dyn View| view.scan(&[], None, usize::MAX))? {
        writeln!(text, "{} {}", hex::encode(key), hex::encode(value))?;
    }
    std::fs::write(directory.join("records.txt"), text)?;
    Ok(())
}

struct Maker<'a> {
    handle: &'a Handle,
    objects: &'a Objects,
}

impl Maker<'_> {
    fn history(&self) -> Result<()> {
        self.commit(Command::BootOpen {
            version: "fixture".into(),
            devices: vec![("cpu:0".into(), 2)],
        })?;
        self.commit(Command::Pause {
            actor: "fixture".into(),
        })?;
        self.commit(Command::Resume {
            actor: "fixture".into(),
        })?;
        let process = match self.commit(Command::ProcessStart {
            device: "cpu:0".into(),
        })? {
            Reply::Process(process) => process,
            other => return Err(format!("expected a process, found {other:?}").into()),
        };
        let circuit = self.circuit(process)?;
        self.circuit_with_its_key_made_here(process)?;
        // One that is done.
        let done = self.submit(2, Some(circuit))?;
        for partition in 0..2 {
            let (token, _) = self.prove(done, partition, process)?;
            self.finish(token)?;
        }
        let token = self.grant(Command::VerifyStart { job: done })?.0;
        self.commit(Command::VerifyEnd {
            token,
            verdict: VerifyVerdict::Passed,
        })?;
        // One that is cancelled.
        let cancelled = self.submit(3, None)?;
        self.commit(Command::Cancel {
            job: cancelled,
            actor: "fixture".into(),
        })?;
        // One that is being worked on: finished, on the device with a checkpoint, backing off, making its witness.
        let open = self.submit(5, Some(circuit))?;
        let (token, _) = self.prove(open, 0, process)?;
        self.finish(token)?;
        self.prove(open, 1, process)?;
        let token = self
            .grant(Command::SynthStart {
                job: open,
                partition: 2,
                process,
            })?
            .0;
        let failure = Failure::new(FailureClass::DeviceError, "the device reported an error");
        self.commit(Command::AttemptFailed {
            token,
            failure,
            process_peak_bytes: Some(1 << 20),
        })?;
        self.grant(Command::SynthStart {
            job: open,
            partition: 3,
            process,
        })?;
        Ok(())
    }

    fn circuit(&self, process: ProcessId) -> Result<Digest> {
        let circuit = Digest::of(b"a circuit's canonical description");
        let facts = CircuitFacts {
            constraints: 8,
            wires: 10,
            public: 1,
            domain_log2: 4,
            key_bytes: 4096,
            insecure: true,
            setup: "{\"kind\":\"fixture\"}".into(),
        };
        let files = SourceFiles {
            r1cs: Some(self.objects.put(b"r1cs")?),
            zkey: Some(self.objects.put(b"zkey")?),
            wasm: Some(self.objects.put(b"wasm")?),
            sym: None,
        };
        self.commit(Command::CircuitAdd(CircuitAdd {
            name: "fixture".into(),
            circuit,
            files,
            allow_unfinished: true,
            local_setup: false,
            replace: false,
            facts: facts.clone(),
            total: 100,
            actor: "fixture".into(),
        }))?;
        let token = self.grant(Command::ImportStart { circuit, process })?.0;
        self.commit(Command::ImportProgress { token, done: 50 })?;
        let (vk, matrices) = (self.objects.put(b"vk")?, self.objects.put(b"matrices")?);
        self.commit(Command::ImportEnd {
            token,
            facts,
            zkey: None,
            vk,
            matrices,
        })?;
        Ok(circuit)
    }

    fn circuit_with_its_key_made_here(&self, process: ProcessId) -> Result<()> {
        let circuit = Digest::of(b"a description with something random in it");
        let facts = CircuitFacts {
            constraints: 8,
            wires: 10,
            public: 1,
            domain_log2: 4,
            key_bytes: 4096,
            insecure: true,
            setup: "{\"kind\":\"insecure-local\"}".into(),
        };
        let files = SourceFiles {
            r1cs: Some(self.objects.put(b"r1cs")?),
            ..SourceFiles::default()
        };
        self.commit(Command::CircuitAdd(CircuitAdd {
            name: "made-here".into(),
            circuit,
            files,
            allow_unfinished: false,
            local_setup: true,
            replace: false,
            facts: facts.clone(),
            total: 100,
            actor: "fixture".into(),
        }))?;
        let token = self.grant(Command::ImportStart { circuit, process })?.0;
        self.commit(Command::ImportEnd {
            token,
            facts,
            zkey: Some(self.objects.put(b"a key made here")?),
            vk: self.objects.put(b"its vk")?,
            matrices: self.objects.put(b"its matrices")?,
        })?;
        Ok(())
    }

    fn submit(&self, partitions: u32, circuit: Option<Digest>) -> Result<JobNumber> {
        let request = format!("{{\"partitions\":{partitions}}}").into_bytes();
        let id = Uuid::now_v7();
        let reply = self.commit(Command::Submit(Submit {
            id,
            kind: "circom".into(),
            circuit,
            request: Digest::of(&request),
            inline: Some(request),
            objects: vec![self.objects.put(b"an input")?],
            idempotency_key: Some(format!("fixture-{partitions}")),
            actor: "fixture".into(),
            labels: vec![("purpose".into(), "fixture".into())],
            priority: Priority::High,
            max_attempts: 3,
            on_failure: OnFailure::Continue,
            partitions,
            ticket_bytes: 1 << 20,
            budget_bytes: 1 << 30,
            deadline: None,
        }))?;
        match reply {
            Reply::Submitted { job, .. } => Ok(job),
            other => Err(format!("expected a job, found {other:?}").into()),
        }
    }

    /// As far as the device, with a checkpoint.
    fn prove(&self, job: JobNumber, partition: u32, process: ProcessId) -> Result<(Token, u32)> {
        let (token, attempt) = self.grant(Command::SynthStart {
            job,
            partition,
            process,
        })?;
        let witness = Digest::of(&partition.to_be_bytes());
        let public = self.objects.put(b"public signals")?;
        self.commit(Command::SynthEnd(SynthEnd {
            token,
            synth_ms: 5,
            witness,
            public,
        }))?;
        let worker = WorkerId(0);
        let granted = self.grant(Command::GpuStart {
            job,
            partition,
            attempt,
            worker,
        })?;
        let piece = Piece {
            name: "h".into(),
            bytes: vec![0xab; 48],
            millis: 9,
            attempt,
        };
        let key = Digest::of(b"zkey");
        self.commit(Command::Checkpoint {
            token: granted.0,
            witness,
            key,
            pieces: vec![piece],
        })?;
        Ok((granted.0, attempt))
    }

    fn finish(&self, token: Token) -> Result<()> {
        self.commit(Command::GpuEnd {
            token,
            gpu_ms: 20,
            reused: Vec::new(),
            saved_ms: 0,
        })?;
        let proof = ProofStored {
            token,
            bytes: vec![0xcd; 192],
            process_peak_bytes: Some(1 << 20),
        };
        self.commit(Command::ProofStored(proof)).map(drop)
    }

    fn grant(&self, command: Command) -> Result<(Token, u32)> {
        match self.commit(command)? {
            Reply::Granted { token, attempt } => Ok((token, attempt)),
            other => Err(format!("expected a lease, found {other:?}").into()),
        }
    }

    fn commit(&self, command: Command) -> Result<Reply> {
        let name = command.name().name();
        let committed = self
            .handle
            .commit_blocking(command)
            .map_err(|error| format!("{name}: {error}"))?;
        Ok(committed.reply)
    }
}
