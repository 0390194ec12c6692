//! What callers were told, kept apart from the daemon, and compared with what its store says later.
//!
//! A test writes down each answer after it came ([`Said`]). Whatever happens to the daemon or the machine then,
//! [`Ledger::losses`] must stay empty. A [`History`] does the same for what the store itself held at an earlier moment:
//! attempts are never lost or rewritten, and what is proved is not proved again.

mod history;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use proofkeep_store::Store;
use proofkeep_store::ids::{Digest, JobNumber};
use proofkeep_store::query::{self, Found};
use proofkeep_store::records::{CircuitState, Job, JobState, PartitionState, StopTarget};
use proofkeep_store::view::{ReadError, View};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

pub use history::History;

/// One thing that a caller was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Said {
    /// An upload was taken.
    Object(String),
    /// A circuit was taken under a name.
    Circuit {
        /// The name.
        name: String,
        /// `sha256:…`.
        digest: String,
    },
    /// It was ready.
    Ready {
        /// The name.
        name: String,
    },
    /// A circuit was removed again; what was said of the name before doesn't count any more.
    Removed {
        /// The name.
        name: String,
    },
    /// The removal of a circuit was acknowledged: there is none of that name until one is taken again.
    Gone {
        /// The name.
        name: String,
    },
    /// A backup, an export, or a store made of one is done. A ledger doesn't look after it.
    Saved {
        /// Its name.
        name: String,
    },
    /// A job was taken.
    Job {
        /// Its id.
        id: Uuid,
        /// Its partitions.
        partitions: u32,
        /// Nothing is wrong with it, so it must never fail.
        innocent: bool,
    },
    /// A cancel is about to be sent: from here on the job may be cancelled, whether that is answered or not.
    Asked(Uuid),
    /// A cancel was taken.
    Cancel(Uuid),
    /// A retry was taken.
    Retried {
        /// The job.
        id: Uuid,
        /// The life that it is in now, from 1.
        generation: u64,
    },
    /// A job was taken under an idempotency key.
    Key {
        /// The job.
        id: Uuid,
        /// The key.
        key: String,
    },
    /// It was shown as ended.
    Ended {
        /// The job.
        id: Uuid,
        /// Which of its lives, from 1.
        generation: u64,
        /// `succeeded`, `failed` or `cancelled`.
        state: String,
    },
    /// A partition was shown as proved.
    Proof {
        /// The job.
        id: Uuid,
        /// Which.
        partition: u32,
        /// `sha256:…` of the proof.
        digest: String,
        /// How many attempts it had had.
        attempts: u64,
    },
}

#[derive(Clone, Debug, Default)]
struct JobBook {
    partitions: u32,
    innocent: bool,
    asked: bool,
    cancelled: bool,
    key: Option<String>,
    /// By generation.
    ended: BTreeMap<u64, String>,
    /// The newest that was told.
    generation: u64,
    proofs: BTreeMap<u32, (String, u64)>,
}

#[derive(Clone, Debug, Default)]
struct Book {
    objects: BTreeSet<String>,
    /// Name to digest, and whether it was ready.
    circuits: BTreeMap<String, (String, bool)>,
    /// Names of circuits that were removed.
    gone: BTreeSet<String>,
    jobs: BTreeMap<Uuid, JobBook>,
}

/// Everything that callers were told.
#[derive(Debug, Default)]
pub struct Ledger {
    book: Mutex<Book>,
    /// Ended jobs may be pruned.
    prunes: bool,
}

impl Ledger {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty one for a store that forgets old jobs once they have ended.
    #[must_use]
    pub fn of_a_store_that_prunes() -> Self {
        Self {
            prunes: true,
            ..Self::default()
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down one answer.
    pub fn note(&self, said: Said) {
        let mut book = self.book();
        match said {
            Said::Object(digest) => {
                book.objects.insert(digest);
            }
            Said::Circuit { name, digest } => {
                book.gone.remove(&name);
                book.circuits.entry(name).or_insert((digest, false));
            }
            Said::Ready { name } => {
                if let Some((_, ready)) = book.circuits.get_mut(&name) {
                    *ready = true;
                }
            }
            Said::Removed { name } => {
                book.circuits.remove(&name);
                book.gone.remove(&name);
            }
            Said::Gone { name } => {
                book.circuits.remove(&name);
                book.gone.insert(name);
            }
            Said::Saved { .. } => {}
            Said::Job {
                id,
                partitions,
                innocent,
            } => {
                let job = book.jobs.entry(id).or_default();
                (job.partitions, job.innocent) = (partitions, innocent);
            }
            Said::Asked(id) => book.jobs.entry(id).or_default().asked = true,
            Said::Cancel(id) => book.jobs.entry(id).or_default().cancelled = true,
            Said::Retried { id, generation } => {
                let job = book.jobs.entry(id).or_default();
                job.generation = job.generation.max(generation);
            }
            Said::Key { id, key } => {
                book.jobs.entry(id).or_default().key = Some(key);
            }
            Said::Ended {
                id,
                generation,
                state,
            } => {
                let job = book.jobs.entry(id).or_default();
                job.generation = job.generation.max(generation);
                job.ended.insert(generation, state);
            }
            Said::Proof {
                id,
                partition,
                digest,
                attempts,
            } => {
                book.jobs
                    .entry(id)
                    .or_default()
                    .proofs
                    .insert(partition, (digest, attempts));
            }
        }
    }

    /// What an answer about a job says of its end and its proofs.
    #[must_use]
    pub fn told_of(job: &Value) -> Vec<Said> {
        let Some(id) = job["id"].as_str().and_then(|id| Uuid::parse_str(id).ok()) else {
            return Vec::new();
        };
        let mut said = Vec::new();
        for partition in job["partitions"].as_array().into_iter().flatten() {
            if let (Some(index), Some(digest)) = (partition["index"].as_u64(), partition["proof"].as_str()) {
                said.push(Said::Proof {
                    id,
                    partition: u32::try_from(index).unwrap_or(u32::MAX),
                    digest: digest.to_owned(),
                    attempts: partition["attempts_total"].as_u64().unwrap_or_default(),
                });
            }
        }
        if let Some(state @ ("succeeded" | "failed" | "cancelled")) = job["state"].as_str() {
            said.push(Said::Ended {
                id,
                generation: job["generation"].as_u64().unwrap_or_default(),
                state: state.to_owned(),
            });
        }
        said
    }

    /// The jobs that were taken, each with the states it may end in.
    #[must_use]
    pub fn jobs(&self) -> Vec<(Uuid, &'static [&'static str])> {
        let ends = |job: &JobBook| -> &'static [&'static str] {
            match job {
                JobBook { innocent: false, .. } => &["succeeded", "failed", "cancelled"],
                JobBook { cancelled: true, .. } => &["cancelled"],
                JobBook { asked: true, .. } => &["succeeded", "cancelled"],
                _ => &["succeeded"],
            }
        };
        self.book()
            .jobs
            .iter()
            .map(|(id, job)| (*id, ends(job)))
            .collect()
    }

    /// Everything that was said of a job, to be said again of a copy.
    #[must_use]
    pub fn said_of_jobs(&self) -> Vec<Said> {
        let mut said = Vec::new();
        for (id, job) in &self.book().jobs {
            let id = *id;
            said.push(Said::Job {
                id,
                partitions: job.partitions,
                innocent: job.innocent,
            });
            said.extend(job.asked.then_some(Said::Asked(id)));
            said.extend(job.cancelled.then_some(Said::Cancel(id)));
        }
        said
    }

    /// What was written down so far, in a book of its own.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self {
            book: Mutex::new(self.book().clone()),
            prunes: self.prunes,
        }
    }

    /// Everything that was said, to be said again in another process.
    #[must_use]
    pub fn said(&self) -> Vec<Said> {
        let mut said = self.said_of_jobs();
        let book = self.book();
        said.extend(book.objects.iter().cloned().map(Said::Object));
        for (name, (digest, ready)) in &book.circuits {
            let (name, digest) = (name.clone(), digest.clone());
            said.push(Said::Circuit {
                name: name.clone(),
                digest,
            });
            said.extend(ready.then_some(Said::Ready { name }));
        }
        said.extend(book.gone.iter().cloned().map(|name| Said::Gone { name }));
        for (id, job) in &book.jobs {
            let id = *id;
            let ended = job.ended.iter().map(|(generation, state)| Said::Ended {
                id,
                generation: *generation,
                state: state.clone(),
            });
            said.extend(ended);
            said.push(Said::Retried {
                id,
                generation: job.generation,
            });
            said.extend(job.key.clone().map(|key| Said::Key { id, key }));
            for (partition, (digest, attempts)) in &job.proofs {
                said.push(Said::Proof {
                    id,
                    partition: *partition,
                    digest: digest.clone(),
                    attempts: *attempts,
                });
            }
        }
        said
    }

    /// Whether ended jobs may be pruned.
    #[must_use]
    pub fn prunes(&self) -> bool {
        self.prunes
    }

    /// What the store no longer knows of it, or says otherwise now. It reads whole jobs under the store's lock: for
    /// stores that no daemon uses.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn losses(&self, store: &Store) -> Result<Vec<String>, ReadError> {
        let book = self.book().clone();
        let mut lost = Vec::new();
        for name in &book.objects {
            let found = Digest::parse(name).map(|digest| store.objects().verify(digest));
            if !matches!(found, Some(Ok(()))) {
                lost.push(format!("the upload {name} is not there: {found:?}"));
            }
        }
        store.read(|view| {
            for (name, (digest, ready)) in &book.circuits {
                match query::circuit_by_name(view, name)? {
                    Some(circuit) if circuit.digest.to_string() == *digest => match circuit.state {
                        CircuitState::Failed(why) => lost.push(format!("circuit {name} failed: {why:?}")),
                        CircuitState::Importing(_) if *ready => {
                            lost.push(format!("circuit {name} is no longer ready"))
                        }
                        _ => {}
                    },
                    found => lost.push(format!("circuit {name} is {:?}", found.map(|found| found.digest))),
                }
            }
            for name in &book.gone {
                if query::circuit_by_name(view, name)?.is_some() {
                    lost.push(format!("circuit {name} was removed, and is there"));
                }
            }
            for (id, told) in &book.jobs {
                match query::find(view, *id)? {
                    Found::Job(number) => lost.extend(job_losses(view, number, told)?),
                    Found::Pruned(_) if self.prunes => {}
                    _ => lost.push(format!("job {id} is not there")),
                }
            }
            Ok(lost)
        })
    }
}

fn job_losses(view: &dyn View, number: JobNumber, told: &JobBook) -> Result<Vec<String>, ReadError> {
    let mut lost = Vec::new();
    let Some(job) = query::job_by_number(view, number)? else {
        return Ok(vec![format!("job {number} has no record")]);
    };
    let mut say = |text: String| lost.push(format!("job {}: {text}", job.id));
    if told.partitions != 0 && job.partitions != told.partitions {
        say(format!(
            "it has {} partitions, {} were sent",
            job.partitions, told.partitions
        ));
    }
    let state = job.state;
    if told.cancelled && told.innocent && !is_cancelled(&job) {
        say(format!("its cancel was taken, now it is {}", state.name()));
    }
    // That the key leads to the job again is fsck's to see.
    if told.key.is_some() && told.key != job.idempotency_key {
        say(format!(
            "it was taken under the key {:?}, now it has {:?}",
            told.key, job.idempotency_key
        ));
    }
    let generation = u64::from(job.generation);
    if generation < told.generation {
        say(format!(
            "it was in its life {}, now it is in {generation}",
            told.generation
        ));
    }
    let lives = query::generations(view, number, usize::MAX)?;
    for (life, ended) in &told.ended {
        let found = match lives.iter().find(|found| u64::from(found.number) == *life) {
            _ if *life == generation => Some(state.name()),
            Some(found) => found.ended.map(JobState::name),
            None => None,
        };
        if found != Some(ended) {
            say(format!(
                "its life {life} was shown as {ended}, now it is {found:?}"
            ));
        }
    }
    let failed = matches!(state, JobState::Failed | JobState::Stopping(StopTarget::Failed));
    let stopped = matches!(
        state,
        JobState::Cancelled | JobState::Stopping(StopTarget::Cancelled)
    ) && !told.asked;
    let innocent = told.innocent;
    if innocent && (failed || stopped || state == JobState::Expired) {
        say(format!("nothing was wrong with it, yet it is {}", state.name()));
    }
    for detail in query::partitions(view, number, 0, 1024, 1)?.partitions {
        let partition = detail.partition;
        if innocent && partition.state == PartitionState::Failed {
            say(format!(
                "nothing was wrong with partition {}, yet it failed: {:?}",
                partition.index, partition.failure
            ));
        }
        let Some((digest, attempts)) = told.proofs.get(&partition.index) else {
            continue;
        };
        let found = detail.proof.map(|proof| proof.digest.to_string());
        if found.as_ref() != Some(digest) || u64::from(partition.attempts) != *attempts {
            say(format!(
                "partition {} had proof {digest} after {attempts} attempts, now it has {found:?} after {}",
                partition.index, partition.attempts
            ));
        }
    }
    Ok(lost)
}

fn is_cancelled(job: &Job) -> bool {
    matches!(
        job.state,
        JobState::Cancelled | JobState::Stopping(StopTarget::Cancelled)
    )
}
