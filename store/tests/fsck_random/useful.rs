//! Commands that lead somewhere: what a daemon would do next.

use super::*;

impl Crowd {
    /// What a daemon would do next: one of the steps that lead somewhere.
    pub fn useful(&mut self) -> Option<Command> {
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
                        zkey: circuit.local_setup.then(|| digest("made")),
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
}
