//! What users want next.

use proofkeep_store::ids::{Digest, JobNumber};
use proofkeep_store::machine::{CircuitAdd, Command, Replacement, Submit};
use proofkeep_store::records::{Job, JobState, OnFailure, Priority, SourceFiles, Stage};
use proofkeep_store::{keys, query};
use uuid::Uuid;

use super::get;
use crate::chance::Chance;
use crate::child::facts;
use crate::daemon::Daemon;
use crate::nature::{CIRCUITS, Nature, natures, request};
use crate::world::World;

/// Jobs that haven't ended, at most, before users wait with new ones.
const BUSY: usize = 9;

impl World {
    /// What a user wants next.
    pub(super) fn wish(&mut self, daemon: &Daemon) -> Option<Command> {
        let actor = || "user".to_owned();
        if !self.users.unsure.is_empty() && self.chance.one_in(2) {
            let index = self.chance.index(self.users.unsure.len());
            let mut submit = self.users.unsure.swap_remove(index);
            // Without a key a user doesn't ask again: it could become a second job.
            submit.idempotency_key.as_ref()?;
            submit.id = self.fresh_id();
            return Some(Command::Submit(submit));
        }
        let active = query::active_jobs(&self.disk.view, None, BUSY).ok()?.jobs.len();
        let known: Vec<JobNumber> = self.users.known.keys().copied().collect();
        let job = self.chance.pick(&known).copied();
        Some(match self.chance.below(40) {
            0..=17 if active < BUSY => Command::Submit(self.new_submit(daemon)),
            18..=20 => Command::Cancel {
                job: job?,
                actor: actor(),
            },
            21..=23 => self.retry(job?)?,
            24..=25 => self.repeat(daemon)?,
            26 => Command::Pause { actor: actor() },
            27..=29 => Command::Resume { actor: actor() },
            30 if self.chance.one_in(4) => Command::Drain { actor: actor() },
            31..=34 => self.add_circuit(),
            35 if self.chance.one_in(3) => Command::CircuitRemove {
                circuit: self.chance.pick(&CIRCUITS)?.digest(),
                actor: actor(),
            },
            _ => return None,
        })
    }

    fn fresh_id(&mut self) -> Uuid {
        self.users.next += 1;
        Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 + u128::from(self.users.next))
    }

    fn new_submit(&mut self, daemon: &Daemon) -> Submit {
        let id = self.fresh_id();
        let chance = &mut self.chance;
        let partitions = if chance.one_in(12) {
            chance.between(6, 14)
        } else {
            chance.between(1, 4)
        };
        let natures = some_natures(chance, usize::try_from(partitions).unwrap_or(1));
        let bytes = request(self.users.next, &natures);
        let input = Digest::of(&bytes[..16]);
        self.disk.objects.insert(input);
        let view = &self.disk.view;
        let circuit = chance
            .pick(&CIRCUITS)
            .filter(|kind| view.0.contains_key(&keys::circuit(kind.digest())));
        let circuit = circuit.filter(|_| !chance.one_in(3));
        let ticket_bytes = [60u64, 120, 250, 500, 700][chance.index(5)] << 20;
        let key = circuit.map_or(0, |kind| kind.bytes);
        let now = daemon.clock.at(self.time.now());
        let deadline = chance
            .one_in(9)
            .then(|| now.after(chance.between(2_000, 400_000)));
        Submit {
            id,
            kind: "groth16".to_owned(),
            circuit: circuit.map(|kind| kind.digest()),
            request: Digest::of(&bytes),
            inline: Some(bytes),
            objects: vec![input],
            idempotency_key: chance.one_in(3).then(|| format!("key-{}", chance.below(12))),
            actor: "user".to_owned(),
            labels: Vec::new(),
            priority: Priority::ALL[chance.index(Priority::ALL.len())],
            max_attempts: [1, 2, 3, 4][chance.index(4)],
            on_failure: if chance.one_in(3) {
                OnFailure::Stop
            } else {
                OnFailure::Continue
            },
            partitions: u32::try_from(partitions).unwrap_or(1),
            ticket_bytes,
            budget_bytes: daemon.accounts.budget().saturating_sub(key),
            deadline,
        }
    }

    /// The same key again: with the same request, or now and then with another one.
    fn repeat(&mut self, daemon: &Daemon) -> Option<Command> {
        let named: Vec<(String, JobNumber, Digest)> = self
            .users
            .keys
            .iter()
            .map(|(key, (job, request))| (key.clone(), *job, *request))
            .collect();
        let (key, job, request) = self.chance.pick(&named).cloned()?;
        let mut submit = self.new_submit(daemon);
        submit.idempotency_key = Some(key);
        if !self.chance.one_in(3) {
            let there: Job = get(&self.disk.view, &keys::job(job)).ok()??;
            let bytes = query::request(&self.disk.view, job).ok()??;
            if Digest::of(&bytes) != request {
                return None;
            }
            submit.partitions = there.partitions;
            submit.circuit = there.circuit;
            submit.request = request;
            submit.inline = Some(bytes);
            submit.objects = Vec::new();
            submit.budget_bytes = u64::MAX;
        }
        Some(Command::Submit(submit))
    }

    fn retry(&mut self, job: JobNumber) -> Option<Command> {
        let found: Job = get(&self.disk.view, &keys::job(job)).ok()??;
        let damaged = if found.state == JobState::Succeeded && self.chance.one_in(3) {
            vec![u32::try_from(self.chance.below(u64::from(found.partitions))).ok()?]
        } else {
            Vec::new()
        };
        let replacement = (found.state != JobState::Succeeded && self.chance.one_in(4)).then(|| {
            let old = query::request(&self.disk.view, job).ok()??;
            let mut better = natures(&old);
            let at = self.chance.index(better.len());
            *better.get_mut(at)? = Nature::Good;
            self.users.next += 1;
            let bytes = request(self.users.next, &better);
            Some(Replacement {
                request: Digest::of(&bytes),
                inline: Some(bytes),
                objects: Vec::new(),
                partitions: vec![u32::try_from(at).ok()?],
            })
        });
        Some(Command::Retry {
            job,
            actor: "user".to_owned(),
            replacement: replacement.flatten(),
            damaged,
        })
    }

    fn add_circuit(&mut self) -> Command {
        let kind = &CIRCUITS[self.chance.index(CIRCUITS.len())];
        let zkey = Digest::of(b"zkey");
        self.disk.objects.insert(zkey);
        Command::CircuitAdd(CircuitAdd {
            name: kind.name.to_owned(),
            circuit: kind.digest(),
            files: SourceFiles {
                zkey: Some(zkey),
                ..SourceFiles::default()
            },
            allow_unfinished: false,
            local_setup: false,
            replace: false,
            facts: facts(kind),
            total: kind.total,
            actor: "user".to_owned(),
        })
    }
}

/// Mostly good ones; now and then one that is not.
fn some_natures(chance: &mut Chance, count: usize) -> Vec<Nature> {
    let mut natures = vec![Nature::Good; count];
    if chance.one_in(3) {
        let special = [
            Nature::Poison(Stage::Synth),
            Nature::Poison(Stage::Prove),
            Nature::Poison(Stage::Finish),
            Nature::Restless,
            Nature::Restless,
            Nature::Hog,
            Nature::Glutton,
            Nature::Invalid,
            Nature::Unsatisfied,
            Nature::Flaky,
            Nature::Flaky,
        ];
        let at = chance.index(count);
        natures[at] = special[chance.index(special.len())];
    }
    natures
}
