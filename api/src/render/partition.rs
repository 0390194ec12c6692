//! A partition with its attempts.

use proofkeep_store::query::PartitionDetail;
use proofkeep_store::records::{Attempt, Outcome};
use serde_json::{Map, Value, json};

use super::{failure, text, time};

/// One partition.
pub(crate) fn draw(detail: &PartitionDetail) -> Value {
    let partition = &detail.partition;
    let mut members = Map::new();
    let mut put = |name: &str, value: Value| {
        members.insert(name.to_owned(), value);
    };
    put("index", partition.index.into());
    put("state", partition.state.name().into());
    put("attempts", detail.attempts.iter().map(attempt).collect());
    put("attempts_total", partition.attempts.into());
    put(
        "worker",
        partition.worker.map_or(Value::Null, |worker| worker.0.into()),
    );
    put("proof", text(detail.proof.as_ref().map(|proof| proof.digest)));
    put("error", partition.failure.as_ref().map_or(Value::Null, failure));
    if let Some(at) = partition.wake_at {
        put("wake_at", time::write(at).into());
    }
    if partition.alone {
        put("alone", true.into());
    }
    if let Some(checkpoint) = &detail.checkpoint {
        put(
            "checkpoint",
            checkpoint
                .pieces
                .iter()
                .map(|piece| json!({ "piece": piece.name, "ms": piece.millis }))
                .collect(),
        );
    }
    Value::Object(members)
}

/// One attempt.
pub(crate) fn attempt(attempt: &Attempt) -> Value {
    let error = match &attempt.outcome {
        Some(Outcome::Ended(why)) => failure(why),
        _ => Value::Null,
    };
    json!({
        "number": attempt.of.number,
        "generation": attempt.generation,
        "boot": attempt.opened_in.0,
        "closed_in": attempt.closed_in.map(|boot| boot.0),
        "process": attempt.process.to_string(),
        "worker": attempt.worker.map(|worker| worker.0),
        "device": attempt.device,
        "stage": attempt.stage.name(),
        "outcome": attempt.outcome.as_ref().map(Outcome::name),
        "error": error,
        "started_at": time::write(attempt.started_at),
        "gpu_started_at": time::json(attempt.gpu_started_at),
        "ended_at": time::json(attempt.ended_at),
        "synth_ms": attempt.synth_ms,
        "gpu_ms": attempt.gpu_ms,
        "ticket_bytes": attempt.ticket_bytes,
        "process_peak_bytes": attempt.process_peak_bytes,
        "reused": attempt.reused,
        "saved_ms": attempt.saved_ms,
    })
}
