//! `/v1/circuits`: register, list, show, remove, and their verification keys.

use std::time::{Duration, Instant};

use proofkeep_engine::problem::Problem;
use proofkeep_store::ids::Digest;
use proofkeep_store::query;
use proofkeep_store::records::{Circuit, CircuitState};
use serde_json::json;
use warp::http::StatusCode;
use warp::http::header::{HeaderName, LINK, LOCATION};

use super::answer::{Outcome, body, empty, json, with};
use super::context::Context;
use super::prefer;
use super::problem::{not_ready, shown};
use super::request::Request;
use crate::render::circuit;

/// On the verification key of a circuit that anyone can forge proofs for.
const INSECURE: HeaderName = HeaderName::from_static("proofkeep-insecure");

/// Registers a circuit. 202 while it is imported; `Prefer: wait` waits for the import.
pub(super) async fn put(context: &Context, request: &mut Request) -> Outcome {
    let replace = request.query(&["replace"])?.flag("replace")?;
    let wait = prefer::wait(&request.headers)?;
    let body = request.json().await?;
    let name = request.param(0).to_owned();
    let registered = context
        .engine
        .register_circuit(&name, body.into(), replace, request.actor())
        .await?;
    let found = imported(context, registered.circuit.digest, wait.unwrap_or_default()).await?;
    let status = match found.state {
        _ if registered.unchanged => StatusCode::OK,
        CircuitState::Importing(_) => StatusCode::ACCEPTED,
        CircuitState::Ready | CircuitState::Failed(_) => StatusCode::CREATED,
    };
    let answer = with(
        drawn(context, &name, &found, status),
        LOCATION,
        &format!("/v1/circuits/{name}"),
    );
    Ok(prefer::applied(answer, wait))
}

/// A page of circuits, by name.
pub(super) async fn list(context: &Context, request: &mut Request) -> Outcome {
    let query = request.query(&["after", "limit"])?;
    let limit = query.limit(50, 256)?;
    let after = query.one("after")?.map(str::to_owned);
    let page = context
        .read(move |view| query::circuits(view, after.as_deref(), limit))
        .await?;
    let now = context.engine.clock().now();
    let keys = context.engine.memory().keys;
    let resident = |digest| {
        keys.iter()
            .find(|key| key.circuit == digest && key.resident)
            .map(|key| key.bytes)
    };
    let circuits: Vec<_> = page
        .circuits
        .iter()
        .map(|(name, found)| {
            let refused = context.engine.refused(found);
            circuit::draw(name, found, resident(found.digest), refused, now)
        })
        .collect();
    let answer = json(
        StatusCode::OK,
        &json!({ "circuits": circuits, "next": page.next }),
    );
    Ok(match page.next {
        Some(next) => with(
            answer,
            LINK,
            &format!("</v1/circuits?limit={limit}&after={next}>; rel=\"next\""),
        ),
        None => answer,
    })
}

/// One circuit, by name or digest. `Prefer: wait` waits for its import.
pub(super) async fn show(context: &Context, request: &mut Request) -> Outcome {
    request.query(&[])?;
    let wait = prefer::wait(&request.headers)?;
    let found = find(context, request.param(0)).await?;
    let found = imported(context, found.digest, wait.unwrap_or_default()).await?;
    Ok(prefer::applied(
        drawn(context, name_of(request, &found), &found, StatusCode::OK),
        wait,
    ))
}

/// Forgets a circuit.
pub(super) async fn delete(context: &Context, request: &mut Request) -> Outcome {
    request.query(&[])?;
    context
        .engine
        .remove_circuit(request.param(0), request.actor())
        .await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

/// Its verification key, as snarkjs reads it.
pub(super) async fn vk(context: &Context, request: &mut Request) -> Outcome {
    let query = request.query(&["format"])?;
    query.read("format", "snarkjs", |text| (text == "snarkjs").then_some(()))?;
    let found = find(context, request.param(0)).await?;
    let answer = body(
        StatusCode::OK,
        "application/json",
        context.object(vk_of(&found)?).await?,
    );
    Ok(match found.facts.insecure {
        // The body is snarkjs's, member for member, so the warning stands beside it.
        true => with(answer, INSECURE, "true"),
        false => answer,
    })
}

/// The object with a circuit's verification key; 409 before it is imported.
pub(super) fn vk_of(found: &Circuit) -> Result<Digest, Problem> {
    found.vk.ok_or_else(|| match &found.state {
        CircuitState::Failed(why) => {
            let detail = format!("circuit {:?} was refused at import: {}", found.name, why.detail);
            Problem::new(409, "circuit-failed", "the circuit was refused", detail)
        }
        _ => {
            let mut problem = not_ready(format!(
                "circuit {:?} is still being imported; GET /v1/circuits/{} says how far it is",
                found.name, found.name
            ));
            problem.code = "circuit-not-ready".to_owned();
            problem
        }
    })
}

/// The circuit that a name or `sha256:…` points to.
pub(super) async fn find(context: &Context, name: &str) -> Result<Circuit, Problem> {
    let wanted = name.to_owned();
    let read = move |view: &dyn proofkeep_store::view::View| match wanted
        .strip_prefix("sha256:")
        .and_then(Digest::parse)
    {
        Some(digest) => query::circuit(view, digest),
        None => query::circuit_by_name(view, &wanted),
    };
    context.read(read).await?.ok_or_else(|| {
        let detail = format!("there is no circuit {:?}; GET /v1/circuits lists those there are, PUT /v1/circuits/{{name}} registers one", shown(name));
        Problem::new(404, "unknown-circuit", "there is no such circuit", detail)
    })
}

/// The circuit once its import is over, or when time is up.
async fn imported(context: &Context, digest: Digest, wait: Duration) -> Result<Circuit, Problem> {
    let until = Instant::now() + wait;
    let mut seen = context.engine.handle().durable();
    loop {
        seen.borrow_and_update();
        let Some(found) = context.read(move |view| query::circuit(view, digest)).await? else {
            let detail = format!("circuit {digest} was removed meanwhile");
            return Err(Problem::new(
                404,
                "unknown-circuit",
                "there is no such circuit",
                detail,
            ));
        };
        let over = !matches!(found.state, CircuitState::Importing(_));
        if over || wait.is_zero() || !context.grown(&mut seen, until).await {
            return Ok(found);
        }
    }
}

fn name_of<'a>(request: &'a Request, found: &'a Circuit) -> &'a str {
    let asked = request.param(0);
    if asked.starts_with("sha256:") {
        &found.name
    } else {
        asked
    }
}

fn drawn(context: &Context, name: &str, found: &Circuit, status: StatusCode) -> super::answer::Answer {
    let keys = context.engine.memory().keys;
    let resident = keys
        .iter()
        .find(|key| key.circuit == found.digest && key.resident)
        .map(|key| key.bytes);
    json(
        status,
        &circuit::draw(
            name,
            found,
            resident,
            context.engine.refused(found),
            context.engine.clock().now(),
        ),
    )
}
