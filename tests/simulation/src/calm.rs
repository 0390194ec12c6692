//! Liveness: when nothing goes wrong any more, every job ends within a bounded number of steps, and no slot, lease or
//! ticket is left behind.

use proofkeep_store::keys::{self, Family};
use proofkeep_store::machine::Command;
use proofkeep_store::query;
use proofkeep_store::records::{JobState, Partition, PartitionState, WorkerState};
use proofkeep_store::view::records;

use crate::daemon::{Phase, Turn};
use crate::world::World;

/// Steps that a partition may take to its end once nothing goes wrong: some thirty for one attempt with all its words,
/// commits and passes, times the attempts that its own nature may still cost it.
const STEPS: u64 = 1_500;
/// Steps for a boot, a restart, and imports.
const STEPS_BESIDES: u64 = 30_000;

impl World {
    /// Nothing goes wrong from here on, until every job has ended.
    ///
    /// # Errors
    /// What never ends, or is left over; or any invariant.
    pub fn calm(&mut self) -> Result<(), String> {
        self.calm_down();
        let open = self.unfinished()?;
        let limit = self.steps() + STEPS_BESIDES + STEPS * open;
        while self.steps() < limit {
            self.step()?;
            self.go_on();
            if self.is_quiet()? {
                self.count("times of calm");
                self.left_over()?;
                self.fsck()?;
                self.rough = true;
                return Ok(());
            }
        }
        let page = query::active_jobs(&self.disk.view, None, 1).map_err(|error| error.to_string())?;
        let stuck = page.jobs.first().map(|job| {
            let prefix = keys::of_job(Family::Partition, job.number);
            let partitions: Vec<Partition> = records(&self.disk.view, &prefix).unwrap_or_default();
            let states: Vec<&str> = partitions.iter().map(|found| found.state.name()).collect();
            format!("job {} is {} with {states:?}", job.number, job.state.name())
        });
        Err(format!(
            "nothing went wrong for {} steps and there is no end: {}",
            STEPS_BESIDES + STEPS * open,
            stuck.unwrap_or_else(|| "something is left over".to_owned())
        ))
    }

    /// A time of calm begins.
    pub(crate) fn calm_down(&mut self) {
        self.rough = false;
        for child in self.children.values_mut() {
            child.recover();
        }
        self.trace(|| "nothing goes wrong any more".to_owned());
    }

    /// Partitions of jobs that haven't ended.
    fn unfinished(&self) -> Result<u64, String> {
        let page =
            query::active_jobs(&self.disk.view, None, usize::MAX).map_err(|error| error.to_string())?;
        Ok(page.jobs.iter().map(|job| u64::from(job.partitions)).sum())
    }

    /// An operator undoes what stops everything: a pause, a drain, a device that was suspended by hand.
    pub(crate) fn go_on(&mut self) {
        let Some(mut daemon) = self.daemon.take() else {
            return;
        };
        if daemon.phase == Phase::Working && !daemon.is_locked() && !self.users.wait() {
            let queue = query::queue(&self.disk.view).unwrap_or_default();
            if queue.draining {
                self.order_stop(&mut daemon);
            } else if queue.paused {
                let actor = "operator".to_owned();
                self.call(&mut daemon, Command::Resume { actor });
            }
        }
        self.daemon = Some(daemon);
    }

    /// Everything has ended and nothing is on its way.
    fn is_quiet(&self) -> Result<bool, String> {
        let Some(daemon) = &self.daemon else {
            return Ok(false);
        };
        let at_rest = daemon.phase == Phase::Working
            && matches!(daemon.turn, Turn::Resting)
            && !daemon.bell
            && !daemon.is_locked()
            && daemon.queues.is_empty()
            && daemon.checks.is_empty()
            && daemon.hints.is_empty()
            && !self.users.wait()
            && self.children.values().all(|child| !child.is_busy())
            && (0..daemon.runs.len()).all(|index| !self.reader_can_go_on(daemon, index));
        if !at_rest {
            return Ok(false);
        }
        let none = |family| {
            query::active_jobs(&self.disk.view, None, 1)
                .map(|page| page.jobs.is_empty())
                .map_err(|error| error.to_string())
                .map(|ended| ended && !self.disk.view.0.keys().any(|key| key.first() == Some(&family)))
        };
        let over = none(Family::Importing as u8)? && none(Family::Pruning as u8)?;
        let up = daemon.processes().filter(|process| process.is_up()).count() == daemon.runs.len();
        let dropped = daemon.processes().all(|process| process.held.is_empty());
        Ok(over && up && dropped)
    }

    /// With every job at its end nothing is held any more.
    fn left_over(&self) -> Result<(), String> {
        let text = |error: proofkeep_store::view::ReadError| error.to_string();
        let view = &self.disk.view;
        if let Some(lease) = query::leases(view).map_err(text)?.first() {
            return Err(format!(
                "all jobs have ended and lease {} is in force",
                lease.token
            ));
        }
        let workers = query::workers(view).map_err(text)?;
        if let Some(worker) = workers.iter().find(|worker| worker.state != WorkerState::Idle) {
            return Err(format!("all jobs have ended and worker {} is busy", worker.id));
        }
        let partitions: Vec<Partition> = records(view, &keys::family(Family::Partition)).map_err(text)?;
        let odd = partitions.iter().find(|found| {
            !matches!(
                found.state,
                PartitionState::Proved | PartitionState::Failed | PartitionState::Cancelled
            )
        });
        if let Some(odd) = odd {
            let job = query::job_by_number(view, odd.job).map_err(text)?;
            let fails_fast = job.is_some_and(|job| {
                matches!(
                    job.state,
                    JobState::Failed | JobState::Cancelled | JobState::Expired
                )
            });
            let name = odd.state.name();
            if !fails_fast || odd.state.is_open() {
                return Err(format!(
                    "partition {} of job {} is {name} for ever",
                    odd.index, odd.job
                ));
            }
        }
        let tickets = self
            .daemon
            .as_ref()
            .map_or(0, |daemon| daemon.accounts.tickets().count());
        if tickets > 0 {
            return Err(format!("all jobs have ended and {tickets} tickets are in force"));
        }
        Ok(())
    }
}
