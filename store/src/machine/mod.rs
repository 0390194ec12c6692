//! The state machine: `(view, command, now) → changes | refusal`. Pure: no I/O, no clock, no randomness, no sled.
//!
//! A handler *decides* (one file a family: `job`, `partition`, `worker`, `queue`, `boot`, `circuit`) and
//! emits events; [`apply`] *folds* each event into the records, the same way when it is written and when a journal is
//! replayed. All changes of one command are one transaction.

mod apply;
mod boot;
mod circuit;
mod command;
pub mod diagram;
mod end;
mod job;
mod limits;
mod partition;
mod prune;
mod queue;
mod refusal;
mod retry;
mod rules;
mod stop;
mod submit;
pub mod table;
mod transaction;
mod verdict;
mod verify;
mod worker;

use std::collections::BTreeMap;

pub use apply::apply;
pub use command::{
    CircuitAdd, Command, CommandName, Lane, ProofStored, Replacement, Submit, SynthEnd, VerifyVerdict,
};
pub use limits::MAX_INLINE;
pub use refusal::Refusal;
pub use rules::Rules;
pub use transaction::Transaction;
pub use verdict::{BACK_OFF_LIMIT_MS, MOST_DEATHS, back_off_ms};

use crate::ids::{BootNumber, JobNumber, JournalNumber, Millis, ProcessId, Token};
use crate::keys::Key;
use crate::view::{ReadError, View};

/// The most partitions that a job may have.
pub const MAX_PARTITIONS: u32 = 1024;

/// What a command is decided under, besides the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The moment, by the daemon's clock.
    pub now: Millis,
    /// The current boot; 0 before the first `boot_open`.
    pub boot: BootNumber,
}

/// How a submit was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// A new job.
    Created,
    /// The job that the key already names.
    Existing,
    /// That job had ended without success and is tried again.
    Reopened,
}

/// What a command came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It happened.
    Done,
    /// It had already happened; nothing was written.
    Unchanged,
    /// It came under a lease that is no longer in force; it changed nothing.
    Stale,
    /// A lease was granted.
    Granted {
        /// Its token.
        token: Token,
        /// The attempt it belongs to; 0 for leases on a job or a circuit.
        attempt: u32,
    },
    /// A job was submitted.
    Submitted {
        /// Its number.
        job: JobNumber,
        /// Its name.
        id: uuid::Uuid,
        /// Its current life.
        generation: u32,
        /// Whether it is new.
        admission: Admission,
    },
    /// A worker process may be started under this name.
    Process(ProcessId),
    /// A boot was opened.
    Booted(BootNumber),
    /// A part of it happened, as much as fits one transaction: send the command again. (`prune`, `process_lost`.)
    More,
}

/// The outcome of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What to write (`Some`) and to delete (`None`), as one transaction.
    pub changes: BTreeMap<Key, Option<Vec<u8>>>,
    /// The answer, once the changes are durable.
    pub reply: Reply,
    /// The journal's last number after this command.
    pub journal: JournalNumber,
}

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// A guard said no; nothing changes.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The records can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The state machine with the rules it keeps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine {
    /// All of them, outside of tests that show what a rule is for.
    pub rules: Rules,
}

impl Machine {
    /// Decides one command.
    ///
    /// # Errors
    /// [`StepError::Refused`] when a guard says no, [`StepError::Read`] when the records can't be read; in both cases
    /// nothing is to be written.
    pub fn step(&self, view: &dyn View, context: Context, command: &Command) -> Result<Step, StepError> {
        let mut tx = Transaction::begin(view, context, self.rules)?;
        let reply = self.decide(&mut tx, command)?;
        Ok(tx.finish(reply))
    }

    fn decide(&self, tx: &mut Transaction<'_>, command: &Command) -> Result<Reply, StepError> {
        match command {
            Command::Submit(submit) => submit::submit(tx, submit),
            Command::Cancel { job, actor } => job::cancel(tx, *job, actor),
            Command::Expire { job } => job::expire(tx, *job),
            Command::FailJob { job, failure } => job::fail(tx, *job, failure),
            Command::Retry {
                job,
                actor,
                replacement,
                damaged,
            } => retry::retry(tx, *job, actor, replacement.as_ref(), damaged),
            Command::Wake { job } => job::wake(tx, *job),
            Command::VerifyStart { job } => verify::start(tx, *job),
            Command::VerifyEnd { token, verdict } => verify::end(tx, *token, verdict),
            Command::VerifyDrop { token } => verify::drop_lease(tx, *token),
            Command::Prune { job } => prune::prune(tx, *job),
            Command::SynthStart {
                job,
                partition,
                process,
            } => partition::synth_start(tx, *job, *partition, *process),
            Command::SynthEnd(end) => partition::synth_end(tx, end),
            Command::GiveBack {
                job,
                partition,
                attempt,
            } => partition::give_back(tx, *job, *partition, *attempt),
            Command::GpuStart {
                job,
                partition,
                attempt,
                worker,
            } => partition::gpu_start(tx, *job, *partition, *attempt, *worker),
            Command::Checkpoint {
                token,
                witness,
                key,
                pieces,
            } => partition::checkpoint(tx, *token, *witness, *key, pieces),
            Command::GpuEnd {
                token,
                gpu_ms,
                reused,
                saved_ms,
            } => partition::gpu_end(tx, *token, *gpu_ms, reused, *saved_ms),
            Command::ProofStored(stored) => partition::proof_stored(tx, stored),
            Command::AttemptFailed {
                token,
                failure,
                process_peak_bytes,
            } => partition::attempt_failed(tx, *token, failure, *process_peak_bytes),
            Command::ProcessStart { device } => worker::process_start(tx, device),
            Command::ProcessLost {
                process,
                failure,
                culprit,
                own_fault,
                process_peak_bytes,
            } => worker::process_lost(
                tx,
                *process,
                failure,
                culprit.as_ref(),
                *own_fault,
                *process_peak_bytes,
            ),
            Command::DeviceSuspend {
                device,
                until,
                reason,
            } => worker::suspend(tx, device, *until, reason),
            Command::DeviceResume { device } => worker::resume(tx, device),
            Command::Pause { actor } => queue::pause(tx, actor),
            Command::Resume { actor } => queue::resume(tx, actor),
            Command::Drain { actor } => queue::drain(tx, actor),
            Command::BootOpen { version, devices } => boot::open(tx, version, devices),
            Command::BootClose => boot::close(tx),
            Command::ClockStep { by_ms } => boot::clock_step(tx, *by_ms),
            Command::CircuitAdd(add) => circuit::add(tx, add),
            Command::CircuitRemove { circuit, actor } => circuit::remove(tx, *circuit, actor),
            Command::ImportStart { circuit, process } => circuit::import_start(tx, *circuit, *process),
            Command::ImportProgress { token, done } => circuit::import_progress(tx, *token, *done),
            Command::ImportEnd {
                token,
                facts,
                zkey,
                vk,
                matrices,
            } => circuit::import_end(tx, *token, facts, *zkey, [*vk, *matrices]),
            Command::ImportFailed { token, failure } => circuit::import_failed(tx, *token, failure),
        }
    }
}
