//! One worker process: how it is started, spoken to, and ended.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Instant;
use std::{fs, io};

use parking_lot::Mutex;
use proofkeep_store::ids::{Digest, ProcessId, Token};
use proofkeep_store::records::Failure;
use proofkeep_store::vital;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::held::Held;
use crate::protocol::{self, ToWorker};

/// A worker process that was started. Its reader thread ends it in the store when it is gone.
pub(crate) struct Process {
    pub id: ProcessId,
    pub device: String,
    /// Started at.
    pub since: Instant,
    /// It said hello and was welcomed.
    pub up: AtomicBool,
    /// It was told to quit.
    pub quitting: AtomicBool,
    /// It is gone, and the store knows.
    pub gone: AtomicBool,
    /// Nothing more comes from it; since when.
    pub closed: Mutex<Option<Instant>>,
    /// Its resident size and the most so far, as it last said.
    pub rss: AtomicU64,
    pub peak: AtomicU64,
    /// What it says of its device.
    pub description: Mutex<String>,
    pub held: Mutex<Held>,
    /// Keys that it was told to load: on their way, or why they didn't come.
    pub loads: Mutex<BTreeMap<Digest, Option<Failure>>>,
    /// We killed it; with the lease that was the reason and how its attempt ends.
    killed: Mutex<Option<Option<(Token, Failure)>>>,
    /// We killed it since nothing it says can be understood any more.
    pub nonsense: AtomicBool,
    handle: OwnedFd,
    out: mpsc::Sender<ToWorker>,
}

impl Process {
    /// Says something. A process that is gone hears nothing; its end is noticed by its reader.
    pub fn say(&self, word: ToWorker) {
        // The writer is gone only when the process is.
        let _ = self.out.send(word);
    }

    /// Asks for the end of the work under a lease, once.
    pub fn ask_stop(&self, token: Token, failure: &Failure) {
        if self.held.lock().ask(token, failure, Instant::now()) {
            tracing::debug!(process = %self.id, %token, class = %failure.class, "asked to stop");
            self.say(ToWorker::Stop {
                token: token.into(),
                class: failure.class.name().to_owned(),
            });
        }
    }

    /// Kills it. `culprit` names the lease that was the reason, and how its attempt ends.
    pub fn kill(&self, culprit: Option<(Token, Failure)>) {
        let mut killed = self.killed.lock();
        if killed.is_none() {
            *killed = Some(culprit);
        }
        drop(killed);
        // The handle names this process for ever, so no other one can be hit; if it is gone there is nothing to do.
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
    }

    /// Kills it since it is out of its mind: what it says can't be understood, or it hung up and lives on. That is a death
    /// by its own fault, as if it had aborted, or a partition that spoils its process so would be tried for ever. Where it
    /// holds nothing, as one that never said that it is there, nobody spoiled it: what is granted to it before it is gone
    /// isn't to blame.
    pub fn kill_for_nonsense(&self) {
        if self.killed().is_none() && !self.held.lock().is_empty() {
            self.nonsense.store(true, Ordering::Release);
        }
        self.kill(None);
    }

    /// Why we killed it, if we did.
    pub fn killed(&self) -> Option<Option<(Token, Failure)>> {
        self.killed.lock().clone()
    }

    pub fn is_up(&self) -> bool {
        self.up.load(Ordering::Acquire) && !self.gone.load(Ordering::Acquire)
    }
}

/// A thread that starts processes and lives as long as the daemon: the parent-death signal of a child follows the
/// thread that started it.
pub(crate) struct Spawner {
    requests: mpsc::Sender<(Command, mpsc::Sender<io::Result<Child>>)>,
}

impl Spawner {
    pub fn start() -> io::Result<Self> {
        let (requests, received) = mpsc::channel::<(Command, mpsc::Sender<io::Result<Child>>)>();
        std::thread::Builder::new()
            .name("spawner".to_owned())
            .spawn(move || {
                // Its children die with it.
                vital("the thread that starts worker processes", || {
                    for (mut command, answer) in received {
                        // The command is dropped here, and with it our copy of the child's end of the socket.
                        let _ = answer.send(command.spawn());
                    }
                });
            })?;
        Ok(Self { requests })
    }

    fn spawn(&self, command: Command) -> io::Result<Child> {
        let (answer, answered) = mpsc::channel();
        let gone = |_| io::Error::other("the thread that starts processes is gone");
        self.requests.send((command, answer)).map_err(|_| gone(()))?;
        answered.recv().map_err(|_| gone(()))?
    }
}

/// What a started process is watched with.
pub(crate) struct Started {
    pub process: std::sync::Arc<Process>,
    pub child: OwnedChild,
    pub words: UnixStream,
}

/// A child that never outlives its handle: where nobody came to wait for it, it is killed and waited for.
pub(crate) struct OwnedChild(Child);

impl OwnedChild {
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.0.wait()
    }
}

impl Drop for OwnedChild {
    fn drop(&mut self) {
        // Of one that was waited for, both do nothing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Our end of a socket on its way out: however its thread ends, the other threads see the end.
struct HangUp(UnixStream);

impl Drop for HangUp {
    fn drop(&mut self) {
        // The process may be gone already.
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}

/// Starts the worker process `id` for `device`, on this same program.
pub(crate) fn start(
    spawner: &Spawner,
    id: ProcessId,
    device: &str,
    data: &Path,
    environment: &[(OsString, OsString)],
) -> io::Result<Started> {
    let (ours, theirs) = UnixStream::pair()?;
    // The socket is the child's standard input: the one descriptor that a child gets without a moment in which another
    // child could get it too.
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["worker", "--device", device, "--fd", "0", "--data"])
        .arg(fs::canonicalize(data)?)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null());
    let child = OwnedChild(spawner.spawn(command)?);
    let handle = open_handle(&child.0)?;
    let (out, words_out) = mpsc::channel();
    let writer = HangUp(ours.try_clone()?);
    std::thread::Builder::new()
        .name(format!("to {device}"))
        .spawn(move || {
            let HangUp(stream) = &writer;
            for word in words_out {
                let mut to = stream;
                if protocol::write(&mut to, &word).is_err() || to.flush().is_err() {
                    // Its reader sees the end, and the process is ended if it isn't gone by itself.
                    return;
                }
            }
        })?;
    let process = Process {
        id,
        device: device.to_owned(),
        since: Instant::now(),
        up: AtomicBool::new(false),
        quitting: AtomicBool::new(false),
        gone: AtomicBool::new(false),
        closed: Mutex::default(),
        rss: AtomicU64::new(0),
        peak: AtomicU64::new(0),
        description: Mutex::default(),
        held: Mutex::default(),
        loads: Mutex::default(),
        killed: Mutex::default(),
        nonsense: AtomicBool::new(false),
        handle,
        out,
    };
    Ok(Started {
        process: std::sync::Arc::new(process),
        child,
        words: ours,
    })
}

fn open_handle(child: &Child) -> io::Result<OwnedFd> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("the system gave no process id"))?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}
