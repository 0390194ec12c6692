//! Every error is `application/problem+json` (RFC 9457) with `type title status detail instance code retryable`, and the
//! members that its code names.

use std::time::Duration;

use bytes::Bytes;
use proofkeep_engine::desk::job_damaged;
use proofkeep_engine::problem::Problem;
use proofkeep_store::view::ReadError;
use serde_json::{Map, Value};
use warp::http::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use warp::http::{Method, Response, StatusCode};

use super::answer::Answer;

pub(super) const MEDIA_TYPE: &str = "application/problem+json";

/// The answer that says `problem` about the resource at `path`.
pub(super) fn answer(problem: &Problem, path: &str) -> Answer {
    let status = status(problem);
    let mut answer = Response::new(Bytes::from(body(problem, path)).into());
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    if matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    ) {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if let Some(challenge) = challenge(problem) {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    }
    answer
}

/// What a client that can get a token is to get (RFC 6750).
fn challenge(problem: &Problem) -> Option<&'static str> {
    match (problem.status, problem.code.as_str()) {
        (401, "token-missing") => Some("Bearer realm=\"proofkeep\""),
        (401, _) => Some("Bearer realm=\"proofkeep\", error=\"invalid_token\""),
        (403, "scope") => Some("Bearer realm=\"proofkeep\", error=\"insufficient_scope\""),
        _ => None,
    }
}

fn status(problem: &Problem) -> StatusCode {
    StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// What the answer says, as JSON.
pub(super) fn body(problem: &Problem, path: &str) -> String {
    let mut members = Map::new();
    members.extend(problem.members.iter().cloned());
    members.insert(
        "type".to_owned(),
        format!("urn:proofkeep:problem:{}", problem.code).into(),
    );
    members.insert("title".to_owned(), problem.title.as_str().into());
    members.insert("status".to_owned(), status(problem).as_u16().into());
    members.insert("detail".to_owned(), problem.detail.as_str().into());
    members.insert("instance".to_owned(), path.into());
    members.insert("code".to_owned(), problem.code.as_str().into());
    members.insert("retryable".to_owned(), problem.retryable.into());
    Value::Object(members).to_string()
}

/// 503, before anything of a request was read.
pub(super) fn too_many_connections(most: usize) -> Problem {
    let detail = format!(
        "the daemon has the {most} connections that max_connections allows; close some that you don't need, or try again"
    );
    Problem::new(
        503,
        "too-many-connections",
        "there are too many connections",
        detail,
    )
    .retryable()
}

/// 405, with the methods that there are.
pub(super) fn method_not_allowed(method: &Method, path: &str, allowed: &[Method]) -> Answer {
    let allowed = allowed.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
    let detail = format!("{method} is not possible here; expected {allowed}");
    let problem = Problem::new(
        405,
        "method-not-allowed",
        "the resource has no such method",
        detail,
    );
    let mut answer = answer(&problem, path);
    if let Ok(value) = HeaderValue::from_str(&allowed) {
        answer.headers_mut().insert(ALLOW, value);
    }
    answer
}

/// 404 for a path that leads nowhere.
pub(super) fn no_such_path(path: &str) -> Problem {
    let detail = format!(
        "there is nothing at {:?}; the resources begin with /v1/, and are listed in the documentation",
        shown(path)
    );
    Problem::new(404, "not-found", "there is nothing at this path", detail)
}

/// 400 for something outside of the body that can't be read.
pub(super) fn malformed(code: &str, detail: impl Into<String>) -> Problem {
    Problem::new(400, code, "the request can't be read", detail)
}

/// 413, with the limit.
pub(super) fn too_large(limit: u64) -> Problem {
    let detail = format!(
        "the body is larger than the limit of {limit} bytes; upload large inputs with PUT /v1/blobs/{{digest}} and name their digests"
    );
    Problem::new(413, "too-large", "the body is too large", detail).with("limit", limit.into())
}

/// 415, with what would do.
pub(super) fn media_type(expected: &str, found: Option<&str>) -> Problem {
    let found = found.map_or_else(|| "none".to_owned(), |found| format!("{:?}", shown(found)));
    let detail = format!("expected the header content-type: {expected}, found {found}");
    Problem::new(415, "media-type", "the body has another media type", detail)
}

/// 409 for what isn't there yet.
pub(super) fn not_ready(detail: impl Into<String>) -> Problem {
    Problem::new(409, "not-ready", "there is none yet", detail).retryable()
}

/// 500: a record is damaged, or the disk can't be read.
pub(super) fn unreadable(error: &ReadError) -> Problem {
    if error.job().is_some() {
        return job_damaged(error);
    }
    let detail = format!("{error}; stop the daemon and run `proofkeep fsck`");
    Problem::new(500, "store-unreadable", "the store can't be read", detail)
}

/// 500: a stored proof is not what was stored.
pub(super) fn proof_damaged(detail: impl std::fmt::Display) -> Problem {
    let detail = format!("{detail}; retry the job to prove the damaged partitions again");
    Problem::new(500, "proof-damaged", "a stored proof is damaged", detail)
}

/// 500: something that must not happen did. Says nothing of the inside.
pub(super) fn internal() -> Problem {
    let detail = "the daemon failed to answer this request; its log says more, please report it";
    Problem::new(500, "internal", "the daemon failed", detail)
}

/// 503 while the daemon comes up.
pub(super) fn starting() -> Problem {
    let detail = "the daemon is recovering and will answer in a moment; GET /readyz says when";
    Problem::new(503, "starting", "the daemon is starting", detail).retryable()
}

/// 503 while the daemon goes down.
pub(super) fn draining() -> Problem {
    let detail = "the daemon is stopping and takes nothing new; send it again when it is back";
    Problem::new(503, "draining", "the daemon is stopping", detail).retryable()
}

/// 503 while the commit thread is stuck, and nothing can be stored or read.
pub(super) fn stuck(silent: Duration) -> Problem {
    let detail = format!(
        "the commit thread was last seen {} s ago; the disk hangs, or the daemon is at fault: look at the disk, then \
         restart the daemon; what was acknowledged is kept",
        silent.as_secs()
    );
    Problem::new(503, "stuck", "nothing is being stored", detail).retryable()
}

/// At most 80 characters of what somebody sent.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}
