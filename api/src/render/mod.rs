//! JSON as it goes out, drawn from what the store was asked. Digests, tokens and field elements are strings; moments are
//! RFC 3339 in UTC with milliseconds; durations are whole milliseconds. No secret of a witness ever stands in a record
//! that is drawn here, checkpoints excepted, of which only the names are.

pub(crate) mod backup;
pub(crate) mod circuit;
pub(crate) mod event;
pub(crate) mod job;
pub(crate) mod partition;
pub(crate) mod proof;
pub(crate) mod status;
pub(crate) mod time;
pub(crate) mod token;

use proofkeep_store::query::Counted;
use proofkeep_store::records::Failure;
use serde_json::{Value, json};

/// `{class, code, detail}`.
pub(crate) fn failure(failure: &Failure) -> Value {
    json!({ "class": failure.class.name(), "code": failure.code, "detail": failure.detail })
}

/// A number; `{at_least}` when counting stopped there.
pub(crate) fn counted(counted: Counted) -> Value {
    if counted.more {
        json!({ "at_least": counted.count })
    } else {
        counted.count.into()
    }
}

/// The same or `null`.
pub(crate) fn text<T: ToString>(value: Option<T>) -> Value {
    value.map_or(Value::Null, |value| value.to_string().into())
}
