//! Why a job with work to do does none.

use crate::ids::Millis;
use crate::keys::{self, Family};
use crate::records::{Circuit, CircuitState, Device, DeviceState, Job, Partition, Queue};
use crate::view::{self, ReadError, View};

/// Why a job waits. That memory is short is known to the scheduler alone; it comes after these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// Its circuit is still being imported.
    CircuitImporting,
    /// An operator paused the queue.
    Paused,
    /// Every device is suspended.
    DeviceSuspended,
    /// All that is left backs off after a failure, the first of it until then.
    BackingOff(Millis),
}

impl WaitReason {
    /// The name in answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CircuitImporting => "circuit-importing",
            Self::Paused => "paused",
            Self::DeviceSuspended => "device-suspended",
            Self::BackingOff(_) => "backing-off",
        }
    }
}

/// What the store says about why `job` waits; `None` when it has an attempt open (`running` > 0), is past proving, or
/// simply has to wait its turn.
///
/// # Errors
/// When the store can't be read.
pub fn wait_reason(
    view: &dyn View,
    job: &Job,
    running: u32,
    queue: Queue,
    devices: &[Device],
) -> Result<Option<WaitReason>, ReadError> {
    if running > 0 || !job.state.grants() {
        return Ok(None);
    }
    if let Some(digest) = job.circuit
        && let Some(circuit) = view::record::<Circuit>(view, &keys::circuit(digest))?
        && matches!(circuit.state, CircuitState::Importing(_))
    {
        return Ok(Some(WaitReason::CircuitImporting));
    }
    if queue.paused || queue.draining {
        return Ok(Some(WaitReason::Paused));
    }
    if !devices.is_empty()
        && devices
            .iter()
            .all(|device| matches!(device.state, DeviceState::Suspended { .. }))
    {
        return Ok(Some(WaitReason::DeviceSuspended));
    }
    let any_ready = !view.scan(&ready_of_job(job), None, 1)?.is_empty();
    if any_ready {
        Ok(None)
    } else {
        first_wake(view, job)
    }
}

/// The prefix of the job's entries in the ready index.
pub(super) fn ready_of_job(job: &Job) -> keys::Key {
    let mut prefix = keys::ready(job.priority, job.number, 0);
    prefix.truncate(prefix.len() - size_of::<u32>());
    prefix
}

/// When the first of the job's waiting partitions wakes.
fn first_wake(view: &dyn View, job: &Job) -> Result<Option<WaitReason>, ReadError> {
    let partitions: Vec<Partition> = view::records(view, &keys::of_job(Family::Partition, job.number))?;
    Ok(partitions
        .iter()
        .filter_map(|partition| partition.wake_at)
        .min()
        .map(WaitReason::BackingOff))
}
