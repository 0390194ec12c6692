//! A running daemon.

use std::ops::Deref;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::http::Http;
use super::launch::{Launch, lock};
use super::processes::{signal, workers};
use super::wait::{until, until_some};

/// A running daemon; dropping it kills it. It can be asked like an [`Http`].
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    http: Http,
    url: String,
    stderr: Arc<Mutex<String>>,
    threads: Vec<JoinHandle<()>>,
}

impl Daemon {
    /// Starts the released binary on a data directory with more arguments for `serve`, and waits until it is ready.
    ///
    /// # Panics
    /// When it doesn't start. See [`Launch`] for other ways.
    #[must_use]
    pub fn start(data: &Path, arguments: &[&str]) -> Self {
        Launch::new(data).args(arguments).start()
    }

    pub(super) fn new(
        child: Child,
        url: String,
        stderr: Arc<Mutex<String>>,
        threads: Vec<JoinHandle<()>>,
    ) -> Self {
        Self {
            child,
            http: Http::new(&url),
            url,
            stderr,
            threads,
        }
    }

    /// Waits until it is ready.
    ///
    /// # Panics
    /// When it ends instead, with what it wrote on stderr.
    #[must_use]
    pub fn ready(mut self) -> Self {
        until("the daemon is ready", || {
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!("the daemon ended while it started ({status}):\n{}", self.stderr());
            }
            self.http
                .try_send("GET", "/readyz", &[], None)
                .is_some_and(|answer| answer.status == 200)
        });
        self
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A client of it that can be given to another thread.
    #[must_use]
    pub fn http(&self) -> Http {
        self.http.clone()
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its worker processes.
    #[must_use]
    pub fn workers(&self) -> Vec<u32> {
        workers(self.pid())
    }

    /// What it wrote on stderr so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        lock(&self.stderr).clone()
    }

    /// `kill -9`, and waits until it and its worker processes are gone. Answers what it wrote on stderr.
    ///
    /// # Panics
    /// When they don't go.
    pub fn kill(mut self) -> String {
        self.kill_now()
    }

    /// Sends SIGTERM or another signal and goes on.
    pub fn signal(&self, number: i32) {
        signal(self.pid(), number);
    }

    /// SIGTERM, and waits until it has ended.
    ///
    /// # Panics
    /// When it doesn't end.
    pub fn terminate(self) -> ExitStatus {
        self.signal(libc::SIGTERM);
        self.wait()
    }

    /// Waits until it has ended by itself.
    ///
    /// # Panics
    /// When it doesn't end.
    pub fn wait(mut self) -> ExitStatus {
        until_some("the daemon ends", || self.child.try_wait().ok().flatten())
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    fn kill_now(&mut self) -> String {
        let workers = self.workers();
        let _ = self.child.kill();
        let _ = self.child.wait();
        until("the worker processes of a killed daemon are gone", || {
            workers.iter().all(|pid| !super::is_alive(*pid))
        });
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        self.stderr()
    }
}

impl Deref for Daemon {
    type Target = Http;

    fn deref(&self) -> &Http {
        &self.http
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.kill_now();
            return;
        }
        // A failed test shows what the daemon had to say.
        let _ = self.child.kill();
        let _ = self.child.wait();
        eprintln!("--- the daemon's stderr\n{}---", self.stderr());
    }
}
