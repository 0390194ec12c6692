//! What the words of a worker process come to. Pure: what the process holds goes in, [`Act`]s come out; the reader (or a
//! simulation of it) carries them out in order, and what must not be said before it is durable comes after its commit.

use std::time::{Duration, Instant};

use proofkeep_store::ids::{Digest, JobNumber, Millis, Token};
use proofkeep_store::machine::{Command, ProofStored, Refusal, SynthEnd};
use proofkeep_store::records::{AttemptRef, CircuitFacts, Failure, FailureClass};

use super::held::{Held, HeldStage, Made};
use crate::protocol::{FromWorker, WireFailure, WirePiece, Work};
use crate::shared::INSECURE_SETUP;

/// A device that says it isn't available is left alone for this long, in milliseconds.
const UNAVAILABLE_MS: u64 = 60_000;
/// Progress of an import is stored at most this often.
const IMPORT_PROGRESS: Duration = Duration::from_secs(2);
/// An import that gave up for a reason that may pass is sent again after this.
const IMPORT_AGAIN: Duration = Duration::from_secs(10);

/// Something to do about a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Send it and go on; commands are carried out in the order in which they were sent.
    Post(&'static str, Command),
    /// Send it, and go on when it is durable or refused.
    Commit(&'static str, Command, OnRefusal),
    /// The attempt is over and its memory is free.
    Forget(AttemptRef),
    /// The import is over and its memory is free.
    ImportOver(Token),
    /// The job may be ready for its final check.
    Hint(JobNumber),
    /// There may be something new to start.
    Ring,
}

/// What a refusal of a commit calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRefusal {
    /// To be noted, no more.
    Note,
    /// The attempt ends: its witness could not be stored.
    EndAttempt(Token),
    /// The import is done again.
    ImportAgain(Token),
}

/// Who speaks, and when.
#[derive(Clone, Copy, Debug)]
pub struct Speaker<'a> {
    /// The device of the process.
    pub device: &'a str,
    /// The most memory that the process used, as far as it is known.
    pub peak: Option<u64>,
    /// The moment, for what the process holds.
    pub now: Instant,
    /// The moment by the daemon's clock.
    pub clock: Millis,
}

/// The words that need nothing but what the process holds; any other one comes to nothing here.
pub fn other(
    held: &mut Held,
    word: FromWorker,
    allow_insecure_setup: bool,
    speaker: &Speaker<'_>,
) -> Vec<Act> {
    let now = speaker.now;
    match word {
        FromWorker::Pieces { token, pieces: made } => pieces(held, token.into(), made, now),
        FromWorker::Released {
            token,
            gpu_ms,
            reused,
            saved_ms,
        } => released(held, token.into(), gpu_ms, reused, saved_ms, now),
        FromWorker::Failed {
            token,
            failure,
            peak_bytes,
        } => failed(held, token.into(), &failure, peak_bytes, speaker),
        FromWorker::Progress { token, .. } => {
            held.moved(token.into(), now);
            Vec::new()
        }
        FromWorker::Imported { token, done } => imported(held, token.into(), done, now),
        FromWorker::ImportDone {
            token,
            facts,
            zkey,
            vk,
            matrices,
        } => {
            let command = Command::ImportEnd {
                token: token.into(),
                facts: CircuitFacts::from(facts),
                zkey: zkey.map(Digest),
                vk: Digest(vk),
                matrices: Digest(matrices),
            };
            import_done(held, token.into(), command, allow_insecure_setup, now)
        }
        FromWorker::Dropped { work } => dropped(work),
        FromWorker::Hello { .. }
        | FromWorker::SynthDone { .. }
        | FromWorker::Proof { .. }
        | FromWorker::Rss { .. }
        | FromWorker::Key { .. }
        | FromWorker::Loaded { .. } => Vec::new(),
    }
}

/// A witness is there; `kept` is the object with its public signals.
pub fn synth_done(
    held: &mut Held,
    token: Token,
    synth_ms: u64,
    made: Made,
    kept: Result<Digest, String>,
    speaker: &Speaker<'_>,
) -> Vec<Act> {
    if held.task(token).is_none() {
        return Vec::new();
    }
    let witness = made.witness;
    // Before the commit, so that a slot that is granted right after it finds the witness.
    held.waiting(token, made);
    let commit = match kept {
        Ok(public) => {
            let end = SynthEnd {
                token,
                synth_ms,
                witness,
                public,
            };
            Act::Commit("a witness", Command::SynthEnd(end), OnRefusal::EndAttempt(token))
        }
        Err(error) => {
            let failure = Failure::coded(FailureClass::DeviceError, "disk", error);
            let command = Command::AttemptFailed {
                token,
                failure,
                process_peak_bytes: speaker.peak,
            };
            Act::Commit("a witness", command, OnRefusal::Note)
        }
    };
    // If the attempt was ended meanwhile, the run loop finds a witness that nobody wants and drops it.
    vec![commit, Act::Ring]
}

/// Pieces are finished.
fn pieces(held: &mut Held, token: Token, pieces: Vec<WirePiece>, now: Instant) -> Vec<Act> {
    held.moved(token, now);
    let Some(task) = held.task(token) else {
        return Vec::new();
    };
    let Some(made) = &task.made else {
        return Vec::new();
    };
    let attempt = task.attempt.number;
    let command = Command::Checkpoint {
        token,
        witness: made.witness,
        key: made.key,
        pieces: pieces
            .into_iter()
            .map(|piece| piece.into_piece(attempt))
            .collect(),
    };
    vec![Act::Post("a checkpoint", command)]
}

/// The device is free.
fn released(
    held: &mut Held,
    token: Token,
    gpu_ms: u64,
    reused: Vec<String>,
    saved_ms: u64,
    now: Instant,
) -> Vec<Act> {
    held.finish(token, now);
    let ended = Command::GpuEnd {
        token,
        gpu_ms,
        reused,
        saved_ms,
    };
    vec![Act::Post("the end of device work", ended)]
}

/// A proof; `verified` is what the daemon says of it.
pub fn proof(
    held: &mut Held,
    token: Token,
    bytes: Vec<u8>,
    peak_bytes: Option<u64>,
    verified: Result<(), Failure>,
    speaker: &Speaker<'_>,
) -> Vec<Act> {
    let Some(task) = held.task(token).cloned() else {
        return Vec::new();
    };
    let mut acts = Vec::new();
    if let HeldStage::Prove(_) = task.stage {
        // A kind that needs no device to finish may leave the word out.
        acts = released(held, token, 0, Vec::new(), 0, speaker.now);
    }
    let process_peak_bytes = peak_bytes.or(speaker.peak);
    let command = match verified {
        Ok(()) => Command::ProofStored(ProofStored {
            token,
            bytes,
            process_peak_bytes,
        }),
        Err(failure) => Command::AttemptFailed {
            token,
            failure,
            process_peak_bytes,
        },
    };
    acts.push(Act::Commit("a proof", command, OnRefusal::Note));
    acts.push(Act::Forget(task.attempt));
    acts.push(Act::Hint(task.attempt.job));
    acts
}

/// The work under a lease ended without success.
fn failed(
    held: &mut Held,
    token: Token,
    wire: &WireFailure,
    peak_bytes: Option<u64>,
    speaker: &Speaker<'_>,
) -> Vec<Act> {
    let failure = Failure::from(wire);
    if held.imports.contains_key(&token) {
        return import_failed(held, token, failure, speaker.now);
    }
    let Some(task) = held.task(token).cloned() else {
        return Vec::new();
    };
    let failure = match task.asked {
        // It ended because it was asked to: then it ends for the reason that we had.
        Some((_, asked)) if is_an_answer(failure.class) => asked,
        _ => failure,
    };
    let mut acts = Vec::new();
    if failure.class == FailureClass::DeviceUnavailable {
        let suspend = Command::DeviceSuspend {
            device: speaker.device.to_owned(),
            until: Some(Millis(speaker.clock.0 + UNAVAILABLE_MS)),
            reason: failure.detail.clone(),
        };
        acts.push(Act::Commit(
            "a device that isn't available",
            suspend,
            OnRefusal::Note,
        ));
    }
    let command = Command::AttemptFailed {
        token,
        failure,
        process_peak_bytes: peak_bytes.or(speaker.peak),
    };
    acts.push(Act::Commit("the end of an attempt", command, OnRefusal::Note));
    acts.push(Act::Forget(task.attempt));
    acts.push(Act::Hint(task.attempt.job));
    acts
}

/// The answer to a `Drop`.
fn dropped(work: Work) -> Vec<Act> {
    vec![Act::Forget(AttemptRef {
        job: JobNumber(work.job),
        partition: work.partition,
        number: work.attempt,
    })]
}

/// Points of a circuit were checked.
fn imported(held: &mut Held, token: Token, done: u64, now: Instant) -> Vec<Act> {
    held.moved(token, now);
    let Some(import) = held.imports.get_mut(&token) else {
        return Vec::new();
    };
    import.done = done;
    let due = import
        .stored
        .is_none_or(|at| now.duration_since(at) >= IMPORT_PROGRESS);
    if !due {
        return Vec::new();
    }
    import.stored = Some(now);
    vec![import_progress(token, done)]
}

/// A circuit is checked and compiled, which `end` says.
fn import_done(
    held: &mut Held,
    token: Token,
    end: Command,
    allow_insecure_setup: bool,
    now: Instant,
) -> Vec<Act> {
    if matches!(&end, Command::ImportEnd { facts, .. } if facts.insecure) && !allow_insecure_setup {
        let refused = Failure::coded(FailureClass::CircuitFailed, "insecure-setup", INSECURE_SETUP);
        return import_failed(held, token, refused, now);
    }
    vec![
        Act::Commit("the end of an import", end, OnRefusal::ImportAgain(token)),
        Act::ImportOver(token),
    ]
}

fn import_failed(held: &mut Held, token: Token, failure: Failure, now: Instant) -> Vec<Act> {
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
        return import_later(held, token, now);
    }
    let failure = Failure::coded(FailureClass::CircuitFailed, failure.code, failure.detail);
    vec![
        Act::Commit(
            "the end of an import",
            Command::ImportFailed { token, failure },
            OnRefusal::Note,
        ),
        Act::ImportOver(token),
    ]
}

/// It is sent again; what it checked so far is stored, since the daemon may be about to stop.
fn import_later(held: &mut Held, token: Token, now: Instant) -> Vec<Act> {
    let mut acts = Vec::new();
    if let Some(import) = held.imports.get_mut(&token) {
        import.again = Some(now + IMPORT_AGAIN);
        acts.push(import_progress(token, import.done));
    }
    acts.push(Act::Ring);
    acts
}

fn import_progress(token: Token, done: u64) -> Act {
    let command = Command::ImportProgress { token, done };
    Act::Commit("the progress of an import", command, OnRefusal::Note)
}

/// What follows when a commit was refused, instead of the acts after it; `None`: those follow all the same.
pub fn refused(held: &mut Held, on: OnRefusal, refusal: &Refusal, speaker: &Speaker<'_>) -> Option<Vec<Act>> {
    match on {
        OnRefusal::Note => None,
        OnRefusal::EndAttempt(token) => {
            let failure = Failure::coded(FailureClass::DeviceError, "not-stored", refusal.to_string());
            let command = Command::AttemptFailed {
                token,
                failure,
                process_peak_bytes: speaker.peak,
            };
            Some(vec![
                Act::Commit("a witness", command, OnRefusal::Note),
                Act::Ring,
            ])
        }
        OnRefusal::ImportAgain(token) => Some(import_later(held, token, speaker.now)),
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
