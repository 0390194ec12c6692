//! An input that is refused.

use std::panic::{AssertUnwindSafe, catch_unwind};

use proofkeep_engine::problem::Problem;
use serde_json::Value;

/// The most characters of what somebody sent that are shown.
const SHOWN: usize = 64;

/// Says which field is wrong, what was expected there and what was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: expected {expected}, found {found}")]
pub struct Invalid {
    /// A stable code.
    pub code: &'static str,
    /// The field of the request, and the place in its file: `vanilla_proofs[3].comm_r`.
    pub field: String,
    /// What belongs there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl Invalid {
    /// A field with something else than belongs there.
    pub fn new(
        code: &'static str,
        field: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self {
            code,
            field: field.into(),
            expected: expected.into(),
            found: found.into(),
        }
    }

    /// A field of a request with a value of another form.
    pub fn field(field: &str, expected: impl Into<String>, found: Option<&Value>) -> Self {
        let found = match found {
            None => "nothing".to_owned(),
            Some(Value::Null) => "null".to_owned(),
            Some(Value::Bool(value)) => value.to_string(),
            Some(Value::Number(number)) => shown(&number.to_string()),
            Some(Value::String(text)) => format!("{:?}", shown(text)),
            Some(Value::Array(items)) => format!("an array of {}", items.len()),
            Some(Value::Object(_)) => "an object".to_owned(),
        };
        Self::new("bad-field", field, expected, found)
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        Problem::input(invalid.code, invalid.to_string())
            .with("field", invalid.field.into())
            .with("expected", invalid.expected.into())
            .with("found", invalid.found.into())
    }
}

/// At most so much of what somebody sent.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

/// Runs published code that may assert on what it was given: a panic means that the input is malformed in a way that no
/// check before it knew.
pub(crate) fn caught<T>(field: &str, work: impl FnOnce() -> Result<T, Invalid>) -> Result<T, Invalid> {
    // Nothing is kept that the work touched.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Invalid::new(
            "vanilla-malformed",
            field,
            "a vanilla proof of this kind and sector size",
            "one of another shape",
        ))
    })
}
