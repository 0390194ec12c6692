//! What both kinds of clients do, with every answer written down.

use proofkeep_tests::harness::{Answer, Http, sha256_name};
use proofkeep_tests::ledger::{Ledger, Said};
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use uuid::Uuid;

use super::scene::Shared;

const JSON: (&str, &str) = ("Content-Type", "application/json");
const BYTES: (&str, &str) = ("Content-Type", "application/octet-stream");

/// Uploads bytes; `None` when the daemon died.
pub fn upload(http: &Http, shared: &Shared, bytes: &[u8]) -> Option<String> {
    let name = sha256_name(bytes);
    let answer = http.try_send("PUT", &format!("/v1/blobs/{name}"), &[BYTES], Some(bytes))?;
    if matches!(answer.status, 200 | 201) {
        shared.ledger.note(Said::Object(name.clone()));
    } else {
        expect_stopping(&answer);
    }
    Some(name)
}

/// Submits a job, with a key so that it can be sent again; `None` when the daemon died, `Some(None)` when it stops.
pub fn submit(http: &Http, shared: &Shared, key: &str, body: &Value, innocent: bool) -> Option<Option<Uuid>> {
    let sent = body.to_string();
    let answer = http.try_send(
        "POST",
        "/v1/jobs",
        &[JSON, ("Idempotency-Key", key)],
        Some(sent.as_bytes()),
    )?;
    if !matches!(answer.status, 200..=202) {
        expect_stopping(&answer);
        return Some(None);
    }
    let id = Uuid::parse_str(answer.json()["id"].as_str().unwrap()).unwrap();
    let partitions = u32::try_from(body["inputs"].as_array().unwrap().len()).unwrap();
    shared.ledger.note(Said::Job {
        id,
        partitions,
        innocent,
    });
    Some(Some(id))
}

/// Cancels a job. A job that has ended meanwhile says so.
pub fn cancel(http: &Http, shared: &Shared, id: Uuid) -> Option<bool> {
    shared.ledger.note(Said::Asked(id));
    let answer = http.try_send("POST", &format!("/v1/jobs/{id}/cancel"), &[], None)?;
    match answer.status {
        202 => shared.ledger.note(Said::Cancel(id)),
        409 => {}
        _ => expect_stopping(&answer),
    }
    Some(answer.status == 202)
}

/// Looks at a job and writes down what it shows.
pub fn look(http: &Http, shared: &Shared, id: Uuid) -> Option<Value> {
    let answer = http.try_send("GET", &format!("/v1/jobs/{id}"), &[], None)?;
    if answer.status != 200 {
        expect_stopping(&answer);
        return Some(Value::Null);
    }
    let job = answer.json();
    Ledger::told_of(&job)
        .into_iter()
        .for_each(|said| shared.ledger.note(said));
    Some(job)
}

/// Looks at a job until it has ended.
pub fn wait_for_end(http: &Http, shared: &Shared, id: Uuid) -> Option<Value> {
    loop {
        let answer = http.try_send("GET", &format!("/v1/jobs/{id}"), &[("Prefer", "wait=20")], None)?;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let job = answer.json();
        Ledger::told_of(&job)
            .into_iter()
            .for_each(|said| shared.ledger.note(said));
        if job["ended_at"].is_string() {
            return Some(job);
        }
    }
}

/// The jobs that haven't ended.
pub fn active(http: &Http) -> Option<Vec<Uuid>> {
    let answer = http.try_send("GET", "/v1/jobs?state=active&limit=100", &[], None)?;
    if answer.status != 200 {
        expect_stopping(&answer);
        return Some(Vec::new());
    }
    let jobs = answer.json();
    let ids = jobs["jobs"].as_array().unwrap().iter();
    Some(
        ids.map(|job| Uuid::parse_str(job["id"].as_str().unwrap()).unwrap())
            .collect(),
    )
}

/// Something with a job that is there: looks at one that hasn't ended, or at any, or cancels one that nothing is wrong
/// with.
pub fn meddle(http: &Http, shared: &Shared, active: &[Uuid], rng: &mut ChaCha8Rng) -> Option<()> {
    let all = shared.ledger.jobs();
    if all.is_empty() {
        return Some(());
    }
    let any = &all[rng.gen_range(0..all.len())];
    let of_active = (!active.is_empty()).then(|| active[rng.gen_range(0..active.len())]);
    match rng.gen_range(0..20) {
        0 if any.1 == ["succeeded"] => {
            cancel(http, shared, any.0)?;
        }
        1..6 => {
            look(http, shared, any.0)?;
        }
        _ => {
            look(http, shared, of_active.unwrap_or(any.0))?;
        }
    }
    Some(())
}

/// Any bytes.
pub fn noise(rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = vec![0; rng.gen_range(1..40_000)];
    rng.fill(&mut bytes[..]);
    bytes
}

/// A key that no other job has.
pub fn key(rng: &mut ChaCha8Rng) -> String {
    format!("key-{:016x}", rng.r#gen::<u64>())
}

/// The only other answers there may be: it starts, it stops, or it has too much to do.
fn expect_stopping(answer: &Answer) {
    assert!(
        matches!(answer.status, 429 | 503),
        "{}: {}",
        answer.status,
        answer.text()
    );
}
