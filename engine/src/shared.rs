//! What the run loop, the readers of worker processes and the daemon's calls all need.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use proofkeep_groth16::vk::UnfinishedSetup;
use proofkeep_store::clock::Clock;
use proofkeep_store::ids::{Digest, JobNumber};
use proofkeep_store::records::{Circuit, Failure, FailureClass, Job};
use proofkeep_store::view::ReadError;
use proofkeep_store::{CommitError, Committed, Handle, ObjectError, Objects, query};
use tokio::sync::Notify;

use crate::budget::Ledger;
use crate::damage::Damage;
use crate::kinds::groth16::headers;
use crate::kinds::{Kind, Kinds};

/// Verification keys kept in memory; a few hundred bytes to some KiB each.
const VERIFICATION_KEYS: usize = 64;

/// Why a key that anyone can forge under is refused: at its registration, by its import, and for new jobs.
pub(crate) const INSECURE_SETUP: &str = "anyone who knows how this key was made can forge proofs under it, and \
                                         allow_insecure_setup = false refuses such keys; use one from a ceremony";

/// Shared by all threads of the daemon's half.
pub(crate) struct Core {
    pub handle: Handle,
    pub objects: Objects,
    pub kinds: Kinds,
    pub ledger: Ledger,
    pub clock: Clock,
    /// Keys that anyone can forge under may be registered and used.
    pub allow_insecure_setup: bool,
    /// Wakes the run loop; a ring while it works is remembered.
    pub bell: Notify,
    /// Jobs that may be ready for their final check.
    pub hints: Mutex<BTreeSet<JobNumber>>,
    /// What is damaged.
    pub damage: Damage,
    verification_keys: Mutex<BTreeMap<Digest, Arc<Vec<u8>>>>,
}

/// Why something that a job needs can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Object(#[from] ObjectError),
    #[error("there is no {0}")]
    Missing(String),
}

impl Core {
    pub fn new(
        handle: Handle,
        objects: Objects,
        kinds: Kinds,
        ledger: Ledger,
        clock: Clock,
        allow_insecure_setup: bool,
    ) -> Self {
        Self {
            handle,
            objects,
            kinds,
            ledger,
            clock,
            allow_insecure_setup,
            bell: Notify::new(),
            hints: Mutex::default(),
            damage: Damage::default(),
            verification_keys: Mutex::default(),
        }
    }

    /// For threads of our own; see [`Handle::commit_blocking`].
    pub fn commit(&self, command: proofkeep_store::machine::Command) -> Result<Committed, CommitError> {
        self.handle.commit_blocking(command)
    }

    /// The run loop looks at this job as a whole.
    pub fn hint(&self, job: JobNumber) {
        self.hints.lock().insert(job);
        self.bell.notify_one();
    }

    pub fn job(&self, job: JobNumber) -> Result<Job, LookError> {
        let found = self.handle.read(|view| query::job_by_number(view, job))?;
        found.ok_or_else(|| LookError::Missing(format!("job number {job}")))
    }

    pub fn circuit(&self, digest: Digest) -> Result<Circuit, LookError> {
        let found = self.handle.read(|view| query::circuit(view, digest))?;
        found.ok_or_else(|| LookError::Missing(format!("circuit {digest}")))
    }

    /// New proofs under this circuit's key are refused: anyone can forge under it, and such keys aren't allowed (any
    /// more). Jobs that were accepted before go on.
    pub fn refuses(&self, circuit: &Circuit) -> bool {
        circuit.facts.insecure && !self.allow_insecure_setup
    }

    /// The verification key of a job: its circuit's, or the one that its kind keeps elsewhere.
    pub fn verification_key_of(&self, job: &Job, kind: &dyn Kind) -> Result<Option<Arc<Vec<u8>>>, LookError> {
        if job.circuit.is_some() {
            return self.verification_key(job.circuit);
        }
        let mut request = || {
            let failed = |error: LookError| {
                Failure::coded(FailureClass::InputMissing, "request-missing", error.to_string())
            };
            self.request(job).map_err(failed)
        };
        let found = kind.verification_key(&mut request);
        let missing = |failure: Failure| LookError::Missing(format!("verification key: {}", failure.detail));
        Ok(found.map_err(missing)?.map(Arc::new))
    }

    /// The verification key of a job's circuit; `None` for kinds without circuits.
    pub fn verification_key(&self, circuit: Option<Digest>) -> Result<Option<Arc<Vec<u8>>>, LookError> {
        let Some(circuit) = circuit else { return Ok(None) };
        if let Some(found) = self.verification_keys.lock().get(&circuit) {
            return Ok(Some(Arc::clone(found)));
        }
        let Some(vk) = self.circuit(circuit)?.vk else {
            return Err(LookError::Missing(format!(
                "verification key of circuit {circuit}: it isn't imported yet"
            )));
        };
        let bytes = Arc::new(match self.objects.read_verified(vk) {
            Err(damage @ (ObjectError::Damaged { .. } | ObjectError::Missing(_))) => {
                tracing::warn!("the verification key of circuit {circuit}: {damage}");
                self.make_vk_again(circuit, vk, damage)?
            }
            read => read?,
        });
        let mut keys = self.verification_keys.lock();
        if keys.len() >= VERIFICATION_KEYS {
            keys.pop_first();
        }
        keys.insert(circuit, Arc::clone(&bytes));
        Ok(Some(bytes))
    }

    /// A verification key whose file is gone or damaged, from the circuit's proving key. It must be the same one.
    fn make_vk_again(&self, circuit: Digest, vk: Digest, damage: ObjectError) -> Result<Vec<u8>, LookError> {
        let record = self.circuit(circuit)?;
        let Some(zkey) = record.files.zkey else {
            return Err(damage.into());
        };
        let unfinished = UnfinishedSetup::accept_if(record.allow_unfinished);
        let again = headers::verification_key(&mut self.objects.open(zkey)?, unfinished);
        match again {
            Ok(bytes) if Digest::of(&bytes) == vk => {
                self.objects.put(&bytes)?;
                tracing::warn!("it was made again from the proving key {zkey}");
                Ok(bytes)
            }
            _ => Err(LookError::Missing(format!(
                "verification key of circuit {circuit} any more ({damage}), and its proving key {zkey} is damaged too; \
                 upload the key again"
            ))),
        }
    }

    /// The canonical request of a job.
    pub fn request(&self, job: &Job) -> Result<Vec<u8>, LookError> {
        if job.request_inline {
            let found = self.handle.read(|view| query::request(view, job.number))?;
            return found.ok_or_else(|| LookError::Missing(format!("request of job {}", job.id)));
        }
        Ok(self.objects.read_verified(job.request)?)
    }
}
