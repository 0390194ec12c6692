//! Commands of the binary that run to their end.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// How a command ended.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The exit code; -1 if a signal ended it.
    pub code: i32,
    /// What it wrote on stdout.
    pub stdout: String,
    /// What it wrote on stderr.
    pub stderr: String,
}

impl Ran {
    /// The same, if it ended with that code.
    ///
    /// # Panics
    /// If it didn't, with what it wrote.
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "stdout:\n{}\nstderr:\n{}",
            self.stdout, self.stderr
        );
        self
    }

    /// Stdout as JSON.
    ///
    /// # Panics
    /// When it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not JSON ({error}):\n{}", self.stdout))
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A command of the released binary, without the `PROOFKEEP_*` variables of this environment.
#[must_use]
pub fn command(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(super::binary());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PROOFKEEP_") {
            command.env_remove(name);
        }
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs a command of the released binary in a directory.
///
/// # Panics
/// When it can't be started.
pub fn run_in(directory: &Path, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
    finish(command(arguments).current_dir(directory))
}

/// Runs a command of the released binary here.
///
/// # Panics
/// When it can't be started.
pub fn proofkeep(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
    finish(&mut command(arguments))
}

/// Runs any command to its end.
///
/// # Panics
/// When it can't be started.
pub fn run(command: &mut Command) -> Ran {
    finish(command)
}

fn finish(command: &mut Command) -> Ran {
    match command.output() {
        Ok(output) => output.into(),
        Err(error) => panic!("{command:?}: {error}"),
    }
}
