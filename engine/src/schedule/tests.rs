#![allow(clippy::unwrap_used, clippy::expect_used)]
use proofkeep_store::ids::{BootNumber, JournalNumber};

use super::*;
use crate::budget::{Accounts, AskedKey};

fn process(spawn: u64) -> ProcessId {
    ProcessId {
        boot: BootNumber(1),
        spawn,
    }
}

fn token(grant: u64) -> Token {
    Token {
        boot: BootNumber(1),
        grant: JournalNumber(grant),
    }
}

fn attempt(job: u64, partition: u32) -> AttemptRef {
    AttemptRef {
        job: JobNumber(job),
        partition,
        number: 1,
    }
}

fn device(name: &str, slots: u32, spawn: u64, idle: &[u32]) -> DeviceNow {
    DeviceNow {
        name: name.to_owned(),
        slots,
        process: Some(process(spawn)),
        resume: false,
        idle: idle.iter().map(|id| WorkerId(*id)).collect(),
    }
}

fn ready(priority: Priority, job: u64, partition: u32, bytes: u64) -> ReadyNow {
    ReadyNow {
        priority,
        job: JobNumber(job),
        partition,
        attempt: 1,
        ticket_bytes: bytes,
        key: None,
        alone: false,
        avoid_device: None,
    }
}

fn open(priority: Priority, job: u64, partition: u32, state: PartitionState, spawn: u64) -> OpenNow {
    let leased = state.stage().is_some();
    OpenNow {
        attempt: attempt(job, partition),
        priority,
        state,
        token: leased.then(|| token(job * 100 + u64::from(partition))),
        process: process(spawn),
        alone: false,
        stopping: false,
        asked: false,
    }
}

fn one_device() -> Snapshot {
    Snapshot {
        devices: vec![device("cpu:0", 1, 1, &[0])],
        verify_room: 2,
        ..Snapshot::default()
    }
}

fn starts(decisions: &[Decision]) -> Vec<(u64, u32, u64)> {
    decisions
        .iter()
        .filter_map(|decision| match decision {
            Decision::SynthStart { job, partition, ask } => Some((job.0, *partition, ask.process.spawn)),
            _ => None,
        })
        .collect()
}

fn holding(accounts: &mut Accounts, open: &OpenNow, bytes: u64) {
    accounts
        .ask(&Ask {
            of: ticket_of(open.attempt),
            process: open.process,
            bytes,
            key: None,
            critical: open.priority == Critical,
        })
        .unwrap();
}

use Priority::{Critical, High, Low, Normal};

#[test]
fn two_a_slot_are_ahead_and_no_more() {
    let mut now = one_device();
    now.ready = (0..5).map(|partition| ready(Normal, 1, partition, 10)).collect();
    assert_eq!(
        starts(&decide(&now, &Accounts::new(1000))),
        [(1, 0, 1), (1, 1, 1)]
    );
    now.open = vec![
        open(Normal, 1, 9, PartitionState::Synthesized, 1),
        open(Normal, 1, 8, PartitionState::Proving, 1),
    ];
    assert_eq!(starts(&decide(&now, &Accounts::new(1000))), [(1, 0, 1)]);
    now.paused = true;
    let decisions = decide(&now, &Accounts::new(1000));
    assert!(starts(&decisions).is_empty());
    // A pause stops syntheses only.
    assert!(
        matches!(decisions[..], [Decision::GpuStart { .. }]),
        "{decisions:?}"
    );
    now.stopping = true;
    assert!(decide(&now, &Accounts::new(1000)).is_empty());
}

#[test]
fn one_large_partition_is_ahead_of_the_processor_and_waits_no_longer_for_small_ones() {
    let (accounts, large) = (Accounts::new(1 << 40), 1 << 30);
    let mut now = one_device();
    now.ready = (0..5)
        .map(|partition| ready(Normal, 1, partition, large))
        .collect();
    assert_eq!(starts(&decide(&now, &accounts)), [(1, 0, 1)]);
    now.open = vec![open(Normal, 1, 9, PartitionState::Proving, 1)];
    assert_eq!(starts(&decide(&now, &accounts)), [(1, 0, 1)]);
    // Small ones after it don't take the place that it waits for, small ones before it do.
    now.open.push(open(Normal, 1, 8, PartitionState::Synthesized, 1));
    now.ready.push(ready(Normal, 2, 0, 10));
    assert!(starts(&decide(&now, &accounts)).is_empty());
    now.ready.insert(0, ready(High, 3, 0, 10));
    assert_eq!(starts(&decide(&now, &accounts)), [(3, 0, 1)]);
    // A graphics card computes while the cores make witnesses for it.
    now.ready.remove(0);
    now.devices[0].name = "cuda:0".to_owned();
    assert_eq!(starts(&decide(&now, &accounts)), [(1, 0, 1)]);
    now.open.pop();
    assert_eq!(starts(&decide(&now, &accounts)), [(1, 0, 1), (1, 1, 1)]);
    // A critical one finds its place taken by another: that goes back.
    let mut now = one_device();
    now.open = vec![open(Normal, 1, 8, PartitionState::Synthesized, 1)];
    now.devices[0].idle.clear();
    now.ready = vec![ready(Critical, 2, 0, large)];
    assert_eq!(decide(&now, &accounts), [Decision::GiveBack(attempt(1, 8))]);
}

#[test]
fn the_head_is_never_overtaken_for_memory() {
    let mut now = one_device();
    now.devices[0].slots = 4;
    now.ready = vec![
        ready(Normal, 1, 0, 400),
        ready(Normal, 2, 0, 700),
        ready(Normal, 3, 0, 10),
    ];
    assert_eq!(starts(&decide(&now, &Accounts::new(1000))), [(1, 0, 1)]);
    // One that can never fit waits for a larger budget and holds up nobody.
    now.ready[1].ticket_bytes = 5000;
    assert_eq!(
        starts(&decide(&now, &Accounts::new(1000))),
        [(1, 0, 1), (3, 0, 1)]
    );
}

#[test]
fn idle_keys_go_before_the_head_waits_and_only_if_that_is_enough() {
    let mut now = one_device();
    now.ready = vec![ready(Normal, 1, 0, 600)];
    let mut accounts = Accounts::new(1000);
    accounts.key(process(1), Digest([1; 32]), 500);
    assert_eq!(decide(&now, &accounts), [Decision::Evict(Digest([1; 32]))]);
    accounts.evicting(Digest([1; 32]));
    assert!(decide(&now, &accounts).is_empty(), "it is on its way out");
    let mut accounts = Accounts::new(1000);
    accounts.key(process(1), Digest([1; 32]), 100);
    holding(
        &mut accounts,
        &open(Normal, 9, 0, PartitionState::Proving, 1),
        800,
    );
    assert!(
        decide(&now, &accounts).is_empty(),
        "evicting it would not be enough"
    );
    // Its own key isn't thrown away for it.
    let mut accounts = Accounts::new(1000);
    accounts.key(process(1), Digest([1; 32]), 500);
    now.ready[0].key = Some(AskedKey {
        key: Digest([1; 32]),
        bytes: 500,
        private: false,
    });
    assert!(decide(&now, &accounts).is_empty());
}

#[test]
fn a_more_urgent_head_takes_the_memory_of_witnesses_that_wait() {
    let mut now = one_device();
    now.devices[0].idle.clear();
    now.devices[0].slots = 4;
    now.open = vec![
        open(Low, 1, 0, PartitionState::Synthesized, 1),
        open(Normal, 2, 0, PartitionState::Synthesized, 1),
        open(Low, 3, 0, PartitionState::Proving, 1),
    ];
    let mut accounts = Accounts::new(1000);
    for open in &now.open {
        holding(&mut accounts, open, 300);
    }
    now.ready = vec![ready(High, 4, 0, 350)];
    assert_eq!(decide(&now, &accounts), [Decision::GiveBack(attempt(1, 0))]);
    now.ready[0].priority = Low;
    assert!(decide(&now, &accounts).is_empty(), "equals wait for each other");
    now.ready = vec![ready(High, 4, 0, 800)];
    assert!(
        decide(&now, &accounts).is_empty(),
        "both together would not be enough"
    );
}

#[test]
fn free_slots_go_to_the_most_urgent_witness_in_their_process() {
    let mut now = one_device();
    now.devices = vec![device("cpu:0", 2, 1, &[0]), device("cpu:1", 1, 2, &[2])];
    now.open = vec![
        open(Normal, 1, 0, PartitionState::Synthesized, 1),
        open(Normal, 1, 1, PartitionState::Synthesized, 1),
        open(High, 2, 0, PartitionState::Synthesized, 1),
        open(Low, 3, 0, PartitionState::Synthesized, 2),
    ];
    let decisions = decide(&now, &Accounts::new(0));
    let given: Vec<_> = decisions
        .iter()
        .map(|decision| match decision {
            Decision::GpuStart { attempt, worker, .. } => (attempt.job.0, attempt.partition, worker.0),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(given, [(2, 0, 0), (3, 0, 2)]);
}

#[test]
fn a_critical_partition_is_not_kept_out_by_as_many_ahead_as_may_be() {
    let mut now = one_device();
    now.devices[0].idle.clear();
    now.open = vec![
        open(Normal, 1, 0, PartitionState::Proving, 1),
        open(Low, 1, 1, PartitionState::Synthesizing, 1),
        open(High, 1, 2, PartitionState::Synthesized, 1),
    ];
    now.ready = vec![ready(High, 2, 0, 1)];
    assert!(decide(&now, &Accounts::new(1000)).is_empty(), "others wait");
    now.ready = vec![ready(Critical, 3, 0, 1)];
    // A witness goes at once, a synthesis only when it comes to an edge.
    assert_eq!(
        decide(&now, &Accounts::new(1000)),
        [Decision::GiveBack(attempt(1, 2))]
    );
    now.open[2].priority = Critical;
    let stopped = |decisions: &[Decision]| -> Vec<Token> {
        let token_of = |decision: &Decision| match decision {
            Decision::Stop { token, .. } => Some(*token),
            _ => None,
        };
        decisions.iter().filter_map(token_of).collect()
    };
    let stops = stopped(&decide(&now, &Accounts::new(1000)));
    assert!(stops.contains(&token(101)), "{stops:?}");
    now.open[1].asked = true;
    let stops = stopped(&decide(&now, &Accounts::new(1000)));
    assert!(!stops.contains(&token(101)), "it is asked once");
    // With room for it nobody is disturbed.
    now.open.remove(1);
    now.open[1].priority = Normal;
    assert_eq!(starts(&decide(&now, &Accounts::new(1000))), [(3, 0, 1)]);
}

#[test]
fn a_critical_partition_takes_the_memory_of_what_works_and_only_if_that_is_enough() {
    let mut now = one_device();
    now.devices[0].slots = 4;
    now.devices[0].idle.clear();
    now.open = vec![
        open(Normal, 1, 0, PartitionState::Proving, 1),
        open(Low, 2, 0, PartitionState::Proving, 1),
    ];
    let mut accounts = Accounts::new(1000);
    for open in &now.open {
        holding(&mut accounts, open, 500);
    }
    now.ready = vec![ready(High, 3, 0, 300)];
    assert!(
        decide(&now, &accounts).is_empty(),
        "others wait for what is proved"
    );
    now.ready = vec![ready(Critical, 3, 0, 300)];
    let decisions = decide(&now, &accounts);
    let [
        Decision::Stop {
            token: stopped,
            failure,
            ..
        },
    ] = &decisions[..]
    else {
        panic!("{decisions:?}")
    };
    assert_eq!((*stopped, failure.class.name()), (token(200), "preempted"));
    now.open[1].asked = true;
    assert!(decide(&now, &accounts).is_empty(), "its memory is on its way");
    now.ready = vec![ready(Critical, 3, 0, 1001)];
    now.open[1].asked = false;
    assert!(decide(&now, &accounts).is_empty(), "it would never fit");
}

#[test]
fn a_critical_witness_without_a_slot_takes_the_least_urgent_one_once() {
    let mut now = one_device();
    now.devices[0].idle.clear();
    now.open = vec![
        open(High, 1, 0, PartitionState::Proving, 1),
        open(Low, 2, 0, PartitionState::Proving, 1),
        open(Critical, 3, 0, PartitionState::Synthesized, 1),
    ];
    let decisions = decide(&now, &Accounts::new(0));
    let [
        Decision::Stop {
            token: stopped,
            failure,
            ..
        },
    ] = &decisions[..]
    else {
        panic!("{decisions:?}")
    };
    assert_eq!((*stopped, failure.class.name()), (token(200), "preempted"));
    now.open[1].asked = true;
    assert!(decide(&now, &Accounts::new(0)).is_empty());
    now.open[1].priority = Critical;
    now.open[1].asked = false;
    now.open[0].priority = Critical;
    assert!(decide(&now, &Accounts::new(0)).is_empty());
}

#[test]
fn who_must_run_alone_waits_for_an_empty_process_that_nobody_else_enters() {
    let mut now = one_device();
    now.devices.push(device("cpu:1", 1, 2, &[1]));
    now.open = vec![
        open(Normal, 1, 0, PartitionState::Proving, 1),
        open(Normal, 1, 1, PartitionState::Proving, 2),
        open(Normal, 1, 2, PartitionState::Synthesizing, 2),
    ];
    let mut loner = ready(Normal, 2, 0, 10);
    loner.alone = true;
    now.ready = vec![loner, ready(Normal, 3, 0, 10), ready(Normal, 3, 1, 10)];
    // cpu:0 has more room, so it is kept free; the others go to cpu:1.
    assert_eq!(starts(&decide(&now, &Accounts::new(1000))), [(3, 0, 2)]);
    now.open.remove(0);
    assert_eq!(
        starts(&decide(&now, &Accounts::new(1000))),
        [(2, 0, 1), (3, 0, 2)]
    );
    // While it runs nobody joins it.
    let mut running = open(Normal, 2, 0, PartitionState::Proving, 1);
    running.alone = true;
    now.open = vec![running];
    now.ready.remove(0);
    assert_eq!(
        starts(&decide(&now, &Accounts::new(1000))),
        [(3, 0, 2), (3, 1, 2)]
    );
}

/// Found by the simulation: the loner waited for the device with more room while another one stood empty.
#[test]
fn who_must_run_alone_takes_an_empty_process_though_another_one_has_more_room() {
    let mut now = one_device();
    now.devices.push(device("cuda:0", 3, 2, &[1, 2, 3]));
    now.open = vec![open(Normal, 1, 0, PartitionState::Synthesizing, 2)];
    let mut loner = ready(Normal, 2, 0, 10);
    loner.alone = true;
    now.ready = vec![loner, ready(Normal, 3, 0, 10)];
    assert_eq!(
        starts(&decide(&now, &Accounts::new(1000))),
        [(2, 0, 1), (3, 0, 2)]
    );
    // Also the one that failed it last: better than none.
    now.ready[0].avoid_device = Some("cpu:0".to_owned());
    assert_eq!(
        starts(&decide(&now, &Accounts::new(1000))),
        [(2, 0, 1), (3, 0, 2)]
    );
    now.open.clear();
    assert_eq!(
        starts(&decide(&now, &Accounts::new(1000))),
        [(2, 0, 2), (3, 0, 1)]
    );
}

#[test]
fn a_device_that_failed_a_partition_is_avoided_while_another_has_room() {
    let mut now = one_device();
    now.devices.push(device("cpu:1", 1, 2, &[1]));
    now.ready = vec![ready(Normal, 1, 0, 10)];
    now.ready[0].avoid_device = Some("cpu:0".to_owned());
    assert_eq!(starts(&decide(&now, &Accounts::new(1000))), [(1, 0, 2)]);
    now.devices[1].process = None;
    assert_eq!(starts(&decide(&now, &Accounts::new(1000))), [(1, 0, 1)]);
}

#[test]
fn stopping_jobs_are_asked_once_and_get_no_slot() {
    let mut now = one_device();
    now.open = vec![
        open(Normal, 1, 0, PartitionState::Proving, 1),
        open(Normal, 1, 1, PartitionState::Synthesizing, 1),
        open(Normal, 1, 2, PartitionState::Synthesized, 1),
    ];
    for open in &mut now.open {
        open.stopping = true;
    }
    now.open[0].asked = true;
    let decisions = decide(&now, &Accounts::new(0));
    let [Decision::Stop { token: stopped, .. }] = &decisions[..] else {
        panic!("{decisions:?}")
    };
    assert_eq!(*stopped, token(101));
}

#[test]
fn imports_come_first_one_a_process_and_checks_as_far_as_there_is_room() {
    let mut now = one_device();
    now.imports = vec![
        ImportNow {
            circuit: Digest([1; 32]),
            bytes: 5000,
        },
        ImportNow {
            circuit: Digest([2; 32]),
            bytes: 1,
        },
    ];
    now.verify = vec![JobNumber(1), JobNumber(2), JobNumber(3)];
    let decisions = decide(&now, &Accounts::new(1000));
    let [
        Decision::ImportStart { circuit, ask },
        Decision::VerifyStart(_),
        Decision::VerifyStart(_),
    ] = &decisions[..]
    else {
        panic!("{decisions:?}")
    };
    // One that asks for more than there is gets what there is.
    assert_eq!((*circuit, ask.bytes), (Digest([1; 32]), 1000));
    now.importing.insert(process(1));
    now.verify.clear();
    assert!(decide(&now, &Accounts::new(1000)).is_empty());
}

#[test]
fn timers_are_passed_on() {
    let mut now = one_device();
    now.devices[0].process = None;
    now.devices[0].resume = true;
    now.due = vec![JobNumber(1)];
    now.expired = vec![JobNumber(2)];
    now.prune = vec![JobNumber(3)];
    let expected = [
        Decision::Expire(JobNumber(2)),
        Decision::Wake(JobNumber(1)),
        Decision::Resume("cpu:0".to_owned()),
        Decision::Prune(JobNumber(3)),
    ];
    assert_eq!(decide(&now, &Accounts::new(0)), expected);
}
