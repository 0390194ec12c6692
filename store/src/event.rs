//! What happened: the journal's entries.
//!
//! An event says what happened and what was decided, never what a record looks like afterwards: `machine::apply` folds
//! it into the records, both when it is first written and when a journal is replayed. Numbers that the fold needs and
//! can't derive (a token, an attempt number, a wake-up time) stand in the event.

use uuid::Uuid;

use crate::ids::{BootNumber, Digest, JobNumber, JournalNumber, Millis, ProcessId, Token, WorkerId};
use crate::records::{CircuitFacts, Failure, JobState, OnFailure, Priority, SourceFiles, Stage, StopTarget};

/// One entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number.
    pub number: JournalNumber,
    /// The boot that wrote it.
    pub boot: BootNumber,
    /// When, by the daemon's clock.
    pub at: Millis,
    /// The job it belongs to; its journal is pruned with that job.
    pub job: Option<JobNumber>,
    /// What happened.
    pub what: What,
}

/// How an attempt's end leaves its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It may be started at once.
    Ready,
    /// It backs off until then.
    Waiting(Millis),
    /// It is given up.
    Failed,
    /// It is cancelled with its job.
    Cancelled,
}

/// The end of an attempt without a proof, and everything that was decided about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptEnd {
    /// Which partition of the event's job.
    pub partition: u32,
    /// Which attempt.
    pub attempt: u32,
    /// Why.
    pub failure: Failure,
    /// Where the partition goes.
    pub next: Next,
    /// It counts against `max_attempts`.
    pub counted: bool,
    /// The process died by its own fault while it worked on this partition.
    pub crashed: bool,
    /// From now on it runs alone.
    pub alone: bool,
    /// Its checkpoints are not to be trusted.
    pub drop_checkpoints: bool,
    /// The most memory that its process used, in bytes.
    pub process_peak_bytes: Option<u64>,
}

/// A newly submitted job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// Its name for users.
    pub id: Uuid,
    /// The proof kind.
    pub kind: String,
    /// The circuit, pinned.
    pub circuit: Option<Digest>,
    /// The canonical request's digest.
    pub request: Digest,
    /// Whether its bytes lie in the store.
    pub request_inline: bool,
    /// The client's key.
    pub idempotency_key: Option<String>,
    /// Who.
    pub actor: String,
    /// Labels.
    pub labels: Vec<(String, String)>,
    /// Priority.
    pub priority: Priority,
    /// Counted failures allowed.
    pub max_attempts: u32,
    /// What a failed partition does.
    pub on_failure: OnFailure,
    /// Partitions.
    pub partitions: u32,
    /// Bytes for the largest of them.
    pub ticket_bytes: u64,
    /// Deadline.
    pub deadline: Option<Millis>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    // Jobs.
    /// A job was accepted.
    Submitted(Submitted),
    /// A job was asked to stop; partitions without a lease are cancelled with this event.
    Stopping {
        /// Where it goes.
        target: StopTarget,
        /// Who asked.
        actor: String,
        /// Why, when it failed.
        failure: Option<Failure>,
    },
    /// The job's generation ended.
    Ended {
        /// How; a terminal state.
        state: JobState,
    },
    /// A job that ended without success is tried again.
    Retried {
        /// The generation this opens.
        generation: u32,
        /// Who asked.
        actor: String,
        /// The request from now on; differs when inputs were replaced.
        request: Digest,
        /// Whether its bytes lie in the store.
        request_inline: bool,
        /// Partitions whose input was replaced: their proofs and checkpoints no longer count.
        replaced: Vec<u32>,
    },
    /// The final check was granted; the token is this event's.
    VerifyStarted,
    /// The final check passed.
    VerifyPassed {
        /// The lease.
        token: Token,
    },
    /// The final check found stored proofs that don't verify; their bytes are quarantined.
    VerifyRefused {
        /// The lease.
        token: Token,
        /// Which.
        partitions: Vec<u32>,
    },
    /// Every partition verifies, the whole doesn't.
    JoinRefused {
        /// The lease.
        token: Token,
        /// Why.
        failure: Failure,
    },
    /// The lease of the final check ended without a verdict.
    VerifyDropped {
        /// The lease.
        token: Token,
    },

    // Partitions.
    /// Synthesis was granted and an attempt opened; the token is this event's.
    SynthStarted {
        /// Which partition.
        partition: u32,
        /// The attempt this opens.
        attempt: u32,
        /// In which process.
        process: ProcessId,
        /// The device of that process.
        device: String,
        /// Bytes granted.
        ticket_bytes: u64,
    },
    /// The witness is there.
    SynthEnded {
        /// The lease.
        token: Token,
        /// Which partition.
        partition: u32,
        /// How long it took.
        synth_ms: u64,
        /// The witness' digest.
        witness: Digest,
        /// The object with the public signals.
        public: Digest,
    },
    /// A device slot was granted (GPU start); the token is this event's.
    ProveStarted {
        /// Which partition.
        partition: u32,
        /// Which slot.
        worker: WorkerId,
    },
    /// Finished pieces were saved.
    Checkpointed {
        /// The lease.
        token: Token,
        /// Which partition.
        partition: u32,
        /// The witness they belong to.
        witness: Digest,
        /// The proving key they belong to.
        key: Digest,
        /// The pieces that are new, by name, with what they cost in milliseconds.
        pieces: Vec<(String, u64)>,
    },
    /// The device is free again (GPU end); the partition goes on to be finished.
    ProveEnded {
        /// The lease.
        token: Token,
        /// Which partition.
        partition: u32,
        /// How long the device was held.
        gpu_ms: u64,
        /// Pieces taken over from earlier attempts.
        reused: Vec<String>,
        /// What they had cost.
        saved_ms: u64,
    },
    /// A verified proof was stored.
    ProofStored {
        /// The lease.
        token: Token,
        /// Which partition.
        partition: u32,
        /// The proof's digest.
        digest: Digest,
        /// The most memory that its process used, in bytes.
        process_peak_bytes: Option<u64>,
    },
    /// An attempt ended without a proof.
    AttemptEnded(AttemptEnd),
    /// A partition's back-off is over.
    Woken {
        /// Which partition.
        partition: u32,
    },
    /// A word came under a lease that is no longer in force; it changed nothing.
    StaleIgnored {
        /// The lease.
        token: Token,
        /// What was said.
        word: String,
    },

    // The daemon, its devices and its queue.
    /// A boot began. Leases, workers and devices of earlier boots are gone with this event.
    BootOpened {
        /// The build.
        version: String,
        /// Devices and their slots.
        devices: Vec<(String, u32)>,
    },
    /// A boot ended.
    BootClosed,
    /// A worker process is about to be started.
    ProcessStarted {
        /// Its name.
        process: ProcessId,
        /// Its device.
        device: String,
    },
    /// A worker process is gone.
    ProcessLost {
        /// Its name.
        process: ProcessId,
        /// Its device.
        device: String,
        /// What was seen: an exit code, a signal, a kill.
        cause: String,
        /// It died by its own fault.
        own_fault: bool,
    },
    /// A device takes no work.
    DeviceSuspended {
        /// Which.
        device: String,
        /// Until when; `None`: until resumed by hand.
        until: Option<Millis>,
        /// Why.
        reason: String,
    },
    /// A device takes work again.
    DeviceResumed {
        /// Which.
        device: String,
    },
    /// The queue starts nothing new.
    Paused {
        /// Who asked.
        actor: String,
    },
    /// The queue goes on.
    Resumed {
        /// Who asked.
        actor: String,
    },
    /// The daemon takes no submits and starts nothing new, until it ends.
    Draining {
        /// Who asked.
        actor: String,
    },
    /// The wall clock jumped.
    ClockStepped {
        /// By how much, in milliseconds; negative: back.
        by_ms: i64,
    },
    /// A job and everything of it was forgotten.
    Pruned {
        /// Its number.
        job: JobNumber,
        /// Its name, answered with 410 from now on.
        id: Uuid,
    },

    // Circuits.
    /// A circuit was registered.
    CircuitAdded {
        /// Its digest.
        circuit: Digest,
        /// The name that points to it.
        name: String,
        /// Its files.
        files: SourceFiles,
        /// A key without a phase-2 contribution is allowed.
        allow_unfinished: bool,
        /// The import makes the key.
        local_setup: bool,
        /// What the headers say.
        facts: CircuitFacts,
        /// Units of work its import has.
        total: u64,
        /// Who.
        actor: String,
    },
    /// A name points to another circuit that is already there.
    CircuitNamed {
        /// The name.
        name: String,
        /// The circuit.
        circuit: Digest,
    },
    /// An import was granted; the token is this event's.
    ImportStarted {
        /// Which circuit.
        circuit: Digest,
        /// In which process.
        process: ProcessId,
    },
    /// An import came so far.
    ImportProgressed {
        /// The lease.
        token: Token,
        /// Which circuit.
        circuit: Digest,
        /// Units done.
        done: u64,
    },
    /// A circuit is ready.
    ImportEnded {
        /// The lease.
        token: Token,
        /// Which circuit.
        circuit: Digest,
        /// What is known of it now.
        facts: CircuitFacts,
        /// The object with the key that the import made, if it was to make one.
        zkey: Option<Digest>,
        /// The object with its verification key.
        vk: Digest,
        /// The object with its compiled matrices.
        matrices: Digest,
    },
    /// A circuit was refused.
    ImportFailed {
        /// The lease.
        token: Token,
        /// Which circuit.
        circuit: Digest,
        /// Why.
        failure: Failure,
    },
    /// The lease of an import ended with its process; the progress is kept.
    ImportInterrupted {
        /// The lease.
        token: Token,
        /// Which circuit.
        circuit: Digest,
        /// The process died by its own fault.
        crashed: bool,
    },
    /// A circuit was forgotten.
    CircuitRemoved {
        /// Which.
        circuit: Digest,
        /// Who.
        actor: String,
    },
}

impl What {
    /// The name of the event in answers and logs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Submitted(_) => "submitted",
            Self::Stopping { .. } => "stopping",
            Self::Ended { .. } => "ended",
            Self::Retried { .. } => "retried",
            Self::VerifyStarted => "verify_started",
            Self::VerifyPassed { .. } => "verify_passed",
            Self::VerifyRefused { .. } => "verify_refused",
            Self::JoinRefused { .. } => "join_refused",
            Self::VerifyDropped { .. } => "verify_dropped",
            Self::SynthStarted { .. } => "synth_started",
            Self::SynthEnded { .. } => "synth_ended",
            Self::ProveStarted { .. } => "gpu_started",
            Self::Checkpointed { .. } => "checkpointed",
            Self::ProveEnded { .. } => "gpu_ended",
            Self::ProofStored { .. } => "proof_stored",
            Self::AttemptEnded(_) => "attempt_ended",
            Self::Woken { .. } => "woken",
            Self::StaleIgnored { .. } => "stale_ignored",
            Self::BootOpened { .. } => "boot_opened",
            Self::BootClosed => "boot_closed",
            Self::ProcessStarted { .. } => "process_started",
            Self::ProcessLost { .. } => "process_lost",
            Self::DeviceSuspended { .. } => "device_suspended",
            Self::DeviceResumed { .. } => "device_resumed",
            Self::Paused { .. } => "paused",
            Self::Resumed { .. } => "resumed",
            Self::Draining { .. } => "draining",
            Self::ClockStepped { .. } => "clock_stepped",
            Self::Pruned { .. } => "pruned",
            Self::CircuitAdded { .. } => "circuit_added",
            Self::CircuitNamed { .. } => "circuit_named",
            Self::ImportStarted { .. } => "import_started",
            Self::ImportProgressed { .. } => "import_progressed",
            Self::ImportEnded { .. } => "import_ended",
            Self::ImportFailed { .. } => "import_failed",
            Self::ImportInterrupted { .. } => "import_interrupted",
            Self::CircuitRemoved { .. } => "circuit_removed",
        }
    }

    /// The lease that the event ends or uses, if it names one.
    #[must_use]
    pub fn token(&self) -> Option<Token> {
        match self {
            Self::VerifyPassed { token }
            | Self::VerifyRefused { token, .. }
            | Self::JoinRefused { token, .. }
            | Self::VerifyDropped { token }
            | Self::SynthEnded { token, .. }
            | Self::Checkpointed { token, .. }
            | Self::ProveEnded { token, .. }
            | Self::ProofStored { token, .. }
            | Self::StaleIgnored { token, .. }
            | Self::ImportProgressed { token, .. }
            | Self::ImportEnded { token, .. }
            | Self::ImportFailed { token, .. }
            | Self::ImportInterrupted { token, .. } => Some(*token),
            _ => None,
        }
    }

    /// The partition that the event is about, if it is about one.
    #[must_use]
    pub fn partition(&self) -> Option<u32> {
        match self {
            Self::SynthStarted { partition, .. }
            | Self::SynthEnded { partition, .. }
            | Self::ProveStarted { partition, .. }
            | Self::Checkpointed { partition, .. }
            | Self::ProveEnded { partition, .. }
            | Self::ProofStored { partition, .. }
            | Self::Woken { partition } => Some(*partition),
            Self::AttemptEnded(end) => Some(end.partition),
            _ => None,
        }
    }

    /// The stage that the event grants, if it grants one.
    #[must_use]
    pub fn grants(&self) -> Option<Stage> {
        match self {
            Self::SynthStarted { .. } => Some(Stage::Synth),
            Self::ProveStarted { .. } => Some(Stage::Prove),
            _ => None,
        }
    }
}
