//! A refusal of the machine as an answer: which status, which code, and what to do.

use proofkeep_store::CommitError;
use proofkeep_store::machine::Refusal;
use uuid::Uuid;

use serde_json::json;

use crate::desk::{job_damaged, missing, unreadable};
use crate::problem::Problem;

/// Why a command was not carried out, for a user.
pub(super) fn commit(error: CommitError) -> Problem {
    match error {
        CommitError::Refused(refusal) => refused(&refusal),
        CommitError::Busy => Problem::new(
            429,
            "queue-full",
            "too many requests wait",
            CommitError::Busy.to_string(),
        )
        .retryable(),
        CommitError::Stopped => stopping(),
        CommitError::Damaged { why, .. } => job_damaged(&why),
        CommitError::Unreadable(why) => unreadable(&why),
        error @ CommitError::TooLarge { .. } => {
            Problem::new(500, "too-large", "the request can't be stored", error.to_string())
        }
    }
}

/// The same for a command about a job, with what its state means for it.
pub(super) fn of_job(error: CommitError, id: Uuid, why: &str) -> Problem {
    match error {
        CommitError::Refused(Refusal::JobState(state)) => {
            let detail = format!("job {id} has the state {}: {why}", state.name());
            Problem::new(409, "job-state", "its state doesn't allow that", detail)
                .with("state", state.name().into())
        }
        other => commit(other),
    }
}

/// The daemon is on its way out.
pub(super) fn stopping() -> Problem {
    let detail = "the daemon is stopping; try again when it is back";
    Problem::new(503, "draining", "the daemon is stopping", detail).retryable()
}

fn refused(refusal: &Refusal) -> Problem {
    let text = refusal.to_string();
    let not_found = |code: &str| Problem::new(404, code, "there is no such thing", text.clone());
    let conflict = |code: &str| Problem::new(409, code, "its state doesn't allow that", text.clone());
    match refusal {
        Refusal::UnknownJob(_) => not_found("unknown-job"),
        Refusal::UnknownPartition { .. } => Problem::input("unknown-partition", text),
        Refusal::UnknownCircuit(_) => not_found("unknown-circuit"),
        Refusal::UnknownDevice(_) => not_found("unknown-device"),
        Refusal::JobState(state) => conflict("job-state").with("state", state.name().into()),
        Refusal::PartitionState(_) | Refusal::WrongStage(_) | Refusal::MustRunAlone => {
            conflict("partition-state")
        }
        Refusal::SlotTaken | Refusal::EnoughAhead | Refusal::NotDue => conflict("not-now").retryable(),
        Refusal::CircuitNotReady => conflict("circuit-not-ready").retryable(),
        Refusal::ImportUnderWay { done, total } => conflict("circuit-importing")
            .with("progress", json!({ "done": done, "total": total }))
            .retryable(),
        Refusal::CircuitFailed(_) => conflict("circuit-failed"),
        Refusal::CircuitInUse { jobs } => conflict("circuit-in-use").with("jobs", (*jobs).into()),
        Refusal::NameTaken(digest) => {
            let detail = format!("{text} (?replace=true)");
            Problem::new(409, "name-taken", "the name points to another circuit", detail)
                .with("circuit_digest", digest.to_string().into())
        }
        Refusal::Paused => Problem::new(503, "paused", "the queue is paused", text).retryable(),
        Refusal::Draining => Problem::new(503, "draining", "the daemon is draining", text).retryable(),
        Refusal::IdempotencyMismatch { job } => Problem::new(
            422,
            "idempotency-mismatch",
            "the idempotency key belongs to another request",
            text,
        )
        .with("job", job.to_string().into()),
        Refusal::DuplicateId(_) => conflict("duplicate-id").retryable(),
        Refusal::NeedsMemory { .. } => Problem::input("needs-memory", text),
        Refusal::OutOfLimits { field, .. } => {
            Problem::input("out-of-limits", text).with("field", (*field).into())
        }
        Refusal::BlobMissing(digests) => missing(digests),
        Refusal::NoBoot => stopping(),
        Refusal::AlreadyOpen => Problem::new(500, "already-open", "this is a fault of proofkeep", text),
    }
}
