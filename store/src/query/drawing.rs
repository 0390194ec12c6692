//! Drawing jobs for a [`Status`](super::Status): in full while the budget lasts, then as cells, then as counts.

use std::collections::{BTreeMap, BTreeSet};

use super::job::summary;
use super::reason::backing_off;
use super::schedule::OpenAttempt;
use super::status::{JobStatus, PartitionStatus, StatusLimits, cell};
use super::wait_reason;
use crate::codec::Record;
use crate::event::{Event, What};
use crate::ids::{JobNumber, Millis};
use crate::keys::{self, Family};
use crate::records::{Attempt, AttemptRef, Device, Job, Outcome, Partition, Queue, Stage};
use crate::view::{self, ReadError, View};

/// The part of the picture with a budget: how many jobs and partitions may still be drawn.
pub(super) struct Drawing<'a> {
    view: &'a dyn View,
    now: Millis,
    limits: StatusLimits,
    queue: Queue,
    devices: &'a [Device],
    open: BTreeMap<JobNumber, Vec<&'a OpenAttempt>>,
    full_left: usize,
    cells_left: usize,
}

impl<'a> Drawing<'a> {
    pub(super) fn new(
        view: &'a dyn View,
        now: Millis,
        limits: StatusLimits,
        queue: Queue,
        devices: &'a [Device],
        attempts: &'a [OpenAttempt],
    ) -> Self {
        let mut open: BTreeMap<JobNumber, Vec<&OpenAttempt>> = BTreeMap::new();
        for attempt in attempts.iter().take(limits.partitions) {
            open.entry(attempt.partition.job).or_default().push(attempt);
        }
        // Open attempts are drawn in full before anything else, so they are paid for first.
        let full_left = limits.partitions - attempts.len().min(limits.partitions);
        Self {
            view,
            now,
            limits,
            queue,
            devices,
            open,
            full_left,
            cells_left: limits.cells,
        }
    }

    pub(super) fn jobs_in_flight(&mut self) -> Result<Vec<JobStatus>, ReadError> {
        let mut numbers: Vec<JobNumber> = self.open.keys().copied().take(self.limits.jobs).collect();
        let known: BTreeSet<JobNumber> = numbers.iter().copied().collect();
        let page = self
            .view
            .scan(&keys::family(Family::Active), None, self.limits.jobs)?;
        let others = page.iter().filter_map(|(key, _)| keys::parse_job(key));
        numbers.extend(others.filter(|number| !known.contains(number)));
        numbers.truncate(self.limits.jobs);
        let mut jobs = Vec::with_capacity(numbers.len());
        for number in numbers {
            if let Some(job) = view::record::<Job>(self.view, &keys::job(number))? {
                jobs.push(self.draw(job)?);
            }
        }
        Ok(jobs)
    }

    pub(super) fn recent(&mut self) -> Result<Vec<JobStatus>, ReadError> {
        let mut jobs = Vec::new();
        for number in recently_ended(self.view, self.now, self.limits)? {
            let Some(job) = view::record::<Job>(self.view, &keys::job(number))? else {
                continue;
            };
            if job.state.is_terminal() {
                jobs.push(self.draw(job)?);
            }
        }
        Ok(jobs)
    }

    fn draw(&mut self, job: Job) -> Result<JobStatus, ReadError> {
        let open = self.open.get(&job.number).cloned().unwrap_or_default();
        let in_full: Vec<PartitionStatus> = open
            .iter()
            .map(|open| partition_status(&open.partition, Some(&open.attempt), self.now))
            .collect();
        let total = job.partitions as usize;
        let rest = total.saturating_sub(in_full.len());
        let (partitions, cells) = if rest <= self.full_left {
            self.full_left -= rest;
            (self.all_in_full(&job, in_full)?, None)
        } else if total <= self.cells_left {
            self.cells_left -= total;
            let partitions = self.records(&job)?;
            (
                in_full,
                Some(partitions.iter().map(|partition| cell(partition.state)).collect()),
            )
        } else {
            (in_full, None)
        };
        let summary = summary(self.view, &job)?;
        let mut reason = wait_reason(self.view, &job, summary.running, self.queue, self.devices)?;
        // With the partitions at hand the look costs nothing; without them it would cost too much for a status.
        if reason.is_none() && summary.running == 0 && cells.is_none() {
            reason = backing_off(
                &job,
                partitions.iter().map(|status| (status.state, status.wake_at)),
            );
        }
        let generation = view::record(self.view, &keys::generation(job.number, job.generation))?;
        Ok(JobStatus {
            job,
            generation,
            summary,
            reason,
            partitions,
            cells,
        })
    }

    fn all_in_full(&self, job: &Job, open: Vec<PartitionStatus>) -> Result<Vec<PartitionStatus>, ReadError> {
        let mut open: BTreeMap<u32, PartitionStatus> =
            open.into_iter().map(|status| (status.index, status)).collect();
        let mut all = Vec::with_capacity(job.partitions as usize);
        for partition in self.records(job)? {
            if let Some(status) = open.remove(&partition.index) {
                all.push(status);
                continue;
            }
            let attempt = if partition.attempts == 0 {
                None
            } else {
                let of = AttemptRef {
                    job: job.number,
                    partition: partition.index,
                    number: partition.attempts,
                };
                view::record(self.view, &keys::attempt(of))?
            };
            all.push(partition_status(&partition, attempt.as_ref(), self.now));
        }
        Ok(all)
    }

    fn records(&self, job: &Job) -> Result<Vec<Partition>, ReadError> {
        let prefix = keys::of_job(Family::Partition, job.number);
        self.view
            .scan(&prefix, None, job.partitions as usize)?
            .iter()
            .map(|(key, value)| Partition::decode(value).map_err(|damage| ReadError::damaged(key, damage)))
            .collect()
    }
}

/// Jobs that ended a moment ago, the last first, from the end of the journal; on a busy machine perhaps not all.
fn recently_ended(view: &dyn View, now: Millis, limits: StatusLimits) -> Result<Vec<JobNumber>, ReadError> {
    const STEP: usize = 128;
    let mut found = Vec::new();
    let mut before: Option<keys::Key> = None;
    for _ in 0..limits.counted.div_ceil(4 * STEP) {
        let page = view.scan_back(&keys::family(Family::Event), before.as_deref(), STEP)?;
        for (key, value) in &page {
            let event = Event::decode(value).map_err(|damage| ReadError::damaged(key, damage))?;
            if now.since(event.at) > limits.recent_ms || found.len() == limits.recent {
                return Ok(found);
            }
            if let (What::Ended { .. }, Some(job)) = (&event.what, event.job)
                && !found.contains(&job)
            {
                found.push(job);
            }
        }
        match page.into_iter().next_back() {
            Some((key, _)) => before = Some(key),
            None => break,
        }
    }
    Ok(found)
}

fn partition_status(partition: &Partition, attempt: Option<&Attempt>, now: Millis) -> PartitionStatus {
    let on_device = attempt.filter(|attempt| attempt.outcome.is_none() && attempt.stage == Stage::Prove);
    let so_far = on_device
        .and_then(|attempt| attempt.gpu_started_at)
        .map(|since| now.since(since));
    PartitionStatus {
        index: partition.index,
        state: partition.state,
        attempt: partition.attempts,
        synth_ms: attempt.and_then(|attempt| attempt.synth_ms),
        gpu_ms: attempt.and_then(|attempt| attempt.gpu_ms).or(so_far),
        worker: partition.worker,
        device: attempt.map(|attempt| attempt.device.clone()),
        started_at: attempt.map(|attempt| attempt.started_at),
        wake_at: partition.wake_at,
        failure: attempt.and_then(|attempt| match &attempt.outcome {
            Some(Outcome::Ended(failure)) => Some(failure.class),
            _ => None,
        }),
    }
}
