//! What every handler has at hand: the engine, and ways to read the store that keep no other request waiting.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofkeep_engine::problem::Problem;
use proofkeep_engine::service::Engine;
use proofkeep_store::ids::{Digest, JobNumber};
use proofkeep_store::query::{self, Found};
use proofkeep_store::view::{ReadError, View};
use tokio::sync::watch;
use uuid::Uuid;

use super::auth::Guard;
use super::connections::Limits;
use super::health::STUCK;
use super::problem::{internal, stuck, unreadable};
use super::status::LastStatus;

/// Pruned jobs are remembered for at least this long.
const REMEMBERED: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// What the daemon was told about HTTP.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// What is spoken: `http` or `https`.
    pub scheme: &'static str,
    /// Names that are answered besides loopback ones.
    pub allowed_hosts: Vec<String>,
    /// Where it listens.
    pub listen: IpAddr,
    /// Nobody is let in without a token, also on this machine.
    pub require_token: bool,
    /// The largest upload, in bytes.
    pub max_upload: u64,
    /// What connections may take.
    pub connections: Limits,
    /// This build is for tests and keeps no promise.
    pub test_build: bool,
}

/// At hand while the daemon serves.
#[derive(Clone)]
pub(super) struct Context {
    pub engine: Arc<Engine>,
    pub settings: Arc<Settings>,
    pub last_status: Arc<LastStatus>,
    pub guard: Arc<Guard>,
    /// `true` once the daemon stops: waits end, nothing new is taken.
    pub stopping: watch::Receiver<bool>,
}

impl Context {
    /// Reads what is durable. The lock may be held for the time of a sync, so this waits on a thread where that harms
    /// nobody, and gives up when the sync doesn't end: there are only so many threads.
    pub async fn read<T, F>(&self, read: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce(&dyn View) -> Result<T, ReadError> + Send + 'static,
    {
        let engine = Arc::clone(&self.engine);
        let result = self
            .blocking(move || engine.handle().try_read_for(STUCK, read))
            .await?;
        result
            .ok_or_else(|| stuck(self.engine.handle().heartbeat()))?
            .map_err(|error| unreadable(&error))
    }

    /// Runs something that takes long or touches the disk.
    pub async fn blocking<T, F>(&self, work: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        tokio::task::spawn_blocking(work).await.map_err(|error| {
            tracing::error!(%error, "work for a request failed");
            internal()
        })
    }

    /// The job that an id in a path names: 400 if it is no id, 404 or 410 if there is none.
    pub async fn job(&self, id: &str) -> Result<JobNumber, Problem> {
        let Ok(id) = Uuid::try_parse(id) else {
            return Err(no_such_job(id));
        };
        let now = self.engine.clock().now();
        match self.read(move |view| query::find(view, id)).await? {
            Found::Job(number) => Ok(number),
            Found::Pruned(at) if u128::from(now.since(at)) <= REMEMBERED.as_millis() => {
                let detail = format!(
                    "job {id} ended and was removed by the limit max_jobs; its proofs are gone with it"
                );
                Err(Problem::new(410, "pruned", "the job was removed", detail))
            }
            Found::Pruned(_) | Found::Unknown => Err(no_such_job(&id.to_string())),
        }
    }

    /// The bytes of an object, checked.
    pub async fn object(&self, digest: Digest) -> Result<Vec<u8>, Problem> {
        let engine = Arc::clone(&self.engine);
        let read = self
            .blocking(move || engine.store().objects().read_verified(digest))
            .await?;
        read.map_err(|error| {
            let detail =
                format!("{error}; the object is one that the daemon made, stop it and run `proofkeep fsck`");
            Problem::new(500, "object-damaged", "a stored object can't be read", detail)
        })
    }

    /// Waits for the journal to grow past what `seen` has seen; `false` when time is up or the daemon stops.
    pub async fn grown(
        &self,
        seen: &mut watch::Receiver<proofkeep_store::ids::JournalNumber>,
        until: Instant,
    ) -> bool {
        let mut stopping = self.stopping.clone();
        tokio::select! {
            changed = seen.changed() => changed.is_ok(),
            () = tokio::time::sleep_until(until.into()) => false,
            _ = stopping.wait_for(|stopping| *stopping) => false,
        }
    }
}

fn no_such_job(id: &str) -> Problem {
    let detail = format!(
        "there is no job {:?}; GET /v1/jobs lists those there are",
        super::problem::shown(id)
    );
    Problem::new(404, "unknown-job", "there is no such job", detail)
}
