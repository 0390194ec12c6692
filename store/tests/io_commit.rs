//! Committing: what is answered is there after opening again, groups keep their limits, refusals leave the others.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod io_support;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use io_support::{boot, open, start, start_with, submit, submitted};
use proofkeep_store::codec::{number, read_number};
use proofkeep_store::commit::{MAX_COMMAND_BYTES, MAX_GROUP_BYTES, MAX_GROUP_LOG};
use proofkeep_store::format::SEGMENT_SIZE;
use proofkeep_store::ids::{Digest, JobNumber, JournalNumber};
use proofkeep_store::machine::{Command, Refusal, Reply};
use proofkeep_store::records::Job;
use proofkeep_store::view::{record, records};
use proofkeep_store::{CommitError, Limits, keys};

fn jobs(store: &proofkeep_store::Store) -> Vec<Job> {
    store
        .read(|view| records(view, &keys::family(keys::Family::Job)))
        .unwrap()
}

#[test]
fn what_was_answered_is_there_after_opening_again() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let id = store.id();
    let handle = boot(&store);
    let mut last = JournalNumber(0);
    for partitions in 1..=20 {
        let committed = handle
            .commit_blocking(Command::Submit(submit(partitions)))
            .unwrap();
        assert!(committed.journal > last, "the journal rises");
        last = committed.journal;
        assert!(
            *handle.durable().borrow() >= last,
            "an answer comes after its journal number is durable"
        );
    }
    handle.stop();
    assert!(matches!(
        handle.commit_blocking(Command::BootClose),
        Err(CommitError::Stopped)
    ));
    let before = jobs(&store);
    assert_eq!(before.len(), 20);
    drop((handle, store));

    let store = open(data.path());
    assert_eq!(store.id(), id, "the store keeps its name");
    assert_eq!(store.last_boot().0, 1);
    assert_eq!(jobs(&store), before);
    let handle = boot(&store);
    assert!(*handle.durable().borrow() > last, "numbers go on");
}

#[test]
fn a_refusal_leaves_its_neighbours_in_the_group() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let handle = boot(&store);
    let cancel = Command::Cancel {
        job: JobNumber(77),
        actor: "tester".into(),
    };
    let waiting: Vec<_> = [
        Command::Submit(submit(1)),
        cancel,
        Command::Submit(submit(0)),
        Command::Submit(submit(2)),
    ]
    .into_iter()
    .map(|command| handle.send(command).unwrap())
    .collect();
    let outcomes: Vec<_> = waiting
        .into_iter()
        .map(|waiting| waiting.blocking_recv().unwrap())
        .collect();
    assert!(matches!(
        outcomes[0].as_ref().unwrap().reply,
        Reply::Submitted { .. }
    ));
    assert!(matches!(
        outcomes[1],
        Err(CommitError::Refused(Refusal::UnknownJob(JobNumber(77))))
    ));
    assert!(matches!(
        outcomes[2],
        Err(CommitError::Refused(Refusal::OutOfLimits { .. }))
    ));
    assert!(matches!(
        outcomes[3].as_ref().unwrap().reply,
        Reply::Submitted { .. }
    ));
    assert_eq!(jobs(&store).len(), 2);
}

#[test]
fn a_command_whose_objects_are_missing_is_refused_and_names_them() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let handle = boot(&store);
    let there = store.objects().put(b"there").unwrap();
    let gone = Digest::of(b"gone");
    let mut job = submit(1);
    job.objects = vec![there, gone];
    match handle.commit_blocking(Command::Submit(job.clone())) {
        Err(CommitError::Refused(Refusal::BlobMissing(missing))) => assert_eq!(missing, [gone]),
        other => panic!("{other:?}"),
    }
    store.objects().put(b"gone").unwrap();
    submitted(handle.commit_blocking(Command::Submit(job)));
}

#[test]
fn a_full_lane_says_busy_and_ends_still_pass() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let handle = start_with(&store, Limits { requests: 2 });
    // While this thread holds the lock, the commit thread can take nothing, so what is sent now waits.
    let (waiting, busy, end) = handle.with_commit_lock(|_| {
        let mut waiting = Vec::new();
        let busy = loop {
            match handle.send(Command::Submit(submit(1))) {
                Ok(sent) => waiting.push(sent),
                Err(error) => break error,
            }
        };
        let end = handle.send(Command::Pause {
            actor: "tester".into(),
        });
        (waiting, busy, end)
    });
    assert!(matches!(busy, CommitError::Busy), "{busy:?}");
    assert!(waiting.len() >= 2);
    end.unwrap().blocking_recv().unwrap().unwrap();
    for sent in waiting {
        sent.blocking_recv().unwrap().unwrap();
    }
}

#[test]
fn ends_come_before_requests() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let handle = boot(&store);
    let (requests, end) = handle.with_commit_lock(|_| {
        let requests: Vec<_> = (0..8)
            .map(|_| handle.send(Command::Submit(submit(1))).unwrap())
            .collect();
        (
            requests,
            handle
                .send(Command::Pause {
                    actor: "tester".into(),
                })
                .unwrap(),
        )
    });
    let end = end.blocking_recv().unwrap().unwrap().journal;
    let last = requests
        .into_iter()
        .map(|sent| sent.blocking_recv().unwrap().unwrap().journal)
        .max()
        .unwrap();
    assert!(
        end < last,
        "the end {end} was decided before the last request {last}"
    );
}

#[test]
fn groups_stay_under_a_segment_of_log() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let handle = boot(&store);
    let mut largest = submit(1024);
    largest.idempotency_key = Some("k".repeat(128));
    largest.labels = vec![("l".repeat(60), "v".repeat(120)); 5];
    for (index, label) in largest.labels.iter_mut().enumerate() {
        label.0 = format!("{index}{}", "l".repeat(58));
    }
    let waiting: Vec<_> = (0..24)
        .map(|index| {
            let mut job = largest.clone();
            job.id = uuid::Uuid::now_v7();
            job.idempotency_key = Some(format!("{index}-{}", "k".repeat(100)));
            handle.send(Command::Submit(job)).unwrap()
        })
        .chain((0..600).map(|_| handle.send(Command::Submit(submit(1))).unwrap()))
        .collect();
    for sent in waiting {
        sent.blocking_recv().unwrap().unwrap();
    }
    let stats = handle.stats();
    assert!(
        stats.largest_log >= MAX_GROUP_LOG,
        "full groups were made: {stats:?}"
    );
    assert!(
        stats.largest_group <= MAX_GROUP_BYTES + MAX_COMMAND_BYTES,
        "{stats:?}"
    );
    assert!(stats.largest_log < SEGMENT_SIZE, "{stats:?}");
    assert!(stats.groups < stats.commands, "commands share syncs: {stats:?}");
    handle.stop();
    drop((handle, store));
    let blobs = data.path().join("store.1/blobs");
    assert_eq!(
        fs::read_dir(blobs).unwrap().count(),
        0,
        "sled makes no blobs of its own"
    );
    assert_eq!(jobs(&open(data.path())).len(), 624);
}

#[test]
fn a_caller_that_went_away_changes_nothing_about_its_command() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let handle = boot(&store);
    drop(handle.send(Command::Submit(submit(3))).unwrap());
    handle.stop();
    let job: Job = store
        .read(|view| record(view, &keys::job(JobNumber(1))))
        .unwrap()
        .unwrap();
    assert_eq!(job.partitions, 3);
}

#[test]
fn the_heartbeat_takes_no_lock() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let handle = start(&store);
    let seen = handle.with_commit_lock(|_| handle.heartbeat());
    assert!(seen < Duration::from_secs(60));
    assert!(handle.try_read_for(Duration::from_secs(10), |_| ()).is_some());
    let nested = handle.with_commit_lock(|_| handle.try_read_for(Duration::from_millis(5), |_| ()));
    assert!(nested.is_none(), "nobody reads while the lock is held");
}

#[test]
fn closing_and_opening_again_in_one_process_keeps_everything() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let handle = boot(&store);
    for _ in 0..10 {
        submitted(handle.commit_blocking(Command::Submit(submit(4))));
    }
    let before = jobs(&store);
    assert!(!handle.reopen_if_due(1_000).unwrap(), "not due");
    assert!(handle.reopen_if_due(10).unwrap(), "due");
    assert!(!handle.reopen_if_due(10).unwrap(), "done");
    assert_eq!(jobs(&store), before);
    assert_eq!(
        submitted(handle.commit_blocking(Command::Submit(submit(1)))),
        JobNumber(11)
    );
}

#[test]
fn asynchronous_callers_share_a_group() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let handle = boot(&store);
    let before = handle.stats();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut numbers = runtime.block_on(async {
        let tasks: Vec<_> = (0..64)
            .map(|_| {
                let handle = handle.clone();
                tokio::spawn(async move { handle.commit(Command::Submit(submit(2))).await })
            })
            .collect();
        let mut numbers = Vec::new();
        for task in tasks {
            numbers.push(submitted(task.await.unwrap()).0);
        }
        numbers
    });
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=64).collect::<Vec<u64>>());
    let after = handle.stats();
    assert_eq!(after.commands - before.commands, 64);
    assert!(after.groups - before.groups < 64, "{after:?}");
}

#[test]
fn a_reader_sees_whole_commands_and_only_what_is_durable() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let handle = boot(&store);
    let done = AtomicBool::new(false);
    let (store, handle, done) = (&store, &handle, &done);
    let reads = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(move || {
                    let (mut reads, mut last) = (0, 0);
                    while !done.load(Ordering::Relaxed) {
                        let (journal, events, durable) = store.read(|view| {
                            let journal = view
                                .get(&keys::sequence(keys::Sequence::Journal))
                                .unwrap()
                                .unwrap();
                            let events = view
                                .scan_back(&keys::family(keys::Family::Event), None, 1)
                                .unwrap();
                            let durable = handle.durable().borrow().0;
                            (read_number(&journal).unwrap(), events, durable)
                        });
                        assert_eq!(
                            events.first().map(|(key, _)| key.clone()),
                            Some(keys::event(JournalNumber(journal)))
                        );
                        assert!(journal <= durable, "read {journal}, durable {durable}");
                        assert!(journal >= last, "read {journal} after {last}");
                        (reads, last) = (reads + 1, journal);
                    }
                    reads
                })
            })
            .collect();
        for round in 0..40 {
            let sent: Vec<_> = (0..8)
                .map(|_| handle.send(Command::Submit(submit(1 + round % 7))).unwrap())
                .collect();
            for waiting in sent {
                submitted(waiting.blocking_recv().unwrap());
            }
        }
        done.store(true, Ordering::Relaxed);
        readers
            .into_iter()
            .map(|reader| reader.join().unwrap())
            .collect::<Vec<u64>>()
    });
    assert!(reads.iter().all(|reads| *reads > 0), "{reads:?}");
}

#[test]
fn a_damaged_record_fails_its_command_and_no_other() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let handle = boot(&store);
    let job = submitted(handle.commit_blocking(Command::Submit(submit(1))));
    handle.stop();
    drop((handle, store));
    // What a faulty build would leave: a value of another kind in a job's place.
    let raw = sled::Config::new()
        .path(data.path().join("store.1"))
        .segment_size(8 << 20)
        .open()
        .unwrap();
    raw.insert(keys::job(job), number(7)).unwrap();
    drop(raw);
    let store = open(data.path());
    let handle = boot(&store);
    let cancel = handle.commit_blocking(Command::Cancel {
        job,
        actor: "tester".into(),
    });
    match cancel {
        Err(CommitError::Damaged { job: of, why }) => {
            assert_eq!(of, job);
            assert!(why.contains("expected Job, found Number"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        submitted(handle.commit_blocking(Command::Submit(submit(1)))),
        JobNumber(2)
    );
}
