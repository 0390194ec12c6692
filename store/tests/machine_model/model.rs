//! A small model of the machine: what states are possible, who holds what, what is counted. Written from the design's
//! page and not from the handlers; it knows no keys, no indexes, no journal and no bytes.

use std::collections::{BTreeMap, BTreeSet};

use proofkeep_store::ids::{Digest, JobNumber, Millis, ProcessId, Token, WorkerId};
use proofkeep_store::machine::{Admission, Command, Refusal, Reply, VerifyVerdict};
use proofkeep_store::records::{FailureClass, JobState, OnFailure, PartitionState, Stage, StopTarget};

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
            recheck,
        }
    }

    /// Progress in a stage clears the deaths in it; who ran out of memory stays alone.
    fn progress(&mut self, stage: Stage) {
        if self.poison.is_some_and(|(at, ..)| at == stage) {
            self.poison = None;
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
            Command::SynthEnd(end) => self.word(end.token, Stage::Synth, |model, job, index| {
                if matches!(model.jobs[&job].state, JobState::Stopping(_)) {
                    model.end(job, index, FailureClass::Cancelled, false, Millis(0));
                    return Answer::Done;
                }
                let partition = model.partition(job, index);
                partition.state = PartitionState::Synthesized;
                partition.token = None;
                partition.progress(Stage::Synth);
                Answer::Done
            }),
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
            Command::Checkpoint { token, pieces, .. } => {
                self.word(*token, Stage::Prove, |model, job, index| {
                    if !going(model.jobs[&job].state) {
                        return Answer::Unchanged;
                    }
                    let partition = model.partition(job, index);
                    let before = partition.pieces.len();
                    partition
                        .pieces
                        .extend(pieces.iter().map(|piece| piece.name.clone()));
                    if partition.pieces.len() == before {
                        return Answer::Unchanged;
                    }
                    partition.progress(Stage::Prove);
                    Answer::Done
                })
            }
            Command::GpuEnd { token, .. } => match self.holder(*token) {
                Some((job, index)) if self.partition(job, index).state == PartitionState::Finishing => {
                    Some(Answer::Unchanged)
                }
                _ => self.word(*token, Stage::Prove, |model, job, index| {
                    let partition = model.partition(job, index);
                    partition.state = PartitionState::Finishing;
                    partition.progress(Stage::Prove);
                    let worker = partition.worker.take();
                    model.free(worker);
                    Answer::Done
                }),
            },
            Command::ProofStored(stored) => self.word(stored.token, Stage::Finish, |model, job, index| {
                let partition = model.partition(job, index);
                partition.progress(Stage::Finish);
                partition.rest(PartitionState::Proved);
                partition.pieces.clear();
                model.count("attempts", "ok");
                let found = &model.jobs[&job];
                if found.state == JobState::Running
                    && found.count(PartitionState::Proved) == found.partitions.len()
                {
                    model.job(job).state = JobState::Verifying;
                }
                model.settle(job);
                Answer::Done
            }),
            Command::AttemptFailed { token, failure, .. } => match self.holder(*token) {
                Some((job, index)) => {
                    self.end(job, index, failure.class, false, now);
                    Some(Answer::Done)
                }
                None => Some(Answer::Stale),
            },
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
                Some(Circuit::Importing { done, deaths, .. }) => {
                    if *told <= *done || *told > 100 {
                        return Some(Answer::Unchanged);
                    }
                    (*done, *deaths) = (*told, 0);
                    Some(Answer::Done)
                }
                _ => Some(Answer::Stale),
            },
            Command::ImportEnd { token, .. } => Some(self.import_ends(*token, Circuit::Ready)),
            Command::ImportFailed { token, .. } => Some(self.import_ends(*token, Circuit::Failed)),
        }
    }

    fn submit(&mut self, submit: &proofkeep_store::machine::Submit, now: Millis) -> Option<Answer> {
        let named = self
            .jobs
            .iter()
            .find(|(_, job)| job.key.is_some() && job.key == submit.idempotency_key);
        if let Some((number, job)) = named {
            let (number, state, generation) = (*number, job.state, job.generation);
            if job.request != submit.request {
                return None;
            }
            if !state.is_terminal() || state == JobState::Succeeded {
                return Some(Answer::Submitted(number, generation, Admission::Existing));
            }
            self.retry(number, &[], now)?;
            return Some(Answer::Submitted(number, generation + 1, Admission::Reopened));
        }
        if self.draining || !self.usable(submit.circuit) {
            return None;
        }
        self.last_job += 1;
        let number = JobNumber(self.last_job);
        let job = Job {
            state: JobState::Queued,
            verify: None,
            generation: 1,
            partitions: vec![Partition::fresh(0, false); submit.partitions as usize],
            key: submit.idempotency_key.clone(),
            request: submit.request,
            circuit: submit.circuit,
            stop: submit.on_failure == OnFailure::Stop,
            max_attempts: submit.max_attempts,
            deadline: submit.deadline,
        };
        self.jobs.insert(number, job);
        Some(Answer::Submitted(number, 1, Admission::Created))
    }

    fn usable(&self, circuit: Option<Digest>) -> bool {
        circuit.is_none_or(|circuit| {
            matches!(
                self.circuits.get(&circuit),
                Some(Circuit::Importing { .. } | Circuit::Ready)
            )
        })
    }

    fn retry(&mut self, number: JobNumber, again: &[u32], now: Millis) -> Option<()> {
        let job = self.jobs.get(&number)?;
        let fits = job.state.is_terminal()
            && !self.draining
            && self.usable(job.circuit)
            && again.iter().all(|index| (*index as usize) < job.partitions.len());
        if !fits {
            return None;
        }
        let job = self.jobs.get_mut(&number)?;
        job.generation += 1;
        job.deadline = job.deadline.filter(|at| *at > now);
        for (index, partition) in (0..).zip(&mut job.partitions) {
            if partition.state != PartitionState::Proved || again.contains(&index) {
                *partition = Partition::fresh(partition.attempts, partition.recheck);
            }
        }
        let whole = job.count(PartitionState::Proved) == job.partitions.len();
        job.state = if whole {
            JobState::Verifying
        } else {
            JobState::Queued
        };
        Some(())
    }

    fn wake(&mut self, number: JobNumber, now: Millis) -> Option<Answer> {
        let job = self.jobs.get_mut(&number)?;
        if !going(job.state) {
            return None;
        }
        let mut woken = None;
        for partition in &mut job.partitions {
            if partition
                .wake_at
                .is_some_and(|at| at <= now || at.0 > now.0.saturating_add(HALF_AN_HOUR))
            {
                partition.rest(PartitionState::Ready);
                woken = Some(Answer::Done);
            }
        }
        woken
    }

    fn verify_end(&mut self, token: Token, verdict: Option<&VerifyVerdict>) -> Option<Answer> {
        let found = self
            .jobs
            .iter()
            .find(|(_, job)| job.verify == Some(token))
            .map(|(number, _)| *number);
        let Some(number) = found else {
            return Some(Answer::Stale);
        };
        let job = self.job(number);
        let (Some(verdict), JobState::Verifying) = (verdict, job.state) else {
            job.verify = None;
            self.settle(number);
            return Some(Answer::Done);
        };
        match verdict {
            VerifyVerdict::Passed => {
                job.verify = None;
                self.finish(number, JobState::Succeeded);
            }
            VerifyVerdict::BadPartitions(bad) => {
                if bad.is_empty() || bad.iter().any(|index| *index as usize >= job.partitions.len()) {
                    return None;
                }
                job.verify = None;
                for index in bad {
                    let partition = &mut job.partitions[*index as usize];
                    partition.state = PartitionState::Failed;
                    partition.recheck = true;
                }
                self.stop(number, StopTarget::Failed);
            }
            VerifyVerdict::JoinInvalid(_) => {
                job.verify = None;
                self.stop(number, StopTarget::Failed);
            }
        }
        Some(Answer::Done)
    }

    fn prune(&mut self, number: JobNumber) -> Option<Answer> {
        match self.jobs.get(&number) {
            Some(job) if !job.state.is_terminal() => None,
            Some(_) => {
                self.jobs.remove(&number);
                self.pruning.insert(number);
                Some(Answer::Pruned)
            }
            None if self.pruning.contains(&number) => Some(Answer::Pruned),
            None => Some(Answer::Unchanged),
        }
    }

    fn may_synthesize(&self, job: JobNumber, index: u32, process: ProcessId) -> Option<usize> {
        let found = self.jobs.get(&job)?;
        let partition = found.partitions.get(index as usize)?;
        let at = self
            .devices
            .iter()
            .position(|device| device.process == Some(process))?;
        let device = &self.devices[at];
        let circuit = found
            .circuit
            .is_none_or(|circuit| self.circuits.get(&circuit) == Some(&Circuit::Ready));
        let open = self.opened_in(process);
        let ahead = open.iter().filter(|other| {
            matches!(
                other.state,
                PartitionState::Synthesizing | PartitionState::Synthesized
            )
        });
        let fits = self.open
            && !self.paused
            && !self.draining
            && going(found.state)
            && partition.state == PartitionState::Ready
            && circuit
            && !device.suspended
            && !self.crowded(process, partition.alone)
            && ahead.count() < 2 * device.slots as usize;
        fits.then_some(at)
    }

    fn opened_in(&self, process: ProcessId) -> Vec<&Partition> {
        let all = self.jobs.values().flat_map(|job| &job.partitions);
        all.filter(|partition| partition.process == Some(process))
            .collect()
    }

    fn crowded(&self, process: ProcessId, alone: bool) -> bool {
        let open = self.opened_in(process);
        let mut imports = self.circuits.values().filter_map(|circuit| match circuit {
            Circuit::Importing {
                process: Some(at),
                deaths,
                ..
            } if *at == process => Some(*deaths),
            _ => None,
        });
        open.iter().any(|other| other.alone)
            || (alone && !open.is_empty())
            || imports.any(|deaths| alone || deaths >= 2)
    }

    /// What a word under a lease comes to: stale, refused in another stage, or `act`.
    fn word(
        &mut self,
        token: Token,
        stage: Stage,
        act: impl FnOnce(&mut Self, JobNumber, usize) -> Answer,
    ) -> Option<Answer> {
        let Some((job, index)) = self.holder(token) else {
            return Some(Answer::Stale);
        };
        (self.partition(job, index).state.stage() == Some(stage)).then(|| act(self, job, index))
    }

    pub fn holder(&self, token: Token) -> Option<(JobNumber, usize)> {
        self.jobs.iter().find_map(|(number, job)| {
            let index = job
                .partitions
                .iter()
                .position(|partition| partition.token == Some(token))?;
            Some((*number, index))
        })
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

    /// Ends an open attempt and moves its job on.
    fn end(&mut self, number: JobNumber, index: usize, class: FailureClass, own_fault: bool, now: Millis) {
        use FailureClass as F;
        let job = self.job(number);
        let (max, stop) = (job.max_attempts, job.stop);
        let stopping = matches!(job.state, JobState::Stopping(_));
        let partition = &mut job.partitions[index];
        let stage = partition.state.stage();
        let died = stage.filter(|_| own_fault);
        let last = partition.counted + 1 >= max;
        let back_off = 1000 * 4_u64.pow(partition.counted.min(10));
        let mut class = class;
        let mut counts = true;
        let mut next = match class {
            F::InputInvalid | F::Unsatisfied | F::ParamsMismatch | F::InputMissing | F::CircuitFailed => {
                PartitionState::Failed
            }
            F::JoinInvalid | F::Poison => PartitionState::Failed,
            F::OutOfMemory if last || partition.out_of_memory > 0 => PartitionState::Failed,
            F::OutOfMemory => PartitionState::Ready,
            F::DeviceError | F::InvalidProof | F::TimedOut | F::Stalled if last => PartitionState::Failed,
            F::DeviceError | F::InvalidProof | F::TimedOut | F::Stalled => PartitionState::Waiting,
            F::Interrupted | F::Shutdown | F::DeviceUnavailable | F::Preempted | F::Cancelled => {
                counts = false;
                PartitionState::Ready
            }
        };
        if stopping {
            (next, counts) = (PartitionState::Cancelled, false);
        }
        let was_alone = partition.alone;
        if let Some(stage) = died {
            let (mut with, mut alone) = match partition.poison {
                Some((at, with, alone)) if at == stage => (with, alone),
                _ => (0, 0),
            };
            if was_alone {
                alone += 1
            } else {
                with += 1
            }
            partition.poison = Some((stage, with, alone));
            if !stopping && next != PartitionState::Failed {
                if was_alone && alone >= 2 {
                    (next, class) = (PartitionState::Failed, F::Poison);
                } else if !was_alone && with >= 2 {
                    partition.alone = true;
                }
            }
        } else if counts {
            partition.poison = None;
        }
        if class == F::OutOfMemory {
            partition.out_of_memory += 1;
            partition.alone |= !stopping;
        }
        if class == F::InvalidProof {
            partition.recheck = true;
            partition.pieces.clear();
        }
        partition.counted += u32::from(counts);
        let worker = partition.worker;
        partition.rest(next);
        if next == PartitionState::Waiting {
            partition.wake_at = Some(now.after(back_off.min(HALF_AN_HOUR)));
        }
        self.free(worker);
        self.count("attempts", class.name());
        if next == PartitionState::Failed && stop && !stopping {
            self.stop(number, StopTarget::Failed);
        } else {
            self.settle(number);
        }
    }

    fn stop(&mut self, number: JobNumber, target: StopTarget) -> Option<Answer> {
        let job = self.job(number);
        job.state = JobState::Stopping(target);
        let mut dropped = 0;
        for partition in &mut job.partitions {
            match partition.state {
                PartitionState::Synthesized => dropped += 1,
                PartitionState::Ready | PartitionState::Waiting => {}
                _ => continue,
            }
            partition.rest(PartitionState::Cancelled);
        }
        for _ in 0..dropped {
            self.count("attempts", "cancelled");
        }
        self.settle(number);
        Some(Answer::Done)
    }

    fn settle(&mut self, number: JobNumber) {
        let job = self.job(number);
        match job.state {
            JobState::Stopping(target) if job.leases() == 0 => {
                let state = match target {
                    StopTarget::Cancelled => JobState::Cancelled,
                    StopTarget::Failed => JobState::Failed,
                    StopTarget::Expired => JobState::Expired,
                };
                self.finish(number, state);
            }
            state if going(state) => {
                let failed = job.count(PartitionState::Failed);
                if failed > 0 && failed + job.count(PartitionState::Proved) == job.partitions.len() {
                    self.stop(number, StopTarget::Failed);
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, number: JobNumber, state: JobState) {
        let job = self.job(number);
        job.state = state;
        for partition in &mut job.partitions {
            partition.pieces.clear();
        }
        self.count("jobs", state.name());
    }

    fn count(&mut self, what: &str, outcome: &str) {
        *self
            .counters
            .entry(format!("{what}/groth16/{outcome}"))
            .or_default() += 1;
    }

    fn lost(
        &mut self,
        process: ProcessId,
        class: FailureClass,
        culprit: Option<(Token, FailureClass)>,
        own_fault: bool,
        now: Millis,
    ) -> Option<Answer> {
        let Some(at) = self
            .devices
            .iter()
            .position(|device| device.process == Some(process))
        else {
            return Some(Answer::Unchanged);
        };
        self.devices[at].process = None;
        let own_fault = own_fault && culprit.is_none();
        let numbers: Vec<JobNumber> = self.jobs.keys().copied().collect();
        for number in numbers {
            for index in 0..self.jobs[&number].partitions.len() {
                let partition = &self.jobs[&number].partitions[index];
                if !partition.state.is_open() || partition.process != Some(process) {
                    continue;
                }
                let class = match (culprit, partition.token) {
                    (Some((token, class)), held) if held == Some(token) => class,
                    (None, Some(_)) => class,
                    _ => FailureClass::Interrupted,
                };
                self.end(number, index, class, own_fault, now);
            }
        }
        self.imports_end(Some(process), own_fault);
        Some(Answer::Done)
    }

    fn imports_end(&mut self, of: Option<ProcessId>, own_fault: bool) {
        for circuit in self.circuits.values_mut() {
            if let Circuit::Importing {
                token,
                process,
                deaths,
                ..
            } = circuit
                && process.is_some()
                && (of.is_none() || *process == of)
            {
                (*token, *process) = (None, None);
                *deaths += u32::from(own_fault);
            }
        }
    }

    fn suspend(&mut self, name: &str, suspended: bool) -> Option<Answer> {
        let device = self.devices.iter_mut().find(|device| device.name == name)?;
        Some(answer(
            std::mem::replace(&mut device.suspended, suspended) != suspended,
        ))
    }

    fn boot_open(&mut self, devices: &[(String, u32)], now: Millis) -> Answer {
        self.boot += 1;
        (self.open, self.draining, self.spawns) = (true, false, 0);
        self.devices.clear();
        self.workers.clear();
        for (name, slots) in devices {
            self.workers
                .extend((0..*slots).map(|_| (self.devices.len(), None)));
            let (name, slots) = (name.clone(), *slots);
            self.devices.push(Device {
                name,
                slots,
                process: None,
                suspended: false,
            });
        }
        let numbers: Vec<JobNumber> = self.jobs.keys().copied().collect();
        for number in numbers {
            for index in 0..self.jobs[&number].partitions.len() {
                if self.jobs[&number].partitions[index].state.is_open() {
                    self.end(number, index, FailureClass::Interrupted, false, now);
                }
            }
            if self.job(number).verify.take().is_some() {
                self.settle(number);
            }
        }
        self.imports_end(None, false);
        Answer::Booted
    }

    fn import_start(&mut self, circuit: Digest, process: ProcessId, granted: Token) -> Option<Answer> {
        let Circuit::Importing {
            token: None, deaths, ..
        } = *self.circuits.get(&circuit)?
        else {
            return Some(Answer::Unchanged);
        };
        let live = self.devices.iter().any(|device| device.process == Some(process));
        if !self.open || !live || self.crowded(process, deaths >= 2) {
            return None;
        }
        if deaths >= 3 {
            self.circuits.insert(circuit, Circuit::Failed);
            return Some(Answer::Done);
        }
        if let Some(Circuit::Importing {
            token, process: at, ..
        }) = self.circuits.get_mut(&circuit)
        {
            (*token, *at) = (Some(granted), Some(process));
        }
        Some(Answer::Granted(0))
    }

    fn import_of(&mut self, wanted: Token) -> Option<&mut Circuit> {
        self.circuits
            .values_mut()
            .find(|circuit| matches!(circuit, Circuit::Importing { token, .. } if *token == Some(wanted)))
    }

    fn import_ends(&mut self, token: Token, end: Circuit) -> Answer {
        match self.import_of(token) {
            Some(circuit) => {
                *circuit = end;
                Answer::Done
            }
            None => Answer::Stale,
        }
    }
}

fn going(state: JobState) -> bool {
    matches!(state, JobState::Queued | JobState::Running)
}

fn answer(changed: bool) -> Answer {
    if changed { Answer::Done } else { Answer::Unchanged }
}
