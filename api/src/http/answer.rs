//! What goes out.

use bytes::Bytes;
use futures_util::Stream;
use proofkeep_engine::problem::Problem;
use serde_json::Value;
use warp::Reply as _;
use warp::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use warp::http::{Response, StatusCode};

/// A whole answer.
pub(super) type Answer = warp::reply::Response;

/// What a handler comes to.
pub(super) type Outcome = Result<Answer, Problem>;

/// JSON with a status.
pub(super) fn json(status: StatusCode, value: &Value) -> Answer {
    body(status, "application/json", value.to_string())
}

/// Text or bytes of a media type.
pub(super) fn body(status: StatusCode, media_type: &'static str, bytes: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(bytes.into().into());
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    answer
}

/// A body that is made while it is sent.
pub(super) fn stream<S>(media_type: &'static str, chunks: S) -> Answer
where
    S: Stream<Item = Result<Bytes, std::io::Error>> + Send + Sync + 'static,
{
    let mut answer = warp::reply::stream(chunks).into_response();
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    answer
}

/// Nothing but a status.
pub(super) fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Bytes::new().into());
    *answer.status_mut() = status;
    answer
}

/// The answer with one more header; a value that no header may have is left out.
pub(super) fn with(mut answer: Answer, name: HeaderName, value: &str) -> Answer {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
    answer
}

/// What every answer says: it may not be kept, it is what its media type says, and a browser that shows it runs nothing
/// of it, puts it in no page of another site and tells nobody where it was.
const ON_EVERY_ANSWER: [(&str, &str); 5] = [
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
    (
        "content-security-policy",
        "default-src 'none'; frame-ancestors 'none'",
    ),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// The answer with the headers that every one has; a handler's own stay.
pub(super) fn finished(mut answer: Answer) -> Answer {
    let headers = answer.headers_mut();
    for (name, value) in ON_EVERY_ANSWER {
        headers
            .entry(HeaderName::from_static(name))
            .or_insert(HeaderValue::from_static(value));
    }
    answer
}

/// The same headers for an answer that is written by hand.
pub(super) fn as_lines() -> String {
    ON_EVERY_ANSWER
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect()
}
