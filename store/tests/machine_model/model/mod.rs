//! A small model of the machine: what states are possible, who holds what, what is counted. Written from the design's
//! page and not from the handlers; it knows no keys, no indexes, no journal and no bytes.

mod daemon;
mod job;
mod partition;

use std::collections::{BTreeMap, BTreeSet};

use proofkeep_store::ids::{Digest, JobNumber, Millis, ProcessId, Token, WorkerId};
use proofkeep_store::machine::{Admission, Command, Refusal, Reply};
use proofkeep_store::records::{FailureClass, JobState, PartitionState, Stage, StopTarget};

const HALF_AN_HOUR: u64 = 30 * 60 * 1000;

#[derive(Clone, Debug)]
pub struct Partition {
    pub state: PartitionState,
    pub token: Option<Token>,
    pub worker: Option<WorkerId>,
    pub process: Option<ProcessId>,
    pub attempts: u32,
    pub counted: u32,
    pub wake_at: Option<Millis>,
    pub alone: bool,
    pub out_of_memory: u32,
    /// Stage, deaths with neighbours, deaths alone.
    pub poison: Option<(Stage, u32, u32)>,
    pub pieces: BTreeSet<String>,
    /// Of this generation: the witnesses that were made, in the order of the attempts, and whether one left its device.
    pub witnesses: Vec<Digest>,
    pub left_device: bool,
    pub recheck: bool,
}

impl Partition {
    fn fresh(attempts: u32, recheck: bool) -> Self {
        Self {
            state: PartitionState::Ready,
            token: None,
            worker: None,
            process: None,
            attempts,
            counted: 0,
            wake_at: None,
            alone: false,
            out_of_memory: 0,
            poison: None,
            pieces: BTreeSet::new(),
            witnesses: Vec::new(),
            left_device: false,
            recheck,
        }
    }

    /// To come further than ever in this generation clears the deaths; who ran out of memory stays alone.
    fn progress(&mut self, further: bool) {
        if further && self.poison.take().is_some() {
            self.alone = self.out_of_memory > 0;
        }
    }

    fn rest(&mut self, state: PartitionState) {
        self.state = state;
        self.token = None;
        self.worker = None;
        self.process = None;
        self.wake_at = None;
    }
}

#[derive(Clone, Debug)]
pub struct Job {
    pub state: JobState,
    pub verify: Option<Token>,
    pub generation: u32,
    pub partitions: Vec<Partition>,
    pub key: Option<String>,
    pub request: Digest,
    pub circuit: Option<Digest>,
    pub stop: bool,
    pub max_attempts: u32,
    pub deadline: Option<Millis>,
}

impl Job {
    fn leases(&self) -> usize {
        let staged = self
            .partitions
            .iter()
            .filter(|partition| partition.state.stage().is_some())
            .count();
        staged + usize::from(self.verify.is_some())
    }

    fn count(&self, state: PartitionState) -> usize {
        self.partitions
            .iter()
            .filter(|partition| partition.state == state)
            .count()
    }
}

#[derive(Clone, Debug)]
pub struct Device {
    pub name: String,
    pub slots: u32,
    pub process: Option<ProcessId>,
    pub suspended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Circuit {
    Importing {
        token: Option<Token>,
        process: Option<ProcessId>,
        done: u64,
        deaths: u32,
        local: bool,
    },
    Ready,
    Failed,
}

/// How a command is answered, as far as the model says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Refused,
    Stale,
    Unchanged,
    Done,
    Granted(u32),
    Submitted(JobNumber, u32, Admission),
    Process(u64),
    Booted,
    /// More of a pruned job is left, or not.
    Pruned,
}

#[derive(Clone, Debug, Default)]
pub struct Model {
    pub jobs: BTreeMap<JobNumber, Job>,
    pub last_job: u64,
    pub pruning: BTreeSet<JobNumber>,
    pub devices: Vec<Device>,
    /// Device and lease of every slot.
    pub workers: Vec<(usize, Option<Token>)>,
    pub circuits: BTreeMap<Digest, Circuit>,
    pub paused: bool,
    pub draining: bool,
    pub boot: u64,
    pub open: bool,
    pub spawns: u64,
    pub counters: BTreeMap<String, u64>,
    /// Every token ever granted, in order.
    pub tokens: Vec<Token>,
}

impl Model {
    /// Holds the machine's answer against what the model expects, and follows it.
    ///
    /// # Errors
    /// What differs.
    pub fn follow(
        &mut self,
        command: &Command,
        now: Millis,
        actual: &Result<Reply, Refusal>,
    ) -> Result<(), String> {
        let granted = match actual {
            Ok(Reply::Granted { token, .. }) => Some(*token),
            _ => None,
        };
        if let Some(token) = granted {
            if self.tokens.contains(&token) {
                return Err(format!("token {token} was granted twice"));
            }
            self.tokens.push(token);
        }
        let expected = self.carry_out(command, now, granted);
        let told = match actual {
            Err(_) => Answer::Refused,
            Ok(Reply::Stale) => Answer::Stale,
            Ok(Reply::Unchanged) => Answer::Unchanged,
            Ok(Reply::Done) if expected == Answer::Pruned => Answer::Pruned,
            Ok(Reply::More) => Answer::Pruned,
            Ok(Reply::Done) => Answer::Done,
            Ok(Reply::Granted { attempt, .. }) => Answer::Granted(*attempt),
            Ok(Reply::Submitted {
                job,
                generation,
                admission,
                ..
            }) => Answer::Submitted(*job, *generation, *admission),
            Ok(Reply::Process(process)) => Answer::Process(process.spawn),
            Ok(Reply::Booted(_)) => Answer::Booted,
        };
        if let (Answer::Pruned, Command::Prune { job }, Ok(Reply::Done)) = (&expected, command, actual) {
            self.pruning.remove(job);
        }
        if told == expected {
            Ok(())
        } else {
            Err(format!("expected {expected:?}, answered {actual:?}"))
        }
    }

    fn carry_out(&mut self, command: &Command, now: Millis, granted: Option<Token>) -> Answer {
        self.try_command(command, now, granted).unwrap_or(Answer::Refused)
    }

    /// `None`: refused.
    fn try_command(&mut self, command: &Command, now: Millis, granted: Option<Token>) -> Option<Answer> {
        // A grant that the machine refused has no token; the model's answer will say what it should have been.
        let token = granted.unwrap_or(Token {
            boot: proofkeep_store::ids::BootNumber(u64::MAX),
            grant: proofkeep_store::ids::JournalNumber(u64::MAX),
        });
        match command {
            Command::Submit(submit) => self.submit(submit, now),
            Command::Cancel { job, .. } => match self.jobs.get(job)?.state {
                JobState::Cancelled | JobState::Stopping(_) => Some(Answer::Unchanged),
                state if state.is_terminal() => None,
                _ => self.stop(*job, StopTarget::Cancelled),
            },
            Command::Expire { job } => {
                let found = self.jobs.get(job)?;
                let due = found.deadline.is_some_and(|at| at <= now);
                if !going(found.state) || !due {
                    return None;
                }
                self.stop(*job, StopTarget::Expired)
            }
            Command::FailJob { job, .. } => match self.jobs.get(job)?.state {
                JobState::Stopping(_) => Some(Answer::Unchanged),
                state if state.is_terminal() => None,
                _ => self.stop(*job, StopTarget::Failed),
            },
            Command::Retry {
                job,
                replacement,
                damaged,
                ..
            } => {
                let mut again: Vec<u32> = damaged.clone();
                again.extend(replacement.iter().flat_map(|replacement| &replacement.partitions));
                let found = self.jobs.get(job)?;
                if found.state == JobState::Succeeded && damaged.is_empty() {
                    return None;
                }
                self.retry(*job, &again, now)?;
                if let Some(replacement) = replacement {
                    self.jobs.get_mut(job)?.request = replacement.request;
                }
                Some(Answer::Done)
            }
            Command::Wake { job } => self.wake(*job, now),
            Command::VerifyStart { job } => {
                let open = self.open;
                let found = self.jobs.get_mut(job)?;
                match (found.state, found.verify) {
                    (JobState::Verifying, _) if !open => None,
                    (JobState::Verifying, Some(_)) => Some(Answer::Unchanged),
                    (JobState::Verifying, None) => {
                        found.verify = Some(token);
                        Some(Answer::Granted(0))
                    }
                    _ => None,
                }
            }
            Command::VerifyEnd { token, verdict } => self.verify_end(*token, Some(verdict)),
            Command::VerifyDrop { token } => self.verify_end(*token, None),
            Command::Prune { job } => self.prune(*job),
            Command::SynthStart {
                job,
                partition,
                process,
            } => {
                let at = self.may_synthesize(*job, *partition, *process)?;
                let found = self.jobs.get_mut(job)?;
                found.state = JobState::Running;
                let partition = found.partitions.get_mut(*partition as usize)?;
                partition.state = PartitionState::Synthesizing;
                partition.token = Some(token);
                partition.process = self.devices[at].process;
                partition.attempts += 1;
                Some(Answer::Granted(partition.attempts))
            }
            Command::GiveBack {
                job,
                partition,
                attempt,
            } => {
                let found = self.jobs.get(job)?.partitions.get(*partition as usize)?;
                if found.state != PartitionState::Synthesized || found.attempts != *attempt {
                    return None;
                }
                self.end(*job, *partition as usize, FailureClass::Preempted, false, now);
                Some(Answer::Done)
            }
            Command::GpuStart {
                job,
                partition,
                attempt,
                worker,
            } => {
                let found = self.jobs.get(job)?.partitions.get(*partition as usize)?;
                let (device, busy) = *self.workers.get(worker.0 as usize)?;
                let device = &self.devices[device];
                let fits = self.open
                    && going(self.jobs.get(job)?.state)
                    && found.state == PartitionState::Synthesized
                    && found.attempts == *attempt
                    && busy.is_none()
                    && !device.suspended
                    && device.process.is_some()
                    && device.process == found.process;
                if !fits {
                    return None;
                }
                self.workers[worker.0 as usize].1 = Some(token);
                let partition = self.partition(*job, *partition as usize);
                partition.state = PartitionState::Proving;
                partition.token = Some(token);
                partition.worker = Some(*worker);
                Some(Answer::Granted(*attempt))
            }
            Command::SynthEnd(_)
            | Command::Checkpoint { .. }
            | Command::GpuEnd { .. }
            | Command::ProofStored(_)
            | Command::AttemptFailed { .. } => self.words(command, now),
            Command::ProcessStart { device } => {
                let at = self.devices.iter().position(|found| found.name == *device)?;
                if !self.open || self.devices[at].process.is_some() {
                    return None;
                }
                self.spawns += 1;
                let boot = proofkeep_store::ids::BootNumber(self.boot);
                self.devices[at].process = Some(ProcessId {
                    boot,
                    spawn: self.spawns,
                });
                Some(Answer::Process(self.spawns))
            }
            Command::ProcessLost {
                process,
                failure,
                culprit,
                own_fault,
                ..
            } => {
                let culprit = culprit.as_ref().map(|(token, failure)| (*token, failure.class));
                self.lost(*process, failure.class, culprit, *own_fault, now)
            }
            Command::DeviceSuspend { device, .. } => self.suspend(device, true),
            Command::DeviceResume { device } => self.suspend(device, false),
            Command::Pause { .. } => Some(answer(!std::mem::replace(&mut self.paused, true))),
            Command::Resume { .. } => Some(answer(std::mem::replace(&mut self.paused, false))),
            Command::Drain { .. } => Some(answer(!std::mem::replace(&mut self.draining, true))),
            Command::BootOpen { devices, .. } => Some(self.boot_open(devices, now)),
            Command::BootClose => {
                if self.boot == 0 {
                    return None;
                }
                let was = std::mem::replace(&mut self.open, false);
                self.draining &= !was;
                Some(answer(was))
            }
            Command::ClockStep { .. } => Some(Answer::Done),
            Command::CircuitAdd(add) => match self.circuits.get(&add.circuit) {
                None | Some(Circuit::Failed) => {
                    let fresh = Circuit::Importing {
                        token: None,
                        process: None,
                        done: 0,
                        deaths: 0,
                        local: add.local_setup,
                    };
                    self.circuits.insert(add.circuit, fresh);
                    Some(Answer::Done)
                }
                Some(_) => Some(Answer::Unchanged),
            },
            Command::CircuitRemove { circuit, .. } => {
                let used = self
                    .jobs
                    .values()
                    .any(|job| job.circuit == Some(*circuit) && !job.state.is_terminal());
                match self.circuits.get(circuit)? {
                    Circuit::Importing { token: Some(_), .. } => None,
                    _ if used => None,
                    _ => {
                        self.circuits.remove(circuit);
                        Some(Answer::Done)
                    }
                }
            }
            Command::ImportStart { circuit, process } => self.import_start(*circuit, *process, token),
            Command::ImportProgress { token, done: told } => match self.import_of(*token) {
                Some(Circuit::Importing {
                    done, deaths, local, ..
                }) => {
                    let still = if *local { told == done } else { told <= done };
                    if still || *told > 100 {
                        return Some(Answer::Unchanged);
                    }
                    *done = *told;
                    if !*local {
                        *deaths = 0;
                    }
                    Some(Answer::Done)
                }
                _ => Some(Answer::Stale),
            },
            Command::ImportEnd { token, zkey, .. } => match self.import_of(*token) {
                Some(Circuit::Importing { local, .. }) if *local != zkey.is_some() => None,
                _ => Some(self.import_ends(*token, Circuit::Ready)),
            },
            Command::ImportFailed { token, .. } => Some(self.import_ends(*token, Circuit::Failed)),
        }
    }

    fn job(&mut self, number: JobNumber) -> &mut Job {
        self.jobs.get_mut(&number).expect("the model knows the job")
    }

    fn partition(&mut self, job: JobNumber, index: usize) -> &mut Partition {
        &mut self.job(job).partitions[index]
    }

    fn free(&mut self, worker: Option<WorkerId>) {
        if let Some(slot) = worker.and_then(|worker| self.workers.get_mut(worker.0 as usize)) {
            slot.1 = None;
        }
    }

    fn count(&mut self, what: &str, outcome: &str) {
        *self
            .counters
            .entry(format!("{what}/groth16/{outcome}"))
            .or_default() += 1;
    }
}

fn going(state: JobState) -> bool {
    matches!(state, JobState::Queued | JobState::Running)
}

fn answer(changed: bool) -> Answer {
    if changed { Answer::Done } else { Answer::Unchanged }
}
