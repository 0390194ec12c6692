//! `GET /v1/jobs/{id}/proof`, `/public` and `/results`: what a job is for. One input gives one object, several an array
//! by index (or their bytes one after the other). `results` gives what is proved, a line each, however the job stands.

use std::io;
use std::panic::AssertUnwindSafe;

use bytes::Bytes;
use futures_util::FutureExt as _;
use proofkeep_engine::problem::Problem;
use proofkeep_formats::count;
use proofkeep_store::ids::{Digest, JobNumber};
use proofkeep_store::query::{self, ProofPage};
use proofkeep_store::records::{Job, JobState, StoredProof};
use proofkeep_store::view::View;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use warp::http::StatusCode;

use super::answer::{Outcome, body, json, stream};
use super::context::Context;
use super::jobs;
use super::problem::{not_ready, proof_damaged};
use super::query::Query;
use super::request::Request;
use crate::render::proof::{ProofFormat, PublicFormat, proof_bytes, proof_json, public_bytes, public_json};

/// Proofs that are read at a time.
const PAGE: usize = 64;

const BYTES: &str = "application/octet-stream";

/// The proofs of a job that succeeded.
pub(super) async fn proof(context: &Context, request: &mut Request) -> Outcome {
    let format = proof_format(&request.query(&["format"])?)?;
    let (job, stored) = finished(context, request).await?;
    let mut proofs = Vec::with_capacity(stored.len());
    for stored in &stored {
        proofs.push(checked(stored)?);
    }
    proof_answer(&proofs, format, job.partitions == 1)
}

/// The public signals of a job that succeeded.
pub(super) async fn public(context: &Context, request: &mut Request) -> Outcome {
    let format = public_format(&request.query(&["format"])?)?;
    let (job, stored) = finished(context, request).await?;
    let mut signals = Vec::with_capacity(stored.len());
    for stored in &stored {
        signals.push(public_of(context, stored).await?);
    }
    public_answer(&signals, format, job.partitions == 1)
}

/// What is proved, a line of JSON each.
pub(super) async fn results(context: &Context, request: &mut Request) -> Outcome {
    let query = request.query(&["format"])?;
    query.read("format", "ndjson", |text| (text == "ndjson").then_some(()))?;
    let number = context.job(request.param(0)).await?;
    let (lines, mut from) = mpsc::channel(2);
    let context = context.clone();
    tokio::spawn(async move {
        let sent = AssertUnwindSafe(send_results(&context, number, &lines)).catch_unwind();
        if sent.await.is_err() {
            tracing::error!("the results of a job made proofkeep panic; the answer is cut off");
            // The reader may be gone already.
            let _ = lines.send(Err(io::Error::other("panic"))).await;
        }
    });
    Ok(stream(
        "application/x-ndjson",
        futures_util::stream::poll_fn(move |cx| from.poll_recv(cx)),
    ))
}

/// Sends pages until there are no more, or nobody reads them. A damaged proof cuts the answer off, so that nobody takes
/// it for whole.
async fn send_results(context: &Context, number: JobNumber, lines: &mpsc::Sender<io::Result<Bytes>>) {
    let mut next = Some(0);
    while let Some(first) = next {
        let lot = results_from(context, number, first).await;
        let (text, after) = match lot {
            Ok(lot) => lot,
            Err(problem) => {
                tracing::warn!(%problem, "results of a job are cut off");
                // The reader may be gone already.
                let _ = lines.send(Err(io::Error::other(problem))).await;
                return;
            }
        };
        next = after;
        if !text.is_empty() && lines.send(Ok(text.into())).await.is_err() {
            return;
        }
    }
}

async fn results_from(
    context: &Context,
    number: JobNumber,
    first: u32,
) -> Result<(String, Option<u32>), Problem> {
    let page = context
        .read(move |view| query::proofs(view, number, first, PAGE))
        .await?;
    whole(&page)?;
    let mut text = String::new();
    for stored in &page.proofs {
        let proof = proof_json(&checked(stored)?, ProofFormat::Snarkjs).map_err(proof_damaged)?;
        let public = public_json(&public_of(context, stored).await?).map_err(proof_damaged)?;
        let line = json!({ "index": stored.partition, "proof": proof, "publicSignals": public });
        text.push_str(&line.to_string());
        text.push('\n');
    }
    Ok((text, page.next))
}

/// The stored proofs of a job, all of them; 409 unless it succeeded.
async fn finished(context: &Context, request: &Request) -> Result<(Job, Vec<StoredProof>), Problem> {
    let number = context.job(request.param(0)).await?;
    let job = jobs::record(context, number).await?;
    if job.state != JobState::Succeeded {
        let detail = format!(
            "the job is {}; its proof is there when it succeeded. What is proved already is at /v1/jobs/{}/results",
            job.state.name(),
            job.id
        );
        let mut problem = not_ready(detail).with("state", job.state.name().into());
        problem.retryable = !job.state.is_terminal();
        return Err(problem);
    }
    let stored = all(context, number).await?;
    if stored.len() != job.partitions as usize {
        return Err(proof_damaged(format!(
            "expected {}, found {}",
            count(job.partitions, "proof"),
            stored.len()
        )));
    }
    Ok((job, stored))
}

/// Every stored proof of a job.
pub(super) async fn all(context: &Context, number: JobNumber) -> Result<Vec<StoredProof>, Problem> {
    let mut stored = Vec::new();
    let mut next = Some(0);
    while let Some(first) = next {
        let page = context
            .read(move |view| query::proofs(view, number, first, PAGE))
            .await?;
        whole(&page)?;
        stored.extend(page.proofs);
        next = page.next;
    }
    Ok(stored)
}

/// No record on the page is damaged.
fn whole(page: &ProofPage) -> Result<(), Problem> {
    unreadable(page).map_or(Ok(()), |damage| Err(proof_damaged(damage)))
}

fn unreadable(page: &ProofPage) -> Option<String> {
    let partition = page.damaged.first()?;
    Some(format!("the stored proof of partition {partition} can't be read"))
}

/// The bytes of a stored proof, if they are what was stored.
pub(super) fn checked(stored: &StoredProof) -> Result<Vec<u8>, Problem> {
    if Digest::of(&stored.bytes) == stored.digest {
        return Ok(stored.bytes.clone());
    }
    Err(proof_damaged(damage(stored)))
}

fn damage(stored: &StoredProof) -> String {
    format!(
        "the stored proof of partition {} has another digest than when it was stored",
        stored.partition
    )
}

/// What is wrong with the first damaged proof among the first `limit` of a job that succeeded.
pub(super) fn first_damaged(view: &dyn View, number: JobNumber, limit: usize) -> Option<String> {
    let job = query::job_by_number(view, number).ok()??;
    if job.state != JobState::Succeeded {
        return None;
    }
    match query::proofs(view, number, 0, limit) {
        Ok(page) => unreadable(&page).or_else(|| {
            let mut proofs = page.proofs.iter();
            proofs
                .find(|stored| Digest::of(&stored.bytes) != stored.digest)
                .map(damage)
        }),
        Err(error) => Some(error.to_string()),
    }
}

/// The public signals of a stored proof, 32 little-endian bytes each.
pub(super) async fn public_of(context: &Context, stored: &StoredProof) -> Result<Vec<u8>, Problem> {
    let partition = stored.partition;
    let read = context.object(stored.public).await;
    read.map_err(|problem| {
        proof_damaged(format!(
            "the public signals of partition {partition}: {}",
            problem.detail
        ))
    })
}

/// `format=` of a proof.
pub(super) fn proof_format(query: &Query) -> Result<ProofFormat, Problem> {
    Ok(query
        .read("format", ProofFormat::NAMES, ProofFormat::parse)?
        .unwrap_or_default())
}

/// `format=` of public signals.
pub(super) fn public_format(query: &Query) -> Result<PublicFormat, Problem> {
    Ok(query
        .read("format", PublicFormat::NAMES, PublicFormat::parse)?
        .unwrap_or_default())
}

/// Proofs in a format: the one, or all by index.
pub(super) fn proof_answer(proofs: &[Vec<u8>], format: ProofFormat, single: bool) -> Outcome {
    if format.is_binary() {
        let mut bytes = Vec::new();
        for proof in proofs {
            bytes.extend(proof_bytes(proof, format).map_err(proof_damaged)?);
        }
        return Ok(body(StatusCode::OK, BYTES, bytes));
    }
    let mut values = Vec::with_capacity(proofs.len());
    for proof in proofs {
        values.push(proof_json(proof, format).map_err(proof_damaged)?);
    }
    match (format, single, values.first()) {
        (ProofFormat::Hex, true, Some(Value::String(text))) => Ok(body(
            StatusCode::OK,
            "text/plain; charset=utf-8",
            format!("{text}\n"),
        )),
        (_, true, Some(value)) => Ok(json(StatusCode::OK, value)),
        _ => Ok(json(StatusCode::OK, &Value::Array(values))),
    }
}

/// Public signals in a format: the one list, or all by index.
pub(super) fn public_answer(lists: &[Vec<u8>], format: PublicFormat, single: bool) -> Outcome {
    if format.is_binary() {
        let bytes: Vec<u8> = lists.iter().flat_map(|list| public_bytes(list, format)).collect();
        return Ok(body(StatusCode::OK, BYTES, bytes));
    }
    let mut values = Vec::with_capacity(lists.len());
    for list in lists {
        values.push(public_json(list).map_err(proof_damaged)?);
    }
    match (single, values.first()) {
        (true, Some(value)) => Ok(json(StatusCode::OK, value)),
        _ => Ok(json(StatusCode::OK, &Value::Array(values))),
    }
}
