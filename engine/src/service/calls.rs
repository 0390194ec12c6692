//! What users ask for: each call checks, sends one command, and answers in a user's words.

use std::sync::Arc;

use proofkeep_store::CommitError;
use proofkeep_store::ids::{Digest, JobNumber};
use proofkeep_store::machine::{Admission, Command, Reply};
use proofkeep_store::query::{self, Found};
use proofkeep_store::records::{Circuit, Job, JobState, Priority};
use tokio::sync::SemaphorePermit;
use uuid::Uuid;

use super::{Engine, check, problems};
use crate::circuits::plan_circuit;
use crate::desk::unreadable;
use crate::kinds::Desk as _;
use crate::kinds::groth16::local_setup_bytes;
use crate::problem::Problem;
use crate::request::{self, Asker};
use crate::shared::{Core, INSECURE_SETUP};

/// A submit's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// Its number.
    pub job: JobNumber,
    /// Its name.
    pub id: Uuid,
    /// Its current life.
    pub generation: u32,
    /// Whether it is new.
    pub admission: Admission,
}

/// A registration's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The circuit that the name points to now.
    pub circuit: Circuit,
    /// It was there already, under this name.
    pub unchanged: bool,
}

impl Engine {
    /// Submits a job. Durable when it returns.
    ///
    /// # Errors
    /// 400, 404, 422 when the request is wrong, 429, 503 and 507 when it can't be taken now.
    pub async fn submit(&self, body: Vec<u8>, asker: Asker) -> Result<Submitted, Problem> {
        let _admitted = self.admit()?;
        let (core, desk) = (Arc::clone(&self.core), self.desk.clone());
        let submit = self
            .blocking(move || {
                let (mut submit, _) = request::submit(&body, asker, &core.kinds, &desk)?;
                let accounts = core.ledger.snapshot();
                let budget = accounts.budget_of(submit.priority == Priority::Critical);
                check_allowed(&core, submit.circuit)?;
                let key = key_bytes(&core, submit.circuit)?;
                submit.budget_bytes = budget.saturating_sub(key);
                if submit.ticket_bytes > submit.budget_bytes {
                    let ticket = submit.ticket_bytes;
                    let kept = match accounts.budget() - budget {
                        0 => String::new(),
                        kept => format!(" (reserve_critical keeps {kept} more for critical jobs)"),
                    };
                    let detail = format!(
                        "a partition needs {ticket} bytes of memory and {key} for its key, and the budget is {budget} \
                         bytes{kept}; give proofkeep more memory, or use a smaller circuit"
                    );
                    return Err(Problem::input("needs-memory", detail));
                }
                Ok(submit)
            })
            .await?;
        let committed = self
            .core
            .handle
            .commit(Command::Submit(submit))
            .await
            .map_err(problems::commit)?;
        match committed.reply {
            Reply::Submitted {
                job,
                id,
                generation,
                admission,
            } => {
                // A retry of a job with all its proofs goes straight to its final check.
                self.core.hint(job);
                Ok(Submitted {
                    job,
                    id,
                    generation,
                    admission,
                })
            }
            other => Err(unexpected(&other)),
        }
    }

    /// The number of a job. Waits for the store: not for asynchronous code.
    ///
    /// # Errors
    /// 404 when there is none, 410 when it was forgotten.
    pub fn find(&self, id: Uuid) -> Result<JobNumber, Problem> {
        find(&self.core, id)
    }

    /// Asks a job to stop. Asking again changes nothing.
    ///
    /// # Errors
    /// 404, and 409 when it has ended otherwise.
    pub async fn cancel(&self, id: Uuid, actor: &str) -> Result<(), Problem> {
        let core = Arc::clone(&self.core);
        let job = self.blocking(move || find(&core, id)).await?;
        let command = Command::Cancel {
            job,
            actor: actor.to_owned(),
        };
        let committed = self.core.handle.commit(command).await;
        committed.map(|_| ()).map_err(|error| {
            problems::of_job(
                error,
                id,
                "it can't be cancelled any more; what it proved is kept",
            )
        })
    }

    /// Tries a job again that ended without success; proofs that there are stay. `body` is empty or
    /// `{"replace": {"17": input}}`.
    ///
    /// # Errors
    /// 404, 409 when it hasn't ended or succeeded, 422 when the replacement is wrong.
    pub async fn retry(&self, id: Uuid, body: Vec<u8>, actor: &str) -> Result<(), Problem> {
        let _admitted = self.admit()?;
        let (core, desk) = (Arc::clone(&self.core), self.desk.clone());
        let (number, replacement, damaged) = self
            .blocking(move || {
                let number = find(&core, id)?;
                let job = core.job(number).map_err(|error| unreadable(&error))?;
                check_allowed(&core, job.circuit)?;
                let replacement = replacement(&core, &desk, &job, &body)?;
                let damaged = match job.state {
                    JobState::Succeeded => check::damaged(&core, &job),
                    _ => Vec::new(),
                };
                Ok((number, replacement, damaged))
            })
            .await?;
        let command = Command::Retry {
            job: number,
            actor: actor.to_owned(),
            replacement,
            damaged,
        };
        let committed = self.core.handle.commit(command).await;
        committed.map_err(|error| {
            let why = "only a job that failed, was cancelled or expired, or whose stored proof is damaged, can be tried \
                       again; submit another job to prove the same once more";
            problems::of_job(error, id, why)
        })?;
        self.core.hint(number);
        Ok(())
    }

    /// Starts nothing new until it is resumed; durable.
    ///
    /// # Errors
    /// 503 when the daemon is stopping.
    pub async fn pause(&self, actor: &str) -> Result<(), Problem> {
        self.operate(Command::Pause {
            actor: actor.to_owned(),
        })
        .await
    }

    /// Goes on.
    ///
    /// # Errors
    /// 503 when the daemon is stopping.
    pub async fn resume(&self, actor: &str) -> Result<(), Problem> {
        self.operate(Command::Resume {
            actor: actor.to_owned(),
        })
        .await
    }

    /// Takes no submits and starts nothing new until the next boot.
    ///
    /// # Errors
    /// 503 when the daemon is stopping.
    pub async fn drain(&self, actor: &str) -> Result<(), Problem> {
        self.operate(Command::Drain {
            actor: actor.to_owned(),
        })
        .await
    }

    /// Registers a circuit from its description; see [`plan_circuit`]. Its import starts at once, and jobs may be
    /// submitted meanwhile.
    ///
    /// # Errors
    /// 400 and 422 when the description or a header is wrong, 409 when the name points to another circuit.
    pub async fn register_circuit(
        &self,
        name: &str,
        body: Vec<u8>,
        replace: bool,
        actor: &str,
    ) -> Result<Registered, Problem> {
        let _admitted = self.admit()?;
        let (core, desk) = (Arc::clone(&self.core), self.desk.clone());
        let (asked, actor) = (name.to_owned(), actor.to_owned());
        let add = self
            .blocking(move || {
                let spec = request::value(&body)?;
                let add = plan_circuit(&desk, &asked, &spec, replace, &actor)?;
                if add.facts.insecure && !core.allow_insecure_setup {
                    return Err(Problem::input("insecure-setup", INSECURE_SETUP));
                }
                let budget = core.ledger.snapshot().budget();
                let made = match add.local_setup {
                    true => local_setup_bytes(&add.facts),
                    false => 0,
                };
                let needed = made.max(add.facts.key_bytes);
                if needed > budget {
                    let what = if made == needed { "making the key" } else { "the key" };
                    let detail = format!(
                        "{what} of {} takes {needed} bytes of memory and the budget is {budget} bytes; give proofkeep \
                         more memory, or use a smaller circuit",
                        add.name
                    );
                    return Err(Problem::input("needs-memory", detail));
                }
                Ok(add)
            })
            .await?;
        let (digest, local_setup) = (add.circuit, add.local_setup);
        let committed = self
            .core
            .handle
            .commit(Command::CircuitAdd(add))
            .await
            .map_err(problems::commit)?;
        let (core, desk, name) = (Arc::clone(&self.core), self.desk.clone(), name.to_owned());
        let circuit = self
            .blocking(move || match local_setup {
                // Asked again for a key that was made here, the store took the circuit that has it.
                true => desk.circuit(&name),
                false => core.circuit(digest).map_err(|error| unreadable(&error)),
            })
            .await?;
        Ok(Registered {
            circuit,
            unchanged: committed.reply == Reply::Unchanged,
        })
    }

    /// Forgets a circuit; its files go when nobody else needs them.
    ///
    /// # Errors
    /// 404, and 409 while jobs need it or it is being imported.
    pub async fn remove_circuit(&self, name: &str, actor: &str) -> Result<(), Problem> {
        let _admitted = self.admit()?;
        let (desk, name) = (self.desk.clone(), name.to_owned());
        let circuit = self.blocking(move || Ok(desk.circuit(&name)?.digest)).await?;
        self.operate(Command::CircuitRemove {
            circuit,
            actor: actor.to_owned(),
        })
        .await
    }

    /// Room for one request that will be stored, until it is answered. A request reads before it reaches the commit
    /// thread's bounded lane, and reads wait while that thread syncs: without this bound a slow disk would let them pile
    /// up without end.
    fn admit(&self) -> Result<SemaphorePermit<'_>, Problem> {
        self.requests
            .try_acquire()
            .map_err(|_| problems::commit(CommitError::Busy))
    }

    async fn operate(&self, command: Command) -> Result<(), Problem> {
        self.core
            .handle
            .commit(command)
            .await
            .map(|_| ())
            .map_err(problems::commit)
    }
}

fn find(core: &Core, id: Uuid) -> Result<JobNumber, Problem> {
    let found = core.handle.read(|view| query::find(view, id));
    match found.map_err(|error| unreadable(&error))? {
        Found::Job(number) => Ok(number),
        Found::Pruned(_) => {
            let detail = format!("job {id} ended long ago and its record was removed");
            Err(Problem::new(410, "pruned", "the job was forgotten", detail))
        }
        Found::Unknown => Err(Problem::new(
            404,
            "unknown-job",
            "there is no such job",
            format!("there is no job {id}"),
        )),
    }
}

fn replacement(
    core: &Core,
    desk: &crate::desk::DaemonDesk,
    job: &Job,
    body: &[u8],
) -> Result<Option<proofkeep_store::machine::Replacement>, Problem> {
    let request = core.request(job).map_err(|error| unreadable(&error))?;
    request::replacement(body, &request, &core.kinds, desk)
}

/// Bytes of the key that new work for a circuit needs.
fn key_bytes(core: &Core, circuit: Option<Digest>) -> Result<u64, Problem> {
    let Some(digest) = circuit else { return Ok(0) };
    let circuit = core.circuit(digest).map_err(|error| unreadable(&error))?;
    Ok(circuit.facts.key_bytes)
}

/// Refuses new work for a circuit whose key isn't allowed. A circuit that isn't there is the store's to refuse.
fn check_allowed(core: &Core, circuit: Option<Digest>) -> Result<(), Problem> {
    let Some(Ok(circuit)) = circuit.map(|digest| core.circuit(digest)) else {
        return Ok(());
    };
    if core.refuses(&circuit) {
        let detail = format!("circuit {}: {INSECURE_SETUP}", circuit.name);
        return Err(Problem::input("insecure-setup", detail));
    }
    Ok(())
}

fn unexpected(reply: &Reply) -> Problem {
    let detail = format!("the store answered {reply:?}; please report this");
    Problem::new(500, "unexpected", "this is a fault of proofkeep", detail)
}
