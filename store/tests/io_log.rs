//! How much sled writes between two syncs. One test in a process of its own, since it counts the process' writes.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod io_support;

use io_support::{boot, open, submit};
use proofkeep_store::Handle;
use proofkeep_store::commit::MAX_GROUP_LOG;
use proofkeep_store::format::SEGMENT_SIZE;
use proofkeep_store::ids::JobNumber;
use proofkeep_store::machine::{Command, Reply};

/// Bytes that this process has given to `write` and its kin.
fn written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    io.lines()
        .find_map(|line| line.strip_prefix("wchar: ")?.parse().ok())
        .unwrap()
}

/// Carries out `commands` while nothing else is committed, so that they make full groups.
fn commit_together(handle: &Handle, commands: Vec<Command>) -> JobNumber {
    let sent: Vec<_> = handle.with_commit_lock(|_| {
        commands
            .into_iter()
            .map(|command| handle.send(command).unwrap())
            .collect()
    });
    let mut last = JobNumber(0);
    for waiting in sent {
        if let Reply::Submitted { job, .. } = waiting.blocking_recv().unwrap().unwrap().reply {
            last = job;
        }
    }
    last
}

#[test]
fn sled_writes_less_log_than_the_limits_reckon_with() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let handle = boot(&store);
    let mut job = JobNumber(0);
    for round in 0..40 {
        let commands = match round % 4 {
            // The largest command: a whole job is cancelled.
            3 => vec![Command::Cancel {
                job,
                actor: "tester".into(),
            }],
            2 => vec![Command::Submit(submit(1024))],
            _ => (0..40).map(|_| Command::Submit(submit(8))).collect(),
        };
        let (before, stats) = (written(), handle.stats());
        job = commit_together(&handle, commands).max(job);
        let (after, now) = (written() - before, handle.stats());
        let reckoned = now.log - stats.log;
        assert!(
            after < reckoned,
            "round {round}: {after} bytes written, reckoned with {reckoned}"
        );
    }
    // Full groups, one after the other.
    let (before, stats) = (written(), handle.stats());
    let commands = (0..400)
        .map(|index| Command::Submit(submit(if index % 40 == 0 { 1024 } else { 8 })))
        .collect();
    commit_together(&handle, commands);
    let (after, now) = (written() - before, handle.stats());
    assert!(now.largest_log >= MAX_GROUP_LOG, "{now:?}");
    assert!(now.largest_log < SEGMENT_SIZE, "{now:?}");
    assert!(
        after < now.log - stats.log,
        "{after} bytes written; {stats:?} {now:?}"
    );
}
