//! How a daemon is started.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};

use super::daemon::Daemon;
use super::wait::PATIENCE;
use crate::shim::Shims;

/// A daemon that is about to be started.
#[derive(Clone, Debug)]
pub struct Launch {
    binary: PathBuf,
    data: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    shims: Shims,
}

/// It ended before it listened.
#[derive(Debug)]
pub struct NotStarted {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote on stderr.
    pub stderr: String,
}

impl Launch {
    /// The released binary on a data directory, on a port that the system picks unless the arguments name one.
    #[must_use]
    pub fn new(data: &Path) -> Self {
        Self::of(super::binary(), data)
    }

    /// The test build with the scripted kind.
    #[must_use]
    pub fn test_build(data: &Path) -> Self {
        Self::of(super::test_binary(), data)
    }

    fn of(binary: PathBuf, data: &Path) -> Self {
        Self {
            binary,
            data: data.to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
            shims: Shims::default(),
        }
    }

    /// With more arguments for `serve`.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.arguments
            .extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// With a variable in its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Under preload libraries.
    #[must_use]
    pub fn shims(mut self, shims: Shims) -> Self {
        self.shims = shims;
        self
    }

    /// Starts it and waits until it is ready.
    ///
    /// # Panics
    /// When it ends instead, with what it wrote on stderr.
    #[must_use]
    pub fn start(self) -> Daemon {
        match self.try_start() {
            Ok(daemon) => daemon.ready(),
            Err(failed) => panic!("the daemon did not start ({}):\n{}", failed.status, failed.stderr),
        }
    }

    /// Starts it and waits until it listens; it may still be recovering.
    ///
    /// # Errors
    /// When it ends before it listens.
    ///
    /// # Panics
    /// When it can't be started at all, or says nothing.
    pub fn try_start(self) -> Result<Daemon, NotStarted> {
        let mut command = Command::new(&self.binary);
        command.arg("serve").arg("--data-dir").arg(&self.data);
        if !self.arguments.iter().any(|argument| argument == "--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command.args(&self.arguments);
        // What the machine of a developer has set must not change a test.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PROOFKEEP_") {
                command.env_remove(name);
            }
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        self.shims
            .apply(&mut command)
            .unwrap_or_else(|error| panic!("the preload libraries: {error}"));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", self.binary.display()));
        watch(child)
    }
}

fn watch(mut child: Child) -> Result<Daemon, NotStarted> {
    let stderr = Arc::new(Mutex::new(String::new()));
    let mut threads = Vec::new();
    if let Some(mut pipe) = child.stderr.take() {
        let stderr = Arc::clone(&stderr);
        threads.push(std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                lock(&stderr).push_str(&String::from_utf8_lossy(&buffer[..length]));
            }
        }));
    }
    let (send, receive) = channel();
    if let Some(pipe) = child.stdout.take() {
        threads.push(std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                if let Some(url) = line.strip_prefix("listening on ") {
                    // Nobody listens any more once the address is known.
                    let _ = send.send(url.trim().to_owned());
                }
            }
        }));
    }
    match receive.recv_timeout(PATIENCE) {
        Ok(url) => Ok(Daemon::new(child, url, stderr, threads)),
        Err(RecvTimeoutError::Disconnected) => {
            let status = child
                .wait()
                .unwrap_or_else(|error| panic!("waiting for the daemon: {error}"));
            threads.into_iter().for_each(|thread| drop(thread.join()));
            let stderr = lock(&stderr).clone();
            Err(NotStarted { status, stderr })
        }
        Err(RecvTimeoutError::Timeout) => {
            let _ = child.kill();
            panic!("the daemon says no address:\n{}", lock(&stderr));
        }
    }
}

pub(super) fn lock(text: &Mutex<String>) -> std::sync::MutexGuard<'_, String> {
    text.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
