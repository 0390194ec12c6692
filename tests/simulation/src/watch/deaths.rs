//! Whom the death of a process is counted for.

use proofkeep_store::event::What;
use proofkeep_store::keys;
use proofkeep_store::records::{Job, Partition};

use super::Look;

impl Look<'_> {
    /// Notes the partitions that a death was counted for just now.
    pub(super) fn deaths(&mut self) -> Result<(), String> {
        for event in &self.events {
            if let (Some(number), What::AttemptEnded(end)) = (event.job, &event.what)
                && end.crashed
                && let Some(before) = self.before::<Partition>(&keys::partition(number, end.partition))?
                && let Some(job) = self.now::<Job>(&keys::job(number))?
            {
                let death = (number, end.partition, job.generation, before.alone);
                self.facts.deaths.push(death);
            }
        }
        Ok(())
    }
}
