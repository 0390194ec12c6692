//! What a worker process does about its tasks, step by step.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use proofkeep_engine::protocol::{FromWorker, WirePiece, WireToken, Work};
use proofkeep_store::ids::Digest;
use proofkeep_store::records::{FailureClass, Stage};

use super::{BAD_AT, Blame, Child, Doing, PIECES, SIGABRT, SIGKILL, SIGSEGV, Task, Weather, Witness, facts};
use crate::chance::Chance;
use crate::nature::{Key, Kind, Nature};

impl Child {
    /// Ends a task without success. The memory is free before that is said.
    fn fail(&mut self, token: WireToken, class: FailureClass, text: &str) -> Vec<Blame> {
        let Some(task) = self.tasks.get(&token).cloned() else {
            return Vec::new();
        };
        let witness = match task.doing {
            Doing::Synth(witness) | Doing::Finish(witness) => Some(witness),
            Doing::Prove { witness, unsaved, .. } => {
                if !unsaved.is_empty() && class != FailureClass::Cancelled {
                    self.outbox.push_back(FromWorker::Pieces {
                        token,
                        pieces: unsaved,
                    });
                }
                Some(witness)
            }
            Doing::Import { .. } => None,
        };
        self.say_failed(token, class, text);
        self.end(token, witness.as_ref());
        task.work
            .map(|work| (work.job, work.partition, class))
            .into_iter()
            .collect()
    }

    pub(super) fn work(
        &mut self,
        token: WireToken,
        chance: &mut Chance,
        weather: Weather,
    ) -> (Vec<Blame>, Vec<Digest>) {
        let alone = self.tasks.len() == 1 && self.witnesses.is_empty();
        let Some(task) = self.tasks.get_mut(&token) else {
            return Default::default();
        };
        if let Some(class) = &task.stop
            && (task.hung || chance.one_in(2))
        {
            let class = match class.as_str() {
                "preempted" => FailureClass::Preempted,
                "shutdown" => FailureClass::Shutdown,
                "timed_out" => FailureClass::TimedOut,
                _ => FailureClass::Cancelled,
            };
            self.fail(token, class, "it was asked to stop");
            return Default::default();
        }
        if !task.begun {
            task.begun = true;
            if let Doing::Synth(witness) = task.doing.clone() {
                self.pin(&witness);
            }
            self.progress(token);
            return Default::default();
        }
        if weather.rough && chance.one_in(150) {
            task.hung = true;
            task.deaf = chance.one_in(3);
            return Default::default();
        }
        let (work, doing) = (task.work, task.doing.clone());
        if let Some(blame) = self.suffer(token, work, &doing, alone, chance, weather) {
            return (blame, Vec::new());
        }
        match doing {
            Doing::Synth(witness) => self.synthesize(token, witness),
            Doing::Prove { .. } => {
                self.prove(token, chance);
                Default::default()
            }
            Doing::Finish(witness) => {
                let mut bytes = witness.digest.0.repeat(6);
                bytes[..8].copy_from_slice(&chance.any().to_be_bytes());
                // A proof that this process accepts and the daemon doesn't.
                let bad = witness.nature == Nature::Flaky && weather.rough && chance.one_in(3);
                bytes[BAD_AT] = u8::from(bad);
                self.outbox.push_back(FromWorker::Proof {
                    token,
                    bytes,
                    peak_bytes: Some(2 << 20),
                });
                self.end(token, Some(&witness));
                Default::default()
            }
            Doing::Import { kind, done } => self.go_on_importing(token, kind, done, chance),
        }
    }

    fn progress(&mut self, token: WireToken) {
        self.outbox.push_back(FromWorker::Progress { token, permille: 0 });
    }

    /// What the input does to the process, and what the weather does.
    fn suffer(
        &mut self,
        token: WireToken,
        work: Option<Work>,
        doing: &Doing,
        alone: bool,
        chance: &mut Chance,
        weather: Weather,
    ) -> Option<Vec<Blame>> {
        let (stage, nature) = match doing {
            Doing::Synth(witness) => (Stage::Synth, witness.nature),
            Doing::Prove { witness, .. } => (Stage::Prove, witness.nature),
            Doing::Finish(witness) => (Stage::Finish, witness.nature),
            Doing::Import { .. } => return None,
        };
        let of = work.map(|work| (work.job, work.partition));
        let blame = |class| {
            of.map(|(job, partition)| (job, partition, class))
                .into_iter()
                .collect()
        };
        let kills = match nature {
            Nature::Poison(at) => at == stage,
            Nature::Restless => match stage {
                Stage::Synth => chance.one_in(3),
                Stage::Prove => chance.one_in(4),
                Stage::Finish => true,
            },
            _ => false,
        };
        match nature {
            _ if kills => {
                let status = match chance.below(3) {
                    0 => ExitStatus::from_raw(SIGABRT),
                    1 => ExitStatus::from_raw(SIGSEGV),
                    _ => ExitStatus::from_raw(101 << 8),
                };
                self.die(status, chance);
                return Some(blame(FailureClass::Poison));
            }
            Nature::Hog | Nature::Glutton if (nature == Nature::Hog || !alone) && chance.one_in(3) => {
                self.out_of_memory = true;
                let status = if chance.one_in(2) { SIGKILL } else { 71 << 8 };
                self.die(ExitStatus::from_raw(status), chance);
                return Some(blame(FailureClass::OutOfMemory));
            }
            Nature::Invalid if stage == Stage::Synth => {
                return Some(self.fail(token, FailureClass::InputInvalid, "it doesn't fit the circuit"));
            }
            Nature::Unsatisfied if stage == Stage::Synth => {
                return Some(self.fail(token, FailureClass::Unsatisfied, "constraint 7 isn't satisfied"));
            }
            Nature::Flaky if stage != Stage::Synth && weather.rough && chance.one_in(6) => {
                let class = [FailureClass::DeviceError, FailureClass::InvalidProof][chance.index(2)];
                return Some(self.fail(token, class, "the device failed"));
            }
            _ => {}
        }
        if weather.rough && stage == Stage::Prove && chance.one_in(150) {
            return Some(self.fail(token, FailureClass::DeviceUnavailable, "the device went away"));
        }
        None
    }

    fn synthesize(&mut self, token: WireToken, witness: Witness) -> (Vec<Blame>, Vec<Digest>) {
        let Some(task) = self.tasks.get_mut(&token) else {
            return Default::default();
        };
        if task.left > 0 {
            task.left -= 1;
            self.progress(token);
            return Default::default();
        }
        let (Some(work), false, None) = (task.work, task.dropped, &task.stop) else {
            self.fail(token, FailureClass::Cancelled, "the daemon ended this attempt");
            return Default::default();
        };
        self.tasks.remove(&token);
        self.outbox.push_back(FromWorker::SynthDone {
            token,
            synth_ms: 7,
            witness: witness.digest.0,
            public: witness.digest.0.to_vec(),
            key: witness.circuit.unwrap_or(Digest([0; 32])).0,
        });
        self.witnesses.insert(work, witness);
        Default::default()
    }

    fn prove(&mut self, token: WireToken, chance: &mut Chance) {
        let Some(Task { doing, .. }) = self.tasks.get_mut(&token) else {
            return;
        };
        let Doing::Prove {
            witness,
            made,
            reused,
            unsaved,
        } = doing
        else {
            return;
        };
        if let Some(name) = PIECES.get(*made) {
            *made += 1;
            let name = (*name).to_owned();
            unsaved.push(WirePiece {
                name,
                bytes: vec![3; 48],
                millis: 500,
            });
            let word = if chance.one_in(2) {
                let pieces = std::mem::take(unsaved);
                FromWorker::Pieces { token, pieces }
            } else {
                FromWorker::Progress { token, permille: 500 }
            };
            self.outbox.push_back(word);
            return;
        }
        let released = FromWorker::Released {
            token,
            gpu_ms: 9,
            saved_ms: 500 * reused.len() as u64,
            reused: std::mem::take(reused),
        };
        *doing = Doing::Finish(witness.clone());
        // Now and then a process leaves the word out, as a kind without a device does.
        if !chance.one_in(50) {
            self.outbox.push_back(released);
        }
    }

    fn go_on_importing(
        &mut self,
        token: WireToken,
        kind: &'static Kind,
        done: u64,
        chance: &mut Chance,
    ) -> (Vec<Blame>, Vec<Digest>) {
        let over = done + 20;
        match kind.key {
            Key::Refused if over >= kind.total => {
                self.fail(token, FailureClass::CircuitFailed, "a point is not on the curve");
            }
            Key::Poison => self.signal(SIGSEGV, chance),
            Key::Hog => {
                self.out_of_memory = true;
                self.signal(SIGKILL, chance);
            }
            _ if chance.one_in(40) => {
                self.fail(token, FailureClass::DeviceError, "the disk is full");
            }
            _ if over < kind.total => {
                if let Some(task) = self.tasks.get_mut(&token) {
                    task.doing = Doing::Import { kind, done: over };
                }
                self.outbox.push_back(FromWorker::Imported { token, done: over });
            }
            _ => {
                let facts = facts(kind);
                let (vk, matrices) = (Digest::of(b"vk"), Digest::of(b"matrices"));
                self.outbox.push_back(FromWorker::ImportDone {
                    token,
                    facts: (&facts).into(),
                    zkey: None,
                    vk: vk.0,
                    matrices: matrices.0,
                });
                self.end(token, None);
                return (Vec::new(), vec![vk, matrices]);
            }
        }
        Default::default()
    }
}
