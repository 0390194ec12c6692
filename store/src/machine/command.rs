//! What can be asked of the machine.

use uuid::Uuid;

use crate::ids::{Digest, JobNumber, Millis, ProcessId, Token, WorkerId};
use crate::records::{CircuitFacts, Failure, OnFailure, Piece, Priority, SourceFiles};

/// A new job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submit {
    /// A fresh UUID version 7; not used when the key names a job already.
    pub id: Uuid,
    /// The proof kind, 1 to 64 bytes.
    pub kind: String,
    /// The circuit, pinned by digest.
    pub circuit: Option<Digest>,
    /// The digest of the canonical request.
    pub request: Digest,
    /// Its bytes if they are at most 2 KiB; otherwise an object holds them.
    pub inline: Option<Vec<u8>>,
    /// Objects that the job needs: its inputs, and the request itself when it isn't inline.
    pub objects: Vec<Digest>,
    /// At most 128 visible ASCII characters.
    pub idempotency_key: Option<String>,
    /// Who, 1 to 64 bytes.
    pub actor: String,
    /// At most 16, keys ≤ 63 bytes, values ≤ 128, together ≤ 1 KiB.
    pub labels: Vec<(String, String)>,
    /// How urgent.
    pub priority: Priority,
    /// 1 to 100.
    pub max_attempts: u32,
    /// What one failed partition does.
    pub on_failure: OnFailure,
    /// 1 to 1,024.
    pub partitions: u32,
    /// Bytes for the largest partition.
    pub ticket_bytes: u64,
    /// Bytes there are in all.
    pub budget_bytes: u64,
    /// When it expires.
    pub deadline: Option<Millis>,
}

/// Inputs that a retry replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The digest of the canonical request with the new inputs.
    pub request: Digest,
    /// Its bytes if they are at most 2 KiB.
    pub inline: Option<Vec<u8>>,
    /// Objects that the new request needs.
    pub objects: Vec<Digest>,
    /// Partitions whose input is another one.
    pub partitions: Vec<u32>,
}

/// A witness is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SynthEnd {
    /// The lease.
    pub token: Token,
    /// How long it took.
    pub synth_ms: u64,
    /// The witness' digest.
    pub witness: Digest,
    /// The object with the public signals.
    pub public: Digest,
}

/// A proof was made and verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofStored {
    /// The lease.
    pub token: Token,
    /// 192 bytes.
    pub bytes: Vec<u8>,
    /// The most memory that the process used, in bytes.
    pub process_peak_bytes: Option<u64>,
}

/// What the final check of a job came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerifyVerdict {
    /// The whole verifies, as its consumer would check it.
    Passed,
    /// The stored proofs of these partitions don't.
    BadPartitions(Vec<u32>),
    /// Each does, the whole doesn't.
    JoinInvalid(Failure),
}

/// A circuit to register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CircuitAdd {
    /// 1 to 64 bytes.
    pub name: String,
    /// Its digest: that of its canonical description. If its key is to be made, the description holds something
    /// random, since the key will be; then a circuit with the same files that is there already is taken instead.
    pub circuit: Digest,
    /// Its files.
    pub files: SourceFiles,
    /// A key without a phase-2 contribution is allowed.
    pub allow_unfinished: bool,
    /// Its import makes the key from the `.r1cs`.
    pub local_setup: bool,
    /// The name may be moved from another circuit.
    pub replace: bool,
    /// What the headers say.
    pub facts: CircuitFacts,
    /// Units of work its import has.
    pub total: u64,
    /// Who.
    pub actor: String,
}

/// Which lane of the commit task a command takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Ends, checkpoints, cancels and what recovery needs: first, and never refused for lack of room.
    Ends,
    /// Everything else: bounded; when it is full the client is told to come back.
    Requests,
}

macro_rules! commands {
    ($($(#[$doc:meta])* $name:ident $body:tt => $text:literal, $lane:ident;)*) => {
        /// A command's name, for tables, logs and tests.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum CommandName { $($(#[$doc])* $name),* }

        impl CommandName {
            /// Every command.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The name in tables and logs.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }

            /// The lane it takes.
            #[must_use]
            pub fn lane(self) -> Lane {
                match self { $(Self::$name => Lane::$lane),* }
            }
        }

        commands!(@enum [] $($(#[$doc])* $name $body)*);

        impl Command {
            /// Its name.
            #[must_use]
            pub fn name(&self) -> CommandName {
                match self { $(Self::$name { .. } => CommandName::$name),* }
            }
        }
    };
    (@enum [$($done:tt)*]) => {
        /// What can be asked of the machine; each is one transaction.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Command { $($done)* }
    };
    (@enum [$($done:tt)*] $(#[$doc:meta])* $name:ident () $($rest:tt)*) => {
        commands!(@enum [$($done)* $(#[$doc])* $name,] $($rest)*);
    };
    (@enum [$($done:tt)*] $(#[$doc:meta])* $name:ident ($inner:ty) $($rest:tt)*) => {
        commands!(@enum [$($done)* $(#[$doc])* $name($inner),] $($rest)*);
    };
    (@enum [$($done:tt)*] $(#[$doc:meta])* $name:ident {$($fields:tt)*} $($rest:tt)*) => {
        commands!(@enum [$($done)* $(#[$doc])* $name { $($fields)* },] $($rest)*);
    };
}

commands! {
    /// A new job, or the one that its key names.
    Submit(Submit) => "submit", Requests;
    /// Ask a job to stop.
    Cancel {
        /// Which.
        job: JobNumber,
        /// Who asks.
        actor: String,
    } => "cancel", Ends;
    /// A deadline has passed.
    Expire {
        /// Which job.
        job: JobNumber,
    } => "expire", Ends;
    /// Something that a job can't do without is gone: its circuit, or an object.
    FailJob {
        /// Which.
        job: JobNumber,
        /// Why.
        failure: Failure,
    } => "fail_job", Ends;
    /// Try a job again that ended without success.
    Retry {
        /// Which.
        job: JobNumber,
        /// Who asks.
        actor: String,
        /// New inputs for some partitions.
        replacement: Option<Replacement>,
        /// Partitions whose stored proof was found damaged; the only reason to retry a job that succeeded.
        damaged: Vec<u32>,
    } => "retry", Requests;
    /// Back-offs of a job are over.
    Wake {
        /// Which.
        job: JobNumber,
    } => "wake", Ends;
    /// Grant the final check.
    VerifyStart {
        /// Which job.
        job: JobNumber,
    } => "verify_start", Ends;
    /// The final check has a verdict.
    VerifyEnd {
        /// The lease.
        token: Token,
        /// The verdict.
        verdict: VerifyVerdict,
    } => "verify_end", Ends;
    /// The final check ended without a verdict and may be granted again.
    VerifyDrop {
        /// The lease.
        token: Token,
    } => "verify_drop", Ends;
    /// Forget a job that has ended; in slices.
    Prune {
        /// Which.
        job: JobNumber,
    } => "prune", Ends;
    /// Grant a synthesis and open an attempt.
    SynthStart {
        /// Whose.
        job: JobNumber,
        /// Which partition.
        partition: u32,
        /// In which process.
        process: ProcessId,
    } => "synth_start", Ends;
    /// The witness is there.
    SynthEnd(SynthEnd) => "synth_end", Ends;
    /// Drop a finished witness: its memory is needed.
    GiveBack {
        /// Whose.
        job: JobNumber,
        /// Which partition.
        partition: u32,
        /// Which attempt.
        attempt: u32,
    } => "give_back", Ends;
    /// Grant a device slot.
    GpuStart {
        /// Whose.
        job: JobNumber,
        /// Which partition.
        partition: u32,
        /// Which attempt.
        attempt: u32,
        /// Which slot.
        worker: WorkerId,
    } => "gpu_start", Ends;
    /// Save finished pieces.
    Checkpoint {
        /// The lease.
        token: Token,
        /// The witness they belong to.
        witness: Digest,
        /// The proving key they belong to.
        key: Digest,
        /// The pieces that are new.
        pieces: Vec<Piece>,
    } => "checkpoint", Ends;
    /// The device is free again; what is left needs none.
    GpuEnd {
        /// The lease.
        token: Token,
        /// How long the device was held.
        gpu_ms: u64,
        /// Pieces taken over from earlier attempts.
        reused: Vec<String>,
        /// What they had cost.
        saved_ms: u64,
    } => "gpu_end", Ends;
    /// Store a verified proof.
    ProofStored(ProofStored) => "proof_stored", Ends;
    /// An attempt ended without a proof; also preempted and given up ones.
    AttemptFailed {
        /// The lease.
        token: Token,
        /// Why.
        failure: Failure,
        /// The most memory that the process used, in bytes.
        process_peak_bytes: Option<u64>,
    } => "attempt_failed", Ends;
    /// A worker process is about to be started.
    ProcessStart {
        /// For which device.
        device: String,
    } => "process_start", Ends;
    /// A worker process is gone.
    ProcessLost {
        /// Which.
        process: ProcessId,
        /// What that means for its attempts: `interrupted`, or `out_of_memory` for those at work.
        failure: Failure,
        /// The one that it was killed for, with that one's failure (`stalled`, `timed_out`).
        culprit: Option<(Token, Failure)>,
        /// It died by its own fault: a signal of its own, an exit code.
        own_fault: bool,
        /// The most memory that it used, in bytes.
        process_peak_bytes: Option<u64>,
    } => "process_lost", Ends;
    /// A device takes no work for a while.
    DeviceSuspend {
        /// Which.
        device: String,
        /// Until when; `None`: until resumed by hand.
        until: Option<Millis>,
        /// Why.
        reason: String,
    } => "device_suspend", Ends;
    /// A device takes work again.
    DeviceResume {
        /// Which.
        device: String,
    } => "device_resume", Ends;
    /// Start nothing new.
    Pause {
        /// Who asks.
        actor: String,
    } => "pause", Ends;
    /// Go on.
    Resume {
        /// Who asks.
        actor: String,
    } => "resume", Ends;
    /// Take no submits and start nothing new, until the boot ends.
    Drain {
        /// Who asks.
        actor: String,
    } => "drain", Ends;
    /// A boot begins: recovery's one transaction.
    BootOpen {
        /// The build.
        version: String,
        /// Devices and their slots.
        devices: Vec<(String, u32)>,
    } => "boot_open", Ends;
    /// The boot ends.
    BootClose() => "boot_close", Ends;
    /// The wall clock jumped.
    ClockStep {
        /// By how much, in milliseconds.
        by_ms: i64,
    } => "clock_step", Ends;
    /// Register a circuit.
    CircuitAdd(CircuitAdd) => "circuit_add", Requests;
    /// Forget a circuit.
    CircuitRemove {
        /// Which.
        circuit: Digest,
        /// Who asks.
        actor: String,
    } => "circuit_rm", Requests;
    /// Grant an import.
    ImportStart {
        /// Which circuit.
        circuit: Digest,
        /// In which process.
        process: ProcessId,
    } => "import_start", Ends;
    /// An import came so far.
    ImportProgress {
        /// The lease.
        token: Token,
        /// Units done.
        done: u64,
    } => "import_progress", Ends;
    /// A circuit is ready.
    ImportEnd {
        /// The lease.
        token: Token,
        /// What is known of it now.
        facts: CircuitFacts,
        /// The object with the key that the import made, if it was to make one.
        zkey: Option<Digest>,
        /// The object with its verification key.
        vk: Digest,
        /// The object with its compiled matrices.
        matrices: Digest,
    } => "import_end", Ends;
    /// A circuit was refused.
    ImportFailed {
        /// The lease.
        token: Token,
        /// Why.
        failure: Failure,
    } => "import_failed", Ends;
}

impl Command {
    /// The lane it takes.
    #[must_use]
    pub fn lane(&self) -> Lane {
        self.name().lane()
    }

    /// Objects that must be there when the command is decided; the commit task looks, under its lock.
    #[must_use]
    pub fn objects(&self) -> Vec<Digest> {
        match self {
            Self::Submit(submit) => submit.objects.clone(),
            Self::Retry {
                replacement: Some(replacement),
                ..
            } => replacement.objects.clone(),
            Self::SynthEnd(end) => vec![end.public],
            Self::CircuitAdd(add) => [add.files.r1cs, add.files.zkey, add.files.wasm, add.files.sym]
                .into_iter()
                .flatten()
                .collect(),
            Self::ImportEnd {
                zkey, vk, matrices, ..
            } => zkey.iter().chain([vk, matrices]).copied().collect(),
            _ => Vec::new(),
        }
    }
}
