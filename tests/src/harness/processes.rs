//! Processes of a daemon, seen from outside through `/proc`.

use std::fs;

use super::wait::until;

/// The live children of a process.
#[must_use]
pub fn children(parent: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| stat(*pid).is_some_and(|(state, of)| of == parent && state != 'Z'))
        .collect()
}

/// The worker processes of a daemon.
#[must_use]
pub fn workers(daemon: u32) -> Vec<u32> {
    children(daemon)
        .into_iter()
        .filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).nth(1) == Some(b"worker")
        })
        .collect()
}

/// Whether a process runs; one that ended and was not waited for doesn't.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, _)| state != 'Z' && state != 'X')
}

/// Kills a process that is not our child with SIGKILL, and waits until it is gone.
///
/// # Panics
/// When it doesn't go.
pub fn kill_process(pid: u32) {
    signal(pid, libc::SIGKILL);
    until("a killed process is gone", || !is_alive(pid));
}

/// Sends a signal; a process that is gone already gets none.
pub fn signal(pid: u32, signal: i32) {
    let Ok(pid) = i32::try_from(pid) else { return };
    // SAFETY: kill has no memory effects; the process is one that a test started.
    unsafe { libc::kill(pid, signal) };
}

/// State and parent.
fn stat(pid: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so the fields are counted from its end.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}
