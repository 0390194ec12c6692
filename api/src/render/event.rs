//! An entry of the journal.

use proofkeep_store::event::{AttemptEnd, Event, Next, Submitted, What};
use proofkeep_store::records::{CircuitFacts, StopTarget};
use serde_json::{Map, Value, json};

use super::{failure, text, time};

/// One event: `number boot at event`, the partition and the lease where it has them, and what it says.
pub(crate) fn draw(event: &Event) -> Value {
    let mut members = match said(&event.what) {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    let mut put = |name: &str, value: Value| {
        members.insert(name.to_owned(), value);
    };
    put("number", event.number.0.into());
    put("boot", event.boot.0.into());
    put("at", time::write(event.at).into());
    put("event", event.what.name().into());
    if let Some(partition) = event.what.partition() {
        put("partition", partition.into());
    }
    if let Some(token) = event.what.token() {
        put("token", token.to_string().into());
    }
    Value::Object(members)
}

fn said(what: &What) -> Value {
    match what {
        What::Submitted(submitted) => self::submitted(submitted),
        What::Stopping {
            target,
            actor,
            failure: why,
        } => {
            json!({ "target": target_name(*target), "actor": actor, "error": why.as_ref().map(failure) })
        }
        What::Ended { state } => json!({ "state": state.name() }),
        What::Retried {
            generation,
            actor,
            request,
            replaced,
            ..
        } => {
            json!({ "generation": generation, "actor": actor, "request_digest": request.to_string(), "replaced": replaced })
        }
        What::VerifyRefused { partitions, .. } => json!({ "partitions": partitions }),
        What::JoinRefused { failure: why, .. } => json!({ "error": failure(why) }),
        What::AttemptEnded(end) => attempt_ended(end),
        What::SynthStarted { .. }
        | What::SynthEnded { .. }
        | What::ProveStarted { .. }
        | What::Checkpointed { .. }
        | What::ProveEnded { .. }
        | What::ProofStored { .. } => stage(what),
        What::StaleIgnored { word, .. } => json!({ "word": word }),
        What::CircuitAdded { .. }
        | What::CircuitNamed { .. }
        | What::ImportStarted { .. }
        | What::ImportProgressed { .. }
        | What::ImportEnded { .. }
        | What::ImportFailed { .. }
        | What::ImportInterrupted { .. }
        | What::CircuitRemoved { .. } => circuit(what),
        What::VerifyStarted
        | What::VerifyPassed { .. }
        | What::VerifyDropped { .. }
        | What::Woken { .. }
        | What::BootClosed => Value::Null,
        What::BootOpened { version, devices } => {
            let devices: Vec<Value> = devices
                .iter()
                .map(|(name, slots)| json!({ "device": name, "slots": slots }))
                .collect();
            json!({ "version": version, "devices": devices })
        }
        What::ProcessStarted { process, device } => {
            json!({ "process": process.to_string(), "device": device })
        }
        What::ProcessLost {
            process,
            device,
            cause,
            own_fault,
        } => {
            json!({ "process": process.to_string(), "device": device, "cause": cause, "own_fault": own_fault })
        }
        What::DeviceSuspended {
            device,
            until,
            reason,
        } => {
            json!({ "device": device, "until": time::json(*until), "reason": reason })
        }
        What::DeviceResumed { device } => json!({ "device": device }),
        What::Paused { actor } | What::Resumed { actor } | What::Draining { actor } => {
            json!({ "actor": actor })
        }
        What::ClockStepped { by_ms } => json!({ "by_ms": by_ms }),
        What::Pruned { id, .. } => json!({ "id": id.to_string() }),
    }
}

fn submitted(submitted: &Submitted) -> Value {
    let labels: Map<String, Value> = submitted
        .labels
        .iter()
        .map(|(key, value)| (key.clone(), value.as_str().into()))
        .collect();
    json!({
        "kind": submitted.kind,
        "circuit_digest": text(submitted.circuit),
        "request_digest": submitted.request.to_string(),
        "idempotency_key": submitted.idempotency_key,
        "actor": submitted.actor,
        "labels": labels,
        "priority": submitted.priority.name(),
        "max_attempts": submitted.max_attempts,
        "on_failure": submitted.on_failure.name(),
        "partitions": submitted.partitions,
        "ticket_bytes": submitted.ticket_bytes,
    })
}

fn attempt_ended(end: &AttemptEnd) -> Value {
    let (next, wake_at) = match end.next {
        Next::Ready => ("ready", None),
        Next::Waiting(at) => ("waiting", Some(at)),
        Next::Failed => ("failed", None),
        Next::Cancelled => ("cancelled", None),
    };
    json!({
        "attempt": end.attempt,
        "error": failure(&end.failure),
        "next": next,
        "wake_at": time::json(wake_at),
        "counted": end.counted,
        "crashed": end.crashed,
        "alone": end.alone,
        "checkpoints_dropped": end.drop_checkpoints,
        "process_peak_bytes": end.process_peak_bytes,
    })
}

fn stage(what: &What) -> Value {
    match what {
        What::SynthStarted {
            attempt,
            process,
            device,
            ticket_bytes,
            ..
        } => json!({
            "attempt": attempt, "process": process.to_string(), "device": device, "ticket_bytes": ticket_bytes,
        }),
        What::SynthEnded { synth_ms, public, .. } => {
            json!({ "synth_ms": synth_ms, "public_digest": public.to_string() })
        }
        What::ProveStarted { worker, .. } => json!({ "worker": worker.0 }),
        What::Checkpointed { pieces, .. } => {
            json!({ "pieces": pieces.iter().map(|(name, ms)| json!({ "piece": name, "ms": ms })).collect::<Vec<_>>() })
        }
        What::ProveEnded {
            gpu_ms,
            reused,
            saved_ms,
            ..
        } => {
            json!({ "gpu_ms": gpu_ms, "reused": reused, "saved_ms": saved_ms })
        }
        What::ProofStored {
            digest,
            process_peak_bytes,
            ..
        } => {
            json!({ "proof": digest.to_string(), "process_peak_bytes": process_peak_bytes })
        }
        _ => Value::Null,
    }
}

fn circuit(what: &What) -> Value {
    match what {
        What::CircuitAdded {
            circuit,
            name,
            facts,
            total,
            actor,
            local_setup,
            ..
        } => json!({
            "circuit_digest": circuit.to_string(), "circuit": name, "total": total, "actor": actor,
            "local_setup": local_setup, "facts": self::facts(facts),
        }),
        What::CircuitNamed { name, circuit } => {
            json!({ "circuit_digest": circuit.to_string(), "circuit": name })
        }
        What::ImportStarted { circuit, process } => {
            json!({ "circuit_digest": circuit.to_string(), "process": process.to_string() })
        }
        What::ImportProgressed { circuit, done, .. } => {
            json!({ "circuit_digest": circuit.to_string(), "done": done })
        }
        What::ImportEnded {
            circuit,
            facts,
            zkey,
            vk,
            ..
        } => json!({
            "circuit_digest": circuit.to_string(), "made_zkey": zkey.map(|zkey| zkey.to_string()), "vk": vk.to_string(),
            "facts": self::facts(facts),
        }),
        What::ImportFailed {
            circuit,
            failure: why,
            ..
        } => {
            json!({ "circuit_digest": circuit.to_string(), "error": failure(why) })
        }
        What::ImportInterrupted { circuit, crashed, .. } => {
            json!({ "circuit_digest": circuit.to_string(), "crashed": crashed })
        }
        What::CircuitRemoved { circuit, actor } => {
            json!({ "circuit_digest": circuit.to_string(), "actor": actor })
        }
        _ => Value::Null,
    }
}

fn facts(facts: &CircuitFacts) -> Value {
    json!({
        "constraints": facts.constraints, "wires": facts.wires, "public": facts.public,
        "domain_log2": facts.domain_log2, "insecure": facts.insecure,
    })
}

fn target_name(target: StopTarget) -> &'static str {
    proofkeep_store::records::JobState::from(target).name()
}
