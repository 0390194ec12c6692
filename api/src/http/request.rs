//! What came in.

use std::pin::Pin;
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::{Stream, StreamExt as _};
use proofkeep_engine::problem::Problem;
use proofkeep_formats::count;
use warp::http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use warp::http::{HeaderMap, Method};

use super::auth::Caller;
use super::problem::{malformed, media_type, too_large};
use super::query::Query;

/// The largest JSON body: one witness of 1 MiB as base64, with room for the rest.
pub(super) const MOST_JSON: u64 = 2 << 20;

/// A body that brings nothing for so long is given up.
const IDLE: Duration = Duration::from_secs(60);

/// How much of a body that nobody wants is still read, so that the client gets to read the answer.
const DRAINED: u64 = 16 << 20;
const DRAINED_WITHIN: Duration = Duration::from_secs(2);

/// A body's pieces, as they arrive.
pub(super) struct Body(Pin<Box<dyn Stream<Item = Result<Bytes, warp::Error>> + Send + Sync>>);

impl Body {
    /// Of what warp hands over.
    pub fn new(chunks: impl Stream<Item = Result<impl Buf, warp::Error>> + Send + Sync + 'static) -> Self {
        Self(Box::pin(chunks.map(|chunk| {
            chunk.map(|mut bytes| bytes.copy_to_bytes(bytes.remaining()))
        })))
    }
}

/// One request.
pub(super) struct Request {
    pub method: Method,
    pub path: String,
    pub raw_query: String,
    pub headers: HeaderMap,
    /// What stands for the `{…}` of the route, in order.
    pub params: Vec<String>,
    /// Who asks.
    caller: Option<Caller>,
    body: Body,
    /// The client was told to send the body, or sends it unasked.
    begun: bool,
}

impl Request {
    pub fn new(method: Method, path: String, raw_query: String, headers: HeaderMap, body: Body) -> Self {
        let begun = !headers.contains_key(EXPECT);
        Self {
            method,
            path,
            raw_query,
            headers,
            params: Vec::new(),
            caller: None,
            body,
            begun,
        }
    }

    /// Notes who asks.
    pub fn set_caller(&mut self, caller: Caller) {
        self.caller = Some(caller);
    }

    /// What records and the journal call who asks.
    pub fn actor(&self) -> &str {
        self.caller.as_ref().map_or("nobody", Caller::actor)
    }

    /// The `place`-th part of the path that the route leaves open.
    pub fn param(&self, place: usize) -> &str {
        self.params.get(place).map_or("", String::as_str)
    }

    /// The query parameters, which must be among `known`.
    pub fn query(&self, known: &[&str]) -> Result<Query, Problem> {
        Query::parse(&self.raw_query, known)
    }

    /// The media type of the body without its parameters, in lower case.
    pub fn media_type(&self) -> Option<String> {
        let value = self.headers.get(CONTENT_TYPE)?.to_str().ok()?;
        Some(value.split(';').next().unwrap_or("").trim().to_ascii_lowercase())
    }

    /// Refuses a body of another media type. Forms can't send these, so no web page gets a body past this.
    pub fn expect_media_type(&self, expected: &'static str) -> Result<(), Problem> {
        let found = self.media_type();
        if found.as_deref() == Some(expected) {
            Ok(())
        } else {
            Err(media_type(expected, found.as_deref()))
        }
    }

    /// The client's key for safe repeats.
    pub fn idempotency_key(&self) -> Result<Option<String>, Problem> {
        let Some(value) = self.headers.get("idempotency-key") else {
            return Ok(None);
        };
        let key = value
            .to_str()
            .ok()
            .filter(|key| (1..=128).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic()));
        key.map(|key| Some(key.to_owned())).ok_or_else(|| {
            let found = count(value.len(), "byte");
            malformed(
                "malformed-header",
                format!("idempotency-key: expected 1 to 128 visible ASCII characters, found {found}"),
            )
        })
    }

    /// A JSON body.
    pub async fn json(&mut self) -> Result<Bytes, Problem> {
        self.expect_media_type("application/json")?;
        self.bytes(MOST_JSON).await
    }

    /// A JSON body that may be left out.
    pub async fn optional_json(&mut self) -> Result<Bytes, Problem> {
        let bytes = self.bytes(MOST_JSON).await?;
        if !bytes.is_empty() {
            self.expect_media_type("application/json")?;
        }
        Ok(bytes)
    }

    /// The whole body, at most `limit` bytes of it.
    pub async fn bytes(&mut self, limit: u64) -> Result<Bytes, Problem> {
        self.check_length(limit)?;
        let mut all = Vec::new();
        while let Some(bytes) = self.chunk().await? {
            if (all.len() + bytes.len()) as u64 > limit {
                return Err(too_large(limit));
            }
            all.extend_from_slice(&bytes);
        }
        Ok(all.into())
    }

    /// Refuses a body that says beforehand that it is too large.
    pub fn check_length(&self, limit: u64) -> Result<(), Problem> {
        match self
            .headers
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse::<u64>().ok())
        {
            Some(length) if length > limit => Err(too_large(limit)),
            _ => Ok(()),
        }
    }

    /// The next piece of the body; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Problem> {
        self.begun = true;
        match tokio::time::timeout(IDLE, self.body.0.next()).await {
            Ok(None) => Ok(None),
            Ok(Some(Ok(bytes))) => Ok(Some(bytes)),
            Ok(Some(Err(_))) => Err(malformed(
                "body-interrupted",
                "the body ended before it was whole; send it again",
            )
            .retryable()),
            Err(_) => {
                let detail = format!(
                    "nothing of the body arrived for {} seconds; send it again",
                    IDLE.as_secs()
                );
                Err(Problem::new(408, "body-timeout", "the body stopped coming", detail).retryable())
            }
        }
    }

    /// Reads on for a moment when an answer goes out early: a client that is still sending would lose the answer with
    /// its connection. One that waits to be told to send has sent nothing.
    pub async fn drain(&mut self) {
        if !self.begun {
            return;
        }
        let drain = async {
            let mut left = DRAINED;
            while let Some(Ok(bytes)) = self.body.0.next().await {
                left = left.saturating_sub(bytes.len() as u64);
                if left == 0 {
                    break;
                }
            }
        };
        // Whether it came to its end or not, the answer goes out now.
        let _ = tokio::time::timeout(DRAINED_WITHIN, drain).await;
    }
}
