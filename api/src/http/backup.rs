//! `POST /v1/admin/backup` with `{"target": "/…"}`: the daemon makes a backup of itself, in a directory of its own machine,
//! while everything goes on. The answer comes when it is whole and synced; a client that goes away, or a daemon that
//! stops, breaks it off.
//!
//! The bytes don't go over HTTP: a backup holds witnesses, and what was uploaded isn't given out again.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proofkeep_engine::problem::Problem;
use proofkeep_store::dump::{Dumped, SaveError};
use serde_json::{Map, Value};
use uuid::Uuid;
use warp::http::StatusCode;

use super::answer::{Outcome, json};
use super::context::Context;
use super::problem::{draining, shown};
use super::request::Request;
use crate::render::backup::draw;

/// Makes one.
pub(super) async fn backup(context: &Context, request: &mut Request) -> Outcome {
    request.query(&[])?;
    let (target, store) = read(&request.json().await?)?;
    let engine = Arc::clone(&context.engine);
    let own = engine.store().id();
    if let Some(store) = store.filter(|store| *store != own) {
        let detail = format!(
            "expected the daemon of store {store}, this one has store {own}; name the right one with --server"
        );
        return Err(Problem::new(409, "other-store", "this is another store", detail));
    }
    // Dropped with this future when the client goes away.
    let stop = StopOnDrop::default();
    let asked = Arc::clone(&stop.0);
    let now = engine.clock().now();
    let path = target.clone();
    let making = context.blocking(move || {
        engine
            .store()
            .backup(&path, now, &|| asked.load(Ordering::Relaxed))
    });
    let mut stopping = context.stopping.clone();
    let stopped = async move {
        // The other end lives as long as the daemon.
        let _ = stopping.wait_for(|stopping| *stopping).await;
    };
    tokio::pin!(making);
    let made = tokio::select! {
        made = &mut making => Some(made?),
        () = stopped => None,
    };
    let made = match made {
        Some(made) => made,
        None => {
            stop.0.store(true, Ordering::Relaxed);
            making.await?
        }
    };
    let dumped: Dumped = made.map_err(|error| problem(&error))?;
    tracing::info!(
        target = %target.display(), journal = dumped.journal.0, records = dumped.counts.records,
        objects = dumped.counts.objects, missing = dumped.counts.missing, "a backup was made"
    );
    Ok(json(StatusCode::CREATED, &draw(&dumped, &target)))
}

#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// `target`, an absolute path, and `store`, the id that the client expects, if it says one.
fn read(body: &[u8]) -> Result<(PathBuf, Option<Uuid>), Problem> {
    let body: Map<String, Value> = serde_json::from_slice(body).map_err(|error| {
        let detail = format!("expected a JSON object with \"target\": {error}");
        Problem::new(400, "malformed-json", "the body can't be read", detail)
    })?;
    if let Some(other) = body
        .keys()
        .find(|name| !["target", "store"].contains(&name.as_str()))
    {
        let detail = format!("expected the fields target and store, found {:?}", shown(other));
        return Err(Problem::input("unknown-field", detail));
    }
    let target = body.get("target").and_then(Value::as_str).map(PathBuf::from);
    let target = target.filter(|path| path.is_absolute()).ok_or_else(|| {
        let found = body
            .get("target")
            .map_or_else(|| "nothing".to_owned(), Value::to_string);
        let detail = format!(
            "target: expected an absolute path on the daemon's machine at which nothing is yet, found {}",
            shown(&found)
        );
        Problem::input("bad-target", detail)
    })?;
    let store = match body.get("store") {
        None => None,
        Some(value) => {
            let id = value.as_str().and_then(|text| Uuid::try_parse(text).ok());
            let found = shown(&value.to_string());
            Some(id.ok_or_else(|| {
                Problem::input(
                    "bad-store",
                    format!("store: expected the id of a store, found {found}"),
                )
            })?)
        }
    };
    Ok((target, store))
}

fn problem(error: &SaveError) -> Problem {
    let detail = error.to_string();
    let title = "no backup was made";
    match error {
        SaveError::Busy => Problem::new(409, "backup-running", title, detail).retryable(),
        SaveError::Stopped => draining(),
        SaveError::Exists(_) => Problem::new(409, "target-exists", title, detail),
        SaveError::Target { .. } => Problem::input("bad-target", detail),
        SaveError::DiskFull(_) => Problem::new(507, "disk-budget", title, detail).retryable(),
        SaveError::TooSlow(_) => Problem::new(503, "backup-too-slow", title, detail).retryable(),
        SaveError::Read(_) => Problem::new(500, "store-unreadable", title, detail),
        SaveError::Io { .. } => Problem::new(500, "io", title, detail).retryable(),
    }
}
