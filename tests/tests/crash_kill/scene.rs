//! One data directory through its daemon's many lives.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use proofkeep_store::ids::BootNumber;
use proofkeep_store::{Options, Store};
use proofkeep_tests::harness::{Daemon, Http, Launch, until_some};
use proofkeep_tests::kill::{Autopsy, Hits, Row, autopsy, copy};
use proofkeep_tests::ledger::{History, Ledger};
use proofkeep_tests::shim::Shims;
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;

/// A process that is being made holds the locks of all stores that are open here, until its own program runs: where
/// scenes go on side by side, none starts a daemon while another looks into its store.
static STARTS_AND_LOOKS: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    STARTS_AND_LOOKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the daemon is given to do.
pub trait Workload: Sync {
    /// How the daemon is started.
    fn launch(&self, data: &Path) -> Launch;

    /// A job small enough that each of its durable operations can be hit: done step by step, begun again where it was
    /// left. `None` when the daemon died.
    fn small_job(&self, http: &Http, scene: &Shared, steps: &mut Steps) -> Option<()>;

    /// What has to be there before there is load. `None` when the daemon died.
    fn prepare(&self, http: &Http, scene: &Shared) -> Option<()>;

    /// Something that a client does. `None` when the daemon died.
    fn act(&self, http: &Http, scene: &Shared, rng: &mut ChaCha8Rng) -> Option<()>;

    /// Brings about that something can be hit soon.
    fn provoke(&self, row: Row, http: &Http, scene: &Shared, rng: &mut ChaCha8Rng) -> Option<()>;

    /// What may be aimed at under load.
    fn aims(&self) -> Vec<Row>;

    /// Checks every proof of a job that succeeded, with a verifier that asks no daemon.
    fn verify(&self, store: &Store, proof: &proofkeep_store::records::StoredProof);
}

/// How far a small job has come, as far as the client knows.
#[derive(Debug, Default)]
pub struct Steps {
    pub registered: bool,
    pub job: Option<uuid::Uuid>,
    pub doomed: Option<uuid::Uuid>,
    pub cancelled: bool,
}

/// What clients share.
pub struct Shared {
    pub ledger: Ledger,
    /// For files of scripts.
    pub marks: PathBuf,
}

pub struct Scene<'a> {
    pub workload: &'a dyn Workload,
    pub shared: Shared,
    pub hits: Hits,
    pub data: PathBuf,
    root: TempDir,
    history: History,
    boot: BootNumber,
}

impl<'a> Scene<'a> {
    /// On a directory that isn't there yet.
    pub fn new(workload: &'a dyn Workload) -> Self {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        let marks = root.path().join("marks");
        std::fs::create_dir(&marks).unwrap();
        let shared = Shared {
            ledger: Ledger::new(),
            marks,
        };
        let (hits, history, boot) = (Hits::default(), History::default(), BootNumber(0));
        Self {
            workload,
            shared,
            hits,
            data,
            root,
            history,
            boot,
        }
    }

    /// Another one that goes on from where this one is.
    pub fn fork(&self) -> Self {
        let mut fork = Self::new(self.workload);
        copy(&self.data, &fork.data).unwrap();
        self.shared
            .ledger
            .said_of_jobs()
            .into_iter()
            .for_each(|said| fork.shared.ledger.note(said));
        (fork.history, fork.boot) = (self.history.clone(), self.boot);
        fork
    }

    /// Starts the daemon and waits until it is ready; one that ends meanwhile, as killed, is answered as it is.
    pub fn start(&self, shims: Shims) -> Started {
        let alone = alone();
        let daemon = match self.workload.launch(&self.data).shims(shims).try_start() {
            Ok(daemon) => daemon,
            Err(failed) if is_killed(failed.status) => return Started::Dead(None),
            Err(failed) => panic!("the daemon did not start ({}):\n{}", failed.status, failed.stderr),
        };
        drop(alone);
        let mut daemon = daemon;
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(status) = daemon.ended() {
                assert!(
                    is_killed(status),
                    "the daemon ended while it started ({status}):\n{}",
                    daemon.stderr()
                );
                return Started::Dead(Some(daemon));
            }
            if daemon
                .try_send("GET", "/readyz", &[], None)
                .is_some_and(|answer| answer.status == 200)
            {
                return Started::Ready(daemon);
            }
            assert!(
                Instant::now() < deadline,
                "not ready in a minute:\n{}",
                daemon.stderr()
            );
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }

    /// Starts it with nothing in its way.
    pub fn restart(&self) -> Daemon {
        match self.start(Shims::default()) {
            Started::Ready(daemon) => daemon,
            Started::Dead(_) => panic!("somebody else killed the daemon"),
        }
    }

    /// The daemon is dead, or dies now: counts the kill, and checks what it left.
    pub fn killed(&mut self, daemon: Option<Daemon>, ready: bool, more: &[Row]) {
        drop(daemon.map(Daemon::kill));
        let before = self.boot;
        let found = self.look("after a kill");
        let mut hit = found.hit;
        hit.extend(more);
        if !ready {
            // The boot is durable when recovery begins; what follows it then is no longer recovery.
            if found.boot <= before {
                hit.insert(Row::Open);
            } else if found.recovering {
                hit.insert(Row::Recovery);
            }
        }
        self.hits.count(hit);
    }

    /// Checks the directory, which no daemon uses now.
    pub fn look(&mut self, when: &str) -> Autopsy {
        let scratch = self.root.path().join("copy");
        let alone = alone();
        let found = autopsy(&self.data, &scratch, &self.shared.ledger, &self.history).unwrap();
        drop(alone);
        if !found.wrong.is_empty() {
            let kept = self.root.path().to_owned();
            panic!(
                "{when} (kill {}), kept in {}:\n{}",
                self.hits.kills() + 1,
                keep(kept),
                found.wrong.join("\n")
            );
        }
        self.history = found.history.clone();
        self.boot = found.boot;
        found
    }

    /// Waits until every job has ended, stops the daemon in good order, and checks everything once more.
    pub fn finish(mut self, daemon: Daemon) -> Hits {
        for (id, ends) in self.shared.ledger.jobs() {
            let job = daemon.wait_for_end(&id.to_string());
            Ledger::told_of(&job)
                .into_iter()
                .for_each(|said| self.shared.ledger.note(said));
            let state = job["state"].as_str().unwrap();
            assert!(
                ends.contains(&state),
                "it should have ended as one of {ends:?}: {job}"
            );
        }
        let status = daemon.terminate();
        assert!(status.success(), "SIGTERM: {status}");
        self.look("at the end");
        self.verify_proofs();
        self.hits
    }

    fn verify_proofs(&self) {
        let copy = self.root.path().join("copy");
        let _alone = alone();
        let store = Store::open(
            &copy,
            &Options {
                create: false,
                ..Options::default()
            },
        )
        .unwrap();
        for (id, ..) in self.shared.ledger.jobs() {
            let proofs = store.read(|view| {
                let proofkeep_store::query::Found::Job(number) = proofkeep_store::query::find(view, id)?
                else {
                    return Ok(Vec::new());
                };
                proofkeep_store::query::proofs(view, number, 0, 1024).map(|page| page.proofs)
            });
            proofs
                .unwrap()
                .iter()
                .for_each(|proof| self.workload.verify(&store, proof));
        }
    }
}

/// A daemon that was started.
pub enum Started {
    /// It is ready.
    Ready(Daemon),
    /// It was killed before.
    Dead(Option<Daemon>),
}

fn is_killed(status: std::process::ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    status.signal() == Some(libc::SIGKILL)
}

/// Waits for the death that a preloaded library brings, or for what ends the wait otherwise.
pub fn died(daemon: &mut Daemon) -> bool {
    let status = until_some("the daemon ends", || daemon.ended());
    is_killed(status)
}

/// Moves a directory that shows a fault to where it stays.
fn keep(root: PathBuf) -> String {
    let kept = std::env::temp_dir().join(format!("proofkeep-crash-{}", std::process::id()));
    match copy(&root, &kept) {
        Ok(()) => kept.display().to_string(),
        Err(error) => format!("(it can't be kept: {error})"),
    }
}
