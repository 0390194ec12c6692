//! `/v1/jobs`: submit, list, show, cancel, retry.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use proofkeep_engine::desk::job_damaged;
use proofkeep_engine::problem::Problem;
use proofkeep_engine::request::Asker;
use proofkeep_store::ids::{Digest, JobNumber};
use proofkeep_store::machine::Admission;
use proofkeep_store::query::{self, Cursor, JobFilter, ListError, Order, StateFilter};
use proofkeep_store::records::{Circuit, Job, JobState};
use proofkeep_store::view::{ReadError, Readable, View};
use serde_json::{Value, json};
use uuid::Uuid;
use warp::http::StatusCode;
use warp::http::header::{ETAG, LINK, LOCATION};

use super::answer::{Answer, Outcome, empty, json, with};
use super::context::Context;
use super::problem::{malformed, proof_damaged};
use super::query::{Query, wrong};
use super::request::Request;
use super::{etag, prefer, proofs};
use crate::render::job::{self, JobView};
use crate::render::time;

/// What a list may be narrowed by.
const FILTERS: [&str; 10] = [
    "state", "kind", "circuit", "label", "actor", "since", "until", "limit", "order", "cursor",
];

/// Submits a job; with `Prefer: wait` the answer comes when it ended, if that is soon enough.
pub(super) async fn submit(context: &Context, request: &mut Request) -> Outcome {
    request.query(&[])?;
    let wait = prefer::wait(&request.headers)?;
    let asker = Asker {
        actor: request.actor().to_owned(),
        idempotency_key: request.idempotency_key()?,
    };
    let body = request.json().await?;
    let submitted = context.engine.submit(body.into(), asker).await?;
    let ended = wait_for_end(context, submitted.job, wait.unwrap_or_default()).await?;
    let status = status_of(submitted.admission, wait.is_some() && ended);
    let answer = with(
        shown(context, submitted.job, status).await?,
        LOCATION,
        &format!("/v1/jobs/{}", submitted.id),
    );
    Ok(prefer::applied(answer, wait))
}

/// 200: the key names it already; 201: it is over; 202: it goes on.
fn status_of(admission: Admission, ended: bool) -> StatusCode {
    match admission {
        Admission::Existing => StatusCode::OK,
        Admission::Created | Admission::Reopened if ended => StatusCode::CREATED,
        Admission::Created | Admission::Reopened => StatusCode::ACCEPTED,
    }
}

/// One job. With `Prefer: wait` it comes when it ended, or, with `If-None-Match`, when it changed.
pub(super) async fn show(context: &Context, request: &mut Request) -> Outcome {
    request.query(&[])?;
    let wait = prefer::wait(&request.headers)?;
    let number = context.job(request.param(0)).await?;
    let store = context.engine.store().id();
    let headers = request.headers.clone();
    let known = move |job: &Job| etag::is_known(&headers, &etag::of(store, job.journal));
    if etag::is_given(&request.headers) {
        let changed = wait_for(context, number, wait.unwrap_or_default(), |job| !known(job)).await?;
        if !changed {
            return Ok(prefer::applied(empty(StatusCode::NOT_MODIFIED), wait));
        }
    } else {
        wait_for_end(context, number, wait.unwrap_or_default()).await?;
    }
    Ok(prefer::applied(
        shown(context, number, StatusCode::OK).await?,
        wait,
    ))
}

/// Asks a job to stop.
pub(super) async fn cancel(context: &Context, request: &mut Request) -> Outcome {
    request.query(&[])?;
    let number = context.job(request.param(0)).await?;
    expect_no_fields(&request.optional_json().await?)?;
    context.engine.cancel(id(request)?, request.actor()).await?;
    after(context, request, number).await
}

/// Tries a job again.
pub(super) async fn retry(context: &Context, request: &mut Request) -> Outcome {
    request.query(&[])?;
    let number = context.job(request.param(0)).await?;
    let body = request.optional_json().await?;
    context
        .engine
        .retry(id(request)?, body.into(), request.actor())
        .await?;
    after(context, request, number).await
}

async fn after(context: &Context, request: &Request, number: JobNumber) -> Outcome {
    let location = format!("/v1/jobs/{}", request.param(0));
    Ok(with(
        shown(context, number, StatusCode::ACCEPTED).await?,
        LOCATION,
        &location,
    ))
}

fn id(request: &Request) -> Result<Uuid, Problem> {
    Uuid::try_parse(request.param(0)).map_err(|_| malformed("malformed-id", "expected a job's id"))
}

fn expect_no_fields(body: &[u8]) -> Result<(), Problem> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(());
    }
    match serde_json::from_slice::<serde_json::Map<String, Value>>(body) {
        Ok(fields) => match fields.keys().next() {
            Some(name) => Err(Problem::input(
                "unknown-field",
                format!("unknown field {name:?}; there are none here"),
            )),
            None => Ok(()),
        },
        Err(error) => Err(Problem::new(
            400,
            "malformed-json",
            "the body is not JSON",
            error.to_string(),
        )),
    }
}

/// The answer about a job as it is now.
pub(super) async fn shown(context: &Context, number: JobNumber, status: StatusCode) -> Outcome {
    if let Some(damaged) = context.engine.set_aside(number) {
        return Err(damaged);
    }
    let now = context.engine.clock().now();
    let short = context.engine.memory().short;
    let read = context
        .read(move |view| {
            let damaged = proofs::first_damaged(view, number, job::PARTITIONS);
            Ok((damaged, JobView::read(view, number)?))
        })
        .await?;
    if let Some(damaged) = read.0 {
        return Err(proof_damaged(damaged));
    }
    let Some(found) = read.1 else { return Err(gone()) };
    let tag = etag::of(context.engine.store().id(), found.detail.job.journal);
    Ok(with(json(status, &found.draw(now, short)), ETAG, &tag))
}

/// It was pruned between two reads.
fn gone() -> Problem {
    Problem::new(
        410,
        "pruned",
        "the job was removed",
        "the job ended and was removed by the limit max_jobs",
    )
}

/// Waits until a job ended; `true` if it has.
pub(super) async fn wait_for_end(
    context: &Context,
    number: JobNumber,
    wait: Duration,
) -> Result<bool, Problem> {
    wait_for(context, number, wait, |job| job.state.is_terminal()).await
}

/// Waits until `done` says so; `true` if it does. Looks at every change of the journal, so it misses none.
async fn wait_for(
    context: &Context,
    number: JobNumber,
    wait: Duration,
    done: impl Fn(&Job) -> bool,
) -> Result<bool, Problem> {
    // It would be waited for in vain.
    if let Some(damaged) = context.engine.set_aside(number) {
        return Err(damaged);
    }
    let until = Instant::now() + wait;
    let mut seen = context.engine.handle().durable();
    loop {
        seen.borrow_and_update();
        let Some(job) = context
            .read(move |view| query::job_by_number(view, number))
            .await?
        else {
            return Err(gone());
        };
        if done(&job) {
            return Ok(true);
        }
        if wait.is_zero() || !context.grown(&mut seen, until).await {
            return Ok(false);
        }
    }
}

/// A page of jobs.
pub(super) async fn list(context: &Context, request: &mut Request) -> Outcome {
    let query = request.query(&FILTERS)?;
    let limit = query.limit(50, 1000)?;
    let order = query.read("order", "newest or oldest", |text| match text {
        "newest" => Some(Order::NewestFirst),
        "oldest" => Some(Order::OldestFirst),
        _ => None,
    })?;
    let order = order.unwrap_or_default();
    let cursor = query.one("cursor")?.map(Cursor::parse).transpose();
    let cursor = cursor.map_err(|error| malformed("malformed-cursor", error.to_string()))?;
    let mut filter = filter(&query)?;
    let circuit = query.one("circuit")?.map(str::to_owned);
    let read = move |view: &dyn View| -> Result<_, ReadError> {
        if let Some(name) = circuit {
            filter.circuits = Some(match name.strip_prefix("sha256:").and_then(Digest::parse) {
                Some(digest) => vec![digest],
                None => query::circuits_named(view, &name)?,
            });
        }
        let page = match query::jobs(view, &filter, order, cursor, limit) {
            Ok(page) => page,
            Err(ListError::Read(error)) => return Err(error),
            Err(ListError::Cursor(error)) => return Ok(Err(error)),
        };
        let readable = Readable::new(view);
        let mut circuits: BTreeMap<Digest, Option<Circuit>> = BTreeMap::new();
        for digest in page.jobs.iter().filter_map(|row| row.job.circuit) {
            if let std::collections::btree_map::Entry::Vacant(entry) = circuits.entry(digest) {
                entry.insert(query::circuit(&readable, digest)?);
            }
        }
        Ok(Ok((page, circuits)))
    };
    let (page, circuits) = context
        .read(read)
        .await?
        .map_err(|error| malformed("malformed-cursor", error.to_string()))?;
    let circuit_of = |job: &Job| job.circuit.and_then(|digest| circuits.get(&digest)?.as_ref());
    let mut jobs: Vec<(JobNumber, Value)> = page
        .jobs
        .iter()
        .map(|row| match context.engine.set_aside(row.job.number) {
            Some(damaged) => job::damaged_row(Some(row.job.id), &damaged.detail),
            None => job::row(row, circuit_of(&row.job)),
        })
        .zip(page.jobs.iter().map(|row| row.job.number))
        .map(|(row, number)| (number, row))
        .collect();
    for damaged in &page.damaged {
        let detail = job_damaged(&damaged.detail).detail;
        jobs.push((damaged.number, job::damaged_row(damaged.id, &detail)));
    }
    jobs.sort_by_key(|(number, _)| *number);
    if order == Order::NewestFirst {
        jobs.reverse();
    }
    let jobs: Vec<Value> = jobs.into_iter().map(|(_, row)| row).collect();
    let next = page.next.map(|cursor| cursor.to_string());
    let answer = json(StatusCode::OK, &json!({ "jobs": jobs, "next": next }));
    Ok(linked(
        answer,
        next.map(|cursor| format!("/v1/jobs?{}cursor={cursor}", query.without_cursor())),
    ))
}

/// With the address of the next page.
fn linked(answer: Answer, next: Option<String>) -> Answer {
    match next {
        Some(next) => with(answer, LINK, &format!("<{next}>; rel=\"next\"")),
        None => answer,
    }
}

fn filter(query: &Query) -> Result<JobFilter, Problem> {
    let mut states = Vec::new();
    for text in query.all("state").flat_map(|list| list.split(',')) {
        states.push(StateFilter::parse(text).ok_or_else(|| {
            let mut names: Vec<_> = JobState::ALL.iter().map(|state| state.name()).collect();
            names.dedup();
            wrong("state", &format!("active, ended, {}", names.join(", ")), text)
        })?);
    }
    let label = |text: &str| match text.split_once('=') {
        Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
        None => (text.to_owned(), None),
    };
    let moment = "a moment such as 2026-11-30T15:47:00Z, or milliseconds since 1970";
    Ok(JobFilter {
        states,
        kind: query.one("kind")?.map(str::to_owned),
        circuits: None,
        labels: query.all("label").map(label).collect(),
        actor: query.one("actor")?.map(str::to_owned),
        since: query.read("since", moment, time::parse)?,
        until: query.read("until", moment, time::parse)?,
    })
}

/// The job's record, for those who need it whole.
pub(super) async fn record(context: &Context, number: JobNumber) -> Result<Job, Problem> {
    let found = context.read(move |view| query::job_by_number(view, number));
    found.await?.ok_or_else(gone)
}
