//! `GET /v1/jobs/{id}/events`: the journal of one job. (The stream of all events comes later.)

use proofkeep_store::ids::JournalNumber;
use proofkeep_store::query;
use serde_json::json;
use warp::http::StatusCode;

use super::answer::{Outcome, json};
use super::context::Context;
use super::request::Request;
use crate::render::event;

/// A page of a job's journal: up to `limit` events after `after`.
pub(super) async fn of_job(context: &Context, request: &mut Request) -> Outcome {
    let query = request.query(&["after", "limit"])?;
    let limit = query.limit(200, 1000)?;
    let after = query
        .read("after", "a journal number", |text| text.parse().ok())?
        .unwrap_or(0);
    let number = context.job(request.param(0)).await?;
    let page = context
        .read(move |view| query::job_events(view, number, JournalNumber(after), limit))
        .await?;
    let events: Vec<_> = page.events.iter().map(event::draw).collect();
    Ok(json(
        StatusCode::OK,
        &json!({ "events": events, "next": page.next.map(|number| number.0), "last": page.last.0 }),
    ))
}
