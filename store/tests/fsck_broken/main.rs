//! A store broken by hand, in every way that a promise can be broken: `fsck` must name it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod anything;
mod attempts;
mod counters;
mod edges;
mod ended_jobs;
mod idempotency_keys;
mod indexes;
mod journal;
mod proofs;
mod queue;
#[path = "../fsck_support/mod.rs"]
mod support;
mod workers;

use proofkeep_store::codec;
use proofkeep_store::event::{Event, What};
use proofkeep_store::fsck::{Invariant, Mode, fsck};
use proofkeep_store::ids::{
    BootNumber, Digest, JobNumber, JournalNumber, Millis, ProcessId, Token, WorkerId,
};
use proofkeep_store::keys::{self, Family};
use proofkeep_store::records::{
    Attempt, AttemptRef, Boot, Checkpoint, Circuit, CircuitState, Device, Generation, Job, JobState, Lease,
    Outcome, Partition, PartitionState, Priority, Stage, StopTarget, StoredProof, Subject, Worker,
    WorkerState,
};
use proofkeep_store::view::View;
use support::{CANCELLED, DONE, FAILED, QUEUED, RUNNING, VERIFYING, World, busy_world, digest};

/// Breaks a busy store and expects a finding of that kind at a place with these words; `live`: at every start too.
#[track_caller]
fn broken(invariant: Invariant, place: &str, live: bool, breaking: impl FnOnce(&mut World)) {
    let mut world = busy_world();
    breaking(&mut world);
    let modes: &[Mode] = if live {
        &[Mode::Full, Mode::Live]
    } else {
        &[Mode::Full]
    };
    for mode in modes {
        let report = fsck(&world.view, *mode, None).unwrap();
        let named = report
            .findings
            .iter()
            .any(|finding| finding.invariant == invariant && finding.place.contains(place));
        let all: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        assert!(
            named,
            "{mode:?}: expected [{invariant}] {place}, found:\n{}",
            all.join("\n")
        );
    }
}

fn remove(world: &mut World, key: &[u8]) -> Vec<u8> {
    world.view.0.remove(key).expect("there is something to remove")
}

fn insert(world: &mut World, key: Vec<u8>) {
    assert!(
        world.view.0.insert(key, Vec::new()).is_none(),
        "it was there already"
    );
}

fn partition_change(
    job: JobNumber,
    index: u32,
    change: impl FnOnce(&mut Partition),
) -> impl FnOnce(&mut World) {
    move |world| world.change::<Partition>(keys::partition(job, index), change)
}

fn token_of(world: &World, job: JobNumber, index: u32) -> Token {
    world
        .record::<Partition>(&keys::partition(job, index))
        .token
        .expect("it holds a lease")
}

fn attempt(job: JobNumber, partition: u32, number: u32) -> Vec<u8> {
    keys::attempt(AttemptRef {
        job,
        partition,
        number,
    })
}

/// The first event of a job that `wanted` accepts.
fn event_of(world: &World, job: JobNumber, wanted: impl Fn(&What) -> bool) -> Event {
    world
        .view
        .scan(&keys::of_job(Family::JobEvent, job), None, usize::MAX)
        .unwrap()
        .iter()
        .map(|(key, _)| u64::from_be_bytes(key[9..].try_into().unwrap()))
        .map(|number| world.record::<Event>(&keys::event(JournalNumber(number))))
        .find(|event| wanted(&event.what))
        .expect("the job has such an event")
}
