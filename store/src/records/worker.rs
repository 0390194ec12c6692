//! Devices and their slots.

use crate::ids::{JobNumber, Millis, ProcessId, Token, WorkerId};

/// What a worker does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerState {
    /// Nothing.
    Idle,
    /// It proves.
    Busy {
        /// Under this lease.
        token: Token,
        /// Whose partition.
        job: JobNumber,
        /// Which partition.
        partition: u32,
        /// Since when.
        since: Millis,
    },
}

/// What a worker did last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastWork {
    /// Whose partition.
    pub job: JobNumber,
    /// Which partition.
    pub partition: u32,
    /// `"ok"`, or the failure class.
    pub outcome: String,
    /// When it ended.
    pub at: Millis,
}

/// A device slot: what status calls a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// One sequence over devices × slots.
    pub id: WorkerId,
    /// Its device, such as `cpu:0`.
    pub device: String,
    /// Its place on that device, from 0.
    pub slot: u32,
    /// What it does.
    pub state: WorkerState,
    /// What it did last in this boot.
    pub last: Option<LastWork>,
}

/// Whether a device takes work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceState {
    /// It does.
    Up,
    /// Not until then, or until somebody resumes it.
    Suspended {
        /// When it is tried again; `None`: by hand only.
        until: Option<Millis>,
        /// Why.
        reason: String,
    },
}

/// A device, and the one process that works on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its name, such as `cpu:0`.
    pub name: String,
    /// How many partitions may hold it at once.
    pub slots: u32,
    /// Whether it takes work.
    pub state: DeviceState,
    /// The live worker process, if there is one.
    pub process: Option<ProcessId>,
}
