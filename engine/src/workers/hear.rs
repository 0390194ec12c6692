//! The reader of one worker process: turns its words into commands, in order, and its death into `process_lost`.
//!
//! Whatever a word says, it is said under a lease; a late one finds none and changes nothing.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use proofkeep_store::CommitError;
use proofkeep_store::ids::{Digest, Token};
use proofkeep_store::machine::{Command, Reply};
use proofkeep_store::records::{AttemptRef, Failure, FailureClass};

use tokio::sync::oneshot::{self, error::TryRecvError};

use super::death::{Circumstances, judge};
use super::held::{Made, Task};
use super::process::{Process, Started};
use super::words::{self, Act, Speaker};
use crate::budget::{OomCounter, TicketFor};
use crate::protocol::{self, BUILD, FrameError, FromWorker, ToWorker, WireFailure};
use crate::schedule::ticket_of;
use crate::shared::Core;

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
                    process.kill_for_nonsense();
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
        nonsense: process.nonsense.load(Ordering::Acquire),
        quitting: process.quitting.load(Ordering::Acquire),
        oom_counted,
        rss: process.rss.load(Ordering::Relaxed),
        allowed: tickets.saturating_add(keys),
    };
    let death = match status {
        Ok(status) => judge(status, known),
        Err(error) => super::death::Death {
            failure: Failure::new(
                FailureClass::Interrupted,
                format!("the worker process is lost: {error}"),
            ),
            own_fault: false,
        },
    };
    if !known.quitting {
        tracing::warn!(process = %process.id, device = process.device, "{}", death.failure.detail);
    }
    let lost = death.lost(process.id, &process.held.lock(), killed.flatten(), reader.peak());
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
        let acts = match word {
            FromWorker::Hello {
                build,
                device,
                description,
            } => return self.hello(&build, &device, description),
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
                self.synth_done(token.into(), synth_ms, made, now)
            }
            FromWorker::Proof {
                token,
                bytes,
                peak_bytes,
            } => self.proof(token.into(), bytes, peak_bytes, now),
            FromWorker::Rss { bytes, peak_bytes } => {
                self.process.rss.store(bytes, Ordering::Relaxed);
                self.process.peak.fetch_max(peak_bytes, Ordering::Relaxed);
                return;
            }
            FromWorker::Key { circuit, bytes } => {
                self.core.ledger.key(self.process.id, Digest(circuit), bytes);
                return self.core.bell.notify_one();
            }
            FromWorker::Loaded { key, failure } => return self.loaded(Digest(key), failure),
            word => {
                let allow = self.core.allow_insecure_setup;
                let mut held = self.process.held.lock();
                words::other(&mut held, word, allow, &self.speaker(now))
            }
        };
        self.carry_out(acts);
    }

    fn loaded(&self, key: Digest, failure: Option<WireFailure>) {
        let process = self.process.id;
        let mut loads = self.process.loads.lock();
        match failure.as_ref().map(Failure::from) {
            None => {
                loads.remove(&key);
            }
            Some(failure) => {
                tracing::warn!(%process, %key, "a key could not be loaded: {}", failure.detail);
                loads.insert(key, Some(failure));
            }
        }
        drop(loads);
        self.core.ledger.end(TicketFor::Load { key, process });
        self.core.bell.notify_one();
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

    /// The task under a lease, if there is one.
    fn task(&self, token: Token) -> Option<Task> {
        self.process.held.lock().task(token).cloned()
    }

    fn speaker(&self, now: Instant) -> Speaker<'_> {
        Speaker {
            device: &self.process.device,
            peak: self.peak(),
            now,
            clock: self.core.clock.now(),
        }
    }

    fn synth_done(&self, token: Token, synth_ms: u64, made: Made, now: Instant) -> Vec<Act> {
        let Some(task) = self.task(token) else {
            return Vec::new();
        };
        let kept = self
            .core
            .objects
            .put(&made.public)
            .map_err(|error| error.to_string());
        tracing::debug!(job = %task.attempt.job, partition = task.attempt.partition, synth_ms, "synthesized");
        let mut held = self.process.held.lock();
        words::synth_done(&mut held, token, synth_ms, made, kept, &self.speaker(now))
    }

    fn proof(&self, token: Token, bytes: Vec<u8>, peak_bytes: Option<u64>, now: Instant) -> Vec<Act> {
        let Some(task) = self.task(token) else {
            return Vec::new();
        };
        let verified = self.verify(&task, &bytes);
        if let Err(failure) = &verified {
            tracing::error!(
                job = %task.attempt.job,
                partition = task.attempt.partition,
                device = self.process.device,
                "a proof that its worker process accepted does not verify: {}",
                failure.detail
            );
        }
        let mut held = self.process.held.lock();
        words::proof(&mut held, token, bytes, peak_bytes, verified, &self.speaker(now))
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
            .verification_key_of(&job, kind.as_ref())
            .map_err(|error| broken(error.to_string()))?;
        let public = task
            .made
            .as_ref()
            .map(|made| made.public.as_slice())
            .unwrap_or_default();
        kind.verify(vk.as_deref().map(Vec::as_slice), public, proof)
    }

    fn carry_out(&self, acts: Vec<Act>) {
        let mut acts = VecDeque::from(acts);
        while let Some(act) = acts.pop_front() {
            match act {
                Act::Post(what, command) => self.post(what, command),
                Act::Commit(what, command, on) => match self.core.commit(command) {
                    Err(CommitError::Refused(refusal)) => {
                        let speaker = self.speaker(Instant::now());
                        let instead = words::refused(&mut self.process.held.lock(), on, &refusal, &speaker);
                        if let Some(instead) = instead {
                            tracing::warn!("{what} was refused: {refusal}");
                            acts = instead.into();
                        } else {
                            self.note(what, Err(CommitError::Refused(refusal)));
                        }
                    }
                    outcome => self.note(what, outcome),
                },
                Act::Forget(attempt) => self.forget(attempt),
                Act::ImportOver(token) => {
                    let import = self.process.held.lock().imports.remove(&token);
                    if let Some(import) = import {
                        self.core.ledger.end(TicketFor::Import(import.circuit));
                    }
                    self.core.bell.notify_one();
                }
                Act::Hint(job) => self.core.hint(job),
                Act::Ring => self.core.bell.notify_one(),
            }
        }
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
