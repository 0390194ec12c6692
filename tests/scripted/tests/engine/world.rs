//! A data directory, an engine on it, and ways to wait for things themselves.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use proofkeep_engine::problem::Problem;
use proofkeep_engine::recover::device_lock;
use proofkeep_engine::request::Asker;
use proofkeep_engine::service::{Engine, EngineConfig, Submitted};
use proofkeep_engine::workers::{DeviceConfig, Patience};
use proofkeep_scripted::mark_count;
use proofkeep_store::fsck::{Mode, fsck};
use proofkeep_store::ids::JobNumber;
use proofkeep_store::query::{self, PartitionDetail};
use proofkeep_store::records::{Job, JobState, PartitionState};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use uuid::Uuid;

/// Nothing in here takes longer, also on a busy machine; only a failing test waits this long.
const LONG: Duration = Duration::from_secs(60);

pub struct World {
    pub dir: TempDir,
    pub config: EngineConfig,
    engine: Option<Engine>,
    pub runtime: Runtime,
}

fn config(data: &Path) -> EngineConfig {
    let mut config = EngineConfig::new(data, crate::kinds());
    config.devices = vec![DeviceConfig {
        name: "cpu:0".to_owned(),
        slots: 2,
        threads: 1,
    }];
    config.budget = Some(1 << 30);
    config.checkpoint_after = Duration::ZERO;
    config
}

impl World {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut EngineConfig)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("marks")).unwrap();
        let mut config = config(&dir.path().join("data"));
        change(&mut config);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let engine = Some(Engine::start(config.clone()).unwrap());
        Self {
            dir,
            config,
            engine,
            runtime,
        }
    }

    pub fn engine(&self) -> &Engine {
        self.engine.as_ref().unwrap()
    }

    pub fn marks(&self) -> PathBuf {
        self.dir.path().join("marks")
    }

    /// A path in the test's own directory.
    pub fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    pub fn open_gate(&self, name: &str) {
        fs::write(self.path(name), "").unwrap();
    }

    pub fn body(&self, inputs: &Value) -> Value {
        json!({"kind": "scripted", "marks": self.path("marks"), "inputs": inputs})
    }

    pub fn try_submit(&self, body: &Value, key: Option<&str>) -> Result<Submitted, Problem> {
        let asker = Asker {
            actor: "test".to_owned(),
            idempotency_key: key.map(str::to_owned),
        };
        self.runtime
            .block_on(self.engine().submit(body.to_string().into_bytes(), asker))
    }

    pub fn submit_body(&self, body: &Value) -> JobNumber {
        self.try_submit(body, None).unwrap().job
    }

    pub fn submit(&self, inputs: &Value) -> JobNumber {
        self.submit_body(&self.body(inputs))
    }

    pub fn job(&self, job: JobNumber) -> Job {
        self.engine()
            .store()
            .read(|view| query::job_by_number(view, job))
            .unwrap()
            .unwrap()
    }

    pub fn id(&self, job: JobNumber) -> Uuid {
        self.job(job).id
    }

    pub fn partition(&self, job: JobNumber, index: u32) -> PartitionDetail {
        self.engine()
            .store()
            .read(|view| query::partition(view, job, index, 100))
            .unwrap()
            .unwrap()
    }

    pub fn marked(&self, partition: u32, name: &str) -> u64 {
        mark_count(&self.marks(), partition, name)
    }

    /// Waits until `there` is true, looking at every change of the store and ten times a second.
    pub fn until(&self, what: &str, there: impl Fn() -> bool) {
        let start = Instant::now();
        let mut journal = self.engine().handle().durable();
        self.runtime.block_on(async {
            while !there() {
                assert!(start.elapsed() < LONG, "waited in vain for {what}");
                let _ = tokio::time::timeout(Duration::from_millis(100), journal.changed()).await;
            }
        });
    }

    pub fn until_marked(&self, partition: u32, name: &str, count: u64) {
        self.until(&format!("mark {name} of partition {partition}"), || {
            self.marked(partition, name) >= count
        });
    }

    /// Waits for the end of a job.
    pub fn ended(&self, job: JobNumber) -> JobState {
        self.until(&format!("the end of job {job}"), || {
            self.job(job).state.is_terminal()
        });
        self.job(job).state
    }

    pub fn succeeded(&self, job: JobNumber) {
        assert_eq!(self.ended(job), JobState::Succeeded, "{:?}", self.outcomes(job));
    }

    /// Every partition's attempts by outcome.
    pub fn outcomes(&self, job: JobNumber) -> Vec<Vec<String>> {
        (0..self.job(job).partitions)
            .map(|index| self.outcomes_of(job, index))
            .collect()
    }

    pub fn outcomes_of(&self, job: JobNumber, index: u32) -> Vec<String> {
        let attempts = self.partition(job, index).attempts;
        attempts
            .iter()
            .map(|attempt| {
                attempt
                    .outcome
                    .as_ref()
                    .map_or("open", |outcome| outcome.name())
                    .to_owned()
            })
            .collect()
    }

    pub fn state_of(&self, job: JobNumber, index: u32) -> PartitionState {
        self.partition(job, index).partition.state
    }

    /// Nothing is held any more, the books are empty and the store keeps its promises.
    pub fn quiet(&self) {
        self.until("the end of all tickets", || self.engine().memory().reserved == 0);
        let engine = self.engine();
        let leases = engine.store().read(query::leases).unwrap();
        assert!(leases.is_empty(), "{leases:?}");
        let report = engine.store().read(|view| fsck(view, Mode::Full, None)).unwrap();
        assert!(report.is_clean(), "{report:?}");
    }

    pub fn shutdown(&mut self) {
        let engine = self.engine.take().unwrap();
        self.runtime.block_on(engine.shutdown(Duration::from_secs(30)));
    }

    /// Ends the engine as a crash of the daemon would.
    pub fn abandon(&mut self) {
        drop(self.engine.take());
    }

    pub fn start(&mut self) {
        assert!(self.engine.is_none());
        self.engine = Some(Engine::start(self.config.clone()).unwrap());
    }

    /// The worker process of a device, as its lock says.
    pub fn worker_pid(&self, device: &str) -> i32 {
        let file = device_lock(&self.config.data_dir, device);
        fs::read_to_string(file).unwrap().trim().parse().unwrap()
    }

    pub fn signal_worker(&self, device: &str, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.worker_pid(device)).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Another process that is the daemon of this world's directory, with one job. The engine here must be gone.
    pub fn daemon(&self, body: &Value) -> Child {
        assert!(self.engine.is_none());
        let file = self.path("body.json");
        fs::write(&file, body.to_string()).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["daemon", self.config.data_dir.to_str().unwrap(), &file])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        heard(&mut child, b'+');
        child
    }
}

/// A daemon to kill: starts an engine, submits one job and says `+`; says `c` when three pieces of the job's last
/// partition are durable; works until its standard input closes.
pub fn daemon(args: &[String]) {
    let [data, body] = args else {
        panic!("daemon DATA BODY")
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let engine = Engine::start(config(Path::new(data))).unwrap();
    let asker = Asker {
        actor: "test".to_owned(),
        idempotency_key: Some("the-job".to_owned()),
    };
    let job = runtime
        .block_on(engine.submit(fs::read(body).unwrap(), asker))
        .unwrap()
        .job;
    say(b'+');
    let mut journal = engine.handle().durable();
    let saved = || {
        engine.store().read(|view| {
            let last = query::job_by_number(view, job).unwrap().unwrap().partitions - 1;
            query::checkpoint(view, job, last)
                .unwrap()
                .is_some_and(|kept| kept.pieces.len() == 3)
        })
    };
    while !saved() {
        runtime.block_on(journal.changed()).unwrap();
    }
    say(b'c');
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).unwrap();
    runtime.block_on(engine.shutdown(Duration::from_secs(30)));
}

fn say(word: u8) {
    let mut out = std::io::stdout();
    out.write_all(&[word]).unwrap();
    out.flush().unwrap();
}

/// Waits until the other daemon says `word`.
pub fn heard(daemon: &mut Child, word: u8) {
    let mut said = [0];
    daemon.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    assert_eq!(said, [word]);
}

/// Waits for a file without a store to watch; for another process's daemon.
pub fn until_there(what: &str, there: impl Fn() -> bool) {
    let start = Instant::now();
    while !there() {
        assert!(start.elapsed() < LONG, "waited in vain for {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

pub fn quick_patience() -> Patience {
    Patience {
        stalled: Duration::from_millis(1500),
        timeout: Duration::from_secs(3600),
        answer: Duration::from_millis(700),
    }
}
