//! How a boot begins and ends: recovery before anything is granted, and the last command.

use std::collections::VecDeque;
use std::time::Duration;

use proofkeep_engine::recover::without_input;
use proofkeep_store::ids::{Digest, JobNumber};
use proofkeep_store::view::View as _;
use proofkeep_store::{keys, query};

use crate::daemon::{Daemon, Phase};
use crate::world::World;

impl World {
    pub(crate) fn recovery_can_go_on(&self, daemon: &Daemon) -> bool {
        match &daemon.phase {
            Phase::Opening(id) => daemon.mail.contains_key(id),
            Phase::Recovering(_, waits) => {
                !daemon.is_locked() && waits.front().is_none_or(|id| daemon.mail.contains_key(id))
            }
            _ => false,
        }
    }

    /// One step of what a boot does before it grants anything.
    pub(crate) fn recover(&mut self, daemon: &mut Daemon) -> Result<(), String> {
        match &mut daemon.phase {
            Phase::Opening(id) => {
                let id = *id;
                match daemon.mail.remove(&id) {
                    Some(Ok(_)) => daemon.phase = Phase::Recovering(None, Default::default()),
                    Some(Err(error)) => return Err(format!("the boot could not be opened: {error}")),
                    None => {}
                }
            }
            Phase::Recovering(after, waits) => {
                if let Some(id) = waits.pop_front() {
                    if let Some(Err(error)) = daemon.mail.remove(&id) {
                        return Err(format!("recovery was refused: {error}"));
                    }
                    return Ok(());
                }
                let after = *after;
                let page =
                    query::active_jobs(&self.disk.view, after, 4).map_err(|error| error.to_string())?;
                let mut sent = VecDeque::new();
                for job in &page.jobs {
                    let missing = self.missing_object(job.number)?;
                    let command = without_input(job, missing);
                    sent.extend(command.map(|command| daemon.send(command)));
                }
                match page.next {
                    Some(next) => daemon.phase = Phase::Recovering(Some(next), sent),
                    None if !sent.is_empty() => {
                        let last = page.jobs.last().map(|job| job.number);
                        daemon.phase = Phase::Recovering(last, sent);
                    }
                    None => {
                        daemon.phase = Phase::Working;
                        daemon.bell = true;
                        self.trace(|| "recovered".to_owned());
                        self.fsck()?;
                        self.users.check(&self.disk.view)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn missing_object(&self, job: JobNumber) -> Result<Option<Digest>, String> {
        let prefix = keys::of_job(keys::Family::Needs, job);
        let page = self
            .disk
            .view
            .scan(&prefix, None, 4096)
            .map_err(|error| error.to_string())?;
        Ok(page
            .iter()
            .filter_map(|(key, _)| keys::parse_needs(key))
            .map(|(_, object)| object)
            .find(|object| !self.disk.objects.contains(object)))
    }

    pub(crate) fn order_stop(&mut self, daemon: &mut Daemon) {
        if daemon.phase == Phase::Working && daemon.order.is_none() {
            self.trace(|| "the daemon is asked to stop".to_owned());
            let grace = self.chance.between(500, 40_000);
            daemon.order = Some(self.time.now() + Duration::from_millis(grace));
            self.count("stops");
        }
    }

    /// The boot is closed and the daemon exits.
    pub(crate) fn goodbye(&mut self) -> Result<(), String> {
        self.trace(|| "the daemon has stopped".to_owned());
        self.disk.sync();
        let leases = query::leases(&self.disk.view).map_err(|error| error.to_string())?;
        self.die();
        match leases.iter().find(|lease| lease.process.is_some()) {
            Some(lease) => Err(format!(
                "the daemon stopped and lease {} is in force",
                lease.token
            )),
            None => Ok(()),
        }
    }
}
