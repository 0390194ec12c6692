//! Boots, the queue, devices, workers, and leases.

use serde::{Deserialize, Serialize};

use super::{Digest, Stage};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Token {
    pub boot: u64,
    pub grant: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessId {
    pub boot: u64,
    pub spawn: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum BootEnd {
    Clean,
    Crashed,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Boot {
    pub number: u64,
    pub version: String,
    pub started_at: u64,
    pub ended: Option<(u64, BootEnd)>,
    pub spawns: u64,
    pub interrupted: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    pub paused: bool,
    pub draining: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum DeviceState {
    Up,
    Suspended { until: Option<u64>, reason: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Device {
    pub name: String,
    pub slots: u32,
    pub state: DeviceState,
    pub process: Option<ProcessId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum WorkerState {
    Idle,
    Busy {
        token: Token,
        job: u64,
        partition: u32,
        since: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastWork {
    pub job: u64,
    pub partition: u32,
    pub outcome: String,
    pub at: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    pub id: u32,
    pub device: String,
    pub slot: u32,
    pub state: WorkerState,
    pub last: Option<LastWork>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Subject {
    Partition { job: u64, partition: u32, stage: Stage },
    Verify { job: u64 },
    Import { circuit: Digest },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lease {
    pub token: Token,
    pub subject: Subject,
    pub process: Option<ProcessId>,
    pub worker: Option<u32>,
    pub granted_at: u64,
}
