//! The supervisor: one worker process for each device, started, watched, and started again.
//!
//! The process is the unit of failure. Its reader (`hear`) ends in the store what it had; nothing here remembers an
//! attempt that the store doesn't know. Words to a process are sent only after what they say is durable.

pub mod death;
mod hear;
pub mod held;
mod process;
pub mod starts;
pub mod words;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use proofkeep_store::ids::{BootNumber, ProcessId, Token};
use proofkeep_store::machine::{Command, Reply};
use proofkeep_store::records::{Failure, FailureClass};
use proofkeep_store::vital;

pub use death::EXIT_OUT_OF_MEMORY;
pub use held::Patience;

use held::{Overdue, WindDown};
pub(crate) use process::{Process, Spawner};
use starts::{Orphans, Starts, is_dumb};

use crate::budget::OomCounter;
use crate::protocol::ToWorker;
use crate::shared::Core;

/// A device, as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Its name, such as `cpu:0`.
    pub name: String,
    /// Partitions that may hold it at once.
    pub slots: u32,
    /// Threads of the processor that it may use.
    pub threads: u32,
}

/// What every worker process is welcomed with, threads excepted.
#[derive(Clone, Debug)]
pub(crate) struct Greeting {
    pub data: PathBuf,
    pub boot: BootNumber,
    pub checkpoint_after: Duration,
    pub wasm_memory_bytes: u64,
    pub wasm_fuel: u64,
    /// Variables that its environment has besides ours.
    pub environment: Vec<(OsString, OsString)>,
}

struct Run {
    config: DeviceConfig,
    starts: Starts,
    live: Option<(Arc<Process>, JoinHandle<()>)>,
}

/// All devices with their processes.
pub(crate) struct Fleet {
    core: Arc<Core>,
    greeting: Greeting,
    patience: Patience,
    spawner: Spawner,
    counter: OomCounter,
    runs: Vec<Run>,
    orphans: Orphans,
}

impl Fleet {
    pub fn new(
        core: Arc<Core>,
        devices: &[DeviceConfig],
        greeting: Greeting,
        patience: Patience,
    ) -> io::Result<Self> {
        let run = |config: &DeviceConfig| Run {
            config: config.clone(),
            starts: Starts::default(),
            live: None,
        };
        Ok(Self {
            core,
            greeting,
            patience,
            spawner: Spawner::start()?,
            counter: OomCounter::find(),
            runs: devices.iter().map(run).collect(),
            orphans: Orphans::default(),
        })
    }

    /// Processes that were started and aren't gone.
    pub fn processes(&self) -> impl Iterator<Item = &Arc<Process>> {
        self.runs
            .iter()
            .filter_map(|run| run.live.as_ref())
            .map(|(process, _)| process)
    }

    /// The process of that name.
    pub fn process(&self, id: ProcessId) -> Option<&Arc<Process>> {
        self.processes().find(|process| process.id == id)
    }

    /// Those that said hello.
    pub fn up(&self) -> BTreeSet<ProcessId> {
        self.processes()
            .filter(|process| process.is_up())
            .map(|process| process.id)
            .collect()
    }

    /// Leases that were asked to stop.
    pub fn asked(&self) -> BTreeSet<Token> {
        self.processes()
            .flat_map(|process| process.held.lock().asked().collect::<Vec<_>>())
            .collect()
    }

    /// Starts what is to be started and looks after what runs. Returns when it wants to be called again at the latest.
    pub async fn tend(&mut self, stopping: bool) {
        let now = Instant::now();
        for index in 0..self.runs.len() {
            self.bury(index, now);
            let run = &self.runs[index];
            if run.live.is_none() && !stopping && run.starts.is_due(now) {
                self.start(index).await;
            }
        }
        for process in self.processes() {
            self.watch(process, now);
        }
    }

    /// Takes away a process that is gone and sets the time of the next start.
    fn bury(&mut self, index: usize, now: Instant) {
        let run = &mut self.runs[index];
        let Some((process, thread)) = run
            .live
            .take_if(|(process, _)| process.gone.load(Ordering::Acquire))
        else {
            return;
        };
        // It has said that it is gone, so it ends at once; a panic in it was caught there.
        let _ = thread.join();
        let had_work = process.held.lock().had_work();
        if let Some(wait) = run.starts.gone(had_work, process.since, now) {
            tracing::warn!(
                device = process.device,
                "worker processes end before anything is given to them; the next start is put off by {} s",
                wait.as_secs()
            );
        }
    }

    async fn start(&mut self, index: usize) {
        let device = self.runs[index].config.name.clone();
        let id = match self
            .core
            .handle
            .commit(Command::ProcessStart {
                device: device.clone(),
            })
            .await
        {
            Ok(committed) => match committed.reply {
                Reply::Process(id) => id,
                _ => return,
            },
            Err(error) => {
                tracing::error!(device, "a worker process can't be started: {error}");
                self.runs[index].starts.refused(Instant::now());
                return;
            }
        };
        let run = &mut self.runs[index];
        match Self::launch(
            &self.core,
            &self.spawner,
            &self.greeting,
            &self.counter,
            id,
            &run.config,
        ) {
            Ok(live) => {
                tracing::debug!(process = %id, device, "worker process started");
                run.live = Some(live);
            }
            Err(error) => {
                tracing::error!(device, "a worker process can't be started: {error}");
                run.starts.failed(Instant::now());
                let failure = Failure::new(
                    FailureClass::Interrupted,
                    format!("it could not be started: {error}"),
                );
                let lost = Command::ProcessLost {
                    process: id,
                    failure,
                    culprit: None,
                    own_fault: false,
                    process_peak_bytes: None,
                };
                if let Err(error) = self.core.handle.commit(lost).await {
                    tracing::error!(process = %id, "the end of a worker process was not stored: {error}");
                }
            }
        }
    }

    fn launch(
        core: &Arc<Core>,
        spawner: &Spawner,
        greeting: &Greeting,
        counter: &OomCounter,
        id: ProcessId,
        device: &DeviceConfig,
    ) -> io::Result<(Arc<Process>, JoinHandle<()>)> {
        let (data, environment) = (&greeting.data, &greeting.environment);
        let started = process::start(spawner, id, &device.name, data, environment)?;
        let process = Arc::clone(&started.process);
        let welcome = ToWorker::Welcome {
            objects: greeting.data.join("objects").to_string_lossy().into_owned(),
            scratch: greeting.data.join("tmp").to_string_lossy().into_owned(),
            boot: greeting.boot.0,
            threads: device.threads,
            checkpoint_after_ms: u64::try_from(greeting.checkpoint_after.as_millis()).unwrap_or(u64::MAX),
            wasm_memory_bytes: greeting.wasm_memory_bytes,
            wasm_fuel: greeting.wasm_fuel,
        };
        let (core, counter) = (Arc::clone(core), counter.clone());
        let name = format!("from {}", device.name);
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            // Without it the attempts of its process would never end.
            vital("the reader of a worker process", || {
                hear::run(&core, started, welcome, &counter);
            });
        })?;
        Ok((process, thread))
    }

    /// Notices silence, and acts on it.
    fn watch(&self, process: &Arc<Process>, now: Instant) {
        if process.gone.load(Ordering::Acquire) {
            return;
        }
        if is_dumb(process.is_up(), process.since, *process.closed.lock(), now) {
            tracing::warn!(process = %process.id, "a worker process that says nothing is killed");
            return process.kill_for_nonsense();
        }
        let overdue = process.held.lock().overdue(now, &self.patience);
        for overdue in overdue {
            match overdue {
                Overdue::Stop(token, failure) => process.ask_stop(token, &failure),
                Overdue::Kill(culprit) => {
                    tracing::warn!(process = %process.id, "a worker process that does not answer is killed");
                    process.kill(culprit);
                }
            }
        }
    }

    /// Compares what the store says is open with what the processes hold. A witness that nobody wants is dropped. An
    /// attempt that its live process doesn't know, seen so for a while, could never end: its process is killed.
    pub fn reconcile(&mut self, open: &[crate::schedule::OpenNow], stopping: bool) {
        let now = Instant::now();
        for process in self.processes() {
            let unwanted = process.held.lock().unwanted(open);
            for attempt in unwanted {
                self.drop_witness(process, attempt);
            }
        }
        let mut orphans = Vec::new();
        // A daemon that stops drops witnesses on purpose; their attempts end with the process.
        for open in open.iter().filter(|_| !stopping) {
            if let Some(process) = self.process(open.process).filter(|process| process.is_up())
                && !process.held.lock().knows(open)
            {
                orphans.push((process.id, open.attempt));
            }
        }
        for lost in self.orphans.see(orphans, now) {
            if let Some(process) = self.process(lost) {
                tracing::error!(process = %lost, "an attempt is open that its process doesn't have; it is killed");
                process.kill(None);
            }
        }
    }

    /// Tells a process to drop a witness, once.
    pub fn drop_witness(&self, process: &Process, attempt: proofkeep_store::records::AttemptRef) {
        if process.held.lock().drop_witness(attempt, Instant::now()) {
            let work = crate::protocol::Work::new(attempt.job, attempt.partition, attempt.number);
            process.say(ToWorker::Drop { work });
        }
    }

    /// Asks everything to stop, for the end of the daemon, and tells idle processes to quit. `true` when all are gone.
    pub fn wind_down(&self) -> bool {
        let failure = Failure::new(FailureClass::Shutdown, "the daemon was asked to stop");
        for process in self.processes() {
            let WindDown { stop, drop, idle } = process.held.lock().wind_down();
            for token in stop {
                process.ask_stop(token, &failure);
            }
            for attempt in drop {
                self.drop_witness(process, attempt);
            }
            if idle && !process.quitting.swap(true, Ordering::AcqRel) {
                // One that was never welcomed wouldn't understand, and has nothing.
                if process.is_up() {
                    process.say(ToWorker::Quit)
                } else {
                    process.kill(None)
                }
            }
        }
        self.processes()
            .all(|process| process.gone.load(Ordering::Acquire))
    }

    /// Kills what is left.
    pub fn kill_all(&self) {
        for process in self.processes() {
            process.kill(None);
        }
    }

    /// For a fleet that is dropped: waits for the readers of processes that were killed.
    pub fn join(&mut self) {
        for run in &mut self.runs {
            if let Some((_, thread)) = run.live.take() {
                let _ = thread.join();
            }
        }
    }
}
