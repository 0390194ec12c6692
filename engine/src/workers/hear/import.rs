//! Words about imports.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use proofkeep_store::CommitError;
use proofkeep_store::ids::{Digest, Token};
use proofkeep_store::machine::Command;
use proofkeep_store::records::{CircuitFacts, Failure, FailureClass};

use super::Reader;
use crate::budget::TicketFor;
use crate::protocol::WireFacts;
use crate::shared::INSECURE_SETUP;

/// Progress of an import is stored at most this often.
const IMPORT_PROGRESS: Duration = Duration::from_secs(2);
/// An import that gave up for a reason that may pass is sent again after this.
const IMPORT_AGAIN: Duration = Duration::from_secs(10);

impl Reader<'_> {
    pub(super) fn imported(&self, token: Token, done: u64, now: Instant) {
        let due = {
            let mut held = self.process.held.lock();
            held.moved(token, now);
            match held.imports.get_mut(&token) {
                None => false,
                Some(import) => {
                    import.done = done;
                    let due = import
                        .stored
                        .is_none_or(|at| now.duration_since(at) >= IMPORT_PROGRESS);
                    if due {
                        import.stored = Some(now);
                    }
                    due
                }
            }
        };
        self.process.useful.store(true, Ordering::Relaxed);
        if due {
            self.note(
                "the progress of an import",
                self.core.commit(Command::ImportProgress { token, done }),
            );
        }
    }

    pub(super) fn import_done(&self, token: Token, facts: WireFacts, vk: Digest, matrices: Digest) {
        if facts.insecure && !self.core.allow_insecure_setup {
            let refused = Failure::coded(FailureClass::CircuitFailed, "insecure-setup", INSECURE_SETUP);
            return self.import_failed(token, refused);
        }
        let facts = CircuitFacts::from(facts);
        let ended = self.core.commit(Command::ImportEnd {
            token,
            facts,
            vk,
            matrices,
        });
        if let Err(CommitError::Refused(refusal)) = &ended {
            tracing::warn!("the end of an import was refused: {refusal}; it is done again");
            return self.import_later(token);
        }
        self.note("the end of an import", ended);
        self.import_over(token);
    }

    pub(super) fn import_failed(&self, token: Token, failure: Failure) {
        let for_good = matches!(
            failure.class,
            FailureClass::InputInvalid
                | FailureClass::Unsatisfied
                | FailureClass::ParamsMismatch
                | FailureClass::InputMissing
                | FailureClass::CircuitFailed
        );
        if !for_good {
            tracing::warn!("an import gave up and is tried again: {}", failure.detail);
            return self.import_later(token);
        }
        let failure = Failure::coded(FailureClass::CircuitFailed, failure.code, failure.detail);
        self.note(
            "the end of an import",
            self.core.commit(Command::ImportFailed { token, failure }),
        );
        self.import_over(token);
    }

    /// It is sent again; what it checked so far is stored, since the daemon may be about to stop.
    fn import_later(&self, token: Token) {
        let done = self.process.held.lock().imports.get_mut(&token).map(|import| {
            import.again = Some(Instant::now() + IMPORT_AGAIN);
            import.done
        });
        if let Some(done) = done {
            self.note(
                "the progress of an import",
                self.core.commit(Command::ImportProgress { token, done }),
            );
        }
        self.core.bell.notify_one();
    }

    fn import_over(&self, token: Token) {
        let import = self.process.held.lock().imports.remove(&token);
        if let Some(import) = import {
            self.core.ledger.end(TicketFor::Import(import.circuit));
        }
        self.core.bell.notify_one();
    }
}
