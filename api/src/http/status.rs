//! `GET /v1/status`: one consistent read of everything, and `GET /status`: the same picture in cuzk's shape.
//!
//! While the disk is slow the store's lock is held for the time of a sync. A status page must not hang then: after 50 ms
//! the last picture is served, marked with its age.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use proofkeep_engine::damage::DamageReport;
use proofkeep_engine::problem::Problem;
use proofkeep_engine::service::Engine;
use proofkeep_store::ids::{Digest, JobNumber};
use proofkeep_store::query::{self, Allocation, CuzkMemory, Status, StatusLimits, Surroundings};
use proofkeep_store::view::{ReadError, Readable, View};
use serde_json::Value;
use uuid::Uuid;
use warp::http::StatusCode;
use warp::http::header::HeaderName;

use super::answer::{Answer, Outcome, json, with};
use super::context::Context;
use super::health::STUCK;
use super::problem::{stuck, unreadable};
use super::request::Request;
use crate::render::status::{Around, NamedCircuit, StoreReport, draw};

/// How long a status may wait for the store.
const PATIENCE: Duration = Duration::from_millis(50);

/// The number of the last event that the answer shows: answers with the same number agree.
const JOURNAL: HeaderName = HeaderName::from_static("proofkeep-journal");

/// The age of the answer, if it is an old one.
const STALE: HeaderName = HeaderName::from_static("proofkeep-stale-ms");

/// One read.
struct Picture {
    status: Status,
    circuits: Vec<NamedCircuit>,
    taken: Instant,
}

/// The last read. It is no second truth: it is served only while the store can't be asked, and says so.
#[derive(Default)]
pub(super) struct LastStatus(Mutex<Option<Arc<Picture>>>);

/// Everything, as of one moment.
pub(super) async fn status(context: &Context, request: &mut Request) -> Outcome {
    request.query(&[])?;
    let (picture, stale) = picture(context).await?;
    let engine = Arc::clone(&context.engine);
    let (circuits, test_build) = (picture.circuits.clone(), context.settings.test_build);
    let around = context
        .blocking(move || around(&engine, circuits, test_build))
        .await?;
    let mut value = draw(&picture.status, &around);
    if let (Some(age), Value::Object(members)) = (stale, &mut value) {
        members.insert("stale_ms".to_owned(), age.into());
    }
    Ok(marked(json(StatusCode::OK, &value), &picture, stale))
}

/// The same in cuzk's words.
pub(super) async fn cuzk(context: &Context, request: &mut Request) -> Outcome {
    request.query(&[])?;
    let (picture, stale) = picture(context).await?;
    let found = query::cuzk(&picture.status, &surroundings(&context.engine, &picture.circuits));
    let value = serde_json::to_value(&found).map_err(|error| {
        tracing::error!(%error, "the status can't be written");
        super::problem::internal()
    })?;
    Ok(marked(json(StatusCode::OK, &value), &picture, stale))
}

fn marked(answer: Answer, picture: &Picture, stale: Option<u64>) -> Answer {
    let answer = with(answer, JOURNAL, &picture.status.journal.to_string());
    match stale {
        Some(age) => with(answer, STALE, &age.to_string()),
        None => answer,
    }
}

/// The picture, with its age in milliseconds if it is an old one.
async fn picture(context: &Context) -> Result<(Arc<Picture>, Option<u64>), Problem> {
    let engine = Arc::clone(&context.engine);
    let keys: Vec<Digest> = engine.memory().keys.iter().map(|key| key.circuit).collect();
    let last = context.last_status.0.lock().clone();
    let has_last = last.is_some();
    let read = context.blocking(move || {
        let now = engine.clock().now();
        let read = |view: &dyn View| read_picture(view, now, &keys);
        let patience = if has_last { PATIENCE } else { STUCK };
        engine.handle().try_read_for(patience, read)
    });
    match (read.await?, last) {
        (Some(Ok(picture)), _) => {
            let picture = Arc::new(picture);
            let mut kept = context.last_status.0.lock();
            if kept
                .as_ref()
                .is_none_or(|kept| kept.status.journal <= picture.status.journal)
            {
                *kept = Some(Arc::clone(&picture));
            }
            Ok((picture, None))
        }
        (Some(Err(error)), _) => Err(unreadable(&error)),
        (None, Some(last)) => {
            let age = u64::try_from(last.taken.elapsed().as_millis()).unwrap_or(u64::MAX);
            Ok((last, Some(age)))
        }
        (None, None) => Err(stuck(context.engine.handle().heartbeat())),
    }
}

fn read_picture(
    view: &dyn View,
    now: proofkeep_store::ids::Millis,
    keys: &[Digest],
) -> Result<Picture, ReadError> {
    let taken = Instant::now();
    // A damaged record is named by the store's part; the rest of the picture is shown all the same.
    let view = &Readable::new(view);
    let status = query::status(view, now, StatusLimits::default())?;
    let jobs = status
        .jobs
        .iter()
        .chain(&status.recent)
        .filter_map(|found| found.job.circuit);
    let mut digests: Vec<Digest> = jobs.chain(keys.iter().copied()).collect();
    digests.sort_unstable();
    digests.dedup();
    let mut circuits = Vec::with_capacity(digests.len());
    for digest in digests {
        if let Some(circuit) = query::circuit(view, digest)? {
            circuits.push(NamedCircuit {
                digest,
                name: circuit.name,
                insecure: circuit.facts.insecure,
            });
        }
    }
    Ok(Picture {
        status,
        circuits,
        taken,
    })
}

fn around(engine: &Engine, circuits: Vec<NamedCircuit>, test_build: bool) -> Around {
    let handle = engine.handle();
    let stats = handle.stats();
    let data = engine.store().data();
    let log = data.current().ok().map(|number| data.store(number).join("db"));
    let damage = engine.damage();
    let store = StoreReport {
        id: engine.store().id(),
        size_bytes: log
            .and_then(|log| std::fs::metadata(log).ok())
            .map_or(0, |log| log.len()),
        groups: stats.groups,
        commands: stats.commands,
        last_sync_ms: stats.last_sync_ms,
        waiting: handle.waiting(),
        heartbeat_ms: u64::try_from(handle.heartbeat().as_millis()).unwrap_or(u64::MAX),
        ids: damaged_ids(engine, &damage),
        damage,
        scrub: engine.scrub(),
    };
    Around {
        memory: engine.memory(),
        devices: engine.devices(),
        daemon_rss: resident_bytes(),
        store,
        circuits,
        test_build,
    }
}

/// The ids of the jobs that something damaged belongs to, as far as a record still says them.
fn damaged_ids(engine: &Engine, damage: &DamageReport) -> BTreeMap<JobNumber, Uuid> {
    let jobs: BTreeSet<JobNumber> = damage
        .found
        .iter()
        .filter_map(|damaged| damaged.job)
        .chain(damage.set_aside.keys().copied())
        .collect();
    if jobs.is_empty() {
        return BTreeMap::new();
    }
    let ids = |view: &dyn View| -> BTreeMap<JobNumber, Uuid> {
        let id = |job| query::id_of(view, job).ok().flatten().map(|id| (job, id));
        jobs.iter().copied().filter_map(id).collect()
    };
    engine.handle().try_read_for(PATIENCE, ids).unwrap_or_default()
}

fn surroundings(engine: &Engine, circuits: &[NamedCircuit]) -> Surroundings {
    let memory = engine.memory();
    let name = |digest: Digest| {
        circuits
            .iter()
            .find(|circuit| circuit.digest == digest)
            .map(|circuit| circuit.name.clone())
    };
    let srs = memory
        .keys
        .iter()
        .filter(|key| key.resident)
        .map(|key| Allocation {
            circuit_id: name(key.circuit).unwrap_or_else(|| key.circuit.to_string()),
            bytes: key.bytes,
            last_used_secs_ago: key.idle_ms / 1000,
            evictable: key.evictable,
        });
    Surroundings {
        memory: CuzkMemory {
            total_bytes: memory.budget,
            used_bytes: memory.reserved,
            available_bytes: memory.budget.saturating_sub(memory.reserved),
        },
        max_concurrent: engine.devices().iter().map(|device| 2 * device.slots).sum(),
        srs: srs.collect(),
        pce: Vec::new(),
    }
}

/// Bytes that this process has resident, as the kernel says; 0 if it doesn't.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.map_or(0, |kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::mpsc::channel;

    use proofkeep_engine::kinds::Kinds;
    use proofkeep_engine::service::EngineConfig;
    use tokio::sync::watch;

    use super::*;
    use crate::http::Settings;
    use crate::http::auth::Guard;
    use crate::tokens::Tokens;

    /// R16: who holds the store's lock holds up no status page. (The worker process that the engine starts is this test
    /// binary again, which doesn't know what to do with that and ends; nothing here needs it.)
    #[tokio::test(flavor = "multi_thread")]
    async fn r16_while_the_store_is_busy_the_last_picture_is_served_with_its_age() {
        let directory = tempfile::tempdir().unwrap();
        let config = EngineConfig::new(directory.path().join("data"), Kinds::none());
        let engine = tokio::task::spawn_blocking(|| Engine::start(config).unwrap())
            .await
            .unwrap();
        let settings = Settings {
            scheme: "http",
            allowed_hosts: Vec::new(),
            listen: std::net::Ipv4Addr::LOCALHOST.into(),
            require_token: false,
            max_upload: 0,
            connections: crate::http::Limits {
                most: 1,
                patience: Duration::from_secs(1),
            },
            test_build: true,
        };
        let tokens = Tokens::load(directory.path()).unwrap();
        let context = Context {
            engine: Arc::new(engine),
            settings: Arc::new(settings),
            last_status: Arc::default(),
            guard: Arc::new(Guard::new(tokens, false)),
            stopping: watch::channel(false).1,
        };
        let (first, stale) = picture(&context).await.unwrap();
        assert_eq!(stale, None);

        let (held, is_held) = channel();
        let (release, released) = channel::<()>();
        let engine = Arc::clone(&context.engine);
        let holder = std::thread::spawn(move || {
            engine.handle().with_commit_lock(|_| {
                held.send(()).unwrap();
                released.recv().unwrap();
            });
        });
        is_held.recv().unwrap();
        let (second, stale) = picture(&context).await.unwrap();
        assert!(stale.is_some_and(|age| age >= 50), "{stale:?}");
        assert!(second.status.journal >= first.status.journal);
        release.send(()).unwrap();
        holder.join().unwrap();
        assert_eq!(picture(&context).await.unwrap().1, None);

        context.engine.shutdown(Duration::ZERO).await;
        tokio::task::spawn_blocking(|| drop(context)).await.unwrap();
    }
}
