//! `POST /v1/circuits/{name}/prove`: one call from an input to a proof. It is a job like any other: it shows in lists,
//! and goes on if the client doesn't wait long enough.

use std::time::Duration;

use proofkeep_engine::kinds::groth16;
use proofkeep_engine::problem::Problem;
use proofkeep_engine::request::Asker;
use proofkeep_store::ids::JobNumber;
use proofkeep_store::query;
use proofkeep_store::records::{Failure, FailureClass, JobState};
use serde_json::json;
use warp::http::StatusCode;
use warp::http::header::LOCATION;

use super::answer::{Outcome, json, with};
use super::context::Context;
use super::problem::{media_type, proof_damaged};
use super::request::{MOST_JSON, Request};
use super::upload::receive;
use super::{circuits, jobs, prefer, proofs};
use crate::render::proof::{ProofFormat, proof_json, public_json};

/// How long it waits for a client that doesn't say.
const USUAL_WAIT: Duration = Duration::from_secs(60);

/// Proves a `.wtns` (`application/octet-stream`) or circom's `input.json` (`application/json`).
pub(super) async fn prove(context: &Context, request: &mut Request) -> Outcome {
    request.query(&[])?;
    let wait = prefer::wait(&request.headers)?;
    let idempotency_key = request.idempotency_key()?;
    let circuit = circuits::find(context, request.param(0)).await?;
    let (field, limit) = match request.media_type().as_deref() {
        Some("application/octet-stream") => ("witness", context.settings.max_upload),
        Some("application/json") => ("input_blob", MOST_JSON),
        other => {
            return Err(media_type(
                "application/octet-stream (a .wtns) or application/json (input.json)",
                other,
            ));
        }
    };
    let received = receive(context, request, None, limit).await?;
    let body = json!({
        "kind": groth16::NAME,
        "circuit": circuit.digest.to_string(),
        "inputs": [{ field: received.digest.to_string() }],
    });
    let asker = Asker {
        actor: request.actor().to_owned(),
        idempotency_key,
    };
    let submitted = context.engine.submit(body.to_string().into(), asker).await?;
    let location = format!("/v1/jobs/{}", submitted.id);
    let granted = wait.unwrap_or(USUAL_WAIT);
    if !jobs::wait_for_end(context, submitted.job, granted).await? {
        let answer = jobs::shown(context, submitted.job, StatusCode::ACCEPTED).await?;
        return Ok(prefer::applied(with(answer, LOCATION, &location), Some(granted)));
    }
    let proved = proved(context, submitted.job).await;
    let answer = proved.map_err(|problem| problem.with("job", submitted.id.to_string().into()))?;
    Ok(prefer::applied(with(answer, LOCATION, &location), Some(granted)))
}

async fn proved(context: &Context, number: JobNumber) -> Outcome {
    let job = jobs::record(context, number).await?;
    if job.state != JobState::Succeeded {
        let generation = job.generation;
        let lives = context
            .read(move |view| query::generations(view, number, 1))
            .await?;
        let failure = lives
            .into_iter()
            .find(|life| life.number == generation)
            .and_then(|life| life.failure);
        return Err(failed(job.state, failure));
    }
    let stored = proofs::all(context, number).await?;
    let Some(stored) = stored.first() else {
        return Err(proof_damaged("the proof is not there"));
    };
    let proof = proof_json(&proofs::checked(stored)?, ProofFormat::Snarkjs).map_err(proof_damaged)?;
    let signals = public_json(&proofs::public_of(context, stored).await?).map_err(proof_damaged)?;
    let body = json!({ "proof": proof, "publicSignals": signals, "job": job.id.to_string() });
    Ok(json(StatusCode::CREATED, &body))
}

/// A job that ended without a proof, as the answer to who wanted the proof: 422 when the input was at fault.
fn failed(state: JobState, failure: Option<Failure>) -> Problem {
    let Some(failure) = failure else {
        let detail = format!(
            "the job was {} before it was proved; submit it again if that was not meant",
            state.name()
        );
        return Problem::new(409, state.name(), "the job ended without a proof", detail);
    };
    let (status, retryable) = match failure.class {
        FailureClass::InputInvalid
        | FailureClass::Unsatisfied
        | FailureClass::InputMissing
        | FailureClass::ParamsMismatch => (422, false),
        FailureClass::CircuitFailed => (409, false),
        FailureClass::OutOfMemory => (503, true),
        _ => (500, true),
    };
    let mut problem = Problem::new(
        status,
        &failure.code,
        "the input could not be proved",
        failure.detail,
    )
    .with("class", failure.class.name().into());
    problem.retryable = retryable;
    problem
}
