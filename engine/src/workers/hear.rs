//! The reader of one worker process: turns its words into commands, in order, and its death into `process_lost`.
//!
//! Whatever a word says, it is said under a lease; a late one finds none and changes nothing.

mod import;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use proofkeep_store::CommitError;
use proofkeep_store::ids::{Digest, Millis, Token};
use proofkeep_store::machine::{Command, ProofStored, Reply, SynthEnd};
use proofkeep_store::records::{AttemptRef, Failure, FailureClass};

use tokio::sync::oneshot::{self, error::TryRecvError};

use super::death::{Circumstances, judge};
use super::held::{HeldStage, Made, Task};
use super::process::{Process, Started};
use crate::budget::OomCounter;
use crate::protocol::{self, BUILD, FrameError, FromWorker, ToWorker, WireFailure, WirePiece, Work};
use crate::schedule::ticket_of;
use crate::shared::Core;

/// A device that says it isn't available is left alone for this long, in milliseconds.
const UNAVAILABLE_MS: u64 = 60_000;

/// Reads until the process is gone, then ends everything it had.
pub(super) fn run(core: &Core, started: Started, welcome: ToWorker, counter: &OomCounter) {
    let Started {
        process,
        mut child,
        mut words,
    } = started;
    let kills_before = counter.kills();
    // Whatever happens here, the run loop must not wait for this process for ever.
    let _gone = Gone {
        core,
        process: &process,
    };
    let reader = Reader {
        core,
        process: &process,
        welcome,
        posted: RefCell::default(),
    };
    // A panic here is a fault of ours; the process must end all the same, or its leases would never.
    let read = catch_unwind(AssertUnwindSafe(|| {
        loop {
            match protocol::read::<FromWorker>(&mut words) {
                Ok(Some(word)) => reader.hear(word),
                // A process that dies with words unread resets the socket; what it died of is said by its status.
                Ok(None) | Err(FrameError::Io(_) | FrameError::Truncated) => return,
                Err(error) => {
                    tracing::warn!(process = %process.id, "a worker process can't be understood: {error}");
                    process.kill(None);
                    return;
                }
            }
        }
    }));
    if read.is_err() {
        process.kill(None);
    }
    *process.closed.lock() = Some(Instant::now());
    core.bell.notify_one();
    let status = child.wait();
    let oom_counted = match (kills_before, counter.kills()) {
        (Some(before), Some(after)) => Some(after > before),
        _ => None,
    };
    let accounts = core.ledger.snapshot();
    let tickets: u64 = accounts
        .tickets()
        .filter(|ask| ask.process == process.id)
        .map(|ask| ask.bytes)
        .sum();
    let keys: u64 = accounts
        .keys()
        .values()
        .filter(|key| key.resident.contains(&process.id))
        .map(|key| key.bytes)
        .sum();
    let killed = process.killed();
    let known = Circumstances {
        killed: killed.is_some(),
        quitting: process.quitting.load(Ordering::Acquire),
        oom_counted,
        rss: process.rss.load(Ordering::Relaxed),
        allowed: tickets.saturating_add(keys),
    };
    let mut death = match status {
        Ok(status) => judge(status, known),
        Err(error) => super::death::Death {
            failure: Failure::new(
                FailureClass::Interrupted,
                format!("the worker process is lost: {error}"),
            ),
            own_fault: false,
        },
    };
    {
        // An import that eats all memory is at fault when it was alone; otherwise it would be tried for ever.
        let held = process.held.lock();
        let alone = !held.imports.is_empty() && held.tasks().next().is_none();
        death.own_fault |= alone && death.failure.class == FailureClass::OutOfMemory;
    }
    if !known.quitting {
        tracing::warn!(process = %process.id, device = process.device, "{}", death.failure.detail);
    }
    let lost = Command::ProcessLost {
        process: process.id,
        failure: death.failure,
        culprit: killed.flatten(),
        own_fault: death.own_fault,
        process_peak_bytes: reader.peak(),
    };
    // What doesn't fit one transaction waits for the same command again.
    let ended = loop {
        match core.commit(lost.clone()) {
            Ok(committed) if committed.reply == Reply::More => {}
            ended => break ended,
        }
    };
    match ended {
        // A daemon that is stopping leaves the rest to the next boot.
        Ok(_) | Err(CommitError::Stopped) => {}
        Err(error) => {
            tracing::error!(process = %process.id, "the end of a worker process was not stored: {error}")
        }
    }
}

/// Says that a process is gone when its reader ends, however that ends.
struct Gone<'a> {
    core: &'a Core,
    process: &'a Process,
}

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.core.ledger.process_gone(self.process.id);
        self.process.gone.store(true, Ordering::Release);
        self.core.bell.notify_one();
    }
}

type Answer = oneshot::Receiver<Result<proofkeep_store::Committed, CommitError>>;

struct Reader<'a> {
    core: &'a Core,
    process: &'a Arc<Process>,
    welcome: ToWorker,
    /// Answers that nobody read yet.
    posted: RefCell<Vec<(&'static str, Answer)>>,
}

impl Reader<'_> {
    fn hear(&self, word: FromWorker) {
        self.settle();
        let now = Instant::now();
        match word {
            FromWorker::Hello {
                build,
                device,
                description,
            } => self.hello(&build, &device, description),
            FromWorker::SynthDone {
                token,
                synth_ms,
                witness,
                public,
                key,
            } => {
                let made = Made {
                    witness: Digest(witness),
                    key: Digest(key),
                    public,
                };
                self.synth_done(token.into(), synth_ms, made);
            }
            FromWorker::Pieces { token, pieces } => {
                self.moved(token.into(), now);
                self.pieces(token.into(), pieces);
            }
            FromWorker::Released {
                token,
                gpu_ms,
                reused,
                saved_ms,
            } => {
                self.released(token.into(), gpu_ms, reused, saved_ms);
            }
            FromWorker::Proof {
                token,
                bytes,
                peak_bytes,
            } => self.proof(token.into(), bytes, peak_bytes),
            FromWorker::Failed {
                token,
                failure,
                peak_bytes,
            } => {
                self.failed(token.into(), &failure, peak_bytes);
            }
            FromWorker::Progress { token, .. } => self.moved(token.into(), now),
            FromWorker::Imported { token, done } => self.imported(token.into(), done, now),
            FromWorker::ImportDone {
                token,
                facts,
                vk,
                matrices,
            } => {
                self.import_done(token.into(), facts, Digest(vk), Digest(matrices));
            }
            FromWorker::Dropped { work } => self.forget(attempt_of(work)),
            FromWorker::Rss { bytes, peak_bytes } => {
                self.process.rss.store(bytes, Ordering::Relaxed);
                self.process.peak.fetch_max(peak_bytes, Ordering::Relaxed);
            }
            FromWorker::Key { circuit, bytes } => {
                self.core.ledger.key(self.process.id, Digest(circuit), bytes);
                self.core.bell.notify_one();
            }
        }
    }

    fn hello(&self, build: &str, device: &str, description: String) {
        if build != BUILD || device != self.process.device {
            tracing::error!(
                "a worker process of build {build:?} for device {device:?} answered; expected {BUILD:?} for {:?}",
                self.process.device
            );
            return self.process.kill(None);
        }
        *self.process.description.lock() = description;
        self.process.say(self.welcome.clone());
        self.process.up.store(true, Ordering::Release);
        self.core.bell.notify_one();
    }

    fn moved(&self, token: Token, now: Instant) {
        self.process.held.lock().moved(token, now);
    }

    /// The task under a lease, if there is one.
    fn task(&self, token: Token) -> Option<Task> {
        self.process.held.lock().task(token).cloned()
    }

    fn synth_done(&self, token: Token, synth_ms: u64, made: Made) {
        let Some(task) = self.task(token) else { return };
        let (witness, public) = (made.witness, made.public.clone());
        // Before the commit, so that a slot that is granted right after it finds the witness.
        self.process.held.lock().waiting(token, made);
        let ended = match self.core.objects.put(&public) {
            Ok(public) => self.core.commit(Command::SynthEnd(SynthEnd {
                token,
                synth_ms,
                witness,
                public,
            })),
            Err(error) => {
                let failure = Failure::coded(FailureClass::DeviceError, "disk", error.to_string());
                self.core.commit(Command::AttemptFailed {
                    token,
                    failure,
                    process_peak_bytes: self.peak(),
                })
            }
        };
        if let Err(CommitError::Refused(refusal)) = ended {
            let failure = Failure::coded(FailureClass::DeviceError, "not-stored", refusal.to_string());
            self.note(
                "a witness",
                self.core.commit(Command::AttemptFailed {
                    token,
                    failure,
                    process_peak_bytes: self.peak(),
                }),
            );
        } else {
            self.note("a witness", ended);
        }
        // If the attempt was ended meanwhile, the run loop finds a witness that nobody wants and drops it.
        tracing::debug!(job = %task.attempt.job, partition = task.attempt.partition, synth_ms, "synthesized");
        self.core.bell.notify_one();
    }

    fn pieces(&self, token: Token, pieces: Vec<WirePiece>) {
        let Some(task) = self.task(token) else { return };
        let Some(made) = task.made else { return };
        let attempt = task.attempt.number;
        let pieces = pieces
            .into_iter()
            .map(|piece| piece.into_piece(attempt))
            .collect();
        let command = Command::Checkpoint {
            token,
            witness: made.witness,
            key: made.key,
            pieces,
        };
        self.process.useful.store(true, Ordering::Relaxed);
        self.post("a checkpoint", command);
    }

    fn released(&self, token: Token, gpu_ms: u64, reused: Vec<String>, saved_ms: u64) {
        self.process.held.lock().finish(token, Instant::now());
        let ended = Command::GpuEnd {
            token,
            gpu_ms,
            reused,
            saved_ms,
        };
        self.post("the end of device work", ended);
    }

    fn proof(&self, token: Token, bytes: Vec<u8>, peak_bytes: Option<u64>) {
        self.process.useful.store(true, Ordering::Relaxed);
        let Some(task) = self.task(token) else { return };
        if let HeldStage::Prove(_) = task.stage {
            // A kind that needs no device to finish may leave the word out.
            self.released(token, 0, Vec::new(), 0);
        }
        let process_peak_bytes = peak_bytes.or_else(|| self.peak());
        let command = match self.verify(&task, &bytes) {
            Ok(()) => Command::ProofStored(ProofStored {
                token,
                bytes,
                process_peak_bytes,
            }),
            Err(failure) => {
                tracing::error!(
                    job = %task.attempt.job,
                    partition = task.attempt.partition,
                    device = self.process.device,
                    "a proof that its worker process accepted does not verify: {}",
                    failure.detail
                );
                Command::AttemptFailed {
                    token,
                    failure,
                    process_peak_bytes,
                }
            }
        };
        self.note("a proof", self.core.commit(command));
        self.forget(task.attempt);
        self.core.hint(task.attempt.job);
    }

    /// Checks a proof again, here: the process that made it may be poisoned.
    fn verify(&self, task: &Task, proof: &[u8]) -> Result<(), Failure> {
        let broken = |text: String| Failure::coded(FailureClass::DeviceError, "not-verifiable", text);
        let job = self
            .core
            .job(task.attempt.job)
            .map_err(|error| broken(error.to_string()))?;
        let kind = self.core.kinds.get(&job.kind);
        let kind = kind.ok_or_else(|| broken(format!("this build has no kind {:?}", job.kind)))?;
        let vk = self
            .core
            .verification_key(job.circuit)
            .map_err(|error| broken(error.to_string()))?;
        let public = task
            .made
            .as_ref()
            .map(|made| made.public.as_slice())
            .unwrap_or_default();
        kind.verify(vk.as_deref().map(Vec::as_slice), public, proof)
    }

    fn failed(&self, token: Token, wire: &WireFailure, peak_bytes: Option<u64>) {
        let failure = Failure::from(wire);
        if self.process.held.lock().imports.contains_key(&token) {
            return self.import_failed(token, failure);
        }
        let Some(task) = self.task(token) else { return };
        let failure = match task.asked {
            // It ended because it was asked to: then it ends for the reason that we had.
            Some((_, asked)) if is_an_answer(failure.class) => asked,
            _ => failure,
        };
        if failure.class == FailureClass::DeviceUnavailable {
            let suspend = Command::DeviceSuspend {
                device: self.process.device.clone(),
                until: Some(Millis(self.core.clock.now().0 + UNAVAILABLE_MS)),
                reason: failure.detail.clone(),
            };
            self.note("a device that isn't available", self.core.commit(suspend));
        }
        let process_peak_bytes = peak_bytes.or_else(|| self.peak());
        let command = Command::AttemptFailed {
            token,
            failure,
            process_peak_bytes,
        };
        self.note("the end of an attempt", self.core.commit(command));
        self.forget(task.attempt);
        self.core.hint(task.attempt.job);
    }

    /// The attempt is over and its memory is free.
    fn forget(&self, attempt: AttemptRef) {
        self.process.held.lock().remove(attempt);
        self.core.ledger.end(ticket_of(attempt));
        self.core.bell.notify_one();
    }

    fn peak(&self) -> Option<u64> {
        Some(self.process.peak.load(Ordering::Relaxed)).filter(|peak| *peak > 0)
    }

    /// Sends a command whose answer nothing waits for, so that the next word is heard meanwhile. Commands are carried
    /// out in the order in which they were sent.
    fn post(&self, what: &'static str, command: Command) {
        match self.core.handle.send(command) {
            Ok(answer) => self.posted.borrow_mut().push((what, answer)),
            Err(error) => self.note(what, Err(error)),
        }
    }

    /// Reads the answers to what was posted, as far as there are some.
    fn settle(&self) {
        self.posted
            .borrow_mut()
            .retain_mut(|(what, answer)| match answer.try_recv() {
                Ok(outcome) => {
                    self.note(what, outcome);
                    false
                }
                Err(TryRecvError::Empty) => true,
                Err(TryRecvError::Closed) => false,
            });
    }

    /// A word that could not be stored leaves its attempt open; the run loop finds it and ends the process.
    fn note(&self, what: &str, outcome: Result<proofkeep_store::Committed, CommitError>) {
        match outcome {
            Ok(_) | Err(CommitError::Stopped) => {}
            Err(error) => tracing::error!(process = %self.process.id, "{what} was not stored: {error}"),
        }
    }
}

fn attempt_of(work: Work) -> AttemptRef {
    let job = proofkeep_store::ids::JobNumber(work.job);
    AttemptRef {
        job,
        partition: work.partition,
        number: work.attempt,
    }
}

/// What somebody says who was asked to stop.
fn is_an_answer(class: FailureClass) -> bool {
    matches!(
        class,
        FailureClass::Cancelled
            | FailureClass::Preempted
            | FailureClass::Shutdown
            | FailureClass::Stalled
            | FailureClass::TimedOut
            | FailureClass::Interrupted
    )
}
