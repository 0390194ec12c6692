//! Partitions: what may start, what a worker's words come to, and what the end of an attempt means.

use proofkeep_store::ids::{JobNumber, Millis, ProcessId, Token};
use proofkeep_store::machine::Command;
use proofkeep_store::records::{FailureClass, JobState, PartitionState, Stage, StopTarget};

use super::{Answer, Circuit, HALF_AN_HOUR, Model, Partition, going};

impl Model {
    pub(super) fn may_synthesize(&self, job: JobNumber, index: u32, process: ProcessId) -> Option<usize> {
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
            && open.len() < 4 * device.slots as usize
            && ahead.count() < 2 * device.slots as usize;
        fits.then_some(at)
    }

    pub(super) fn opened_in(&self, process: ProcessId) -> Vec<&Partition> {
        let all = self.jobs.values().flat_map(|job| &job.partitions);
        all.filter(|partition| partition.process == Some(process))
            .collect()
    }

    pub(super) fn crowded(&self, process: ProcessId, alone: bool) -> bool {
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
    pub(super) fn word(
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

    /// Ends an open attempt and moves its job on.
    pub(super) fn end(
        &mut self,
        number: JobNumber,
        index: usize,
        class: FailureClass,
        own_fault: bool,
        now: Millis,
    ) {
        use FailureClass as F;
        let job = self.job(number);
        let (max, stop) = (job.max_attempts, job.stop);
        let stopping = matches!(job.state, JobState::Stopping(_));
        let partition = &mut job.partitions[index];
        let stage = partition.state.stage();
        let waits = (partition.state == PartitionState::Synthesized).then_some(Stage::Synth);
        let died = stage.or(waits).filter(|_| own_fault);
        let last = partition.counted + 1 >= max;
        let back_off = 1000 * 4_u64.pow(partition.counted.min(10));
        let mut class = class;
        let mut counts = true;
        let mut next = match class {
            F::InputInvalid | F::Unsatisfied | F::ParamsMismatch | F::InputMissing | F::CircuitFailed => {
                PartitionState::Failed
            }
            F::JoinInvalid | F::Poison => PartitionState::Failed,
            F::OutOfMemory if partition.out_of_memory > 0 => PartitionState::Failed,
            F::OutOfMemory => {
                counts = false;
                PartitionState::Ready
            }
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
            let (mut with, mut alone) = partition.poison.map_or((0, 0), |(_, with, alone)| (with, alone));
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

    /// The words of a worker under a lease.
    pub(super) fn words(&mut self, command: &Command, now: Millis) -> Option<Answer> {
        match command {
            Command::SynthEnd(end) => self.word(end.token, Stage::Synth, |model, job, index| {
                if matches!(model.jobs[&job].state, JobState::Stopping(_)) {
                    model.end(job, index, FailureClass::Cancelled, false, Millis(0));
                    return Answer::Done;
                }
                let partition = model.partition(job, index);
                partition.state = PartitionState::Synthesized;
                partition.token = None;
                partition.progress(partition.witnesses.is_empty());
                partition.witnesses.push(end.witness);
                Answer::Done
            }),
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
                    // Pieces of another witness are thrown away, so new ones of it are no progress.
                    let same = partition
                        .witnesses
                        .iter()
                        .all(|made| Some(made) == partition.witnesses.last());
                    partition.progress(same);
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
                    let first = !std::mem::replace(&mut partition.left_device, true);
                    partition.progress(first);
                    let worker = partition.worker.take();
                    model.free(worker);
                    Answer::Done
                }),
            },
            Command::ProofStored(stored) => self.word(stored.token, Stage::Finish, |model, job, index| {
                let partition = model.partition(job, index);
                partition.progress(true);
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
            other => panic!("{other:?} is no word under a lease"),
        }
    }
}
