//! Lists, one job, the journal, boots, and what the scheduler asks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "fsck_support/mod.rs"]
mod support;

use proofkeep_store::ids::{BootNumber, JobNumber, JournalNumber};
use proofkeep_store::machine::{BACK_OFF_LIMIT_MS, Command, Submit};
use proofkeep_store::query::{
    self, Cursor, CursorError, Found, JobFilter, ListError, Order, PruneWalk, ReadyEntry, StateFilter,
};
use proofkeep_store::records::{BootEnd, FailureClass, Priority};
use support::{DONE, FAILED, QUEUED, RUNNING, World, busy_world, digest};

fn numbers(page: &query::JobPage) -> Vec<u64> {
    page.jobs.iter().map(|row| row.job.number.0).collect()
}

fn listed(world: &World, filter: &JobFilter) -> Vec<u64> {
    numbers(&query::jobs(&world.view, filter, Order::NewestFirst, None, 100).unwrap())
}

#[test]
fn jobs_are_listed_by_page_in_either_order() {
    let world = busy_world();
    for (order, expected) in [
        (Order::NewestFirst, [6, 5, 4, 3, 2, 1]),
        (Order::OldestFirst, [1, 2, 3, 4, 5, 6]),
    ] {
        let mut cursor = None;
        let mut found = Vec::new();
        loop {
            let page = query::jobs(&world.view, &JobFilter::default(), order, cursor, 4).unwrap();
            found.extend(numbers(&page));
            match page.next {
                Some(next) => cursor = Some(Cursor::parse(&next.to_string()).unwrap()),
                None => break,
            }
        }
        assert_eq!(found, expected);
    }
    let page = query::jobs(&world.view, &JobFilter::default(), Order::NewestFirst, None, 2).unwrap();
    let other = query::jobs(
        &world.view,
        &JobFilter::default(),
        Order::OldestFirst,
        page.next,
        2,
    );
    assert!(matches!(other, Err(ListError::Cursor(CursorError::OtherList))));
}

#[test]
fn each_filter_lets_through_what_it_says() {
    let world = busy_world();
    let all = JobFilter::default;
    let state = |text: &str| JobFilter {
        states: vec![StateFilter::parse(text).unwrap()],
        ..all()
    };
    assert_eq!(listed(&world, &state("succeeded")), [1]);
    assert_eq!(listed(&world, &state("running")), [4]);
    assert_eq!(listed(&world, &state("active")), [6, 5, 4]);
    assert_eq!(listed(&world, &state("ended")), [3, 2, 1]);
    assert_eq!(StateFilter::parse("sleeping"), None);
    assert_eq!(
        listed(
            &world,
            &JobFilter {
                kind: Some("other".into()),
                ..all()
            }
        ),
        []
    );
    assert_eq!(
        listed(
            &world,
            &JobFilter {
                circuits: Some(vec![world.circuit]),
                ..all()
            }
        )
        .len(),
        6
    );
    assert_eq!(
        listed(
            &world,
            &JobFilter {
                circuits: Some(vec![digest("other")]),
                ..all()
            }
        ),
        []
    );
    assert_eq!(
        listed(
            &world,
            &JobFilter {
                labels: vec![("order".into(), Some("2".into()))],
                ..all()
            }
        ),
        [1]
    );
    assert_eq!(
        listed(
            &world,
            &JobFilter {
                labels: vec![("order".into(), None)],
                ..all()
            }
        )
        .len(),
        6
    );
    assert_eq!(
        listed(
            &world,
            &JobFilter {
                actor: Some("nobody".into()),
                ..all()
            }
        ),
        []
    );
    let middle = query::job_by_number(&world.view, RUNNING)
        .unwrap()
        .unwrap()
        .created_at;
    assert_eq!(
        listed(
            &world,
            &JobFilter {
                since: Some(middle),
                ..all()
            }
        ),
        [6, 5, 4]
    );
    assert_eq!(
        listed(
            &world,
            &JobFilter {
                until: Some(middle),
                ..all()
            }
        ),
        [3, 2, 1]
    );
    assert_eq!(
        query::circuits_named(&world.view, "circuit").unwrap(),
        [world.circuit]
    );
}

#[test]
fn a_page_that_finds_nothing_ends_all_the_same() {
    let mut world = World::new();
    world.checked = false;
    for _ in 0..1100 {
        let job = world.submit(1);
        world.cancel(job);
    }
    let filter = JobFilter {
        kind: Some("other".into()),
        ..JobFilter::default()
    };
    let page = query::jobs(&world.view, &filter, Order::NewestFirst, None, 10).unwrap();
    assert!(page.jobs.is_empty());
    let page = query::jobs(&world.view, &filter, Order::NewestFirst, page.next, 10).unwrap();
    assert!(page.jobs.is_empty() && page.next.is_none());
}

#[test]
fn one_job_is_shown_whole() {
    let world = busy_world();
    let detail = query::job(&world.view, RUNNING).unwrap().unwrap();
    assert_eq!(
        query::find(&world.view, detail.job.id).unwrap(),
        Found::Job(RUNNING)
    );
    let summary = detail.summary;
    assert_eq!((summary.total, summary.proved, summary.running), (6, 1, 3));
    assert_eq!(detail.queue.unwrap().ahead.count, 0);
    let queued = query::job(&world.view, QUEUED).unwrap().unwrap();
    let place = queued.queue.unwrap();
    assert_eq!(
        (place.position.count, place.ahead.count, place.ahead.more),
        (2, 1, false)
    );
    assert_eq!(query::job(&world.view, DONE).unwrap().unwrap().queue, None);
    let page = query::partitions(&world.view, RUNNING, 0, 4, 10).unwrap();
    assert_eq!(page.partitions.len(), 4);
    assert_eq!(page.partitions[0].proof.as_ref().unwrap().bytes.len(), 192);
    assert_eq!(page.partitions[3].checkpoint.as_ref().unwrap().pieces.len(), 1);
    let rest = query::partitions(&world.view, RUNNING, page.next.unwrap(), 4, 10).unwrap();
    assert_eq!((rest.partitions.len(), rest.next), (2, None));
    assert_eq!(rest.partitions[0].partition.index, 4);
    assert!(query::request(&world.view, RUNNING).unwrap().is_some());
    assert_eq!(query::proofs(&world.view, DONE, 0, 10).unwrap().proofs.len(), 2);
    assert_eq!(query::proofs(&world.view, FAILED, 0, 10).unwrap().proofs.len(), 1);
}

#[test]
fn what_is_left_is_estimated_from_what_is_proved() {
    let world = busy_world();
    // Six partitions, one proved in 900 ms; five are left for two slots.
    let detail = query::job(&world.view, RUNNING).unwrap().unwrap();
    assert_eq!(detail.remaining_ms, Some(3 * 900));
    let queued = query::job(&world.view, QUEUED).unwrap().unwrap();
    assert_eq!(queued.remaining_ms, None);
}

#[test]
fn attempts_and_lives_are_kept_in_order() {
    let mut world = World::new();
    let job = world.submit(1);
    for _ in 0..3 {
        let (token, _) = world.synth_start(job, 0);
        world.fail_attempt(token, FailureClass::Shutdown);
    }
    world.cancel(job);
    world.retry(job);
    world.prove(job, 0);
    let detail = query::partition(&world.view, job, 0, 2).unwrap().unwrap();
    let attempts: Vec<u32> = detail.attempts.iter().map(|attempt| attempt.of.number).collect();
    assert_eq!(attempts, [3, 4], "the last two, oldest first");
    let lives = query::generations(&world.view, job, 10).unwrap();
    assert_eq!(lives.iter().map(|life| life.number).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn the_journal_is_read_by_page_without_a_gap() {
    let world = busy_world();
    let last = query::last_event(&world.view).unwrap();
    let mut after = JournalNumber(0);
    let mut found = Vec::new();
    loop {
        let page = query::events(&world.view, after, 7).unwrap();
        assert_eq!(page.last, last);
        found.extend(page.events.iter().map(|event| event.number.0));
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(found, (1..=last.0).collect::<Vec<_>>());
    let page = query::job_events(&world.view, DONE, JournalNumber(0), 3).unwrap();
    assert_eq!(page.events[0].what.name(), "submitted");
    let rest = query::job_events(&world.view, DONE, page.next.unwrap(), 100).unwrap();
    assert!(rest.next.is_none());
    assert!(
        page.events
            .iter()
            .chain(&rest.events)
            .all(|event| event.job == Some(DONE))
    );
    assert_eq!(rest.events.last().unwrap().what.name(), "ended");
}

#[test]
fn a_pruned_job_is_known_to_be_gone() {
    let mut world = busy_world();
    let id = query::job_by_number(&world.view, DONE).unwrap().unwrap().id;
    let before = query::events_kept(&world.view).unwrap();
    world.prune(DONE);
    assert!(matches!(query::find(&world.view, id).unwrap(), Found::Pruned(_)));
    assert_eq!(
        query::find(&world.view, uuid::Uuid::from_u128(77)).unwrap(),
        Found::Unknown
    );
    assert!(query::job(&world.view, DONE).unwrap().is_none());
    let kept = query::events_kept(&world.view).unwrap();
    assert!(kept < before);
    assert_eq!(
        query::events(&world.view, JournalNumber(0), 10_000)
            .unwrap()
            .events
            .len() as u64,
        kept
    );
}

#[test]
fn a_boot_says_what_its_recovery_did() {
    let mut world = busy_world();
    let first = query::current_boot(&world.view).unwrap().unwrap();
    assert_eq!((first.before, first.recovered.interrupted), (None, 0));
    world.reboot();
    let report = query::current_boot(&world.view).unwrap().unwrap();
    assert_eq!(report.before, Some(BootEnd::Crashed));
    let recovered = &report.recovered;
    assert_eq!((recovered.interrupted, recovered.attempts.len()), (3, 3));
    assert_eq!(recovered.partitions_kept, 1);
    assert_eq!(
        (recovered.checkpoints_reused, recovered.saved_ms),
        (0, 0),
        "nothing was proved again yet"
    );

    let token = world.start_proving(RUNNING, 3, 0);
    let reused = vec!["h".to_owned()];
    world.step(Command::GpuEnd {
        token,
        gpu_ms: 100,
        reused,
        saved_ms: 800,
    });
    world.store_proof(token);
    let report = query::boot_report(&world.view, BootNumber(2)).unwrap().unwrap();
    assert_eq!(
        (report.recovered.checkpoints_reused, report.recovered.saved_ms),
        (1, 800)
    );
    assert_eq!(
        report.recovered.partitions_kept, 1,
        "the proof of this boot is not one that was kept"
    );
    world.step(Command::BootClose);
    world.reboot();
    let all = query::boots(&world.view, None, 10).unwrap();
    let ends: Vec<(u64, Option<BootEnd>)> =
        all.iter().map(|boot| (boot.boot.number.0, boot.before)).collect();
    assert_eq!(
        ends,
        [(3, Some(BootEnd::Clean)), (2, Some(BootEnd::Crashed)), (1, None)]
    );
    for boot in 1..=3 {
        let first = query::first_event_of(&world.view, BootNumber(boot))
            .unwrap()
            .unwrap();
        let event = query::event(&world.view, first).unwrap().unwrap();
        assert_eq!((event.what.name(), event.boot.0), ("boot_opened", boot));
    }
    assert_eq!(query::first_event_of(&world.view, BootNumber(4)).unwrap(), None);
}

#[test]
fn the_scheduler_sees_the_queue_in_its_order() {
    let mut world = World::new();
    world.checked = false;
    let low = world.submission(1);
    world.submit_as(Submit {
        priority: Priority::Low,
        ..low
    });
    let first = world.submit(2);
    let second = world.submit(1);
    let high = world.submission(1);
    let high = world.submit_as(Submit {
        priority: Priority::High,
        ..high
    });
    let page = query::ready_page(&world.view, None, 3).unwrap();
    let order: Vec<(JobNumber, u32)> = page.iter().map(|entry| (entry.job, entry.partition)).collect();
    assert_eq!(order, [(high, 0), (first, 0), (first, 1)]);
    let rest = query::ready_page(&world.view, page.last().copied(), 3).unwrap();
    let order: Vec<(JobNumber, u32)> = rest.iter().map(|entry| (entry.job, entry.partition)).collect();
    assert_eq!(order, [(second, 0), (JobNumber(1), 0)]);
    let after = ReadyEntry {
        priority: Priority::Low,
        job: JobNumber(1),
        partition: 0,
    };
    assert!(query::ready_page(&world.view, Some(after), 3).unwrap().is_empty());
}

#[test]
fn what_is_due_is_found_at_its_time() {
    let mut world = busy_world();
    let wakes = query::next_retry(&world.view).unwrap().unwrap();
    assert!(
        query::retries_due(&world.view, proofkeep_store::ids::Millis(wakes.0 - 1), 10)
            .unwrap()
            .is_empty()
    );
    let due = query::retries_due(&world.view, wakes, 10).unwrap();
    assert_eq!((due[0].job, due[0].partition, due[0].at), (RUNNING, 1, wakes));
    // A clock that went back: it would wait longer than any back-off, so it is due.
    let longest = proofkeep_store::ids::Millis(wakes.0 - BACK_OFF_LIMIT_MS);
    assert!(query::retries_due(&world.view, longest, 10).unwrap().is_empty());
    let back = proofkeep_store::ids::Millis(longest.0 - 1);
    assert_eq!(query::retries_due(&world.view, back, 10).unwrap(), due);
    let deadline = query::next_deadline(&world.view).unwrap().unwrap();
    assert!(
        query::deadlines_due(&world.view, world.now, 10)
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        query::deadlines_due(&world.view, deadline, 10).unwrap(),
        [(deadline, RUNNING)]
    );
    assert_eq!(query::open_attempts(&world.view).unwrap().len(), 3);
    assert_eq!(query::leases(&world.view).unwrap().len(), 4);
    assert_eq!(query::importing(&world.view).unwrap()[0].digest, digest("other"));
    let page = query::active_jobs(&world.view, None, 2).unwrap();
    let rest = query::active_jobs(&world.view, page.next, 2).unwrap();
    assert_eq!((page.jobs.len(), rest.jobs.len(), rest.next), (2, 1, None));
    world.now = wakes;
    assert!(
        query::jobs_that_cannot_run(&world.view, None, 10)
            .unwrap()
            .jobs
            .is_empty()
    );
}

#[test]
fn jobs_beyond_the_newest_may_be_forgotten() {
    let mut world = World::new();
    world.checked = false;
    for _ in 0..7 {
        let job = world.submit(1);
        world.cancel(job);
    }
    world.submit(1);
    let mut walk = PruneWalk::default();
    let mut found = Vec::new();
    loop {
        let page = query::prunable(&world.view, 5, walk, 2).unwrap();
        found.extend(page.jobs);
        match page.next {
            Some(next) => walk = next,
            None => break,
        }
    }
    assert_eq!(found, [JobNumber(2), JobNumber(1)]);
    world.step(Command::Prune { job: JobNumber(1) });
    assert_eq!(query::pruning(&world.view, 10).unwrap(), [JobNumber(1)]);
}

#[test]
fn a_job_whose_circuit_was_refused_is_found() {
    let mut world = World::new();
    let circuit = world.add_circuit("bad");
    let mut submit = world.submission(1);
    submit.circuit = Some(circuit);
    let job = world.submit_as(submit);
    let process = world.process;
    let (token, _) = world.grant(Command::ImportStart { circuit, process });
    let failure = proofkeep_store::records::Failure::new(FailureClass::CircuitFailed, "off the curve");
    world.step(Command::ImportFailed { token, failure });
    let found = query::jobs_that_cannot_run(&world.view, None, 10).unwrap();
    assert_eq!(
        found.jobs.iter().map(|(job, _)| job.number).collect::<Vec<_>>(),
        [job]
    );
    assert_eq!(found.jobs[0].1.class, FailureClass::CircuitFailed);
}
