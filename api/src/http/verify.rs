//! `POST /v1/verify`: is a proof valid? One question or an array of them. A proof that is well-formed and doesn't hold is
//! an answer, `{valid: false, reason}`; one that can't be read is an error.

use std::collections::BTreeMap;
use std::sync::Arc;

use proofkeep_engine::problem::Problem;
use proofkeep_formats::FormatError;
use proofkeep_formats::json::{ProofJson, VkJson, public_from_json};
use proofkeep_groth16::proof::Proof;
use proofkeep_groth16::verify::{VerifyError, verify as verify_proof};
use proofkeep_groth16::vk::{UnfinishedSetup, VerifyingKey};
use serde_json::{Map, Value, json};
use warp::http::StatusCode;

use super::answer::{Outcome, json};
use super::circuits;
use super::context::Context;
use super::problem::shown;
use super::request::Request;

const FIELDS: [&str; 4] = ["circuit", "vk", "proof", "public"];

/// Questions in one request.
const MOST: usize = 1024;

/// Answers one question, or each of an array, in order.
pub(super) async fn verify(context: &Context, request: &mut Request) -> Outcome {
    request.query(&[])?;
    let body = request.json().await?;
    let body: Value = serde_json::from_slice(&body)
        .map_err(|error| Problem::new(400, "malformed-json", "the body is not JSON", error.to_string()))?;
    let (questions, single) = match body {
        Value::Array(list) => (list, false),
        one => (vec![one], true),
    };
    if questions.is_empty() || questions.len() > MOST {
        let detail = format!("expected 1 to {MOST} proofs to verify, found {}", questions.len());
        return Err(Problem::input("bad-count", detail));
    }
    let mut keys = Keys::default();
    let mut ready = Vec::with_capacity(questions.len());
    for (place, question) in questions.into_iter().enumerate() {
        let at = |problem: Problem| if single { problem } else { named(place, problem) };
        let fields = fields(question).map_err(at)?;
        let vk = keys.get(context, &fields).await.map_err(at)?;
        ready.push((fields, vk));
    }
    let answers = context
        .blocking(move || {
            let mut answers = Vec::with_capacity(ready.len());
            for (place, (fields, vk)) in ready.iter().enumerate() {
                let answer = answer(fields, vk);
                answers.push(answer.map_err(|problem| if single { problem } else { named(place, problem) })?);
            }
            Ok::<_, Problem>(answers)
        })
        .await??;
    Ok(match <[Value; 1]>::try_from(answers) {
        Ok([answer]) if single => json(StatusCode::OK, &answer),
        Ok(one) => json(StatusCode::OK, &Value::Array(one.into())),
        Err(answers) => json(StatusCode::OK, &Value::Array(answers)),
    })
}

/// Verification keys of this request, each read once.
#[derive(Default)]
struct Keys(BTreeMap<String, Arc<VerifyingKey>>);

impl Keys {
    async fn get(
        &mut self,
        context: &Context,
        fields: &Map<String, Value>,
    ) -> Result<Arc<VerifyingKey>, Problem> {
        let name = match (fields.get("circuit"), fields.get("vk")) {
            (Some(Value::String(name)), None) => format!("circuit {name}"),
            (None, Some(Value::Object(vk))) => format!("vk {}", Value::Object(vk.clone())),
            (Some(other), None) => return Err(wrong("circuit", "a circuit's name or digest", other)),
            (None, Some(other)) => return Err(wrong("vk", "a verification_key.json", other)),
            (Some(_), Some(_)) => {
                return Err(Problem::input("bad-field", "expected circuit or vk, found both"));
            }
            (None, None) => {
                return Err(Problem::input(
                    "bad-field",
                    "expected circuit or vk, found neither",
                ));
            }
        };
        if let Some(found) = self.0.get(&name) {
            return Ok(Arc::clone(found));
        }
        let (bytes, unfinished) = match name.strip_prefix("circuit ") {
            Some(circuit) => {
                let found = circuits::find(context, circuit).await?;
                let bytes = context.object(circuits::vk_of(&found)?).await?;
                // Whoever registered the circuit has already answered for its setup.
                (bytes, UnfinishedSetup::accept_if(found.allow_unfinished))
            }
            None => {
                let vk = fields.get("vk").map(Value::to_string).unwrap_or_default();
                (vk.into_bytes(), UnfinishedSetup::Refuse)
            }
        };
        let key = context.blocking(move || read_vk(&bytes, unfinished)).await??;
        let key = Arc::new(key);
        self.0.insert(name, Arc::clone(&key));
        Ok(key)
    }
}

fn read_vk(bytes: &[u8], unfinished: UnfinishedSetup) -> Result<VerifyingKey, Problem> {
    let json = VkJson::from_json(bytes).map_err(|error| format_problem("vk", &error))?;
    VerifyingKey::from_json_with(&json, unfinished)
        .map_err(|error| Problem::input(error.code(), format!("vk: {error}")))
}

/// The object of one question, with no field that isn't known.
fn fields(question: Value) -> Result<Map<String, Value>, Problem> {
    let Value::Object(fields) = question else {
        return Err(Problem::input(
            "bad-field",
            "expected an object {circuit or vk, proof, public}, or an array of them",
        ));
    };
    if let Some(unknown) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(proofkeep_engine::request::unknown_field(unknown, &FIELDS));
    }
    Ok(fields)
}

fn answer(fields: &Map<String, Value>, vk: &VerifyingKey) -> Result<Value, Problem> {
    let proof = read_proof(required(fields, "proof")?)?;
    let public = public_from_json(required(fields, "public")?.to_string().as_bytes())
        .map_err(|error| format_problem("public", &error))?;
    match verify_proof(vk, &public, &proof) {
        Ok(()) => Ok(json!({ "valid": true })),
        Err(error @ VerifyError::Rejected) => Ok(json!({ "valid": false, "reason": error.to_string() })),
        Err(error) => Err(Problem::input(error.code(), format!("public: {error}"))),
    }
}

/// snarkjs's object, or 192 or 384 bytes in hex.
fn read_proof(value: &Value) -> Result<Proof, Problem> {
    let proof = match value {
        Value::String(text) => {
            let digits = text.strip_prefix("0x").unwrap_or(text);
            let bytes = hex::decode(digits)
                .map_err(|_| wrong("proof", "a proof.json, or 192 or 384 bytes in hex", value))?;
            Proof::from_bytes(&bytes)
        }
        Value::Object(_) => {
            let json = ProofJson::from_json(value.to_string().as_bytes())
                .map_err(|error| format_problem("proof", &error))?;
            Proof::from_json(&json)
        }
        other => return Err(wrong("proof", "a proof.json, or 192 or 384 bytes in hex", other)),
    };
    proof.map_err(|error| Problem::input(error.code(), format!("proof: {error}")))
}

fn required<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<&'a Value, Problem> {
    fields
        .get(name)
        .ok_or_else(|| Problem::input("bad-field", format!("{name}: expected it, found nothing")))
}

fn format_problem(field: &str, error: &FormatError) -> Problem {
    Problem::input(error.code(), format!("{field}: {error}"))
}

fn wrong(field: &str, expected: &str, found: &Value) -> Problem {
    let found = match found {
        Value::String(text) => format!("{:?}", shown(text)),
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "a boolean".to_owned(),
        Value::Number(_) => "a number".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    Problem::input(
        "bad-field",
        format!("{field}: expected {expected}, found {found}"),
    )
}

fn named(place: usize, problem: Problem) -> Problem {
    let detail = format!("[{place}]: {}", problem.detail);
    Problem { detail, ..problem }.with("index", place.into())
}
