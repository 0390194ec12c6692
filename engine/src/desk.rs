//! What the daemon lends to kinds and to the registration of circuits: names, objects, limits.

use std::fs::File;
use std::sync::Arc;

use proofkeep_store::ids::Digest;
use proofkeep_store::records::Circuit;
use proofkeep_store::{ObjectError, query};

use crate::kinds::Desk;
use crate::problem::Problem;
use crate::shared::Core;

/// The daemon's [`Desk`]. It reads files: not for asynchronous code.
#[derive(Clone)]
pub struct DaemonDesk {
    pub(crate) core: Arc<Core>,
    pub(crate) threads: u32,
    pub(crate) wasm_memory_bytes: u64,
    pub(crate) allow_unofficial_params: bool,
}

impl Desk for DaemonDesk {
    fn circuit(&self, name: &str) -> Result<Circuit, Problem> {
        let digest = name.strip_prefix("sha256:").and_then(|_| Digest::parse(name));
        let found = self.core.handle.read(|view| match digest {
            Some(digest) => query::circuit(view, digest),
            None => query::circuit_by_name(view, name),
        });
        found.map_err(|error| unreadable(&error))?.ok_or_else(|| {
            let name: String = name.chars().take(80).collect();
            let detail = format!("there is no circuit {name:?}; register it with PUT /v1/circuits/{{name}}, or list those there are");
            Problem::new(404, "unknown-circuit", "there is no such circuit", detail)
        })
    }

    fn keep(&self, bytes: &[u8]) -> Result<Digest, Problem> {
        self.core
            .objects
            .put(bytes)
            .map_err(|error| object_problem(&error))
    }

    fn size(&self, object: Digest) -> Option<u64> {
        self.core
            .objects
            .stat(object)
            .ok()
            .flatten()
            .map(|stat| stat.length)
    }

    fn open(&self, object: Digest) -> Result<File, Problem> {
        self.core
            .objects
            .open(object)
            .map_err(|error| object_problem(&error))
    }

    fn threads(&self) -> u32 {
        self.threads
    }

    fn wasm_memory_bytes(&self) -> u64 {
        self.wasm_memory_bytes
    }

    fn memory_bytes(&self) -> u64 {
        self.core.ledger.snapshot().budget()
    }

    fn allow_insecure_setup(&self) -> bool {
        self.core.allow_insecure_setup
    }

    fn allow_unofficial_params(&self) -> bool {
        self.allow_unofficial_params
    }
}

/// Records can't be read.
pub(crate) fn unreadable(error: &dyn std::fmt::Display) -> Problem {
    let detail = format!("the store can't be read: {error}; run `proofkeep fsck` with the daemon stopped");
    Problem::new(500, "store-unreadable", "the store can't be read", detail)
}

/// A record of one job is damaged; the others go on.
#[must_use]
pub fn job_damaged(why: &dyn std::fmt::Display) -> Problem {
    let detail = format!(
        "{why}; the other jobs go on. Stop the daemon, run `proofkeep fsck --repair`, which puts back what the job's journal \
         still says, and start it again. If the job stays damaged, restore the last backup into a new directory"
    );
    Problem::new(500, "job-damaged", "a record of the job is damaged", detail)
}

/// An object can't be read or written.
pub fn object_problem(error: &ObjectError) -> Problem {
    match error {
        ObjectError::DiskFull(_) => {
            Problem::new(507, "disk-budget", "the disk is full", error.to_string()).retryable()
        }
        ObjectError::Missing(digest) => missing(&[*digest]),
        ObjectError::Damaged { .. } => Problem::input("blob-damaged", error.to_string()),
        ObjectError::Mismatch { .. } => Problem::input("digest-mismatch", error.to_string()),
        ObjectError::Io { .. } => {
            Problem::new(500, "io", "the disk refused something", error.to_string()).retryable()
        }
    }
}

/// 422 `blob-missing`, with the digests.
pub(crate) fn missing(digests: &[Digest]) -> Problem {
    let names: Vec<String> = digests.iter().map(ToString::to_string).collect();
    let shown = names.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
    let more = if names.len() > 4 {
        format!(" and {} more", names.len() - 4)
    } else {
        String::new()
    };
    let detail =
        format!("these blobs are not there: {shown}{more}; upload them with PUT /v1/blobs/{{digest}} first");
    Problem::input("blob-missing", detail).with("missing", names.into())
}
