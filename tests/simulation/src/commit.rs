//! The commit thread, turned into steps: decide a command, sync the group, answer. Whatever a command writes is watched.

use proofkeep_store::commit::{Committed, Group};
use proofkeep_store::ids::JobNumber;
use proofkeep_store::keys;
use proofkeep_store::machine::{Command, Context, MOST_DEATHS, Refusal, Reply, StepError};
use proofkeep_store::records::{FailureClass, Generation, Job, JobState};
use proofkeep_store::view::{ReadError, View as _};

use crate::daemon::{Daemon, Outcome, Request};
use crate::nature::{Key, Kind};
use crate::watch::Facts;
use crate::world::World;

impl World {
    /// The commit thread takes the next command into its group.
    pub(crate) fn decide(&mut self, daemon: &mut Daemon) -> Result<(), String> {
        let Some(Request { id, command }) = daemon.queues.pop() else {
            return Ok(());
        };
        let context = Context {
            now: daemon.clock.at(self.time.now()),
            boot: daemon.boot,
        };
        let mut group = daemon.group.take().unwrap_or_default();
        let missing: Vec<_> = command
            .objects()
            .into_iter()
            .filter(|object| !self.disk.objects.contains(object))
            .collect();
        let outcome = if missing.is_empty() {
            self.machine_step(context, &command, &mut group)?
        } else {
            Err(Refusal::BlobMissing(missing).into())
        };
        self.trace(|| {
            let what = match &outcome {
                Ok(committed) => format!("{:?}", committed.reply),
                Err(error) => format!("no: {error}"),
            };
            format!("{} -> {what}", describe(&command))
        });
        self.count(if outcome.is_ok() { "commands" } else { "refusals" });
        group.answers.push((id, outcome));
        daemon.group = Some(group);
        Ok(())
    }

    fn machine_step(
        &mut self,
        context: Context,
        command: &Command,
        group: &mut Group<u64>,
    ) -> Result<Outcome, String> {
        let step = match self.machine.step(&self.disk.view, context, command) {
            Ok(step) => step,
            Err(StepError::Refused(refusal)) => return Ok(Err(refusal.into())),
            Err(error) => return Err(format!("{}: {error}", describe(command))),
        };
        if let Err(error) = group.take(&step) {
            return Err(format!("{}: {error}", describe(command)));
        }
        if step.reply == Reply::Unchanged && !step.changes.is_empty() {
            return Err(format!("{} says unchanged and writes", describe(command)));
        }
        if !step.changes.is_empty() {
            let old = step
                .changes
                .keys()
                .map(|key| (key.clone(), self.disk.view.0.get(key).cloned()))
                .collect();
            self.disk.apply(&step.changes);
            let facts = self
                .watch
                .follow(&old, &self.disk.view, &step, context.boot)
                .map_err(|wrong| format!("{}: {wrong}", describe(command)))?;
            self.judge(facts)
                .map_err(|wrong| format!("{}: {wrong}", describe(command)))?;
        }
        Ok(Ok(Committed {
            reply: step.reply,
            journal: step.journal,
        }))
    }

    /// Nobody fails for something that never happened to it.
    fn judge(&mut self, facts: Facts) -> Result<(), String> {
        self.count_many("proofs", facts.proved);
        for (job, partition, generation, alone) in facts.deaths {
            self.death(job, partition, generation, alone)?;
        }
        for (job, partition, failure) in facts.failed {
            let blamed = self
                .blame
                .get(&(job.0, partition))
                .is_some_and(|classes| classes.contains(&failure.class));
            self.count_many("parked", u64::from(failure.class == FailureClass::Poison));
            let lost = failure.class == FailureClass::InputMissing && self.lost_files;
            if blamed || lost {
                continue;
            }
            return Err(format!(
                "partition {partition} of job {job} failed for what never happened to it: {}: {}",
                failure.class, failure.detail
            ));
        }
        for (job, state) in facts.ended {
            self.count(match state {
                JobState::Succeeded => "jobs succeeded",
                JobState::Failed => "jobs failed",
                JobState::Cancelled => "jobs cancelled",
                _ => "jobs expired",
            });
            self.blameless(job)?;
        }
        Ok(())
    }

    /// A death by a process's own fault is counted for a partition: who was alone is guilty, and nobody kills processes
    /// for ever, in whatever pattern: twice the number that is promised, since a failure that is counted apart starts the
    /// count anew, and deaths that a power cut took back are counted here too.
    fn death(&mut self, job: JobNumber, partition: u32, generation: u32, alone: bool) -> Result<(), String> {
        let kills = self
            .blame
            .get(&(job.0, partition))
            .is_some_and(|classes| classes.contains(&FailureClass::Poison));
        if alone && !kills {
            return Err(format!(
                "partition {partition} of job {job} was alone in a process that died and didn't kill it"
            ));
        }
        let deaths = self.deaths.entry((job.0, partition, generation)).or_default();
        *deaths += 1;
        if kills && *deaths > 2 * MOST_DEATHS {
            return Err(format!(
                "partition {partition} of job {job} killed {deaths} processes in generation {generation} and goes on"
            ));
        }
        Ok(())
    }

    /// A circuit that is good is never refused.
    fn blameless(&self, number: JobNumber) -> Result<(), String> {
        let read = |error: ReadError| error.to_string();
        let view = &self.disk.view;
        let Some(job) = view.record::<Job>(&keys::job(number)).map_err(read)? else {
            return Ok(());
        };
        let generation: Option<Generation> = view
            .record(&keys::generation(number, job.generation))
            .map_err(read)?;
        let failure = generation.and_then(|generation| generation.failure);
        let refused = failure.is_some_and(|failure| failure.class == FailureClass::CircuitFailed);
        let Some(kind) = job.circuit.and_then(Kind::of).filter(|_| refused) else {
            return Ok(());
        };
        if kind.key == Key::Good {
            return Err(format!(
                "job {number} failed with circuit {}, which is good",
                kind.name
            ));
        }
        Ok(())
    }

    /// The group is durable: its askers are answered.
    pub(crate) fn sync(&mut self, daemon: &mut Daemon) {
        let Some(group) = daemon.group.take() else { return };
        self.disk.sync();
        self.trace(|| format!("sync of {} commands", group.answers.len()));
        self.count("syncs");
        // The durable journal number wakes the loop.
        daemon.bell |= group.journal.is_some();
        for (id, outcome) in group.answers {
            daemon.answer(id, outcome);
        }
    }
}

/// A command in few words.
fn describe(command: &Command) -> String {
    match command {
        Command::Submit(submit) => format!(
            "submit of {} partitions, key {:?}",
            submit.partitions, submit.idempotency_key
        ),
        Command::SynthEnd(end) => format!("synth_end {}", end.token),
        Command::ProofStored(stored) => format!("proof_stored {}", stored.token),
        Command::Checkpoint { token, pieces, .. } => format!("checkpoint {token}, {} pieces", pieces.len()),
        Command::CircuitAdd(add) => format!("circuit_add {}", add.name),
        other => format!("{other:?}"),
    }
}
