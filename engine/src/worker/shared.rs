//! What all tasks of this process share, and what each word of the daemon starts.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

use proofkeep_store::ids::{BootNumber, Digest};
use proofkeep_store::records::{Failure, FailureClass};

use super::outbox::Outbox;
use super::panics::vital;
use super::tasks::{Task, Tasks};
use super::{EXIT_DEVICE, EXIT_DONE, EXIT_PROTOCOL, Fatal, import, load, memory, prove, synth};
use crate::device::{self, Device, Threads};
use crate::kinds::Kinds;
use crate::params::Keys;
use crate::protocol::{FromWorker, ToWorker, WireToken, Work};
use crate::shelf::Shelf;

/// Stack of a task's thread: large circuits are synthesized recursively.
const STACK: usize = 16 << 20;
/// How often memory is measured.
const MEASURE: Duration = Duration::from_secs(1);
/// A change of resident bytes that is told even when nothing runs.
const TELL: u64 = 1 << 20;

/// The process as its tasks see it.
pub(super) struct Worker {
    pub kinds: Kinds,
    pub outbox: Arc<Outbox>,
    pub tasks: Tasks,
    pub keys: Keys,
    pub shelf: Shelf,
    pub device: Arc<dyn Device>,
    pub threads: Threads,
    pub checkpoint_after_ms: u64,
    /// Memory in bytes and fuel of a circom calculator.
    pub wasm: (u64, u64),
}

impl Worker {
    /// Opens the device as `Welcome` says.
    pub fn start(
        device: &str,
        kinds: Kinds,
        outbox: Arc<Outbox>,
        welcome: ToWorker,
    ) -> Result<Arc<Self>, Fatal> {
        let ToWorker::Welcome {
            objects,
            scratch,
            boot,
            threads,
            checkpoint_after_ms,
            wasm_memory_bytes,
            wasm_fuel,
        } = welcome
        else {
            return Err(Fatal::new(
                EXIT_PROTOCOL,
                "the daemon's first word was not Welcome",
            ));
        };
        let opened = device::open(device, threads).and_then(|device| Ok((device, Threads::new(threads)?)));
        let (device, threads) = opened.map_err(|error| Fatal::new(EXIT_DEVICE, error.to_string()))?;
        let reports = Arc::clone(&outbox);
        let worker = Arc::new(Self {
            kinds,
            tasks: Tasks::new(Arc::clone(&outbox)),
            keys: Keys::new(move |circuit, bytes| {
                reports.say(FromWorker::Key {
                    circuit: circuit.0,
                    bytes,
                });
            }),
            outbox,
            shelf: Shelf {
                objects: PathBuf::from(objects),
                scratch: PathBuf::from(scratch),
                boot: BootNumber(boot),
            },
            device,
            threads,
            checkpoint_after_ms,
            wasm: (wasm_memory_bytes, wasm_fuel),
        });
        let measured = Arc::clone(&worker);
        Builder::new()
            .name("memory".to_owned())
            .spawn(move || vital(|| measured.measure()))
            .map_err(|error| Fatal::new(EXIT_DEVICE, format!("no thread could be started: {error}")))?;
        Ok(worker)
    }

    /// Does what a word asks, or starts it.
    pub fn hear(self: &Arc<Self>, word: ToWorker) -> Result<(), Fatal> {
        match word {
            ToWorker::Welcome { .. } => {
                return Err(Fatal::new(EXIT_PROTOCOL, "the daemon said Welcome twice"));
            }
            ToWorker::Synth {
                token,
                work,
                kind,
                circuit,
                request,
                ticket_bytes: _,
                recheck,
            } => {
                self.spawn("synth", token, Some(work), move |worker, task| {
                    synth::run(
                        worker,
                        task,
                        synth::Order {
                            token,
                            work,
                            kind,
                            circuit,
                            request,
                            recheck,
                        },
                    );
                });
            }
            ToWorker::Prove {
                token,
                work,
                witness,
                key,
                pieces,
            } => {
                self.spawn("prove", token, Some(work), move |worker, task| {
                    prove::run(
                        worker,
                        task,
                        prove::Order {
                            token,
                            work,
                            witness,
                            key,
                            pieces,
                        },
                    );
                });
            }
            ToWorker::Import { token, files, done } => {
                self.spawn("import", token, None, move |worker, task| {
                    import::run(worker, task, token, &files, done);
                });
            }
            ToWorker::Drop { work } => self.tasks.drop_work(work),
            ToWorker::Stop { token, class } => self.tasks.stop(token, stop_reason(&class)),
            ToWorker::Evict { circuit } => self.keys.evict(Digest(circuit)),
            ToWorker::Load {
                kind,
                key,
                name,
                file,
            } => self.load(load::Order {
                kind,
                key,
                name,
                file,
            }),
            ToWorker::Quit => self.quit(),
        }
        Ok(())
    }

    fn spawn(
        self: &Arc<Self>,
        name: &str,
        token: WireToken,
        work: Option<Work>,
        body: impl FnOnce(&Arc<Self>, &Arc<Task>) + Send + 'static,
    ) {
        let Some(task) = self.tasks.begin(token, work) else {
            tracing::warn!(
                grant = token.grant,
                "a lease that is in work was granted again; the word is ignored"
            );
            return;
        };
        let worker = Arc::clone(self);
        let spawned = Builder::new()
            .name(name.to_owned())
            .stack_size(STACK)
            .spawn(move || {
                vital(|| {
                    task.begin();
                    body(&worker, &task);
                });
            });
        if let Err(error) = spawned {
            let failure = Failure::coded(
                FailureClass::DeviceError,
                "no-thread",
                format!("the system gave no thread for the work: {error}"),
            );
            self.tasks.end(token, Some(self.failed(token, &failure)));
        }
    }

    fn load(self: &Arc<Self>, order: load::Order) {
        let (worker, key) = (Arc::clone(self), order.key);
        let spawned = Builder::new()
            .name("load".to_owned())
            .stack_size(STACK)
            .spawn(move || vital(|| load::run(&worker, &order)));
        if let Err(error) = spawned {
            let detail = format!("the system gave no thread for the work: {error}");
            let failure = Failure::coded(FailureClass::DeviceError, "no-thread", detail);
            self.outbox.say(FromWorker::Loaded {
                key,
                failure: Some((&failure).into()),
            });
        }
    }

    /// The word for work that ended without success.
    pub fn failed(&self, token: WireToken, failure: &Failure) -> FromWorker {
        FromWorker::Failed {
            token,
            failure: failure.into(),
            peak_bytes: memory::peak(),
        }
    }

    /// Ends the process when nothing runs any more.
    fn quit(self: &Arc<Self>) {
        let worker = Arc::clone(self);
        let waiting = Builder::new().name("quit".to_owned()).spawn(move || {
            vital(|| {
                worker.tasks.wait_idle();
                super::exit(&worker.outbox, EXIT_DONE);
            });
        });
        if waiting.is_err() {
            self.tasks.wait_idle();
            super::exit(&self.outbox, EXIT_DONE);
        }
    }

    fn measure(&self) {
        let mut told = 0u64;
        loop {
            std::thread::park_timeout(MEASURE);
            let Some((bytes, peak_bytes)) = memory::resident() else {
                return;
            };
            if self.tasks.is_busy() || bytes.abs_diff(told) >= TELL {
                told = bytes;
                self.outbox.say(FromWorker::Rss { bytes, peak_bytes });
            }
        }
    }
}

fn stop_reason(class: &str) -> Failure {
    match class {
        "preempted" => Failure::new(FailureClass::Preempted, "a more urgent partition took the device"),
        "shutdown" => Failure::new(FailureClass::Shutdown, "the daemon is stopping"),
        "timed_out" => Failure::new(FailureClass::TimedOut, "it took longer than allowed"),
        _ => Failure::new(FailureClass::Cancelled, "the job was stopped"),
    }
}
