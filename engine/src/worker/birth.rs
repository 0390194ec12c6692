//! The first acts of a worker process: die with the daemon, be the first to be killed for memory, hold the device.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal, setpgid};

use super::{EXIT_DEVICE, EXIT_PROTOCOL, EXIT_TAKEN, Fatal};

/// Where the lock of a device lies; the process that holds it writes its number there.
#[must_use]
pub fn lock_path(data: &Path, device: &str) -> PathBuf {
    data.join("run")
        .join(format!("{}.lock", device.replace(':', "-")))
}

/// Asks the kernel to kill this process when the daemon's thread that started it ends. `false` if that is over already:
/// whoever made the socket is not this process's parent any more.
pub(super) fn bind_to_parent(socket: &UnixStream) -> Result<bool, Fatal> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| {
        Fatal::new(
            EXIT_DEVICE,
            format!("the kernel refuses a parent-death signal: {error}"),
        )
    })?;
    let daemon = rustix::net::sockopt::socket_peercred(socket)
        .map_err(|error| {
            Fatal::new(
                EXIT_PROTOCOL,
                format!("standard input is no socket of the daemon: {error}"),
            )
        })?
        .pid;
    // A key on the terminal, or a service manager that signals every process, is the daemon's to answer: it stops the
    // work here at the next edge and keeps what is finished. A process that leads a group already can't leave it.
    let _ = setpgid(None, None);
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: ignoring a signal installs no handler of ours.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    // Not allowed in some containers; then the kernel chooses as for everybody.
    let _ = fs::write("/proc/self/oom_score_adj", "500");
    Ok(getppid() == Some(daemon))
}

/// Takes the device's lock for the life of this process.
pub(super) fn take_device(data: &Path, device: &str) -> Result<File, Fatal> {
    let path = lock_path(data, device);
    let failed = |error: std::io::Error| {
        Fatal::new(
            EXIT_DEVICE,
            format!("the lock {} can't be taken: {error}", path.display()),
        )
    };
    if let Some(directory) = path.parent() {
        fs::DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(directory)
            .map_err(failed)?;
    }
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600);
    let mut file = options.open(&path).map_err(failed)?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let mut holder = String::new();
        // Only for the message.
        let _ = file.read_to_string(&mut holder);
        let text = format!(
            "device {device} is held by another worker process (pid {})",
            holder.trim()
        );
        return Err(Fatal::new(EXIT_TAKEN, text));
    }
    file.set_len(0).map_err(failed)?;
    writeln!(file, "{}", getpid().as_raw_nonzero()).map_err(failed)?;
    Ok(file)
}
