//! The body of a submit, whatever its kind: read strictly, filled in, and written in one canonical form.
//!
//! The canonical request is JSON with sorted keys, defaults filled in and inlined values as digests. Its digest is what
//! an idempotency key pins; its bytes are what a worker process gets.

#[cfg(test)]
mod tests;

use proofkeep_formats::count;
use proofkeep_store::ids::Digest;
use proofkeep_store::machine::{MAX_INLINE, MAX_PARTITIONS, Replacement, Submit};
use proofkeep_store::records::{OnFailure, Priority};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::kinds::{Desk, Kind, Kinds, Plan};
use crate::problem::Problem;

/// The fields that every kind has.
const COMMON: [&str; 5] = ["kind", "labels", "max_attempts", "on_failure", "priority"];

/// Who asks, and under which key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    /// Who.
    pub actor: String,
    /// The client's key for safe repeats.
    pub idempotency_key: Option<String>,
}

/// A request in canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canonical {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Their digest.
    pub digest: Digest,
    /// The bytes, when they are small enough for the store itself.
    pub inline: Option<Vec<u8>>,
    /// Objects that it needs, itself included when it is one.
    pub objects: Vec<Digest>,
    /// What the kind made of it.
    pub plan: Plan,
}

/// Reads a submit's body; returns the command, but for the budget, which the caller knows.
///
/// # Errors
/// 400 when it isn't JSON, 422 when a field is wrong.
pub fn submit(body: &[u8], asker: Asker, kinds: &Kinds, desk: &dyn Desk) -> Result<(Submit, Plan), Problem> {
    let mut fields = object(body)?;
    let kind = kind(&mut fields, kinds)?;
    let defaults = kind.defaults();
    let priority = priority(&mut fields)?.unwrap_or(defaults.priority);
    let on_failure = on_failure(&mut fields)?.unwrap_or(defaults.on_failure);
    let max_attempts = max_attempts(&mut fields)?.unwrap_or(defaults.max_attempts);
    let labels = labels(&mut fields)?;
    let common = json!({
        "kind": kind.name(),
        "labels": labels.iter().cloned().map(|(key, value)| (key, Value::String(value))).collect::<Map<_, _>>(),
        "max_attempts": max_attempts,
        "on_failure": on_failure.name(),
        "priority": priority.name(),
    });
    let common = match common {
        Value::Object(common) => common,
        other => return Err(not_an_object(&other)),
    };
    let Canonical {
        digest,
        inline,
        objects,
        plan,
        ..
    } = canonical(kind.as_ref(), common, fields, desk)?;
    let submit = Submit {
        id: Uuid::now_v7(),
        kind: kind.name().to_owned(),
        circuit: plan.circuit,
        request: digest,
        inline,
        objects,
        idempotency_key: asker.idempotency_key,
        actor: asker.actor,
        labels,
        priority,
        max_attempts,
        on_failure,
        partitions: plan.partitions,
        ticket_bytes: plan.ticket_bytes,
        budget_bytes: u64::MAX,
        deadline: None,
    };
    Ok((submit, plan))
}

/// Reads a retry's body, `{"replace": {"17": input}}`, against the canonical request that the job has now. `None` when
/// nothing is to be replaced.
///
/// # Errors
/// 400 when it isn't JSON, 422 when a field is wrong or the new request isn't the same job with other inputs.
pub fn replacement(
    body: &[u8],
    request: &[u8],
    kinds: &Kinds,
    desk: &dyn Desk,
) -> Result<Option<Replacement>, Problem> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let mut fields = object(body)?;
    let replace = fields.remove("replace");
    if let Some(unknown) = fields.keys().next() {
        return Err(unknown_field(unknown, &["replace"]));
    }
    let replace = match replace {
        None => return Ok(None),
        Some(Value::Object(replace)) if replace.is_empty() => return Ok(None),
        Some(Value::Object(replace)) => replace,
        Some(other) => {
            return Err(wrong(
                "replace",
                "an object of inputs by partition, such as {\"17\": {…}}",
                &other,
            ));
        }
    };
    let mut old = object(request)?;
    let kind = kind(&mut old, kinds)?;
    let common: Map<String, Value> = COMMON
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), old.remove(*name)?)))
        .collect();
    let mut common = common;
    common.insert("kind".to_owned(), kind.name().into());
    let Some(Value::Array(inputs)) = old.get_mut("inputs") else {
        let detail = format!(
            "replace: a job of kind {} has no inputs that could be replaced one by one",
            kind.name()
        );
        return Err(Problem::input("not-replaceable", detail));
    };
    let count = inputs.len();
    let mut partitions = Vec::new();
    for (name, input) in replace {
        let index = name
            .parse::<u32>()
            .ok()
            .filter(|index| (*index as usize) < count && index.to_string() == name);
        let Some(index) = index else {
            let detail = format!(
                "replace: expected partitions from \"0\" to \"{}\", found {name:?}",
                count - 1
            );
            return Err(Problem::input("unknown-partition", detail));
        };
        inputs[index as usize] = input;
        partitions.push(index);
    }
    partitions.sort_unstable();
    let circuit = old.get("circuit").cloned();
    let Canonical {
        digest,
        inline,
        objects,
        plan,
        ..
    } = canonical(kind.as_ref(), common, old, desk)?;
    let same = plan.partitions as usize == count && plan.fields.get("circuit") == circuit.as_ref();
    if !same {
        return Err(Problem::input(
            "not-replaceable",
            "replace: the new inputs would make another job; submit it as one",
        ));
    }
    Ok(Some(Replacement {
        request: digest,
        inline,
        objects,
        partitions,
    }))
}

fn canonical(
    kind: &dyn Kind,
    mut common: Map<String, Value>,
    fields: Map<String, Value>,
    desk: &dyn Desk,
) -> Result<Canonical, Problem> {
    let plan = kind.plan(fields, desk)?;
    if plan.partitions == 0 || plan.partitions > MAX_PARTITIONS {
        let detail = format!("expected 1 to {MAX_PARTITIONS} inputs, found {}", plan.partitions);
        return Err(Problem::input("inputs", detail));
    }
    common.extend(plan.fields.clone());
    let bytes = write(&Value::Object(common));
    let digest = Digest::of(&bytes);
    let mut objects = plan.objects.clone();
    let inline = if bytes.len() <= MAX_INLINE {
        Some(bytes.clone())
    } else {
        objects.push(desk.keep(&bytes)?);
        None
    };
    objects.sort_unstable();
    objects.dedup();
    Ok(Canonical {
        bytes,
        digest,
        inline,
        objects,
        plan,
    })
}

/// Writes JSON with sorted keys and no space, whatever order the map keeps.
fn write(value: &Value) -> Vec<u8> {
    fn put(value: &Value, out: &mut Vec<u8>) {
        match value {
            Value::Object(map) => {
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_unstable_by_key(|(key, _)| *key);
                out.push(b'{');
                for (index, (key, value)) in entries.into_iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    out.extend_from_slice(Value::from(key.as_str()).to_string().as_bytes());
                    out.push(b':');
                    put(value, out);
                }
                out.push(b'}');
            }
            Value::Array(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    put(item, out);
                }
                out.push(b']');
            }
            other => out.extend_from_slice(other.to_string().as_bytes()),
        }
    }
    let mut out = Vec::new();
    put(value, &mut out);
    out
}

fn object(body: &[u8]) -> Result<Map<String, Value>, Problem> {
    match value(body)? {
        Value::Object(fields) => Ok(fields),
        other => Err(not_an_object(&other)),
    }
}

/// Reads a body as JSON.
///
/// # Errors
/// 400 with line and column.
pub fn value(body: &[u8]) -> Result<Value, Problem> {
    serde_json::from_slice(body).map_err(|error| {
        let detail = if body.trim_ascii().is_empty() {
            "the body: expected JSON, found nothing".to_owned()
        } else {
            // serde_json's text has line and column and none of the content.
            format!("the body: expected JSON, found something else: {error}")
        };
        Problem::new(400, "malformed-json", "the body is not JSON", detail)
    })
}

fn not_an_object(found: &Value) -> Problem {
    let detail = format!("the body: expected a JSON object, found {}", described(found));
    Problem::new(400, "malformed-json", "the body is not a JSON object", detail)
}

fn kind<'a>(
    fields: &mut Map<String, Value>,
    kinds: &'a Kinds,
) -> Result<&'a std::sync::Arc<dyn Kind>, Problem> {
    let expected = format!("one of {}", kinds.names().join(", "));
    match fields.remove("kind") {
        Some(Value::String(name)) => kinds.get(&name).ok_or_else(|| {
            Problem::input(
                "unknown-kind",
                format!("kind: expected {expected}, found {name:?}"),
            )
        }),
        Some(other) => Err(wrong("kind", &expected, &other)),
        None => Err(Problem::input(
            "unknown-kind",
            format!("kind: expected {expected}, found nothing"),
        )),
    }
}

fn priority(fields: &mut Map<String, Value>) -> Result<Option<Priority>, Problem> {
    word(
        fields,
        "priority",
        &Priority::ALL.map(|priority| (priority.name(), priority)),
    )
}

fn on_failure(fields: &mut Map<String, Value>) -> Result<Option<OnFailure>, Problem> {
    word(
        fields,
        "on_failure",
        &[OnFailure::Continue, OnFailure::Stop].map(|choice| (choice.name(), choice)),
    )
}

fn word<T: Copy>(
    fields: &mut Map<String, Value>,
    name: &str,
    words: &[(&'static str, T)],
) -> Result<Option<T>, Problem> {
    let Some(value) = fields.remove(name) else {
        return Ok(None);
    };
    let found = value
        .as_str()
        .and_then(|text| words.iter().find(|(word, _)| *word == text));
    let expected = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    found
        .map(|(_, choice)| Some(*choice))
        .ok_or_else(|| wrong(name, &format!("one of {expected}"), &value))
}

fn max_attempts(fields: &mut Map<String, Value>) -> Result<Option<u32>, Problem> {
    let Some(value) = fields.remove("max_attempts") else {
        return Ok(None);
    };
    let number = value
        .as_u64()
        .filter(|number| (1..=100).contains(number))
        .and_then(|number| number.try_into().ok());
    number
        .map(Some)
        .ok_or_else(|| wrong("max_attempts", "a number from 1 to 100", &value))
}

fn labels(fields: &mut Map<String, Value>) -> Result<Vec<(String, String)>, Problem> {
    const EXPECTED: &str = "an object of at most 16 strings, keys of 1 to 63 bytes, values of at most 128, together at \
                            most 1024";
    let found = match fields.remove("labels") {
        None => return Ok(Vec::new()),
        Some(Value::Object(found)) => found,
        Some(other) => return Err(wrong("labels", EXPECTED, &other)),
    };
    let mut labels = Vec::with_capacity(found.len());
    for (key, value) in found {
        let Value::String(text) = value else {
            return Err(wrong(&format!("labels.{}", shown(&key)), "a string", &value));
        };
        if key.is_empty() || key.len() > 63 || text.len() > 128 {
            let found = format!(
                "a key of {} and a value of {}",
                count(key.len(), "byte"),
                text.len()
            );
            return Err(Problem::input(
                "labels",
                format!("labels: expected {EXPECTED}, found {found}"),
            ));
        }
        labels.push((key, text));
    }
    let bytes: usize = labels.iter().map(|(key, value)| key.len() + value.len()).sum();
    if labels.len() > 16 || bytes > 1024 {
        let found = format!("{}, {}", count(labels.len(), "label"), count(bytes, "byte"));
        return Err(Problem::input(
            "labels",
            format!("labels: expected {EXPECTED}, found {found}"),
        ));
    }
    labels.sort_unstable();
    Ok(labels)
}

/// 422 for a field that isn't there in this kind; kinds use it for their own, with the fields they have.
#[must_use]
pub fn unknown_field(name: &str, known: &[&str]) -> Problem {
    let detail = format!(
        "unknown field {:?}; the fields are {}",
        shown(name),
        known.join(", ")
    );
    Problem::input("unknown-field", detail).with("field", shown(name).into())
}

/// The names of the fields that every kind has, for the text about an unknown one.
#[must_use]
pub fn common_fields() -> &'static [&'static str] {
    &COMMON
}

fn wrong(field: &str, expected: &str, found: &Value) -> Problem {
    let found = described(found);
    Problem::input(
        "bad-field",
        format!("{field}: expected {expected}, found {found}"),
    )
}

fn described(found: &Value) -> String {
    match found {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("{:?}", shown(text)),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(fields) => format!("an object with {}", count(fields.len(), "field")),
    }
}

/// At most 64 characters of what somebody sent.
fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}
