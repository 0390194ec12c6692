//! The whole picture of `GET /v1/status`.

use std::collections::BTreeMap;

use proofkeep_engine::damage::DamageReport;
use proofkeep_engine::scrub::ScrubReport;
use proofkeep_engine::service::{DeviceReport, MemoryReport};
use proofkeep_store::ids::{Digest, JobNumber, Millis};
use proofkeep_store::query::{
    BootReport, Count, JobStatus, PartitionStatus, PriorityQueue, Status, WorkerStatus,
};
use proofkeep_store::records::{BootEnd, Circuit, DeviceState};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{circuit, counted, job, time};

/// What no record holds: memory, processes, the disk.
#[derive(Clone, Debug)]
pub(crate) struct Around {
    /// The budget and what is resident.
    pub memory: MemoryReport,
    /// Devices with their processes.
    pub devices: Vec<DeviceReport>,
    /// Bytes that this process has resident.
    pub daemon_rss: u64,
    /// The store.
    pub store: StoreReport,
    /// The circuits that are spoken of.
    pub circuits: Vec<NamedCircuit>,
    /// A build for tests.
    pub test_build: bool,
}

/// What the picture says of a circuit.
#[derive(Clone, Debug)]
pub(crate) struct NamedCircuit {
    /// Its digest.
    pub digest: Digest,
    /// The name it was first registered under.
    pub name: String,
    /// Anyone can forge proofs under its key.
    pub insecure: bool,
}

impl Around {
    fn circuit(&self, digest: Digest) -> Option<&NamedCircuit> {
        self.circuits.iter().find(|circuit| circuit.digest == digest)
    }
}

/// The store, from outside.
#[derive(Clone, Debug)]
pub(crate) struct StoreReport {
    /// Its name.
    pub id: Uuid,
    /// Bytes of its log on disk.
    pub size_bytes: u64,
    /// Groups that were synced since the start.
    pub groups: u64,
    /// Commands that wrote something since the start.
    pub commands: u64,
    /// How long the last sync took.
    pub last_sync_ms: u64,
    /// Commands that wait.
    pub waiting: usize,
    /// How long ago the commit thread was seen.
    pub heartbeat_ms: u64,
    /// What is damaged in it.
    pub damage: DamageReport,
    /// The ids of the jobs that are damaged.
    pub ids: BTreeMap<JobNumber, Uuid>,
    /// The check of the whole.
    pub scrub: ScrubReport,
}

/// Draws it.
pub(crate) fn draw(status: &Status, around: &Around) -> Value {
    let importing = |found: &Circuit| circuit::draw(&found.name, found, None, None, status.at);
    let mut members = Map::new();
    let mut put = |name: &str, value: Value| {
        members.insert(name.to_owned(), value);
    };
    put("journal", status.journal.0.into());
    put("at", time::write(status.at).into());
    put("version", env!("CARGO_PKG_VERSION").into());
    if around.test_build {
        put("test_build", true.into());
    }
    put(
        "boot",
        status
            .boot
            .as_ref()
            .map_or(Value::Null, |report| boot(report, status.at)),
    );
    put("queue", queue(status));
    put("jobs_active", counted(status.active));
    put(
        "jobs",
        status
            .jobs
            .iter()
            .map(|found| in_flight(status, around, found))
            .collect(),
    );
    put(
        "recent",
        status
            .recent
            .iter()
            .map(|found| in_flight(status, around, found))
            .collect(),
    );
    put(
        "stages",
        json!({
            "synthesizing": status.stages.synthesizing, "synthesized": status.stages.synthesized,
            "proving": status.stages.proving, "finishing": status.stages.finishing,
        }),
    );
    put(
        "workers",
        status.workers.iter().map(|found| worker(status, found)).collect(),
    );
    put(
        "devices",
        status.devices.iter().map(|found| device(found, around)).collect(),
    );
    put("importing", status.importing.iter().map(importing).collect());
    put("memory", memory(around));
    put(
        "counters",
        json!({ "jobs": counts(&status.counters.jobs), "attempts": counts(&status.counters.attempts) }),
    );
    put("store", store(status, around));
    Value::Object(members)
}

fn boot(report: &BootReport, now: Millis) -> Value {
    let recovered = &report.recovered;
    let before = report.before.map(|end| match end {
        BootEnd::Clean => "clean",
        BootEnd::Crashed => "crashed",
    });
    json!({
        "number": report.boot.number.0,
        "version": report.boot.version,
        "since": time::write(report.boot.started_at),
        "uptime_ms": now.since(report.boot.started_at),
        "before": before,
        "clean": report.before != Some(BootEnd::Crashed),
        "recovered": {
            "interrupted": recovered.interrupted,
            "partitions_kept": recovered.partitions_kept,
            "checkpoints_reused": recovered.checkpoints_reused,
            "saved_ms": recovered.saved_ms,
        },
    })
}

fn queue(status: &Status) -> Value {
    let queue = &status.queue;
    let by_priority: Map<String, Value> = queue
        .by_priority
        .iter()
        .map(
            |PriorityQueue {
                 priority,
                 ready,
                 oldest_ms,
             }| {
                (
                    priority.name().to_owned(),
                    json!({ "ready": counted(*ready), "oldest_ms": oldest_ms }),
                )
            },
        )
        .collect();
    json!({
        "depth": counted(queue.depth),
        "waiting": counted(queue.waiting),
        "paused": queue.asked.paused,
        "draining": queue.asked.draining,
        "by_priority": by_priority,
    })
}

fn in_flight(status: &Status, around: &Around, found: &JobStatus) -> Value {
    let circuit = found.job.circuit.and_then(|digest| around.circuit(digest));
    let mut members = job::head(&found.job, found.generation.as_ref(), None);
    let name = circuit.map(|circuit| circuit.name.as_str());
    if circuit.is_some_and(|circuit| circuit.insecure) {
        members.insert("insecure".to_owned(), true.into());
    }
    let memory = around.memory.short == Some(found.job.number) && found.summary.running == 0;
    let reason = found
        .reason
        .map(|reason| reason.name())
        .or(memory.then_some("memory"));
    let aside = around.store.damage.set_aside.contains_key(&found.job.number);
    let reason = if aside { Some("damaged") } else { reason };
    members.insert("circuit".to_owned(), name.map_or(Value::Null, Value::from));
    members.insert("reason".to_owned(), reason.map_or(Value::Null, Value::from));
    members.insert("summary".to_owned(), job::summary(found.summary));
    members.insert(
        "partitions".to_owned(),
        found
            .partitions
            .iter()
            .map(|found| partition(found, status.at))
            .collect(),
    );
    if let Some(cells) = &found.cells {
        members.insert("cells".to_owned(), cells.as_str().into());
    }
    Value::Object(members)
}

fn partition(found: &PartitionStatus, now: Millis) -> Value {
    let mut members = Map::new();
    let mut put = |name: &str, value: Value| {
        members.insert(name.to_owned(), value);
    };
    put("index", found.index.into());
    put("state", found.state.name().into());
    put("attempt", found.attempt.into());
    put("synth_ms", found.synth_ms.into());
    put("gpu_ms", found.gpu_ms.into());
    put("worker", found.worker.map(|worker| worker.0).into());
    put("device", found.device.as_deref().into());
    if found.state.is_open() {
        put(
            "attempt_ms",
            found.started_at.map(|since| now.since(since)).into(),
        );
    }
    if let Some(at) = found.wake_at {
        put("wake_at", time::write(at).into());
    }
    if let Some(class) = found.failure {
        put("failure", class.name().into());
    }
    Value::Object(members)
}

fn worker(status: &Status, found: &WorkerStatus) -> Value {
    let last = found.last.as_ref().map(|last| {
        let job = status
            .jobs
            .iter()
            .chain(&status.recent)
            .find(|job| job.job.number == last.job);
        json!({
            "job": job.map(|job| job.job.id.to_string()),
            "partition": last.partition,
            "outcome": last.outcome,
            "at": time::write(last.at),
        })
    });
    json!({
        "id": found.id.0,
        "device": found.device,
        "slot": found.slot,
        "state": if found.busy.is_some() { "proving" } else { "idle" },
        "job": found.job.map(|id| id.to_string()),
        "partition": found.busy.map(|(_, partition, _)| partition),
        "stage": found.busy.map(|_| "prove"),
        "busy_ms": found.busy_ms,
        "last": last,
    })
}

fn device(found: &proofkeep_store::records::Device, around: &Around) -> Value {
    let report = around.devices.iter().find(|report| report.name == found.name);
    let mut members = Map::new();
    let mut put = |name: &str, value: Value| {
        members.insert(name.to_owned(), value);
    };
    put("name", found.name.as_str().into());
    put("slots", found.slots.into());
    put("process", found.process.map(|process| process.to_string()).into());
    put("threads", report.map(|report| report.threads).into());
    put(
        "description",
        report.map(|report| report.description.as_str()).into(),
    );
    put("rss_bytes", report.map(|report| report.rss).into());
    put("peak_bytes", report.map(|report| report.peak).into());
    match &found.state {
        DeviceState::Up => put("state", "up".into()),
        DeviceState::Suspended { until, reason } => {
            put("state", "suspended".into());
            put("until", time::json(*until));
            put("reason", reason.as_str().into());
        }
    }
    Value::Object(members)
}

fn memory(around: &Around) -> Value {
    let memory = &around.memory;
    let keys: Vec<Value> = memory
        .keys
        .iter()
        .map(|key| {
            let name = around.circuit(key.circuit).map(|circuit| circuit.name.as_str());
            json!({
                "circuit": name,
                "circuit_digest": key.circuit.to_string(),
                "bytes": key.bytes,
                "resident": key.resident,
                "evictable": key.evictable,
                "idle_ms": key.idle_ms,
            })
        })
        .collect();
    json!({
        "budget_bytes": memory.budget,
        "reserved_bytes": memory.reserved,
        "peak_reserved_bytes": memory.peak_reserved,
        "used_bytes": memory.used,
        "daemon_rss_bytes": around.daemon_rss,
        "keys": keys,
    })
}

/// `{kind: {outcome: count}}`.
fn counts(counts: &[Count]) -> Value {
    let mut kinds: Map<String, Value> = Map::new();
    for count in counts {
        let kind = kinds
            .entry(count.kind.clone())
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(outcomes) = kind {
            outcomes.insert(count.outcome.clone(), count.value.into());
        }
    }
    Value::Object(kinds)
}

fn store(status: &Status, around: &Around) -> Value {
    let store = &around.store;
    json!({
        "id": store.id.to_string(),
        "size_bytes": store.size_bytes,
        "groups": store.groups,
        "commands": store.commands,
        "last_sync_ms": store.last_sync_ms,
        "waiting": store.waiting,
        "heartbeat_ms": store.heartbeat_ms,
        "journal": status.journal.0,
        "journal_kept": status.journal_kept,
        "damage": damage(store),
        "scrub": scrub(&store.scrub),
    })
}

fn damage(store: &StoreReport) -> Value {
    let id = |job: JobNumber| store.ids.get(&job).map(Uuid::to_string);
    let found: Vec<Value> = store
        .damage
        .found
        .iter()
        .map(|damaged| {
            json!({
                "place": damaged.place,
                "key": damaged.key,
                "job": damaged.job.and_then(id),
                "detail": damaged.text,
                "found_by": damaged.by,
                "found_at": time::write(damaged.at),
            })
        })
        .collect();
    let set_aside: Vec<Value> = store
        .damage
        .set_aside
        .iter()
        .map(|(job, why)| json!({ "job": id(*job), "number": job.0, "detail": why }))
        .collect();
    json!({
        "found": found,
        "more": store.damage.more,
        "set_aside": set_aside,
        "put_back": store.damage.mended,
    })
}

fn scrub(report: &ScrubReport) -> Value {
    json!({
        "every_ms": report.every_ms,
        "phase": report.phase,
        "position": report.position,
        "records": report.scrubbed.records,
        "jobs": report.scrubbed.jobs,
        "objects": report.scrubbed.objects,
        "bytes": report.scrubbed.bytes,
        "findings": report.findings,
        "rounds": report.rounds,
        "ended_at": report.ended_at.map(time::write),
    })
}
