//! What the tests of the command line share.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{Daemon, Ran, run_in};
use tempfile::TempDir;

/// A directory in which commands run.
pub struct Desk {
    directory: TempDir,
}

impl Desk {
    pub fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs a command of the binary here; the words of `line` are its arguments.
    pub fn run(&self, line: &str) -> Ran {
        run_in(self.path(), line.split_whitespace())
    }

    /// Runs a command against a daemon.
    pub fn ask(&self, daemon: &Daemon, line: &str) -> Ran {
        let arguments: Vec<OsString> = line
            .split_whitespace()
            .map(OsString::from)
            .chain(["--server".into(), daemon.url().into()])
            .collect();
        run_in(self.path(), arguments)
    }

    pub fn read(&self, file: &str) -> Vec<u8> {
        fs::read(self.path().join(file)).unwrap()
    }

    pub fn write(&self, file: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path().join(file);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Puts files of a fixture here, unpacked, under their own names.
    pub fn take(&self, fixture: &str, files: &[&str]) {
        for file in files {
            self.write(file, &fixtures::read(fixture, file));
        }
    }
}
