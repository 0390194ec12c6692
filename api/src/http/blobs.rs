//! `PUT /v1/blobs/sha256:{hex}`, `POST /v1/blobs`, `HEAD /v1/blobs/sha256:{hex}`: inputs and files of circuits, named by
//! what is in them. What was uploaded isn't given out again: witnesses are secret.

use proofkeep_engine::problem::Problem;
use proofkeep_store::ids::Digest;
use serde_json::json;
use warp::http::StatusCode;
use warp::http::header::{CONTENT_LENGTH, LOCATION};

use super::answer::{Outcome, empty, json, with};
use super::context::Context;
use super::problem::{malformed, shown};
use super::request::Request;
use super::upload::{Received, receive};

/// Keeps a body under the digest that the client says it has.
pub(super) async fn put(context: &Context, request: &mut Request) -> Outcome {
    request.query(&[])?;
    let digest = digest(request.param(0))?;
    let limit = context.settings.max_upload;
    Ok(answer(receive(context, request, Some(digest), limit).await?))
}

/// Keeps a body and says its digest. The media type keeps forms of web pages out.
pub(super) async fn post(context: &Context, request: &mut Request) -> Outcome {
    request.query(&[])?;
    request.expect_media_type("application/octet-stream")?;
    let limit = context.settings.max_upload;
    Ok(answer(receive(context, request, None, limit).await?))
}

/// Is it there? If so, it is kept for another 24 hours without a record that names it.
pub(super) async fn head(context: &Context, request: &mut Request) -> Outcome {
    request.query(&[])?;
    let digest = digest(request.param(0))?;
    let objects = context.engine.store().objects().clone();
    let found = context
        .blocking(move || objects.touch(digest).and_then(|_| objects.stat(digest)))
        .await?;
    match found {
        Ok(Some(stat)) => Ok(with(
            empty(StatusCode::OK),
            CONTENT_LENGTH,
            &stat.length.to_string(),
        )),
        Ok(None) => {
            let detail = format!("there is no blob {digest}; upload it with PUT /v1/blobs/{digest}");
            Err(Problem::new(404, "unknown-blob", "there is no such blob", detail))
        }
        Err(error) => {
            Err(Problem::new(500, "io", "the disk refused something", error.to_string()).retryable())
        }
    }
}

fn answer(received: Received) -> super::answer::Answer {
    let digest = received.digest.to_string();
    let status = if received.was_there {
        StatusCode::OK
    } else {
        StatusCode::CREATED
    };
    let answer = json(status, &json!({ "digest": digest, "size": received.size }));
    with(answer, LOCATION, &format!("/v1/blobs/{digest}"))
}

fn digest(text: &str) -> Result<Digest, Problem> {
    let digest = text.strip_prefix("sha256:").and_then(Digest::parse);
    digest.ok_or_else(|| {
        malformed(
            "malformed-digest",
            format!("expected sha256: and 64 hex digits, found {:?}", shown(text)),
        )
    })
}
