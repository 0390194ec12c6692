//! `/v1/tokens`: make, list, remove. A secret is in the answer that made it and nowhere else.

use std::sync::Arc;

use proofkeep_engine::problem::Problem;
use serde::Deserialize;
use serde_json::{Value, json};
use warp::http::StatusCode;

use super::answer::{Outcome, empty, json};
use super::context::Context;
use super::request::Request;
use crate::render::token::draw;
use crate::tokens::{Scope, TokenError, USUAL_RATE, Wanted};

/// The body of a request for a new one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    name: String,
    #[serde(default)]
    scopes: Option<Vec<String>>,
    #[serde(default)]
    rate: Option<u32>,
}

/// Each of them, without what would let anybody in.
pub(super) async fn list(context: &Context, request: &mut Request) -> Outcome {
    request.query(&[])?;
    let tokens: Vec<Value> = context.guard.list().iter().map(draw).collect();
    Ok(json(StatusCode::OK, &json!({ "tokens": tokens })))
}

/// Makes one.
pub(super) async fn add(context: &Context, request: &mut Request) -> Outcome {
    request.query(&[])?;
    let wanted = read(&request.json().await?)?;
    let guard = Arc::clone(&context.guard);
    let now = context.engine.clock().now();
    let made = context.blocking(move || guard.add(wanted, now)).await?;
    let (token, secret) = made.map_err(|error| problem(&error))?;
    let scopes: Vec<_> = token.scopes.iter().map(|scope| scope.name()).collect();
    tracing::info!(name = %token.name, ?scopes, actor = %request.actor(), "a token was made");
    let mut shown = draw(&token);
    shown["token"] = secret.show().into();
    Ok(json(StatusCode::CREATED, &shown))
}

/// Removes one.
pub(super) async fn remove(context: &Context, request: &mut Request) -> Outcome {
    request.query(&[])?;
    let name = request.param(0).to_owned();
    let guard = Arc::clone(&context.guard);
    let removed = context.blocking(move || guard.remove(&name)).await?;
    removed.map_err(|error| problem(&error))?;
    tracing::info!(name = %request.param(0), actor = %request.actor(), "a token was removed");
    Ok(empty(StatusCode::NO_CONTENT))
}

fn read(body: &[u8]) -> Result<Wanted, Problem> {
    let body: Body = serde_json::from_slice(body).map_err(|error| {
        let detail = format!(
            "expected {{\"name\": \"…\", \"scopes\": [\"read\", \"submit\"], \"rate\": 100}}: {error}"
        );
        match error.classify() {
            serde_json::error::Category::Data => Problem::input("bad-field", detail),
            _ => Problem::new(400, "malformed-json", "the body can't be read", detail),
        }
    })?;
    let names = body
        .scopes
        .unwrap_or_else(|| vec!["read".to_owned(), "submit".to_owned()]);
    let mut scopes = Vec::new();
    for name in names {
        scopes.push(Scope::parse(&name).ok_or_else(|| {
            let detail = format!(
                "scopes: expected read, submit or admin, found {:?}",
                super::problem::shown(&name)
            );
            Problem::input("bad-field", detail)
        })?);
    }
    Ok(Wanted {
        name: body.name,
        scopes,
        rate: body.rate.unwrap_or(USUAL_RATE),
    })
}

fn problem(error: &TokenError) -> Problem {
    let detail = error.to_string();
    let code = error.code();
    match error {
        TokenError::Name | TokenError::Field(_) => Problem::input(code, detail),
        TokenError::Taken(_) | TokenError::TooMany => Problem::new(409, code, "no token was made", detail),
        TokenError::Unknown(_) => Problem::new(404, code, "there is no such token", detail),
        TokenError::Random(_) | TokenError::Io { .. } | TokenError::Damaged { .. } => {
            Problem::new(500, code, "the tokens can't be changed", detail)
        }
    }
}
