//! What daemon and worker process say to each other.
//!
//! The daemon decides, the worker works. Every word of a worker names the lease it works under, so a late one changes
//! nothing. Messages are bincode in the records' envelope, length-prefixed, at most 16 MiB; see [`super::frame`].
//! They may hold checkpoints, which are secrets: nothing here is ever logged whole.

use proofkeep_store::ids::{Digest, JobNumber, Token};
use proofkeep_store::records::{Circuit, CircuitFacts, Failure, FailureClass, Piece};
use serde::{Deserialize, Serialize};

/// One attempt, as the worker process knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Work {
    /// The job's number.
    pub job: u64,
    /// The partition's index.
    pub partition: u32,
    /// The attempt's number.
    pub attempt: u32,
}

impl Work {
    /// Names an attempt.
    #[must_use]
    pub fn new(job: JobNumber, partition: u32, attempt: u32) -> Self {
        Self {
            job: job.0,
            partition,
            attempt,
        }
    }
}

/// A lease's token on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WireToken {
    /// The boot that granted it.
    pub boot: u64,
    /// The journal number of the grant.
    pub grant: u64,
}

/// A failure on the wire: the class by its name, so that builds needn't agree on numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireFailure {
    /// [`proofkeep_store::records::FailureClass::name`].
    pub class: String,
    /// The stable code.
    pub code: String,
    /// The sentence for a person.
    pub detail: String,
}

/// A finished piece. Secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WirePiece {
    /// Its name in the kind's words.
    pub name: String,
    /// The point.
    pub bytes: Vec<u8>,
    /// What it cost.
    pub millis: u64,
}

impl std::fmt::Debug for WirePiece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WirePiece")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Where a circuit's files lie; all are objects, read-only.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CircuitFiles {
    /// The circuit's digest; names the resident key.
    pub circuit: [u8; 32],
    /// `.r1cs`, if there is one.
    pub r1cs: Option<[u8; 32]>,
    /// `.zkey`.
    pub zkey: Option<[u8; 32]>,
    /// Circom's witness calculator.
    pub wasm: Option<[u8; 32]>,
    /// Circom's signal names.
    pub sym: Option<[u8; 32]>,
    /// Compiled matrices, once imported.
    pub matrices: Option<[u8; 32]>,
    /// The verification key, once imported.
    pub vk: Option<[u8; 32]>,
    /// A key without a phase-2 contribution is allowed.
    pub allow_unfinished: bool,
    /// There is no key before the import has made it.
    pub local_setup: bool,
}

/// What the daemon says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToWorker {
    /// The first word: where things lie and how much may be used.
    Welcome {
        /// The data directory's `objects/`.
        objects: String,
        /// Where a worker may write temporary files.
        scratch: String,
        /// The current boot, for names of temporary files.
        boot: u64,
        /// Threads for this device.
        threads: u32,
        /// Save pieces when unsaved work exceeds this.
        checkpoint_after_ms: u64,
        /// The most memory a circom calculator may use, and its fuel.
        wasm_memory_bytes: u64,
        /// Fuel for one calculation.
        wasm_fuel: u64,
    },
    /// Make a witness; its lease is in force.
    Synth {
        /// The lease.
        token: WireToken,
        /// Which attempt.
        work: Work,
        /// The proof kind.
        kind: String,
        /// Its circuit.
        circuit: Option<CircuitFiles>,
        /// The canonical request.
        request: Vec<u8>,
        /// Bytes granted.
        ticket_bytes: u64,
        /// The last proof was invalid: check the witness against every constraint again, on another path if there is one.
        recheck: bool,
    },
    /// Prove it on the device; `gpu_start` is durable. Decoding this frame is the only way to a device lease.
    Prove {
        /// The lease.
        token: WireToken,
        /// Which attempt.
        work: Work,
        /// The witness that `pieces` belong to.
        witness: [u8; 32],
        /// The proving key that `pieces` belong to.
        key: [u8; 32],
        /// Pieces that are finished already.
        pieces: Vec<WirePiece>,
    },
    /// Forget a witness that waits; its attempt was ended.
    Drop {
        /// Which attempt.
        work: Work,
    },
    /// Stop working under a lease at the next edge, and say how it ended.
    Stop {
        /// The lease.
        token: WireToken,
        /// Why: `cancelled`, `preempted` or `shutdown`.
        class: String,
    },
    /// Drop a resident key.
    Evict {
        /// The circuit.
        circuit: [u8; 32],
    },
    /// Check and compile a circuit; its lease is in force.
    Import {
        /// The lease.
        token: WireToken,
        /// Its files.
        files: CircuitFiles,
        /// Units done by earlier tries; without a meaning where the key is to be made.
        done: u64,
    },
    /// Finish what runs within the grace period (checkpoints were asked by `Stop`), then exit 0.
    Quit,
    /// Load a key that lies elsewhere than among the circuits, and keep it resident.
    Load {
        /// The proof kind that it is for.
        kind: String,
        /// What names it in memory.
        key: [u8; 32],
        /// What it is called where it lies.
        name: String,
        /// The digest that its file must have.
        file: Option<String>,
    },
}

/// What a worker process says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromWorker {
    /// The first word.
    Hello {
        /// The build; another one is refused.
        build: String,
        /// The device it opened.
        device: String,
        /// A description of the device for status.
        description: String,
    },
    /// The witness is there and stays in this process.
    SynthDone {
        /// The lease.
        token: WireToken,
        /// How long it took.
        synth_ms: u64,
        /// The witness' digest.
        witness: [u8; 32],
        /// Public signals, 32 little-endian bytes each.
        public: Vec<u8>,
        /// The proving key that pieces of this attempt will belong to.
        key: [u8; 32],
    },
    /// Pieces are finished; sent when unsaved work exceeds the limit.
    Pieces {
        /// The lease.
        token: WireToken,
        /// The pieces.
        pieces: Vec<WirePiece>,
    },
    /// The device is free; what is left needs none.
    Released {
        /// The lease.
        token: WireToken,
        /// How long the device was held.
        gpu_ms: u64,
        /// Pieces taken over.
        reused: Vec<String>,
        /// What they had cost.
        saved_ms: u64,
    },
    /// A proof, verified by this process.
    Proof {
        /// The lease.
        token: WireToken,
        /// 192 bytes.
        bytes: Vec<u8>,
        /// The most memory that this process used so far.
        peak_bytes: Option<u64>,
    },
    /// The work under a lease ended without success.
    Failed {
        /// The lease.
        token: WireToken,
        /// How.
        failure: WireFailure,
        /// The most memory that this process used so far.
        peak_bytes: Option<u64>,
    },
    /// Work goes on under this lease (an MSM slice, an NTT, a batch of points).
    Progress {
        /// The lease.
        token: WireToken,
        /// How far, from 0 to 1000.
        permille: u16,
    },
    /// Points of a circuit were checked.
    Imported {
        /// The lease.
        token: WireToken,
        /// Units done.
        done: u64,
    },
    /// A circuit is checked and compiled; the objects are written and synced.
    ImportDone {
        /// The lease.
        token: WireToken,
        /// What is known of it now.
        facts: WireFacts,
        /// The object with its key, if the import made it.
        zkey: Option<[u8; 32]>,
        /// The object with its verification key.
        vk: [u8; 32],
        /// The object with its compiled matrices.
        matrices: [u8; 32],
    },
    /// The answer to each `Drop`, also when there was nothing to drop: the memory of that attempt is free.
    Dropped {
        /// Which attempt.
        work: Work,
    },
    /// Memory of this process, about once a second while it works.
    Rss {
        /// Resident bytes.
        bytes: u64,
        /// The most so far.
        peak_bytes: u64,
    },
    /// A key was loaded or dropped.
    Key {
        /// The circuit.
        circuit: [u8; 32],
        /// Bytes resident; 0 when it was dropped.
        bytes: u64,
    },
    /// The answer to each `Load`.
    Loaded {
        /// What names it in memory.
        key: [u8; 32],
        /// Why it isn't resident.
        failure: Option<WireFailure>,
    },
}

/// [`proofkeep_store::records::CircuitFacts`] on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireFacts {
    /// Constraints; 0 if unknown.
    pub constraints: u64,
    /// Wires.
    pub wires: u64,
    /// Public signals.
    pub public: u32,
    /// The domain is 2 to this power.
    pub domain_log2: u32,
    /// Bytes of the key when it is resident.
    pub key_bytes: u64,
    /// Anyone who knows the seed can forge.
    pub insecure: bool,
    /// Where the key comes from, as JSON.
    pub setup: String,
}

impl From<Token> for WireToken {
    fn from(token: Token) -> Self {
        Self {
            boot: token.boot.0,
            grant: token.grant.0,
        }
    }
}

impl From<WireToken> for Token {
    fn from(token: WireToken) -> Self {
        use proofkeep_store::ids::{BootNumber, JournalNumber};
        Self {
            boot: BootNumber(token.boot),
            grant: JournalNumber(token.grant),
        }
    }
}

impl From<&Failure> for WireFailure {
    fn from(failure: &Failure) -> Self {
        Self {
            class: failure.class.name().to_owned(),
            code: failure.code.clone(),
            detail: failure.detail.clone(),
        }
    }
}

impl From<&WireFailure> for Failure {
    /// A class that this build doesn't know is taken for a fault of the device, which is tried again.
    fn from(failure: &WireFailure) -> Self {
        let class = FailureClass::ALL
            .into_iter()
            .find(|class| class.name() == failure.class)
            .unwrap_or(FailureClass::DeviceError);
        Self::coded(class, failure.code.clone(), failure.detail.clone())
    }
}

impl From<&Piece> for WirePiece {
    fn from(piece: &Piece) -> Self {
        Self {
            name: piece.name.clone(),
            bytes: piece.bytes.clone(),
            millis: piece.millis,
        }
    }
}

impl WirePiece {
    /// As a record, made by that attempt.
    #[must_use]
    pub fn into_piece(self, attempt: u32) -> Piece {
        Piece {
            name: self.name,
            bytes: self.bytes,
            millis: self.millis,
            attempt,
        }
    }
}

impl From<&CircuitFacts> for WireFacts {
    fn from(facts: &CircuitFacts) -> Self {
        Self {
            constraints: facts.constraints,
            wires: facts.wires,
            public: facts.public,
            domain_log2: facts.domain_log2,
            key_bytes: facts.key_bytes,
            insecure: facts.insecure,
            setup: facts.setup.clone(),
        }
    }
}

impl From<WireFacts> for CircuitFacts {
    fn from(facts: WireFacts) -> Self {
        Self {
            constraints: facts.constraints,
            wires: facts.wires,
            public: facts.public,
            domain_log2: facts.domain_log2,
            key_bytes: facts.key_bytes,
            insecure: facts.insecure,
            setup: facts.setup,
        }
    }
}

impl From<&Circuit> for CircuitFiles {
    fn from(circuit: &Circuit) -> Self {
        let bytes = |digest: Option<Digest>| digest.map(|digest| digest.0);
        Self {
            circuit: circuit.digest.0,
            r1cs: bytes(circuit.files.r1cs),
            zkey: bytes(circuit.files.zkey),
            wasm: bytes(circuit.files.wasm),
            sym: bytes(circuit.files.sym),
            matrices: bytes(circuit.matrices),
            vk: bytes(circuit.vk),
            allow_unfinished: circuit.allow_unfinished,
            local_setup: circuit.local_setup,
        }
    }
}

impl CircuitFiles {
    /// The circuit's digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest(self.circuit)
    }
}
