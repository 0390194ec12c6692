//! sled's log in a recording: how much of it there was between two syncs, and whether segments were used again.

use std::collections::BTreeSet;
use std::fmt;

use proofkeep_tests::powercut::{Change, Recording};

use super::{LOG_PATH, SEGMENT};

/// The inode of the log.
pub fn log_inode(recording: &Recording) -> u64 {
    let made = recording.entries().iter().find_map(|entry| match &entry.change {
        Change::Create {
            inode,
            at: Some(place),
        } if place.path == LOG_PATH => Some(*inode),
        _ => None,
    });
    made.unwrap()
}

/// The most log that was on its way to the disk at once.
#[derive(Debug, Default)]
pub struct Peak {
    /// So many bytes.
    pub bytes: u64,
    /// Where in the recording.
    at: usize,
    /// Changes since the start of its process.
    since_start: usize,
    /// Offsets and lengths of the writes, the longest ones.
    writes: Vec<(u64, u64)>,
}

impl fmt::Display for Peak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            bytes,
            at,
            since_start,
            writes,
        } = self;
        write!(
            f,
            "{bytes} bytes of log at most between two syncs (change {at}, {since_start} after the start: {writes:?})"
        )
    }
}

/// Finds it, from the recorded writes and syncs themselves. A write of one byte over and over is no log: while it
/// opens, sled wipes segments that are free and what follows the last record, and syncs that before it goes on.
pub fn peak(recording: &Recording) -> Peak {
    let log = log_inode(recording);
    let mut peak = Peak::default();
    let mut pending: Vec<(usize, u64, u64)> = Vec::new();
    let mut begun = std::collections::HashMap::new();
    let mut started = 0;
    for (i, entry) in recording.entries().iter().enumerate() {
        match &entry.change {
            Change::Start { .. } => started = i,
            Change::Write { inode, offset, data } if *inode == log && !wipes(recording.data(entry)) => {
                pending.push((i, *offset, data.len() as u64));
                let bytes = pending.iter().map(|(_, _, length)| length).sum();
                if bytes > peak.bytes {
                    let mut writes: Vec<_> = pending
                        .iter()
                        .map(|(_, offset, length)| (*offset, *length))
                        .collect();
                    writes.sort_by_key(|(_, length)| u64::MAX - length);
                    writes.truncate(4);
                    peak = Peak {
                        bytes,
                        at: i,
                        since_start: i - started,
                        writes,
                    };
                }
            }
            Change::SyncBegin { inode, number } if *inode == log => {
                begun.insert((entry.pid, *number), i);
            }
            Change::SyncEnd { inode, number } if *inode == log => {
                let begun = begun.remove(&(entry.pid, *number)).unwrap();
                pending.retain(|(at, ..)| *at > begun);
            }
            _ => {}
        }
    }
    peak
}

/// The places right before a sync of the log ends, where more than so many bytes of it are under way.
pub fn before_syncs(recording: &Recording, bytes: u64) -> Vec<usize> {
    let log = log_inode(recording);
    let mut pending: Vec<(usize, u64)> = Vec::new();
    let mut begun = std::collections::HashMap::new();
    let mut places = Vec::new();
    for (i, entry) in recording.entries().iter().enumerate() {
        match &entry.change {
            Change::Write { inode, data, .. } if *inode == log && !wipes(recording.data(entry)) => {
                pending.push((i, data.len() as u64));
            }
            Change::SyncBegin { inode, number } if *inode == log => {
                begun.insert((entry.pid, *number), i);
            }
            Change::SyncEnd { inode, number } if *inode == log => {
                if pending.iter().map(|(_, length)| length).sum::<u64>() > bytes {
                    places.push(i);
                }
                let begun = begun.remove(&(entry.pid, *number)).unwrap();
                pending.retain(|(at, _)| *at > begun);
            }
            _ => {}
        }
    }
    places
}

/// How many segments were used again, that is begun anew after another one had been, and how many there are. The wipe of
/// a segment that has become free is no use of it yet.
pub fn segments(recording: &Recording) -> (usize, u64) {
    let log = log_inode(recording);
    let (mut last, mut highest) = (0, 0);
    let (mut begun, mut reused) = (BTreeSet::new(), BTreeSet::new());
    for entry in recording.entries() {
        if let Change::Write { inode, offset, .. } = entry.change
            && inode == log
            && offset % SEGMENT == 0
            && !wipes(recording.data(entry))
        {
            let segment = offset / SEGMENT;
            if !begun.insert(segment) && segment != last {
                reused.insert(segment);
            }
            last = segment;
            highest = highest.max(segment);
        }
    }
    (reused.len(), highest + 1)
}

/// One byte over and over: no log.
fn wipes(data: &[u8]) -> bool {
    data.iter().all(|byte| Some(byte) == data.first())
}
