//! Lives of the daemon, and what an operator asked of the queue.

use crate::ids::{BootNumber, Millis};

/// How a boot ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootEnd {
    /// The daemon said goodbye.
    Clean,
    /// The next boot found it open.
    Crashed,
}

/// One life of the daemon. An open boot from the past is a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot {
    /// From 1.
    pub number: BootNumber,
    /// The build that ran.
    pub version: String,
    /// When it opened the store.
    pub started_at: Millis,
    /// When and how it ended.
    pub ended: Option<(Millis, BootEnd)>,
    /// Worker processes started so far.
    pub spawns: u64,
    /// Attempts of earlier boots that this boot's recovery closed.
    pub interrupted: u32,
}

/// What an operator asked of the queue; durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// No new synthesis is started.
    pub paused: bool,
    /// Submits are refused as well; ends with the boot.
    pub draining: bool,
}
