//! What a decision asks of the store, and what follows the store's answer. Pure.

use proofkeep_store::ids::{Digest, JobNumber, ProcessId, Token};
use proofkeep_store::machine::{Command, Reply};
use proofkeep_store::records::AttemptRef;

use super::Decision;
use crate::budget::{Ask, TicketFor};

/// What is to be done once a decision is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Follow {
    /// The word for a synthesis goes out.
    Synth {
        /// Which attempt.
        attempt: AttemptRef,
        /// Its lease.
        token: Token,
        /// Its ticket.
        ask: Ask,
    },
    /// The word for an import goes out.
    Import {
        /// Which circuit.
        circuit: Digest,
        /// Its lease.
        token: Token,
        /// Its ticket.
        ask: Ask,
    },
    /// The word for device work goes out.
    Prove {
        /// Which attempt.
        attempt: AttemptRef,
        /// Its lease.
        token: Token,
        /// To which process.
        process: ProcessId,
    },
    /// The final check begins.
    Check {
        /// Of which job.
        job: JobNumber,
        /// Its lease.
        token: Token,
    },
    /// Nothing was granted, so the ticket ends.
    EndTicket(TicketFor),
    /// Nothing.
    Nothing,
}

impl Decision {
    /// The command; `None` for what only asks a process for something.
    #[must_use]
    pub fn command(&self) -> Option<Command> {
        Some(match self {
            Self::Wake(job) => Command::Wake { job: *job },
            Self::Expire(job) => Command::Expire { job: *job },
            Self::FailJob(job, failure) => Command::FailJob {
                job: *job,
                failure: failure.clone(),
            },
            Self::Resume(device) => Command::DeviceResume {
                device: device.clone(),
            },
            Self::GpuStart { attempt, worker, .. } => Command::GpuStart {
                job: attempt.job,
                partition: attempt.partition,
                attempt: attempt.number,
                worker: *worker,
            },
            Self::SynthStart { job, partition, ask } => Command::SynthStart {
                job: *job,
                partition: *partition,
                process: ask.process,
            },
            Self::ImportStart { circuit, ask } => Command::ImportStart {
                circuit: *circuit,
                process: ask.process,
            },
            Self::GiveBack(attempt) => Command::GiveBack {
                job: attempt.job,
                partition: attempt.partition,
                attempt: attempt.number,
            },
            Self::VerifyStart(job) => Command::VerifyStart { job: *job },
            Self::Prune(job) => Command::Prune { job: *job },
            Self::Stop { .. } | Self::Evict(_) => return None,
        })
    }

    /// The ticket that must be taken before the command is sent.
    #[must_use]
    pub fn ticket(&self) -> Option<&Ask> {
        match self {
            Self::SynthStart { ask, .. } | Self::ImportStart { ask, .. } => Some(ask),
            _ => None,
        }
    }

    /// What follows the answer, and whether to look again at once because there may be more to do.
    #[must_use]
    pub fn follow(self, reply: &Reply) -> (Follow, bool) {
        let follow = match (self, reply) {
            (Self::SynthStart { job, partition, ask }, Reply::Granted { token, attempt }) => Follow::Synth {
                attempt: AttemptRef {
                    job,
                    partition,
                    number: *attempt,
                },
                token: *token,
                ask,
            },
            (Self::ImportStart { circuit, ask }, Reply::Granted { token, .. }) => Follow::Import {
                circuit,
                token: *token,
                ask,
            },
            (Self::SynthStart { ask, .. } | Self::ImportStart { ask, .. }, _) => Follow::EndTicket(ask.of),
            (Self::GpuStart { attempt, process, .. }, Reply::Granted { token, .. }) => Follow::Prove {
                attempt,
                token: *token,
                process,
            },
            (Self::VerifyStart(job), Reply::Granted { token, .. }) => Follow::Check { job, token: *token },
            (Self::FailJob(..) | Self::Prune(_), Reply::Unchanged) => return (Follow::Nothing, false),
            _ => Follow::Nothing,
        };
        (follow, true)
    }
}
