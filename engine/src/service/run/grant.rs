//! What follows a grant: the word to the worker process, once the grant is durable.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use proofkeep_store::ids::{Digest, JobNumber, Token};
use proofkeep_store::machine::Command;
use proofkeep_store::records::{AttemptRef, Circuit, CircuitState, Failure, FailureClass, Job};
use proofkeep_store::{query, vital};

use super::super::check;
use super::{Loop, NEEDS, REQUESTS};
use crate::budget::{Ask, TicketFor};
use crate::kinds::Needs;
use crate::protocol::{CircuitFiles, ToWorker, WirePiece, Work};
use crate::schedule::{Snapshot, ticket_of};
use crate::shared::{INSECURE_SETUP, LookError};
use crate::workers::Process;
use crate::workers::held::witness_lost;

impl Loop {
    pub(super) async fn synth(&mut self, attempt: AttemptRef, token: Token, ask: &Ask) {
        let word = match self.synth_word(attempt, token, ask) {
            Ok(word) => word,
            Err(error) => {
                let failure = Failure::new(FailureClass::InputMissing, error.to_string());
                self.tell(
                    "the end of an attempt",
                    Command::AttemptFailed {
                        token,
                        failure,
                        process_peak_bytes: None,
                    },
                )
                .await;
                return self.core.ledger.end(ask.of);
            }
        };
        // If the process is gone by now, its reader ends the attempt and the ticket.
        if let Some(process) = self.fleet.process(ask.process) {
            process.held.lock().synth(attempt, token, Instant::now());
            process.say(word);
        }
    }

    fn synth_word(&mut self, attempt: AttemptRef, token: Token, ask: &Ask) -> Result<ToWorker, LookError> {
        let job = self.core.job(attempt.job)?;
        let circuit = job.circuit.map(|digest| self.core.circuit(digest)).transpose()?;
        let recheck = self
            .core
            .handle
            .read(|view| query::partition(view, attempt.job, attempt.partition, 0))?
            .is_some_and(|detail| detail.partition.recheck);
        let request = self.request(&job)?;
        Ok(ToWorker::Synth {
            token: token.into(),
            work: Work::new(attempt.job, attempt.partition, attempt.number),
            kind: job.kind,
            circuit: circuit.as_ref().map(CircuitFiles::from),
            request: request.to_vec(),
            ticket_bytes: ask.bytes,
            recheck,
        })
    }

    /// Names the keys that lie elsewhere than among the circuits, so that one counts once and not with each partition.
    pub(super) fn name_keys(&mut self, seen: &mut Snapshot) {
        for ready in seen.ready.iter_mut().filter(|ready| ready.key.is_none()) {
            if let Some(needs) = self.needs_of(ready.job) {
                (ready.ticket_bytes, ready.key) = (needs.ticket_bytes, Some(needs.key));
            }
        }
    }

    fn needs_of(&mut self, job: JobNumber) -> Option<Needs> {
        let job = self.core.job(job).ok()?;
        if let Some(known) = self.needs.get(&job.request) {
            return *known;
        }
        // What can't be read is said when the partition is started; until then it counts as its job says.
        let request = self.request(&job).ok()?;
        let kind = self.core.kinds.get(&job.kind)?;
        let needs = kind.needs(&request, &self.desk);
        if self.needs.len() >= NEEDS {
            self.needs.pop_first();
        }
        self.needs.insert(job.request, needs);
        needs
    }

    fn request(&mut self, job: &Job) -> Result<Arc<Vec<u8>>, LookError> {
        if let Some(found) = self.requests.get(&job.request) {
            return Ok(Arc::clone(found));
        }
        let bytes = Arc::new(self.core.request(job)?);
        if self.requests.len() >= REQUESTS {
            self.requests.pop_first();
        }
        self.requests.insert(job.request, Arc::clone(&bytes));
        Ok(bytes)
    }

    pub(super) async fn prove(&mut self, attempt: AttemptRef, token: Token, process: Option<Arc<Process>>) {
        // If the process is gone by now, its reader ends the attempt.
        let Some(process) = process else { return };
        let made = process.held.lock().prove(attempt, token, Instant::now());
        let Some(made) = made else {
            self.tell("the end of an attempt", witness_lost(token)).await;
            return self.core.ledger.end(ticket_of(attempt));
        };
        let kept = self
            .core
            .handle
            .read(|view| query::checkpoint(view, attempt.job, attempt.partition));
        let kept = kept.unwrap_or_else(|error| {
            // Without them the work is done again, no more.
            tracing::warn!(job = %attempt.job, partition = attempt.partition, "checkpoints can't be read: {error}");
            None
        });
        let pieces = made.pieces(kept);
        process.say(ToWorker::Prove {
            token: token.into(),
            work: Work::new(attempt.job, attempt.partition, attempt.number),
            witness: made.witness.0,
            key: made.key.0,
            pieces: pieces.iter().map(WirePiece::from).collect(),
        });
    }

    pub(super) async fn import(&mut self, circuit: Digest, token: Token, ask: &Ask) {
        let Some(process) = self.fleet.process(ask.process) else {
            return;
        };
        match self.core.circuit(circuit) {
            // It was registered while such keys were allowed; nobody has proved anything with it.
            Ok(record) if self.core.refuses(&record) => {
                let failure = Failure::coded(FailureClass::CircuitFailed, "insecure-setup", INSECURE_SETUP);
                self.tell("the end of an import", Command::ImportFailed { token, failure })
                    .await;
                self.core.ledger.end(TicketFor::Import(circuit));
            }
            Ok(record) => {
                let done = import_done(&record);
                process.held.lock().import(circuit, token, done, Instant::now());
                process.say(ToWorker::Import {
                    token: token.into(),
                    files: CircuitFiles::from(&record),
                    done,
                });
            }
            Err(error) => {
                // Its lease ends with the process; another try finds the record or the same error.
                tracing::error!("the import of {circuit} can't be started: {error}");
                self.core.ledger.end(TicketFor::Import(circuit));
                process.kill(None);
            }
        }
    }

    pub(super) fn send_imports_again(&self) {
        let now = Instant::now();
        for process in self.fleet.processes().filter(|process| process.is_up()) {
            let due = process.held.lock().imports_due(now);
            for (token, circuit, done) in due {
                if let Ok(record) = self.core.circuit(circuit) {
                    process.held.lock().import_again(token, now);
                    process.say(ToWorker::Import {
                        token: token.into(),
                        files: CircuitFiles::from(&record),
                        done,
                    });
                }
            }
        }
    }

    pub(super) fn check(&mut self, job: JobNumber, token: Token) {
        self.checks.fetch_add(1, Ordering::AcqRel);
        let (core, running, stop) = (
            Arc::clone(&self.core),
            Arc::clone(&self.checks),
            Arc::clone(&self.stop_checks),
        );
        tokio::task::spawn_blocking(move || {
            // Its lease would never end, and its place never be free again.
            vital("the final check of a job", || {
                check::run(&core, job, token, &stop)
            });
            running.fetch_sub(1, Ordering::AcqRel);
            core.bell.notify_one();
        });
    }
}

fn import_done(circuit: &Circuit) -> u64 {
    match circuit.state {
        CircuitState::Importing(import) => import.done,
        _ => 0,
    }
}
