//! A job.

use proofkeep_store::ids::{JobNumber, Millis};
use proofkeep_store::query::{self, JobDetail, JobRow, PartitionPage, QueuePlace, Summary};
use proofkeep_store::records::{Circuit, Generation, Job, JobState};
use proofkeep_store::view::{ReadError, View};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{counted, failure, partition, text, time};

/// The partitions that an answer about a job holds; the others come by page.
pub(crate) const PARTITIONS: usize = 64;

/// The last attempts that are shown of each partition; all of them come with the partition itself.
pub(crate) const ATTEMPTS: usize = 16;

/// One job with everything that an answer about it shows, as of one moment.
pub(crate) struct JobView {
    /// The job.
    pub detail: JobDetail,
    /// Its circuit, if it is still there.
    pub circuit: Option<Circuit>,
    /// Its first partitions.
    pub partitions: PartitionPage,
}

impl JobView {
    /// Reads it; `None` if there is no such job.
    pub fn read(view: &dyn View, number: JobNumber) -> Result<Option<Self>, ReadError> {
        let Some(detail) = query::job(view, number)? else {
            return Ok(None);
        };
        let circuit = match detail.job.circuit {
            Some(digest) => query::circuit(view, digest)?,
            None => None,
        };
        let partitions = query::partitions(view, number, 0, PARTITIONS, ATTEMPTS)?;
        Ok(Some(Self {
            detail,
            circuit,
            partitions,
        }))
    }

    /// Draws it. `short` is the job that waits for memory, which only the scheduler knows.
    pub fn draw(&self, now: Millis, short: Option<JobNumber>) -> Value {
        let JobDetail {
            job,
            summary,
            generation,
            queue,
            reason,
            remaining_ms,
        } = &self.detail;
        let mut members = head(job, generation.as_ref(), self.circuit.as_ref());
        let mut put = |name: &str, value: Value| {
            members.insert(name.to_owned(), value);
        };
        let memory = (short == Some(job.number)).then(|| "memory".to_owned());
        let reason = reason
            .map(|reason| reason.name().to_owned())
            .or(memory.filter(|_| summary.running == 0));
        put("reason", text(reason));
        put("summary", self::summary(*summary));
        put("queue", queue.map_or(Value::Null, place));
        put("eta", time::json(remaining_ms.map(|millis| now.after(millis))));
        put("max_attempts", job.max_attempts.into());
        put("on_failure", job.on_failure.name().into());
        put("idempotency_key", text(job.idempotency_key.as_deref()));
        put("request_digest", job.request.to_string().into());
        put("ticket_bytes", job.ticket_bytes.into());
        put(
            "partitions",
            self.partitions.partitions.iter().map(partition::draw).collect(),
        );
        put(
            "next_partition",
            self.partitions.next.map_or(Value::Null, Value::from),
        );
        Value::Object(members)
    }
}

/// A job in a list.
pub(crate) fn row(row: &JobRow, circuit: Option<&Circuit>) -> Value {
    let mut members = head(&row.job, row.generation.as_ref(), circuit);
    let tally = row.job.tally;
    let summary = json!({
        "total": row.job.partitions, "proved": tally.proved, "failed": tally.failed, "cancelled": tally.cancelled,
    });
    members.insert("summary".to_owned(), summary);
    Value::Object(members)
}

/// A job in a list of which nothing can be shown: a record of it is damaged. Its state is one that no job has.
pub(crate) fn damaged_row(id: Option<Uuid>, detail: &str) -> Value {
    json!({
        "id": text(id),
        "state": "damaged",
        "error": { "class": "damaged", "code": "job-damaged", "detail": detail },
    })
}

/// What a list shows as well.
pub(crate) fn head(
    job: &Job,
    generation: Option<&Generation>,
    circuit: Option<&Circuit>,
) -> Map<String, Value> {
    let labels: Map<String, Value> = job
        .labels
        .iter()
        .map(|(key, value)| (key.clone(), value.as_str().into()))
        .collect();
    let mut members = Map::new();
    let mut put = |name: &str, value: Value| {
        members.insert(name.to_owned(), value);
    };
    put("id", job.id.to_string().into());
    put("kind", job.kind.as_str().into());
    put("circuit", text(circuit.map(|circuit| circuit.name.as_str())));
    put("circuit_digest", text(job.circuit));
    if circuit.is_some_and(|circuit| circuit.facts.insecure) {
        put("insecure", true.into());
    }
    put("state", job.state.name().into());
    if let JobState::Stopping(target) = job.state {
        put("target", JobState::from(target).name().into());
    }
    put("priority", job.priority.name().into());
    put("labels", labels.into());
    put("actor", job.actor.as_str().into());
    put("created_at", time::write(job.created_at).into());
    put(
        "started_at",
        time::json(generation.and_then(|generation| generation.started_at)),
    );
    put(
        "ended_at",
        time::json(generation.and_then(|generation| generation.ended_at)),
    );
    put("generation", job.generation.into());
    put("journal", job.journal.0.into());
    put(
        "error",
        generation
            .and_then(|generation| generation.failure.as_ref())
            .map_or(Value::Null, failure),
    );
    put("verification", verification(job).into());
    members
}

/// How far the check of the whole has come: each proof was verified before it was stored, this is the last check.
fn verification(job: &Job) -> &'static str {
    match job.state {
        JobState::Succeeded => "passed",
        JobState::Verifying if job.verifying.is_some() => "running",
        JobState::Verifying => "pending",
        _ => "none",
    }
}

/// Partitions, counted.
pub(crate) fn summary(summary: Summary) -> Value {
    json!({
        "total": summary.total, "proved": summary.proved, "failed": summary.failed,
        "cancelled": summary.cancelled, "running": summary.running,
    })
}

fn place(place: QueuePlace) -> Value {
    json!({ "position": counted(place.position), "ahead": counted(place.ahead) })
}
