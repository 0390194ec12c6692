//! Whatever is asked of the machine, in whatever order, by callers that are late, confused or killed: the store stays
//! clean after every single command. The seeds are fixed, so a failure comes back.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "fsck_support/mod.rs"]
mod support;

use proofkeep_store::ids::{BootNumber, JobNumber, JournalNumber, Token, WorkerId};
use proofkeep_store::keys::{self, Family};
use proofkeep_store::machine::{
    CircuitAdd, Command, ProofStored, Replacement, Reply, StepError, Submit, SynthEnd, VerifyVerdict,
};
use proofkeep_store::query;
use proofkeep_store::records::{
    CircuitState, DeviceState, Failure, FailureClass, JobState, OnFailure, PartitionState, Piece, Priority,
    SourceFiles,
};
use proofkeep_store::view::View;
use support::{World, digest, facts};

/// Two devices, three slots.
const DEVICES: [(&str, u32); 2] = [("cpu:0", 1), ("opencl:0", 2)];
const WORKERS: usize = 3;

/// A small generator of numbers (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % sides as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() {
            None
        } else {
            Some(from[self.roll(from.len())])
        }
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.roll(100) < percent
    }
}

fn devices() -> Vec<(String, u32)> {
    DEVICES
        .iter()
        .map(|(name, slots)| ((*name).to_owned(), *slots))
        .collect()
}

/// Somebody who asks for anything.
struct Crowd {
    world: World,
    dice: Dice,
    tokens: Vec<Token>,
    counts: std::collections::BTreeMap<&'static str, u32>,
}

impl Crowd {
    fn new(seed: u64) -> Self {
        let mut crowd = Self {
            world: World::new(),
            dice: Dice(seed),
            tokens: Vec::new(),
            counts: Default::default(),
        };
        crowd.world.boot = BootNumber(2);
        crowd.world.step(Command::BootOpen {
            version: "test".to_owned(),
            devices: devices(),
        });
        crowd
    }

    fn device(&mut self) -> String {
        DEVICES[self.dice.roll(DEVICES.len())].0.to_owned()
    }

    /// From now on, commands name a worker process of any device.
    fn change_process(&mut self) {
        let live: Vec<_> = query::devices(&self.world.view)
            .unwrap()
            .iter()
            .filter_map(|device| device.process)
            .collect();
        if let Some(process) = self.dice.pick(&live) {
            self.world.process = process;
        }
    }

    fn actor() -> String {
        "local".to_owned()
    }

    fn job(&mut self) -> JobNumber {
        let last = query::last_job(&self.world.view).unwrap().0;
        let active: Vec<JobNumber> = query::active_jobs(&self.world.view, None, 100)
            .unwrap()
            .jobs
            .iter()
            .map(|job| job.number)
            .collect();
        if self.dice.chance(70)
            && let Some(job) = self.dice.pick(&active)
        {
            return job;
        }
        JobNumber(self.dice.roll(last as usize + 2) as u64)
    }

    /// A lease in force, mostly; sometimes one of long ago, or none at all.
    fn token(&mut self) -> Token {
        let live: Vec<Token> = query::leases(&self.world.view)
            .unwrap()
            .iter()
            .map(|lease| lease.token)
            .collect();
        let old = self.tokens.clone();
        let pool = if self.dice.chance(85) { live } else { old };
        self.dice.pick(&pool).unwrap_or(Token {
            boot: BootNumber(1),
            grant: JournalNumber(2),
        })
    }

    fn failure(&mut self) -> Failure {
        let class = self.dice.pick(&FailureClass::ALL).unwrap();
        Failure::new(class, "as the dice fell")
    }

    fn submit(&mut self) -> Submit {
        let partitions = 1 + self.dice.roll(4) as u32;
        let submit = self.world.submission(partitions);
        let priority = self.dice.pick(&Priority::ALL).unwrap();
        let key = self.dice.chance(50).then(|| format!("key-{}", self.dice.roll(4)));
        let on_failure = if self.dice.chance(30) {
            OnFailure::Stop
        } else {
            OnFailure::Continue
        };
        let deadline = self
            .dice
            .chance(20)
            .then(|| self.world.now.after(self.dice.roll(5000) as u64));
        let max_attempts = 1 + self.dice.roll(3) as u32;
        let mut submit = Submit {
            priority,
            idempotency_key: key,
            on_failure,
            deadline,
            max_attempts,
            ..submit
        };
        if submit.idempotency_key.is_some() && self.dice.chance(70) {
            submit.request = digest("the same");
            submit.inline = Some(b"the same".to_vec());
        }
        if self.dice.chance(20) {
            submit.circuit = Some(digest("second"));
        }
        submit
    }

    fn circuit(&mut self) -> proofkeep_store::ids::Digest {
        if self.dice.chance(95) {
            digest("second")
        } else {
            digest("circuit")
        }
    }

    fn command(&mut self) -> Command {
        let (job, token) = (self.job(), self.token());
        let partition = self.dice.roll(5) as u32;
        let attempt = self
            .world
            .view
            .get(&keys::partition(job, partition))
            .unwrap()
            .map_or(1, |_| {
                self.world
                    .record::<proofkeep_store::records::Partition>(&keys::partition(job, partition))
                    .attempts
            });
        let process = self.world.process;
        match self.dice.roll(47) {
            0..=3 => Command::Submit(self.submit()),
            4 => Command::Cancel {
                job,
                actor: Self::actor(),
            },
            5 => Command::Expire { job },
            6 => Command::FailJob {
                job,
                failure: self.failure(),
            },
            7 => Command::Retry {
                job,
                actor: Self::actor(),
                replacement: None,
                damaged: Vec::new(),
            },
            8 => {
                let request = digest("replaced");
                let partitions = vec![partition % 2];
                let replacement = Replacement {
                    request,
                    inline: None,
                    objects: vec![request],
                    partitions,
                };
                Command::Retry {
                    job,
                    actor: Self::actor(),
                    replacement: Some(replacement),
                    damaged: vec![],
                }
            }
            9 => Command::Retry {
                job,
                actor: Self::actor(),
                replacement: None,
                damaged: vec![0],
            },
            10..=11 => Command::Wake { job },
            12..=13 => Command::VerifyStart { job },
            14..=15 => {
                let verdict = match self.dice.roll(4) {
                    0 => VerifyVerdict::BadPartitions(vec![self.dice.roll(3) as u32]),
                    1 => VerifyVerdict::JoinInvalid(Failure::new(FailureClass::JoinInvalid, "bad")),
                    _ => VerifyVerdict::Passed,
                };
                Command::VerifyEnd { token, verdict }
            }
            16 => Command::VerifyDrop { token },
            17 => Command::Prune { job },
            18..=23 => Command::SynthStart {
                job,
                partition,
                process,
            },
            24..=26 => Command::SynthEnd(SynthEnd {
                token,
                synth_ms: 5,
                witness: digest("w"),
                public: digest("public"),
            }),
            27 => Command::GiveBack {
                job,
                partition,
                attempt,
            },
            28..=31 => {
                let worker = WorkerId(self.dice.roll(WORKERS) as u32);
                Command::GpuStart {
                    job,
                    partition,
                    attempt,
                    worker,
                }
            }
            32 => {
                let names = ["h", "l", "a"];
                let name = names[self.dice.roll(3)].to_owned();
                let piece = Piece {
                    name,
                    bytes: vec![1; 96],
                    millis: 10,
                    attempt: 0,
                };
                let witness = digest(if self.dice.chance(80) { "w" } else { "other" });
                Command::Checkpoint {
                    token,
                    witness,
                    key: digest("key"),
                    pieces: vec![piece],
                }
            }
            33..=35 => Command::GpuEnd {
                token,
                gpu_ms: 20,
                reused: vec!["h".to_owned()],
                saved_ms: 3,
            },
            36..=37 => Command::ProofStored(ProofStored {
                token,
                bytes: vec![9; 192],
                process_peak_bytes: None,
            }),
            38 => Command::AttemptFailed {
                token,
                failure: self.failure(),
                process_peak_bytes: Some(3),
            },
            39 => {
                let culprit = self.dice.chance(30).then(|| (token, self.failure()));
                let own_fault = self.dice.chance(50);
                let class = if self.dice.chance(20) {
                    FailureClass::OutOfMemory
                } else {
                    FailureClass::Interrupted
                };
                let failure = Failure::new(class, "gone");
                Command::ProcessLost {
                    process,
                    failure,
                    culprit,
                    own_fault,
                    process_peak_bytes: None,
                }
            }
            40 => Command::ProcessStart {
                device: self.device(),
            },
            41 => self.queue(),
            42 => self.boot(),
            43 => Command::CircuitAdd(CircuitAdd {
                name: ["second", "circuit", "third"][self.dice.roll(3)].to_owned(),
                circuit: self.circuit(),
                files: SourceFiles {
                    zkey: Some(digest("zkey")),
                    ..SourceFiles::default()
                },
                allow_unfinished: true,
                replace: self.dice.chance(50),
                facts: facts(),
                total: 10,
                actor: Self::actor(),
            }),
            44 => Command::ImportStart {
                circuit: self.circuit(),
                process,
            },
            45 => match self.dice.roll(4) {
                0 => Command::ImportProgress {
                    token,
                    done: self.dice.roll(12) as u64,
                },
                1 => Command::ImportFailed {
                    token,
                    failure: self.failure(),
                },
                _ => Command::ImportEnd {
                    token,
                    facts: facts(),
                    vk: digest("vk"),
                    matrices: digest("m"),
                },
            },
            _ => Command::CircuitRemove {
                circuit: self.circuit(),
                actor: Self::actor(),
            },
        }
    }

    fn queue(&mut self) -> Command {
        match self.dice.roll(8) {
            0 => Command::Pause { actor: Self::actor() },
            1 => Command::Drain { actor: Self::actor() },
            2 => {
                let until = self.dice.chance(50).then(|| self.world.now.after(100));
                Command::DeviceSuspend {
                    device: self.device(),
                    until,
                    reason: "hot".to_owned(),
                }
            }
            3 | 4 => Command::DeviceResume {
                device: self.device(),
            },
            _ => Command::Resume { actor: Self::actor() },
        }
    }

    fn boot(&mut self) -> Command {
        match self.dice.roll(4) {
            0 => Command::BootClose,
            1 => Command::ClockStep { by_ms: -70_000 },
            _ => {
                self.world.boot = BootNumber(query::last_boot(&self.world.view).unwrap().0 + 1);
                Command::BootOpen {
                    version: "test".to_owned(),
                    devices: devices(),
                }
            }
        }
    }

    /// What a daemon would do next: one of the steps that lead somewhere.
    fn useful(&mut self) -> Option<Command> {
        let view = &self.world.view;
        let process = self.world.process;
        for device in query::devices(view).unwrap() {
            if device.process.is_none() {
                return Some(Command::ProcessStart { device: device.name });
            }
            if device.state != DeviceState::Up {
                return Some(Command::DeviceResume { device: device.name });
            }
        }
        let queue = query::queue(view).unwrap();
        if queue.paused || queue.draining {
            return Some(Command::Resume { actor: Self::actor() });
        }
        let mut steps = Vec::new();
        for found in query::open_attempts(view).unwrap() {
            let (job, partition) = (found.partition.job, found.partition.index);
            let attempt = found.partition.attempts;
            match (found.partition.state, found.partition.token) {
                (PartitionState::Synthesizing, Some(token)) => {
                    let (witness, public) = (digest("w"), digest("public"));
                    steps.push(Command::SynthEnd(SynthEnd {
                        token,
                        synth_ms: 5,
                        witness,
                        public,
                    }));
                }
                (PartitionState::Proving, Some(token)) => {
                    steps.push(Command::GpuEnd {
                        token,
                        gpu_ms: 20,
                        reused: Vec::new(),
                        saved_ms: 0,
                    });
                }
                (PartitionState::Finishing, Some(token)) => {
                    let bytes = vec![9; 192];
                    steps.push(Command::ProofStored(ProofStored {
                        token,
                        bytes,
                        process_peak_bytes: None,
                    }));
                }
                _ => steps.extend((0..WORKERS as u32).map(WorkerId).map(|worker| Command::GpuStart {
                    job,
                    partition,
                    attempt,
                    worker,
                })),
            }
        }
        for entry in query::ready_page(view, None, 3).unwrap() {
            steps.push(Command::SynthStart {
                job: entry.job,
                partition: entry.partition,
                process,
            });
        }
        for due in query::retries_due(view, self.world.now, 2).unwrap() {
            steps.push(Command::Wake { job: due.job });
        }
        for job in query::active_jobs(view, None, 100).unwrap().jobs {
            match job.verifying {
                Some(token) => steps.push(Command::VerifyEnd {
                    token,
                    verdict: VerifyVerdict::Passed,
                }),
                None if job.state == JobState::Verifying => {
                    steps.push(Command::VerifyStart { job: job.number });
                }
                None => {}
            }
        }
        for circuit in query::importing(view).unwrap() {
            let CircuitState::Importing(import) = circuit.state else {
                continue;
            };
            steps.push(match import.token {
                Some(token) if import.done == 0 => Command::ImportProgress { token, done: 5 },
                Some(token) => {
                    let (vk, matrices) = (digest("vk"), digest("m"));
                    Command::ImportEnd {
                        token,
                        facts: facts(),
                        vk,
                        matrices,
                    }
                }
                None => Command::ImportStart {
                    circuit: circuit.digest,
                    process,
                },
            });
            if let Some(token) = import.token {
                let failure = Failure::new(FailureClass::CircuitFailed, "off the curve");
                steps.push(Command::ImportFailed { token, failure });
            }
        }
        if steps.is_empty() {
            return None;
        }
        let step = self.dice.roll(steps.len());
        Some(steps.swap_remove(step))
    }

    fn turn(&mut self) {
        self.change_process();
        let useful = if self.dice.chance(70) { self.useful() } else { None };
        let command = match useful {
            Some(command) => command,
            None => self.command(),
        };
        self.world.now = self.world.now.after(self.dice.roll(800) as u64);
        let name = command.name().name();
        match self.world.try_step(&command) {
            Ok(reply) => {
                *self.counts.entry(name).or_default() +=
                    u32::from(!matches!(reply, Reply::Stale | Reply::Unchanged));
                match reply {
                    Reply::Granted { token, .. } => self.tokens.push(token),
                    Reply::Process(process) => self.world.process = process,
                    _ => {}
                }
            }
            Err(StepError::Refused(_)) => {}
            Err(StepError::Read(error)) => panic!("{name}: {error}"),
        }
    }
}

#[test]
fn the_store_stays_clean_whatever_is_asked() {
    let mut counts = std::collections::BTreeMap::<&str, u32>::new();
    for seed in 0..SEEDS {
        let mut crowd = Crowd::new(seed);
        for _ in 0..250 {
            crowd.turn();
        }
        for (name, count) in crowd.counts {
            *counts.entry(name).or_default() += count;
        }
        assert!(
            crowd
                .world
                .view
                .scan(&keys::family(Family::Event), None, 1)
                .unwrap()
                .len()
                == 1
        );
    }
    for name in proofkeep_store::machine::CommandName::ALL {
        let done = counts.get(name.name()).copied().unwrap_or(0);
        assert!(done > 0, "{} never happened: {counts:?}", name.name());
    }
}

const SEEDS: u64 = 60;
