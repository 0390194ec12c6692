//! What goes wrong from outside: crashes and power cuts, kills, clocks that jump, files that are lost, long pauses.

use proofkeep_store::ids::{JobNumber, ProcessId};
use proofkeep_store::keys::{self, Sequence};
use proofkeep_store::query;
use proofkeep_store::view::View as _;

use crate::child::{SIGKILL, SIGTERM};
use crate::daemon::{Daemon, Phase};
use crate::world::World;

impl World {
    /// Something goes wrong.
    pub(crate) fn fault(&mut self, daemon: &mut Daemon) -> Result<(), String> {
        let live: Vec<ProcessId> = self
            .children
            .values()
            .filter(|child| child.status.is_none())
            .map(|child| child.id)
            .collect();
        match self.chance.below(10) {
            0..=3 => self.crash(daemon),
            4..=7 => {
                if let Some(id) = self.chance.pick(&live).copied() {
                    let signal = if self.chance.one_in(3) { SIGTERM } else { SIGKILL };
                    self.trace(|| format!("somebody kills process {id} with signal {signal}"));
                    if let Some(child) = self.children.get_mut(&id) {
                        child.signal(signal, &mut self.chance);
                    }
                    self.count("kills from outside");
                }
            }
            8 => {
                let by = [-3_600_000, 3_600_000, 365 * 86_400_000, -5_000, 90_000][self.chance.index(5)];
                self.trace(|| format!("the wall clock jumps by {by} ms"));
                self.time.jump(by);
                self.count("clock jumps");
            }
            _ => {
                self.trace(|| "a long pause".to_owned());
                self.time.pass(65_000);
            }
        }
        Ok(())
    }

    /// `kill -9`, a power cut, or a disk that refuses a sync: of what wasn't durable nothing stays, or the first commands
    /// of the group, or all of it.
    fn crash(&mut self, daemon: &Daemon) {
        let unsynced = self.disk.unsynced();
        let kept = match self.chance.below(3) {
            0 => 0,
            1 => unsynced,
            _ => self.chance.index(unsynced + 1),
        };
        self.trace(|| format!("the daemon crashes; {kept} of {unsynced} unsynced commands stay"));
        self.count("crashes");
        self.count_many("crashes between apply and sync", u64::from(unsynced > 0));
        let recovering = matches!(daemon.phase, Phase::Opening(_) | Phase::Recovering(..));
        self.count_many("crashes during recovery", u64::from(recovering));
        self.disk.cut(kept);
        self.die();
        self.gone = true;
        if self.chance.one_in(12) {
            self.lose_file();
        }
    }

    /// What ends with the daemon: worker processes, and calls.
    pub(crate) fn die(&mut self) {
        self.children.clear();
        self.users.lose_calls();
        let jobs = self.sequence(Sequence::Job);
        self.blame.retain(|(job, _), _| *job <= jobs);
        self.deaths.retain(|(job, ..), _| *job <= jobs);
        self.daemon = None;
    }

    fn lose_file(&mut self) {
        let Ok(page) = query::active_jobs(&self.disk.view, None, 16) else {
            return;
        };
        let jobs: Vec<JobNumber> = page.jobs.iter().map(|job| job.number).collect();
        let Some(job) = self.chance.pick(&jobs).copied() else {
            return;
        };
        let prefix = keys::of_job(keys::Family::Needs, job);
        let Ok(needs) = self.disk.view.scan(&prefix, None, 16) else {
            return;
        };
        if let Some((_, object)) = needs.first().and_then(|(key, _)| keys::parse_needs(key)) {
            self.trace(|| format!("a file of job {job} is lost"));
            self.disk.objects.remove(&object);
            self.lost_files = true;
            self.count("files lost");
        }
    }
}
