//! The engine as its users see it: start it on a data directory, ask it for things, shut it down.
//!
//! Everything that changes something is a command to the store; the calls here check a request, send the command, and
//! say a refusal in a user's words. Reading is asking the store; see [`Engine::store`].

mod calls;
mod check;
mod keys;
mod problems;
mod run;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use proofkeep_store::clock::Clock;
use proofkeep_store::format::DataDir;
use proofkeep_store::ids::{Digest, JobNumber, ProcessId};
use proofkeep_store::machine::{Machine, Rules};
use proofkeep_store::records::{BootEnd, Circuit};
use proofkeep_store::{Limits, OpenError, Options, Store, query, vital};
use tokio::sync::{Semaphore, mpsc, oneshot};

pub use calls::{Registered, Submitted};
pub use keys::KeyToLoad;

use crate::budget::{Accounts, Ledger, machine_memory};
use crate::damage::DamageReport;
use crate::desk::{DaemonDesk, job_damaged};
use crate::kinds::Kinds;
use crate::problem::Problem;
use crate::recover::{self, RecoverError};
use crate::schedule::Retention;
use crate::scrub::{ScrubReport, Scrubbing};
use crate::shared::{Core, INSECURE_SETUP};
use crate::workers::{DeviceConfig, Fleet, Greeting, Patience};
use run::{Loop, Order, Window};

/// How the engine is started.
#[derive(Clone)]
pub struct EngineConfig {
    /// The data directory; made if it is missing or empty.
    pub data_dir: PathBuf,
    /// The proof kinds there are.
    pub kinds: Kinds,
    /// The rules of the state machine; all of them, outside of tests.
    pub rules: Rules,
    /// How the store is opened.
    pub store: Options,
    /// Devices with their slots.
    pub devices: Vec<DeviceConfig>,
    /// Bytes of memory for proving; `None`: four fifths of what the machine and its control groups allow.
    pub budget: Option<u64>,
    /// Of those, kept free for critical jobs, so that they needn't wait until others have ended.
    pub reserve_critical: u64,
    /// Ended jobs that are kept; `None`: all.
    pub max_jobs: Option<u64>,
    /// Work of an attempt that exceeds this is saved.
    pub checkpoint_after: Duration,
    /// How long silence is borne.
    pub patience: Patience,
    /// The most memory that a circom calculator may use, in bytes.
    pub wasm_memory_bytes: u64,
    /// Its fuel.
    pub wasm_fuel: u64,
    /// Keys that anyone can forge under may be registered and used. Most are found out at once, the rest by their import.
    /// If not, circuits that have such a key already take no new jobs; jobs that were accepted go on.
    pub allow_insecure_setup: bool,
    /// Parameter files may have the name of a published one and another digest.
    pub allow_unofficial_params: bool,
    /// Variables for the environment of worker processes, besides the daemon's own.
    pub environment: Vec<(OsString, OsString)>,
    /// The whole store is checked so long after it was last; zero: never.
    pub scrub_every: Duration,
    /// The build, as boots name it.
    pub version: String,
}

impl EngineConfig {
    /// A configuration with one CPU device of two slots and the usual limits.
    #[must_use]
    pub fn new(data_dir: impl Into<PathBuf>, kinds: Kinds) -> Self {
        let threads =
            std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(1));
        Self {
            data_dir: data_dir.into(),
            kinds,
            rules: Rules::ALL,
            store: Options::default(),
            devices: vec![DeviceConfig {
                name: "cpu:0".to_owned(),
                slots: 2,
                threads,
            }],
            budget: None,
            reserve_critical: 0,
            max_jobs: None,
            checkpoint_after: Duration::from_secs(1),
            patience: Patience::default(),
            wasm_memory_bytes: 256 << 20,
            wasm_fuel: 50_000_000_000,
            allow_insecure_setup: true,
            allow_unofficial_params: false,
            environment: Vec::new(),
            scrub_every: Duration::from_secs(24 * 3600),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// Why the engine didn't start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Recovery.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// The system gave no thread or no process.
    #[error("the system refused what the daemon needs: {0}")]
    System(#[from] io::Error),
    /// There is nothing to prove on.
    #[error("no device is configured; name at least one, such as cpu:0")]
    NoDevice,
}

/// Memory, as status shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryReport {
    /// Bytes there are for tickets and keys.
    pub budget: u64,
    /// Bytes that tickets and keys count for.
    pub reserved: u64,
    /// The most that was ever reserved.
    pub peak_reserved: u64,
    /// Bytes that the worker processes have resident, as they last said.
    pub used: u64,
    /// Proving keys that count.
    pub keys: Vec<KeyReport>,
    /// The job at the head of the queue, if it waits for memory.
    pub short: Option<JobNumber>,
}

/// A proving key in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyReport {
    /// Its circuit.
    pub circuit: Digest,
    /// Bytes.
    pub bytes: u64,
    /// A worker process has it resident; otherwise a ticket has room for it.
    pub resident: bool,
    /// Nobody needs it now.
    pub evictable: bool,
    /// How long nobody has needed it, in milliseconds; 0 while somebody does.
    pub idle_ms: u64,
}

/// A device, as status shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceReport {
    /// Its name.
    pub name: String,
    /// Its slots.
    pub slots: u32,
    /// Threads it may use.
    pub threads: u32,
    /// What its worker process says of it; empty before it said hello.
    pub description: String,
    /// Its live process.
    pub process: Option<ProcessId>,
    /// The process said hello.
    pub up: bool,
    /// Bytes that the process has resident.
    pub rss: u64,
    /// The most so far.
    pub peak: u64,
}

/// A running engine. Dropping one without [`shutdown`](Self::shutdown) ends it as a crash would.
pub struct Engine {
    store: Store,
    core: Arc<Core>,
    desk: DaemonDesk,
    devices: Vec<DeviceConfig>,
    window: Arc<Window>,
    /// Requests that may be on their way to the commit thread at once.
    requests: Semaphore,
    orders: mpsc::UnboundedSender<Order>,
    blocking: tokio::runtime::Handle,
    scrubbing: Mutex<Scrubbing>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Engine {
    /// Opens the data directory, recovers what an earlier boot left, and starts working. Blocks; not for asynchronous
    /// code.
    ///
    /// # Errors
    /// See [`StartError`]; a second daemon on the same directory gets [`OpenError::Locked`].
    pub fn start(config: EngineConfig) -> Result<Self, StartError> {
        Self::start_in(Store::lock(&config.data_dir, true)?, config)
    }

    /// The same on a data directory that this process has locked already; `config.data_dir` is not looked at.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start_in(data: DataDir, config: EngineConfig) -> Result<Self, StartError> {
        if config.devices.is_empty() {
            return Err(StartError::NoDevice);
        }
        let store = Store::open_locked(data, &config.store)?;
        let data_dir = store.data().path().to_path_buf();
        recover::kill_leftovers(&data_dir)?;
        let mended = recover::mend(&store)?;
        let clock = Clock::start();
        let limits = Limits::default();
        let handle = store.start(Machine { rules: config.rules }, clock.clone(), limits)?;
        let budget = config.budget.unwrap_or_else(|| machine_memory().default_budget());
        let core = Arc::new(Core::new(
            handle,
            store.objects().clone(),
            config.kinds,
            Ledger::over(Accounts::new(budget).with_reserve(config.reserve_critical)),
            clock,
            config.allow_insecure_setup,
        ));
        recover::note(&core, &mended);
        let clean = was_clean(&core);
        let slots = config
            .devices
            .iter()
            .map(|device| (device.name.clone(), device.slots))
            .collect();
        recover::open_boot(&core, &config.version, slots)?;
        if clean {
            store.remove_superseded()?;
        }
        let boot = core.handle.read(query::last_boot).map_err(RecoverError::from)?;
        let greeting = Greeting {
            data: std::fs::canonicalize(&data_dir)?,
            boot,
            checkpoint_after: config.checkpoint_after,
            wasm_memory_bytes: config.wasm_memory_bytes,
            wasm_fuel: config.wasm_fuel,
            environment: config.environment,
        };
        let fleet = Fleet::new(Arc::clone(&core), &config.devices, greeting, config.patience)?;
        let threads = config
            .devices
            .iter()
            .map(|device| device.threads)
            .max()
            .unwrap_or(1);
        let desk = DaemonDesk {
            core: Arc::clone(&core),
            threads,
            wasm_memory_bytes: config.wasm_memory_bytes,
            allow_unofficial_params: config.allow_unofficial_params,
        };
        let scrubbing = Scrubbing::start(Arc::clone(&core), data_dir.join("run/scrub"), config.scrub_every)?;
        let window = Arc::new(Window::default());
        let (orders, received) = mpsc::unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .thread_name("blocking")
            .max_blocking_threads(32)
            .build()?;
        let blocking = runtime.handle().clone();
        let retention = Retention {
            max_jobs: config.max_jobs,
        };
        let run = Loop::new(desk.clone(), fleet, retention, Arc::clone(&window), received);
        let thread = std::thread::Builder::new()
            .name("engine".to_owned())
            // Without the loop nothing would ever end, and all would look alive.
            .spawn(move || vital("the scheduler", || runtime.block_on(run.run())))?;
        let thread = Mutex::new(Some(thread));
        Ok(Self {
            store,
            core,
            desk,
            devices: config.devices,
            window,
            requests: Semaphore::new(limits.requests),
            orders,
            blocking,
            scrubbing: Mutex::new(scrubbing),
            thread,
        })
    }

    /// Reading: what is durable.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The way to the commit thread: heartbeat, counters, pausing.
    #[must_use]
    pub fn handle(&self) -> &proofkeep_store::Handle {
        &self.core.handle
    }

    /// What kinds and registrations may ask of the daemon. Blocks.
    #[must_use]
    pub fn desk(&self) -> &DaemonDesk {
        &self.desk
    }

    /// The proof kinds there are.
    #[must_use]
    pub fn kinds(&self) -> &Kinds {
        &self.core.kinds
    }

    /// The daemon's clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.core.clock
    }

    /// The data directory.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        self.store.data().path()
    }

    /// Jobs are taken: the engine isn't stopping. (It is recovered when [`start`](Self::start) returns.)
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.window.stopping.load(Ordering::Acquire)
    }

    /// Memory now.
    #[must_use]
    pub fn memory(&self) -> MemoryReport {
        let (accounts, now) = (self.core.ledger.snapshot(), Instant::now());
        let used = self
            .window
            .processes
            .lock()
            .iter()
            .map(|process| process.rss.load(Ordering::Relaxed))
            .sum();
        let keys = accounts.keys().iter().map(|(circuit, key)| KeyReport {
            circuit: *circuit,
            bytes: key.total(),
            resident: !key.resident.is_empty(),
            evictable: !key.is_pinned(),
            idle_ms: key.idle_ms(now),
        });
        MemoryReport {
            budget: accounts.budget(),
            reserved: accounts.reserved(),
            peak_reserved: accounts.peak(),
            used,
            keys: keys.collect(),
            short: *self.window.short_of_memory.lock(),
        }
    }

    /// Why a circuit takes no new jobs although it was registered, if it doesn't: its key is one that anyone can forge
    /// under, and such keys aren't allowed any more.
    #[must_use]
    pub fn refused(&self, circuit: &Circuit) -> Option<Problem> {
        self.core
            .refuses(circuit)
            .then(|| Problem::input("insecure-setup", INSECURE_SETUP))
    }

    /// How far the check of the whole store has come.
    #[must_use]
    pub fn scrub(&self) -> ScrubReport {
        self.scrubbing.lock().report()
    }

    /// What is damaged in the store, as far as it is known.
    #[must_use]
    pub fn damage(&self) -> DamageReport {
        self.core.damage.report()
    }

    /// Why a job is kept out of the queue, if it is: a record of it is damaged.
    #[must_use]
    pub fn set_aside(&self, job: JobNumber) -> Option<Problem> {
        self.core.damage.why_aside(job).map(|why| job_damaged(&why))
    }

    /// Devices now.
    #[must_use]
    pub fn devices(&self) -> Vec<DeviceReport> {
        let processes = self.window.processes.lock();
        let report = |device: &DeviceConfig| {
            let process = processes.iter().find(|process| process.device == device.name);
            DeviceReport {
                name: device.name.clone(),
                slots: device.slots,
                threads: device.threads,
                description: process
                    .map(|process| process.description.lock().clone())
                    .unwrap_or_default(),
                process: process.map(|process| process.id),
                up: process.is_some_and(|process| process.is_up()),
                rss: process.map_or(0, |process| process.rss.load(Ordering::Relaxed)),
                peak: process.map_or(0, |process| process.peak.load(Ordering::Relaxed)),
            }
        };
        self.devices.iter().map(report).collect()
    }

    /// Claims nothing new, asks what runs to stop at the next edge with its checkpoints saved, waits for that at most
    /// `grace`, closes the boot and the store. Calls after the first wait for the same end.
    pub async fn shutdown(&self, grace: Duration) {
        self.window.stopping.store(true, Ordering::Release);
        self.scrubbing.lock().halt();
        let (done, ended) = oneshot::channel();
        if self.orders.send(Order::Shutdown { grace, done }).is_ok() {
            // The other side is dropped when the loop has ended, also when somebody else asked first.
            let _ = ended.await;
        }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        match self.blocking.spawn_blocking(work).await {
            Ok(result) => result,
            Err(error) if error.is_panic() => {
                let detail =
                    "the request made proofkeep panic; this is a fault of proofkeep, please report it";
                Err(Problem::new(500, "panic", "this is a fault of proofkeep", detail))
            }
            Err(_) => Err(problems::stopping()),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.scrubbing.get_mut().stop();
        // A loop that has ended hears nothing.
        let _ = self.orders.send(Order::Abandon);
        if let Some(thread) = self.thread.get_mut().take() {
            // A panic in it was reported by its hook.
            let _ = thread.join();
        }
    }
}

/// The last boot ended by itself (or there was none).
fn was_clean(core: &Core) -> bool {
    let last = core.handle.read(|view| {
        let number = query::last_boot(view)?;
        proofkeep_store::view::record::<proofkeep_store::records::Boot>(
            view,
            &proofkeep_store::keys::boot(number),
        )
    });
    matches!(last, Ok(Some(boot)) if matches!(boot.ended, Some((_, BootEnd::Clean))))
}
