//! What a boot does before it grants anything. It runs no proof code, and a crash during it changes nothing about its
//! result: each step is one command, or can be done again.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofkeep_store::ids::{Digest, JobNumber};
use proofkeep_store::keys::{self, Family};
use proofkeep_store::machine::Command;
use proofkeep_store::mend::Mended;
use proofkeep_store::records::{Failure, FailureClass, Job, JobState};
use proofkeep_store::view::{ReadError, Readable, View};
use proofkeep_store::{CommitError, ObjectError, OpenError, Store, query};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::shared::Core;

/// How long a worker process of an earlier boot may take to die.
const DEATH: Duration = Duration::from_secs(10);

/// Why a boot can't go on.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// A worker process of an earlier boot doesn't go away.
    #[error("process {pid} still works for an earlier daemon and holds {}; kill it, then start again", .lock.display())]
    WorkerStays {
        /// Its number, as it wrote it; `?` if it didn't.
        pid: String,
        /// The lock that it holds.
        lock: PathBuf,
    },
    /// The system refused something.
    #[error("{doing} {} failed: {source}; check the disk (dmesg, SMART) and the limits of the process, then start again", .path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The boot could not be stored.
    #[error("the boot could not be stored: {0}; start again, and report it if it comes back")]
    Commit(#[from] CommitError),
    /// The store can't be read.
    #[error("{0}; run `proofkeep fsck`")]
    Read(#[from] ReadError),
    /// An object, or what an upload left, can't be looked at or removed.
    #[error("{0}; check the disk (dmesg, SMART), then start again")]
    Object(#[from] ObjectError),
}

/// Where the lock of a device lies: held by its worker process as long as that lives, with its process number in it.
#[must_use]
pub fn device_lock(data: &Path, device: &str) -> PathBuf {
    data.join("run")
        .join(format!("{}.lock", device.replace(':', "-")))
}

/// Kills the worker processes of earlier boots. They end by themselves when their daemon is gone (their socket closes,
/// and there is a parent-death signal), but perhaps not at once, and two must never share a device.
pub(crate) fn kill_leftovers(data: &Path) -> Result<(), RecoverError> {
    let run = data.join("run");
    let failed = |doing: &'static str, path: &Path| {
        let path = path.to_path_buf();
        move |source| RecoverError::Io { doing, path, source }
    };
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&run)
        .map_err(failed("making", &run))?;
    for entry in fs::read_dir(&run).map_err(failed("reading", &run))? {
        let path = entry.map_err(failed("reading", &run))?.path();
        if path.extension().is_some_and(|extension| extension == "lock") {
            free(&path)?;
        }
    }
    Ok(())
}

fn free(lock: &Path) -> Result<(), RecoverError> {
    let failed = |source| RecoverError::Io {
        doing: "opening",
        path: lock.to_path_buf(),
        source,
    };
    let file = File::open(lock).map_err(failed)?;
    if file.try_lock().is_ok() {
        return Ok(());
    }
    let pid = fs::read_to_string(lock).unwrap_or_default().trim().to_owned();
    // Only whoever holds this lock may be killed, and only a program of ours; a number that was reused is neither.
    if let Some(handle) = pid
        .parse()
        .ok()
        .and_then(Pid::from_raw)
        .and_then(|pid| worker_of_ours(pid, lock))
    {
        tracing::warn!("killing worker process {pid} of an earlier boot");
        // If it is gone meanwhile there is nothing to do.
        let _ = pidfd_send_signal(&handle, Signal::KILL);
    }
    // The lock is given up when the process is gone, and that is all that can be waited for here.
    let (freed, waits) = std::sync::mpsc::channel();
    // A panic in it would end the wait as if the lock hadn't come.
    std::thread::Builder::new()
        .name("lock".to_owned())
        .spawn(move || {
            let _ = freed.send(file.lock().is_ok());
        })
        .map_err(failed)?;
    let deadline = Instant::now() + DEATH;
    match waits.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(true) => Ok(()),
        _ => Err(RecoverError::WorkerStays {
            pid: if pid.is_empty() { "?".to_owned() } else { pid },
            lock: lock.to_path_buf(),
        }),
    }
}

/// A handle on the process, if it is a worker that has this very lock file open.
fn worker_of_ours(pid: Pid, lock: &Path) -> Option<OwnedFd> {
    let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let proc = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
    let words = fs::read(proc.join("cmdline")).ok()?;
    let is_worker = words.split(|byte| *byte == 0).nth(1) == Some(b"worker".as_slice());
    let lock = fs::canonicalize(lock).ok()?;
    let holds = fs::read_dir(proc.join("fd"))
        .ok()?
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .any(|open| open == lock);
    (is_worker && holds).then_some(handle)
}

/// Looks at what is live before anything acts on it: what the journal says is put back, a job that can't be put back is
/// taken out of the queue. What was done is what the caller is to say.
///
/// # Errors
/// When a record is damaged that every job needs.
pub(crate) fn mend(store: &Store) -> Result<Mended, OpenError> {
    let start = Instant::now();
    let mended = store.mend_live()?;
    tracing::debug!("what is live was checked in {} ms", start.elapsed().as_millis());
    Ok(mended)
}

/// Notes what a look at the store came to, for the log and for who asks.
pub(crate) fn note(core: &Core, mended: &Mended) {
    let at = core.clock.now();
    for finding in &mended.mended {
        core.damage.mended(finding.to_string());
    }
    for finding in &mended.left {
        let key = hex::decode(&finding.key).unwrap_or_default();
        core.damage.record("start", &key, &finding.text, at);
    }
    for (job, why) in &mended.set_aside {
        core.damage.set_aside(*job, why);
    }
}

/// Opens the boot, then ends the jobs that lost a file, then removes what uploads left behind.
pub(crate) fn open_boot(
    core: &Arc<Core>,
    version: &str,
    devices: Vec<(String, u32)>,
) -> Result<(), RecoverError> {
    core.commit(Command::BootOpen {
        version: version.to_owned(),
        devices,
    })?;
    fail_without_inputs(core)?;
    core.objects.remove_abandoned()?;
    Ok(())
}

/// A job that isn't terminal and whose blob is gone can't be proved. Partitions that are proved already are kept for a
/// retry.
fn fail_without_inputs(core: &Core) -> Result<(), RecoverError> {
    let mut after = None;
    loop {
        let read = |view: &dyn View| query::active_jobs(&Readable::new(view), after, 64);
        let page = core.handle.read(read)?;
        for job in &page.jobs {
            let missing = missing_object(core, job.number)?;
            if let Some(command) = without_input(job, missing) {
                tracing::error!(job = %job.id, "a file that the job needs is gone");
                core.commit(command)?;
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(()),
        }
    }
}

/// What is to be done about a job that hasn't ended and lacks a file.
#[must_use]
pub fn without_input(job: &Job, missing: Option<Digest>) -> Option<Command> {
    let missing = missing.filter(|_| !matches!(job.state, JobState::Stopping(_)))?;
    let failure = Failure::coded(
        FailureClass::InputMissing,
        "blob-missing",
        format!("the file {missing} that the job needs is gone; upload it again and retry"),
    );
    Some(Command::FailJob {
        job: job.number,
        failure,
    })
}

fn missing_object(core: &Core, job: JobNumber) -> Result<Option<Digest>, RecoverError> {
    let prefix = keys::of_job(Family::Needs, job);
    let mut after: Option<Vec<u8>> = None;
    loop {
        let page = core
            .handle
            .read(|view| view.scan(&prefix, after.as_deref(), 256))?;
        for (key, _) in &page {
            if let Some((_, object)) = keys::parse_needs(key)
                && core.objects.stat(object)?.is_none()
            {
                return Ok(Some(object));
            }
        }
        match page.last() {
            Some((key, _)) if page.len() == 256 => after = Some(key.clone()),
            _ => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn a_lock_that_nobody_holds_is_no_worker() {
        let data = tempfile::tempdir().unwrap();
        let lock = device_lock(data.path(), "cpu:0");
        assert!(lock.ends_with("run/cpu-0.lock"));
        kill_leftovers(data.path()).unwrap();
        fs::write(&lock, "1\n").unwrap();
        kill_leftovers(data.path()).unwrap();
        // The number in the file is not killed for being there: this process holds no such lock.
        assert!(worker_of_ours(Pid::from_raw(std::process::id() as i32).unwrap(), &lock).is_none());
    }
}
