//! Doing what the script says, in the worker process.

use std::fs::{self, OpenOptions};
use std::hint::black_box;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proofkeep_engine::kinds::Watch;
use proofkeep_store::records::{Failure, FailureClass};

use crate::script::{Crash, Script};

/// One stage of one partition.
pub(crate) struct Act<'a> {
    pub marks: Option<&'a Path>,
    pub partition: u32,
    pub script: &'a Script,
    pub watch: &'a dyn Watch,
}

impl Act<'_> {
    /// A stage is reached and takes so long. `true` if its proof is to be spoilt.
    pub fn stage(&self, stage: &str, millis: u64) -> Result<bool, Failure> {
        self.mark(stage);
        let mut spoil = false;
        if let Some(gate) = self.script.gate.as_ref().filter(|gate| gate.stage == stage) {
            self.wait(|| Path::new(&gate.file).exists())?;
        }
        let crash = self.script.crash.as_ref();
        if let Some(crash) = crash.filter(|crash| crash.stage == stage)
            && self.once_more(&format!("crash-{stage}"), crash.times)
        {
            spoil = self.crash(crash)?;
        }
        if let Some(crash) = crash.filter(|crash| crash.stage == "turns" && self.is_its_turn(crash, stage)) {
            spoil |= self.crash(crash)?;
        }
        if let Some(fail) = self.script.fail.as_ref().filter(|fail| fail.stage == stage)
            && self.once_more(&format!("fail-{stage}"), fail.times)
        {
            let class = FailureClass::ALL
                .into_iter()
                .find(|class| class.name() == fail.class);
            let class = class.unwrap_or(FailureClass::DeviceError);
            return Err(Failure::new(
                class,
                format!("the script says that {stage} fails with {class}"),
            ));
        }
        let start = Instant::now();
        self.wait(|| start.elapsed() >= Duration::from_millis(millis))?;
        // Late, so that what the stage before made has been told.
        if let Some(crash) = crash.filter(|crash| crash.stage == "any")
            && self.once_more(&format!("crash-{stage}"), crash.times)
        {
            spoil |= self.crash(crash)?;
        }
        Ok(spoil)
    }

    fn wait(&self, over: impl Fn() -> bool) -> Result<(), Failure> {
        loop {
            if let Some(failure) = self.watch.stopped() {
                return Err(failure);
            }
            if over() {
                return Ok(());
            }
            self.watch.progress(500);
            pause(Duration::from_millis(2));
        }
    }

    fn crash(&self, crash: &Crash) -> Result<bool, Failure> {
        match crash.how.as_str() {
            "abort" => std::process::abort(),
            "exit" => std::process::exit(3),
            "segv" => signal(libc::SIGSEGV),
            "kill" => signal(libc::SIGKILL),
            "allocate" => allocate(),
            "overflow" => {
                let depth = overflow(0);
                panic!("the stack holds {depth} frames and more")
            }
            "panic" => panic!("the script says so"),
            "hang" => loop {
                pause(Duration::from_secs(3600));
            },
            "deaf" => loop {
                self.watch.progress(1);
                pause(Duration::from_millis(50));
            },
            "still" => loop {
                if let Some(failure) = self.watch.stopped() {
                    return Err(failure);
                }
                pause(Duration::from_millis(20));
            },
            "invalid_proof" => Ok(true),
            other => panic!("there is no crash {other:?}"),
        }
    }

    fn file(&self, name: &str) -> Option<PathBuf> {
        Some(self.marks?.join(format!("p{}-{name}", self.partition)))
    }

    /// One more byte in the file of that name.
    fn mark(&self, name: &str) {
        if let Some(file) = self.file(name) {
            let added = OpenOptions::new().create(true).append(true).open(file);
            // A test that counts marks finds out by itself.
            let _ = added.and_then(|mut file| file.write_all(b"."));
        }
    }

    /// This attempt breaks in this stage: each begins with `synth`, which is marked.
    fn is_its_turn(&self, crash: &Crash, stage: &str) -> bool {
        let begun = self
            .file("synth")
            .and_then(|file| fs::metadata(file).ok())
            .map_or(0, |meta| meta.len());
        let turn = usize::try_from(begun.saturating_sub(1)).unwrap_or(0) % crash.turns.len().max(1);
        crash.turns.get(turn).is_some_and(|of| of == stage)
    }

    /// Whether the misfortune of that name happens this time.
    fn once_more(&self, name: &str, times: Option<u64>) -> bool {
        let Some(times) = times else { return true };
        let before = self
            .file(name)
            .and_then(|file| fs::metadata(file).ok())
            .map_or(0, |meta| meta.len());
        let happens = before < times;
        if happens {
            self.mark(name);
        }
        happens
    }
}

fn pause(time: Duration) {
    // Nobody unparks this thread; a wake-up for no reason only makes a pause shorter.
    std::thread::park_timeout(time);
}

fn signal(number: i32) -> ! {
    loop {
        // SAFETY: sends a signal to this process; no memory is touched.
        unsafe { libc::raise(number) };
    }
}

/// Calls itself until the stack is used up.
fn overflow(depth: u64) -> u64 {
    let frame = black_box([depth; 512]);
    if frame[511] == u64::MAX {
        return depth;
    }
    overflow(depth + 1) + frame[0]
}

/// Asks for memory until there is none: of 256 MiB beyond what is mapped, so that the machine doesn't notice.
fn allocate() -> ! {
    let mapped = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = mapped
        .split(' ')
        .next()
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0);
    let limit = rustix::process::Rlimit {
        current: Some(pages * 4096 + (256 << 20)),
        maximum: None,
    };
    let limited = rustix::process::setrlimit(rustix::process::Resource::As, limit);
    assert!(limited.is_ok(), "the limit for the test could not be set");
    let mut hoard = Vec::new();
    loop {
        hoard.push(black_box(vec![1_u8; 8 << 20]));
    }
}
