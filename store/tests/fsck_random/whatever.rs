//! Commands that nobody in his senses would send now.

use super::*;

impl Crowd {
    pub fn command(&mut self) -> Command {
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
            43 => self.circuit_add(),
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
                    zkey: self.dice.chance(50).then(|| digest("made")),
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

    fn circuit_add(&mut self) -> Command {
        // What a circuit is made of follows from its digest.
        let circuit = self.circuit();
        let local_setup = circuit == digest("made here");
        let files = match local_setup {
            true => SourceFiles {
                r1cs: Some(digest("r1cs")),
                ..SourceFiles::default()
            },
            false => SourceFiles {
                zkey: Some(digest("zkey")),
                ..SourceFiles::default()
            },
        };
        Command::CircuitAdd(CircuitAdd {
            name: ["second", "circuit", "third"][self.dice.roll(3)].to_owned(),
            circuit,
            files,
            allow_unfinished: true,
            local_setup,
            replace: self.dice.chance(50),
            facts: facts(),
            total: 10,
            actor: Self::actor(),
        })
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
}
