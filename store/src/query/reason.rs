//! Why a job with work to do does none.

use crate::ids::Millis;
use crate::keys;
use crate::records::{Circuit, CircuitState, Device, DeviceState, Job, PartitionState, Queue};
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
/// simply has to wait its turn. Whether all that is left backs off takes a look at the partitions: `backing_off`.
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
    Ok(None)
}

/// The prefix of the job's entries in the ready index.
pub(super) fn ready_of_job(job: &Job) -> keys::Key {
    let mut prefix = keys::ready(job.priority, job.number, 0);
    prefix.truncate(prefix.len() - size_of::<u32>());
    prefix
}

/// Says so if all that is left of a job backs off: none of its partitions is ready, and one wakes first.
pub(super) fn backing_off(
    job: &Job,
    partitions: impl Iterator<Item = (PartitionState, Option<Millis>)>,
) -> Option<WaitReason> {
    let mut first = None;
    for (state, wake_at) in partitions {
        match (state, wake_at) {
            (PartitionState::Waiting, Some(at)) => {
                first = Some(first.map_or(at, |first: Millis| first.min(at)))
            }
            (PartitionState::Ready, _) => return None,
            _ => {}
        }
    }
    first.filter(|_| job.state.grants()).map(WaitReason::BackingOff)
}
