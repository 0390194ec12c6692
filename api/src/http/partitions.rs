//! `GET /v1/jobs/{id}/partitions[/{k}[/proof|/public]]`: each partition, and its proof as soon as there is one.

use proofkeep_engine::problem::Problem;
use proofkeep_store::ids::JobNumber;
use proofkeep_store::query::{self, PartitionDetail};
use proofkeep_store::records::PartitionState;
use serde_json::json;
use warp::http::StatusCode;

use super::answer::{Outcome, json};
use super::context::Context;
use super::problem::{not_ready, proof_damaged};
use super::proofs::{self, checked, proof_answer, public_answer};
use super::request::Request;
use crate::render::{job, partition};

/// Attempts shown of a partition that is asked for alone.
const ATTEMPTS: usize = 1000;

/// A page of partitions.
pub(super) async fn list(context: &Context, request: &mut Request) -> Outcome {
    let query = request.query(&["from", "limit"])?;
    let limit = query.limit(job::PARTITIONS, 256)?;
    let from = query
        .read("from", "the index of a partition", |text| text.parse().ok())?
        .unwrap_or(0);
    let number = context.job(request.param(0)).await?;
    let page = context
        .read(move |view| query::partitions(view, number, from, limit, job::ATTEMPTS))
        .await?;
    let partitions: Vec<_> = page.partitions.iter().map(partition::draw).collect();
    Ok(json(
        StatusCode::OK,
        &json!({ "partitions": partitions, "next": page.next }),
    ))
}

/// One partition.
pub(super) async fn show(context: &Context, request: &mut Request) -> Outcome {
    request.query(&[])?;
    let found = find(context, request, ATTEMPTS).await?.1;
    Ok(json(StatusCode::OK, &partition::draw(&found)))
}

/// Its proof.
pub(super) async fn proof(context: &Context, request: &mut Request) -> Outcome {
    let format = proofs::proof_format(&request.query(&["format"])?)?;
    let found = find(context, request, 0).await?.1;
    let stored = found.proof.as_ref().ok_or_else(|| unproved(&found))?;
    proof_answer(&[checked(stored)?], format, true)
}

/// Its public signals.
pub(super) async fn public(context: &Context, request: &mut Request) -> Outcome {
    let format = proofs::public_format(&request.query(&["format"])?)?;
    let found = find(context, request, 0).await?.1;
    let stored = found.proof.as_ref().ok_or_else(|| unproved(&found))?;
    let bytes = proofs::public_of(context, stored).await?;
    public_answer(&[bytes], format, true)
}

fn unproved(found: &PartitionDetail) -> Problem {
    let partition = &found.partition;
    if partition.state == PartitionState::Proved {
        return proof_damaged(format!(
            "the stored proof of partition {} can't be read",
            partition.index
        ));
    }
    not_ready(format!(
        "partition {} is {}; its proof is there as soon as it is proved",
        partition.index,
        partition.state.name()
    ))
}

async fn find(
    context: &Context,
    request: &Request,
    attempts: usize,
) -> Result<(JobNumber, PartitionDetail), Problem> {
    let (id, index) = (request.param(0).to_owned(), request.param(1).to_owned());
    let number = context.job(&id).await?;
    let unknown = || {
        let detail = format!(
            "job {id} has no partition {:?}; indexes begin at 0",
            super::problem::shown(&index)
        );
        Problem::new(404, "unknown-partition", "there is no such partition", detail)
    };
    let place: u32 = index.parse().map_err(|_| unknown())?;
    let found = context
        .read(move |view| query::partition(view, number, place, attempts))
        .await?;
    Ok((number, found.ok_or_else(unknown)?))
}
