//! The daemon as a child process of the demo: the same executable, told to `serve`.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::cli::exit::CliError;
use crate::client::{Client, ClientError, pause};

/// A daemon that this process started.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    /// A client of it.
    pub client: Client,
}

/// What the daemon is told beside where its data are: save every piece of a proof.
pub const FLAGS: [&str; 4] = ["--listen", "127.0.0.1:0", "--checkpoint-after", "0"];

impl Daemon {
    /// Starts one on a data directory below `home`, and waits until it is ready. It writes to `home/daemon.log`.
    ///
    /// # Errors
    /// When it doesn't start, with where to read why.
    pub fn start(home: &Path) -> Result<Self, CliError> {
        let log = home.join("daemon.log");
        let failed = |error: &dyn std::fmt::Display| {
            CliError::failed(
                "daemon",
                format!("the daemon did not start: {error}; see {}", log.display()),
            )
        };
        let executable = std::env::current_exe().map_err(|error| failed(&error))?;
        let mut command = Command::new(executable);
        command
            .arg("serve")
            .args(FLAGS)
            .arg("--data-dir")
            .arg(home.join("data"))
            .current_dir(home);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PROOFKEEP_") {
                command.env_remove(name);
            }
        }
        let file = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .map_err(|error| failed(&error))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file);
        // SAFETY: prctl is async-signal-safe, and nothing else runs between fork and exec.
        unsafe { command.pre_exec(end_with_parent) };
        let mut child = command.spawn().map_err(|error| failed(&error))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout)
                .read_line(&mut line)
                .map_err(|error| failed(&error))?;
        }
        let Some(url) = line.trim().strip_prefix("listening on ") else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed(&"it said no address"));
        };
        let mut daemon = Self {
            client: Client::new(url)?,
            child,
        };
        daemon.until_ready(&failed)?;
        Ok(daemon)
    }

    fn until_ready(&mut self, failed: &dyn Fn(&dyn std::fmt::Display) -> CliError) -> Result<(), CliError> {
        loop {
            match self.client.get_bytes("/readyz") {
                Ok(_) => return Ok(()),
                Err(ClientError::Problem { status: 503, .. }) => pause(std::time::Duration::from_millis(20)),
                Err(error) => return Err(failed(&error)),
            }
        }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`: it can't do anything about that. Its worker processes end with it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn kill(mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    /// Asks it to end, and waits for that.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn stop(mut self) -> io::Result<ExitStatus> {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            // SAFETY: kill has no memory effects, and the process is our child, not waited for yet.
            unsafe { libc::kill(pid, libc::SIGTERM) };
        }
        self.child.wait()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // After `kill` or `stop` there is nothing left to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The daemon of a demo that is gone is of no use to anybody.
fn end_with_parent() -> io::Result<()> {
    // SAFETY: PR_SET_PDEATHSIG takes a signal number and changes this process only.
    match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
