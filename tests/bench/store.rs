//! Durable transitions a second of the store alone, and what the disk gives at most.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::{Duration, Instant};

use proofkeep_store::clock::Clock;
use proofkeep_store::ids::Digest;
use proofkeep_store::machine::{Command, Machine, Rules, Submit};
use proofkeep_store::records::{OnFailure, Priority};
use proofkeep_store::{Handle, Limits, Options, Store};
use uuid::Uuid;

use crate::times::Times;

/// How long each part goes on.
const TIME: Duration = Duration::from_secs(3);

/// A job of one partition whose request lies in the store.
pub fn submit(number: usize) -> Command {
    let request = format!("{{\"inputs\":[{number}],\"kind\":\"bench\"}}").into_bytes();
    Command::Submit(Submit {
        id: Uuid::now_v7(),
        kind: "bench".to_owned(),
        circuit: None,
        request: Digest::of(&request),
        inline: Some(request),
        objects: Vec::new(),
        idempotency_key: Some(format!("bench-{number}")),
        actor: "local".to_owned(),
        labels: Vec::new(),
        priority: Priority::Normal,
        max_attempts: 3,
        on_failure: OnFailure::Continue,
        partitions: 1,
        ticket_bytes: 1 << 20,
        budget_bytes: u64::MAX,
        deadline: None,
    })
}

/// Opens a store in a directory and begins a boot.
pub fn open(directory: &std::path::Path) -> (Store, Handle) {
    let store = Store::open(directory, &Options::default()).unwrap();
    let handle = store
        .start(Machine { rules: Rules::ALL }, Clock::start(), Limits::default())
        .unwrap();
    handle
        .commit_blocking(Command::BootOpen {
            version: "bench".to_owned(),
            devices: Vec::new(),
        })
        .unwrap();
    (store, handle)
}

/// Measures it.
pub fn run() {
    let directory = tempfile::tempdir().unwrap();
    println!("disk: {}", disk(directory.path()));
    for callers in [1_usize, 64] {
        let (_store, handle) = open(&directory.path().join(format!("data-{callers}")));
        let before = handle.stats();
        let start = Instant::now();
        let times = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..callers)
                .map(|caller| {
                    let handle = &handle;
                    scope.spawn(move || {
                        let mut times = Times::default();
                        for number in 0.. {
                            if start.elapsed() >= TIME {
                                break;
                            }
                            let command = submit(caller + number * callers);
                            times.time(|| handle.commit_blocking(command)).unwrap();
                        }
                        times
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .fold(Times::default(), Times::and)
        });
        let (seconds, after) = (start.elapsed().as_secs_f64(), handle.stats());
        let (commands, groups) = (after.commands - before.commands, after.groups - before.groups);
        println!(
            "store, {callers} callers: {:.0} durable transitions/s, {:.0} syncs/s, {:.1} to a sync; each {times}",
            commands as f64 / seconds,
            groups as f64 / seconds,
            commands as f64 / groups as f64
        );
        handle.stop();
    }
}

/// A file that grows by 4 KiB and is synced, over and over: what one caller could have at most.
fn disk(directory: &std::path::Path) -> String {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(directory.join("disk"))
        .unwrap();
    let mut times = Times::default();
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < Duration::from_secs(1) {
        times.time(|| {
            file.write_all(&[7; 4096]).unwrap();
            file.sync_data().unwrap();
        });
        count += 1;
    }
    format!("{count} appends of 4 KiB with fdatasync in a second; each {times}")
}
