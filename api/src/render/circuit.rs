//! A circuit.

use proofkeep_engine::kinds::groth16::BELLPERSON;
use proofkeep_engine::problem::Problem;
use proofkeep_store::ids::Millis;
use proofkeep_store::records::{Circuit, CircuitState};
use serde_json::{Map, Value, json};

use super::{failure, text, time};

/// One circuit under one of its names. `resident`: bytes of its key in memory now; `refused`: why it takes no new jobs.
pub(crate) fn draw(
    name: &str,
    circuit: &Circuit,
    resident: Option<u64>,
    refused: Option<Problem>,
    now: Millis,
) -> Value {
    let facts = &circuit.facts;
    let setup: Value = serde_json::from_str(&facts.setup).unwrap_or(Value::Null);
    let key = match setup["format"] == BELLPERSON {
        true => "params",
        false => "zkey",
    };
    let files = [
        ("r1cs", circuit.files.r1cs),
        (key, circuit.files.zkey),
        ("wasm", circuit.files.wasm),
        ("sym", circuit.files.sym),
    ];
    let files: Map<String, Value> = files
        .into_iter()
        .filter_map(|(name, digest)| Some((name.to_owned(), digest?.to_string().into())))
        .collect();
    let mut members = Map::new();
    let mut put = |name: &str, value: Value| {
        members.insert(name.to_owned(), value);
    };
    put("name", name.into());
    put("digest", circuit.digest.to_string().into());
    put("state", state(circuit).into());
    put("progress", progress(circuit));
    put("eta", time::json(eta(circuit, now)));
    put("error", error(circuit));
    put("constraints", facts.constraints.into());
    put("wires", facts.wires.into());
    put("public", facts.public.into());
    put("domain_log2", facts.domain_log2.into());
    put("insecure", facts.insecure.into());
    put("setup", setup);
    put(
        "refused",
        refused.map_or(
            Value::Null,
            |why| json!({ "code": why.code, "detail": why.detail }),
        ),
    );
    put("allow_unfinished_setup", circuit.allow_unfinished.into());
    put("files", files.into());
    put("vk", text(circuit.vk));
    put(
        "memory",
        json!({ "key_bytes": facts.key_bytes, "resident_bytes": resident.unwrap_or(0) }),
    );
    put("actor", circuit.actor.as_str().into());
    put("added_at", time::write(circuit.added_at).into());
    put("ready_at", time::json(circuit.ready_at));
    Value::Object(members)
}

fn state(circuit: &Circuit) -> &'static str {
    match circuit.state {
        CircuitState::Importing(_) => "importing",
        CircuitState::Ready => "ready",
        CircuitState::Failed(_) => "failed",
    }
}

fn progress(circuit: &Circuit) -> Value {
    match circuit.state {
        CircuitState::Importing(import) => {
            json!({ "done": import.done, "total": import.total, "running": import.token.is_some() })
        }
        _ => Value::Null,
    }
}

/// By the pace since it was registered; a restart in between makes it late, never early.
fn eta(circuit: &Circuit, now: Millis) -> Option<Millis> {
    let CircuitState::Importing(import) = circuit.state else {
        return None;
    };
    let left = import.total.saturating_sub(import.done);
    let spent = now.since(circuit.added_at);
    let more = u128::from(spent) * u128::from(left) / u128::from(import.done).max(1);
    (import.done > 0).then(|| now.after(u64::try_from(more).unwrap_or(u64::MAX)))
}

fn error(circuit: &Circuit) -> Value {
    match &circuit.state {
        CircuitState::Failed(why) => failure(why),
        _ => Value::Null,
    }
}
