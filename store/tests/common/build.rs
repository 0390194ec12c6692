//! Commands to give the machine.

use proofkeep_store::ids::{BootNumber, Digest, JobNumber, JournalNumber, Token};
use proofkeep_store::machine::{CircuitAdd, Command, ProofStored, Reply, Submit, SynthEnd};
use proofkeep_store::records::{
    CircuitFacts, Failure, FailureClass, OnFailure, Piece, Priority, SourceFiles,
};
use uuid::Uuid;

pub fn submit(seed: u64, partitions: u32) -> Submit {
    let request = format!("{{\"seed\":{seed}}}").into_bytes();
    Submit {
        id: Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 + u128::from(seed)),
        kind: "groth16".into(),
        circuit: None,
        request: Digest::of(&request),
        inline: Some(request),
        objects: Vec::new(),
        idempotency_key: None,
        actor: "tester".into(),
        labels: Vec::new(),
        priority: Priority::Normal,
        max_attempts: 3,
        on_failure: OnFailure::Continue,
        partitions,
        ticket_bytes: 1 << 20,
        budget_bytes: 1 << 30,
        deadline: None,
    }
}

pub fn circuit(name: &str) -> CircuitAdd {
    CircuitAdd {
        name: name.into(),
        circuit: Digest::of(name.as_bytes()),
        files: SourceFiles {
            zkey: Some(Digest::of(b"zkey")),
            ..SourceFiles::default()
        },
        allow_unfinished: false,
        local_setup: false,
        replace: false,
        facts: facts(),
        total: 100,
        actor: "tester".into(),
    }
}

/// One whose import makes its key.
pub fn local_circuit(name: &str) -> CircuitAdd {
    CircuitAdd {
        files: SourceFiles {
            r1cs: Some(Digest::of(b"r1cs")),
            ..SourceFiles::default()
        },
        local_setup: true,
        ..circuit(name)
    }
}

pub fn facts() -> CircuitFacts {
    CircuitFacts {
        constraints: 10,
        wires: 12,
        public: 1,
        domain_log2: 4,
        key_bytes: 1000,
        insecure: false,
        setup: "{}".into(),
    }
}

pub fn granted(reply: Reply) -> Token {
    match reply {
        Reply::Granted { token, .. } => token,
        other => panic!("expected a lease, found {other:?}"),
    }
}

pub fn failure(class: FailureClass) -> Failure {
    Failure::new(class, "it was told so by a test")
}

pub fn witness() -> Digest {
    Digest::of(b"witness")
}

pub fn synth_end(token: Token) -> Command {
    Command::SynthEnd(SynthEnd {
        token,
        synth_ms: 7,
        witness: witness(),
        public: Digest::of(b"public"),
    })
}

pub fn gpu_end(token: Token) -> Command {
    Command::GpuEnd {
        token,
        gpu_ms: 9,
        reused: Vec::new(),
        saved_ms: 0,
    }
}

pub fn proof(token: Token) -> Command {
    let bytes = vec![token.grant.0.to_le_bytes()[0]; 192];
    Command::ProofStored(ProofStored {
        token,
        bytes,
        process_peak_bytes: None,
    })
}

pub fn failed(token: Token, class: FailureClass) -> Command {
    Command::AttemptFailed {
        token,
        failure: failure(class),
        process_peak_bytes: None,
    }
}

pub fn piece(name: &str) -> Piece {
    Piece {
        name: name.into(),
        bytes: vec![3; 96],
        millis: 1500,
        attempt: 0,
    }
}

pub fn checkpoint(token: Token, names: &[&str]) -> Command {
    let pieces = names.iter().map(|name| piece(name)).collect();
    Command::Checkpoint {
        token,
        witness: witness(),
        key: Digest::of(b"key"),
        pieces,
    }
}

pub fn import_end(token: Token) -> Command {
    Command::ImportEnd {
        token,
        facts: facts(),
        zkey: None,
        vk: Digest::of(b"vk"),
        matrices: Digest::of(b"matrices"),
    }
}

/// The end of an import that made its key.
pub fn local_import_end(token: Token) -> Command {
    let mut end = import_end(token);
    if let Command::ImportEnd { zkey, .. } = &mut end {
        *zkey = Some(Digest::of(b"a key that was made"));
    }
    end
}

pub fn retry(job: JobNumber) -> Command {
    Command::Retry {
        job,
        actor: "tester".into(),
        replacement: None,
        damaged: Vec::new(),
    }
}

/// A token that nobody was ever granted.
pub fn forged() -> Token {
    Token {
        boot: BootNumber(u64::MAX),
        grant: JournalNumber(u64::MAX),
    }
}
