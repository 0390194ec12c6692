//! Whole jobs: accepted, retried, woken, checked, stopped, ended, forgotten.

use proofkeep_store::ids::{Digest, JobNumber, Millis, Token};
use proofkeep_store::machine::{Admission, Submit, VerifyVerdict};
use proofkeep_store::records::{JobState, OnFailure, PartitionState, StopTarget};

use super::{Answer, Circuit, HALF_AN_HOUR, Job, Model, Partition, going};

impl Model {
    pub(super) fn submit(&mut self, submit: &Submit, now: Millis) -> Option<Answer> {
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

    pub(super) fn usable(&self, circuit: Option<Digest>) -> bool {
        circuit.is_none_or(|circuit| {
            matches!(
                self.circuits.get(&circuit),
                Some(Circuit::Importing { .. } | Circuit::Ready)
            )
        })
    }

    pub(super) fn retry(&mut self, number: JobNumber, again: &[u32], now: Millis) -> Option<()> {
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

    pub(super) fn wake(&mut self, number: JobNumber, now: Millis) -> Option<Answer> {
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

    pub(super) fn verify_end(&mut self, token: Token, verdict: Option<&VerifyVerdict>) -> Option<Answer> {
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

    pub(super) fn prune(&mut self, number: JobNumber) -> Option<Answer> {
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

    pub(super) fn stop(&mut self, number: JobNumber, target: StopTarget) -> Option<Answer> {
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

    pub(super) fn settle(&mut self, number: JobNumber) {
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

    pub(super) fn finish(&mut self, number: JobNumber, state: JobState) {
        let job = self.job(number);
        job.state = state;
        for partition in &mut job.partitions {
            partition.pieces.clear();
        }
        self.count("jobs", state.name());
    }
}
