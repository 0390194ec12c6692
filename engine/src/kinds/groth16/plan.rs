//! Reads a `groth16` request in the daemon: cheap checks of headers, memory, and the canonical form.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofkeep_formats::count;
use proofkeep_groth16::memory::ticket_bytes;
use proofkeep_store::ids::Digest;
use proofkeep_store::records::{Circuit, CircuitState};
use serde_json::{Map, Value};

use super::headers::{self, HeaderError, Source};
use super::input::Input;
use crate::kinds::{Desk, Plan};
use crate::problem::Problem;
use crate::request::common_fields;

/// The most partitions of a job.
const MOST_INPUTS: usize = 1024;
/// The most bytes of a witness inside a request.
const MOST_INLINE: usize = 1 << 20;
/// The fields of this kind.
const FIELDS: [&str; 2] = ["circuit", "inputs"];
/// What an input may be.
const FORMS: [&str; 4] = ["witness", "witness_base64", "input", "input_blob"];

pub(super) fn plan(fields: Map<String, Value>, desk: &dyn Desk) -> Result<Plan, Problem> {
    if let Some(field) = fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        let detail = format!(
            "{field:?} is no field of a groth16 job; its fields are {}, and those of every job: {}",
            FIELDS.join(", "),
            common_fields().join(", ")
        );
        return Err(Problem::input("unknown-field", detail));
    }
    let circuit = match fields.get("circuit") {
        Some(Value::String(name)) => desk.circuit(name)?,
        other => {
            return Err(expected(
                "circuit",
                "the name or \"sha256:…\" of a circuit",
                other,
            ));
        }
    };
    if let CircuitState::Failed(failure) = &circuit.state {
        let detail = format!(
            "circuit {} was refused at its import: {}",
            circuit.name, failure.detail
        );
        return Err(Problem::input(&failure.code, detail));
    }
    let inputs = match fields.get("inputs") {
        Some(Value::Array(inputs)) if (1..=MOST_INPUTS).contains(&inputs.len()) => inputs,
        Some(Value::Array(inputs)) => {
            let detail = format!(
                "inputs: expected 1 to {MOST_INPUTS} inputs, found {}",
                inputs.len()
            );
            return Err(Problem::input("inputs-count", detail));
        }
        other => return Err(expected("inputs", "an array of inputs", other)),
    };
    let reader = Reader {
        circuit: &circuit,
        desk,
    };
    let mut planned = Vec::with_capacity(inputs.len());
    let mut ticket = 0;
    for (number, input) in inputs.iter().enumerate() {
        let input = reader.input(&format!("inputs[{number}]"), input)?;
        ticket = ticket.max(reader.ticket(input));
        planned.push(input);
    }
    let mut objects: Vec<Digest> = planned.iter().map(|input| input.object()).collect();
    objects.sort_unstable();
    objects.dedup();
    let mut canonical = Map::new();
    canonical.insert("circuit".to_owned(), Value::String(circuit.digest.to_string()));
    canonical.insert(
        "inputs".to_owned(),
        Value::Array(planned.into_iter().map(Input::to_json).collect()),
    );
    Ok(Plan {
        fields: canonical,
        circuit: Some(circuit.digest),
        partitions: inputs.len() as u32,
        ticket_bytes: ticket,
        objects,
    })
}

fn expected(field: &str, what: &str, found: Option<&Value>) -> Problem {
    let found = match found {
        None => "nothing",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "a boolean",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a string that is something else",
        Some(Value::Array(_)) => "an array",
        Some(Value::Object(_)) => "an object",
    };
    Problem::input("bad-field", format!("{field}: expected {what}, found {found}"))
}

struct Reader<'a> {
    circuit: &'a Circuit,
    desk: &'a dyn Desk,
}

impl Reader<'_> {
    fn input(&self, place: &str, input: &Value) -> Result<Input, Problem> {
        let Value::Object(members) = input else {
            return Err(expected(place, "an object", Some(input)));
        };
        let mut members = members.iter();
        let (Some((form, value)), None) = (members.next(), members.next()) else {
            let detail = format!("{place}: expected exactly one of {}", FORMS.join(", "));
            return Err(Problem::input("bad-field", detail));
        };
        let place = format!("{place}.{form}");
        match form.as_str() {
            "witness" => {
                let digest = digest(&place, value)?;
                let mut file = self.there(digest)?;
                self.check_witness(&place, &mut file)?;
                Ok(Input::Witness(digest))
            }
            "witness_base64" => {
                let bytes = inline(&place, value)?;
                self.check_witness(&place, &mut Cursor::new(&bytes))?;
                Ok(Input::Witness(self.desk.keep(&bytes)?))
            }
            "input" => {
                self.check_wasm(&place)?;
                if !value.is_object() {
                    return Err(expected(
                        &place,
                        "an object with the circuit's input signals",
                        Some(value),
                    ));
                }
                Ok(Input::Json(self.desk.keep(value.to_string().as_bytes())?))
            }
            "input_blob" => {
                self.check_wasm(&place)?;
                let digest = digest(&place, value)?;
                self.there(digest)?;
                Ok(Input::Json(digest))
            }
            _ => {
                let detail = format!("{place}: an input is exactly one of {}", FORMS.join(", "));
                Err(Problem::input("unknown-field", detail))
            }
        }
    }

    fn there(&self, digest: Digest) -> Result<std::fs::File, Problem> {
        if self.desk.size(digest).is_none() {
            let detail = format!("there is no object {digest}; upload it with PUT /v1/blobs/{digest} first");
            let missing = serde_json::json!([digest.to_string()]);
            return Err(Problem::input("blob-missing", detail).with("missing", missing));
        }
        self.desk.open(digest)
    }

    fn check_wasm(&self, place: &str) -> Result<(), Problem> {
        if self.circuit.files.wasm.is_some() {
            return Ok(());
        }
        let detail = format!(
            "{place}: circuit {} has no .wasm, so no witness can be made from an input; register it with one, or send a witness",
            self.circuit.name
        );
        Err(Problem::input("wasm-missing", detail))
    }

    fn check_witness(&self, place: &str, source: &mut dyn Source) -> Result<(), Problem> {
        let found = headers::wtns(source).map_err(|error| header_problem(place, &error))?;
        let expected = self.circuit.facts.wires;
        if found == expected {
            return Ok(());
        }
        let detail = format!(
            "{place}: circuit {} has {}, the witness has {}: it was made for another circuit",
            self.circuit.name,
            count(expected, "wire"),
            count(found, "value")
        );
        Err(Problem::input("witness-length", detail))
    }

    /// Bytes for one partition: witness and working set, what it is made from, and the calculator's limit.
    fn ticket(&self, input: Input) -> u64 {
        let facts = &self.circuit.facts;
        let domain = 1u64.checked_shl(facts.domain_log2).unwrap_or(u64::MAX);
        let prover = ticket_bytes(domain, facts.wires, self.desk.threads() as usize);
        let file = self.desk.size(input.object()).unwrap_or(0);
        let calculator = match input {
            Input::Witness(_) => 0,
            Input::Json(_) => {
                let wasm = self
                    .circuit
                    .files
                    .wasm
                    .and_then(|wasm| self.desk.size(wasm))
                    .unwrap_or(0);
                self.desk.wasm_memory_bytes().saturating_add(wasm)
            }
        };
        prover.saturating_add(file).saturating_add(calculator)
    }
}

pub(crate) fn header_problem(place: &str, error: &HeaderError) -> Problem {
    match error {
        HeaderError::Format(error) => Problem::input(error.code(), format!("{place}: {error}")),
        HeaderError::Io(error) => Problem::new(
            500,
            "io",
            "a file can't be read",
            format!("{place}: reading failed: {error}"),
        )
        .retryable(),
    }
}

/// A digest in a request.
pub(crate) fn digest(place: &str, value: &Value) -> Result<Digest, Problem> {
    let text = value.as_str().filter(|text| text.starts_with("sha256:"));
    text.and_then(Digest::parse)
        .ok_or_else(|| expected(place, "\"sha256:\" and 64 hex digits", Some(value)))
}

fn inline(place: &str, value: &Value) -> Result<Vec<u8>, Problem> {
    let too_long = |length: usize| {
        let detail = format!(
            "{place}: expected at most {MOST_INLINE} bytes inside a request, found {length}; upload the witness and name its digest"
        );
        Problem::new(413, "too-large", "the request is too large", detail)
    };
    let text = value
        .as_str()
        .ok_or_else(|| expected(place, "a string in base64", Some(value)))?;
    let most = MOST_INLINE.div_ceil(3) * 4;
    if text.len() > most {
        return Err(too_long(text.len() / 4 * 3));
    }
    let bytes = STANDARD.decode(text).map_err(|_| {
        Problem::input(
            "bad-base64",
            format!("{place}: expected base64 with padding (RFC 4648)"),
        )
    })?;
    if bytes.len() > MOST_INLINE {
        Err(too_long(bytes.len()))
    } else {
        Ok(bytes)
    }
}
