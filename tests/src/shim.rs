//! The preload libraries of `crash/shim`: building them, and setting up a command that runs under
//! them. What each variable means stands at the top of the C files.
//!
//! They see what goes through libc, as all of `std::fs` does. Raw system calls pass them by:
//! `rustix` without its feature `use-libc`, and so `tempfile`'s `persist`.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The process of the daemon, or one of its workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The daemon: the first argument is not `worker`.
    Daemon,
    /// A worker: the first argument is `worker`.
    Worker,
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Self::Daemon => "daemon",
            Self::Worker => "worker",
        }
    }
}

/// When the kill comes: at the k-th operation, before or after it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// The operation does not happen.
    Before,
    /// It has happened.
    After,
}

/// A `kill -9` at the k-th durable operation (`killat.c`).
#[derive(Debug, Clone)]
pub struct Kill {
    /// Operations on paths under it count.
    pub dir: PathBuf,
    /// Which one kills, from 1; 0 only counts.
    pub at: u64,
    /// Before or after it.
    pub when: When,
    /// Only in such a process.
    pub role: Option<Role>,
    /// Which operations count; empty: all (`fsync`, `fdatasync`, `sync_file_range`, `rename`,
    /// `link`, `unlink`, `mkdir`).
    pub operations: Vec<&'static str>,
    /// Only paths that hold this text.
    pub matching: Option<String>,
    /// Gets a line for each operation; read it with [`counted`].
    pub count_file: Option<PathBuf>,
    /// Made by the kill; where it is there, no other kill comes.
    pub once_file: Option<PathBuf>,
}

impl Kill {
    /// Counts everything under a directory and kills nothing.
    pub fn counting(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            at: 0,
            when: When::Before,
            role: None,
            operations: Vec::new(),
            matching: None,
            count_file: None,
            once_file: None,
        }
    }
}

/// Operations that fail (`fault.c`).
#[derive(Debug, Clone)]
pub struct Fault {
    /// Operations on paths under it count.
    pub dir: PathBuf,
    /// Which kinds: `write`, `sync`, `rename`, `open`, `access`, `truncate`, `unlink`, `mkdir`, `link`.
    pub operations: Vec<&'static str>,
    /// The first that fails, from 1; 0 only counts.
    pub at: u64,
    /// How many fail from there; `None`: all.
    pub times: Option<u64>,
    /// `EIO`, `ENOSPC`, `EDQUOT`, `EROFS`, `EMFILE`.
    pub errno: &'static str,
    /// Each failure comes so many milliseconds late, as from a disk that tries for long before it gives up.
    pub late_ms: u64,
    /// The first failing write does half of its work and tells so.
    pub short: bool,
    /// Operations count and fail only while this file is there.
    pub arm_file: Option<PathBuf>,
    /// Nothing fails: an operation waits until the arm file is gone, and is done then.
    pub hang: bool,
    /// Only paths that hold this text.
    pub matching: Option<String>,
    /// Only in such a process.
    pub role: Option<Role>,
    /// Gets a line for each operation; read it with [`counted`].
    pub count_file: Option<PathBuf>,
    /// Gets the same line for each that fails.
    pub hit_file: Option<PathBuf>,
    /// Made by the first failure; where it is there, nothing more fails, in no process.
    pub once_file: Option<PathBuf>,
}

impl Fault {
    /// The k-th operation of one kind fails once, with `EIO`.
    pub fn once(dir: impl Into<PathBuf>, operation: &'static str, at: u64) -> Self {
        Self {
            dir: dir.into(),
            operations: vec![operation],
            at,
            times: Some(1),
            errno: "EIO",
            late_ms: 0,
            short: false,
            arm_file: None,
            hang: false,
            matching: None,
            role: None,
            count_file: None,
            hit_file: None,
            once_file: None,
        }
    }

    /// The database's syncs hang while `armed` is there.
    pub fn hanging_syncs(data: &Path, armed: PathBuf) -> Self {
        Self {
            arm_file: Some(armed),
            hang: true,
            matching: Some("/store.".to_owned()),
            role: Some(Role::Daemon),
            ..Self::once(data, "sync", 0)
        }
    }
}

/// A recording of all changes (`record.c`), read by [`crate::powercut`].
#[derive(Debug, Clone)]
pub struct Record {
    /// What is recorded; it must be there when the process starts.
    pub dir: PathBuf,
    /// The log, outside of it; runs append to it.
    pub log: PathBuf,
    /// Only in such a process.
    pub role: Option<Role>,
    /// A path whose writes are acknowledgements.
    pub ack_file: Option<PathBuf>,
    /// `fdatasync` does nothing and says that it has.
    pub lying: bool,
}

/// The libraries that a command runs under.
#[derive(Debug, Clone, Default)]
pub struct Shims {
    /// Kill at an operation.
    pub kill: Option<Kill>,
    /// Fail operations.
    pub fault: Option<Fault>,
    /// Record changes.
    pub record: Option<Record>,
    /// Clocks that jump when [`set_clock`] says so: the file that says by how much.
    pub clock: Option<PathBuf>,
}

/// Sets by how much the time of day is off, in seconds, for the processes that a file was given to, while they run; and
/// the clock that also counts while the machine sleeps, by how much that one is.
///
/// # Errors
/// When the file can't be written.
pub fn set_clock(file: &Path, wall: i64, boot_time: i64) -> io::Result<()> {
    use std::os::unix::fs::FileExt as _;
    let file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(file)?;
    // In place, since they have it mapped.
    file.write_all_at(&[wall.to_ne_bytes(), boot_time.to_ne_bytes()].concat(), 0)
}

impl Shims {
    /// Builds the libraries where needed and sets the command's environment. An operation meets
    /// the kill first, then the fault, then the recorder, so that only what is done is recorded.
    ///
    /// # Errors
    ///
    /// When there is no C compiler or a source doesn't compile.
    pub fn apply(&self, command: &mut Command) -> io::Result<()> {
        let mut preload = OsString::new();
        let mut add = |source: &str| -> io::Result<()> {
            if !preload.is_empty() {
                preload.push(":");
            }
            preload.push(build(source)?);
            Ok(())
        };
        if let Some(kill) = &self.kill {
            add("killat")?;
            command.env("PROOFKEEP_KILL_DIR", &kill.dir);
            command.env("PROOFKEEP_KILL_AT", kill.at.to_string());
            let when = if kill.when == When::After {
                "after"
            } else {
                "before"
            };
            command.env("PROOFKEEP_KILL_WHEN", when);
            command.env("PROOFKEEP_KILL_OPS", kill.operations.join(","));
            set(command, "PROOFKEEP_KILL_ROLE", kill.role.map(Role::word));
            set(command, "PROOFKEEP_KILL_MATCH", kill.matching.as_ref());
            set(command, "PROOFKEEP_KILL_COUNT_FILE", kill.count_file.as_ref());
            set(command, "PROOFKEEP_KILL_ONCE_FILE", kill.once_file.as_ref());
        }
        if let Some(fault) = &self.fault {
            add("fault")?;
            command.env("PROOFKEEP_FAULT_DIR", &fault.dir);
            command.env("PROOFKEEP_FAULT_OPS", fault.operations.join(","));
            command.env("PROOFKEEP_FAULT_AT", fault.at.to_string());
            command.env("PROOFKEEP_FAULT_TIMES", fault.times.unwrap_or(0).to_string());
            command.env("PROOFKEEP_FAULT_ERRNO", fault.errno);
            command.env("PROOFKEEP_FAULT_LATE_MS", fault.late_ms.to_string());
            command.env("PROOFKEEP_FAULT_SHORT", if fault.short { "1" } else { "0" });
            command.env("PROOFKEEP_FAULT_HANG", if fault.hang { "1" } else { "0" });
            set(command, "PROOFKEEP_FAULT_ROLE", fault.role.map(Role::word));
            set(command, "PROOFKEEP_FAULT_MATCH", fault.matching.as_ref());
            set(command, "PROOFKEEP_FAULT_ARM_FILE", fault.arm_file.as_ref());
            set(command, "PROOFKEEP_FAULT_COUNT_FILE", fault.count_file.as_ref());
            set(command, "PROOFKEEP_FAULT_HIT_FILE", fault.hit_file.as_ref());
            set(command, "PROOFKEEP_FAULT_ONCE_FILE", fault.once_file.as_ref());
        }
        if let Some(record) = &self.record {
            add("record")?;
            command.env("PROOFKEEP_RECORD_DIR", &record.dir);
            command.env("PROOFKEEP_RECORD_LOG", &record.log);
            set(command, "PROOFKEEP_RECORD_ROLE", record.role.map(Role::word));
            set(command, "PROOFKEEP_RECORD_ACK", record.ack_file.as_ref());
            set(command, "PROOFKEEP_RECORD_LYING", record.lying.then_some("1"));
        }
        if let Some(clock) = &self.clock {
            add("clock")?;
            command.env("PROOFKEEP_CLOCK_FILE", clock);
        }
        command.env("LD_PRELOAD", preload);
        Ok(())
    }
}

fn set(command: &mut Command, variable: &str, value: Option<impl AsRef<std::ffi::OsStr>>) {
    match value {
        Some(value) => command.env(variable, value),
        None => command.env_remove(variable),
    };
}

/// One operation in a count file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Its number in its process, from 1.
    pub number: u64,
    /// The process.
    pub pid: u32,
    /// What was done.
    pub operation: String,
    /// To which path.
    pub path: PathBuf,
}

/// Reads a count file; one that is not there counted nothing.
///
/// # Errors
///
/// When it can't be read or a line is not of the form.
pub fn counted(file: &Path) -> io::Result<Vec<Counted>> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    text.lines()
        .map(|line| {
            let mut words = line.splitn(4, ' ');
            let mut word = || words.next().unwrap_or_default();
            let (number, pid, operation, path) = (word(), word(), word(), word());
            Ok(Counted {
                number: number
                    .parse()
                    .map_err(|_| io::Error::other(format!("no count line: {line}")))?,
                pid: pid
                    .parse()
                    .map_err(|_| io::Error::other(format!("no count line: {line}")))?,
                operation: operation.to_owned(),
                path: PathBuf::from(path),
            })
        })
        .collect()
}

/// Builds a library or program of `crash/shim` next to the running test, once for each state of
/// its source; answers its path.
///
/// # Errors
///
/// When there is no C compiler or the source doesn't compile.
pub fn build(name: &str) -> io::Result<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("crash/shim");
    let source = sources.join(name).with_extension("c");
    let library = name != "script";
    let mut hasher = DefaultHasher::new();
    for file in [
        source.as_path(),
        &sources.join("common.h"),
        &sources.join("log.h"),
    ] {
        std::fs::read(file)?.hash(&mut hasher);
    }
    let suffix = if library { ".so" } else { "" };
    let test = std::env::current_exe()?;
    let target = test.with_file_name(format!("shim-{name}-{:016x}{suffix}", hasher.finish()));
    if target.exists() {
        return Ok(target);
    }
    // Another test may build the same: each under its own name, and the rename is atomic.
    let unfinished = tempfile::Builder::new()
        .prefix("shim-")
        .tempdir_in(test.parent().unwrap_or(Path::new(".")))?;
    let output = unfinished.path().join("out");
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1"]);
    if library {
        // A library's own calls stay its own, also behind another one.
        cc.args(["-fPIC", "-shared", "-Wl,-Bsymbolic"]);
    }
    let done = cc
        .arg("-o")
        .arg(&output)
        .arg(&source)
        .args(["-ldl", "-lpthread"])
        .output()?;
    if !done.status.success() {
        return Err(io::Error::other(format!(
            "cc {}: {}",
            source.display(),
            String::from_utf8_lossy(&done.stderr)
        )));
    }
    std::fs::rename(&output, &target)?;
    Ok(target)
}
