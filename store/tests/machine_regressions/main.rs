//! The faults of the reference system (and of its peers), one test each, named after the fault.
//!
//! Each scenario runs twice: with every rule it must hold; without the one rule that prevents the fault the same
//! scenario must show it. A regression test that can't fail proves nothing.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../common/mod.rs"]
mod common;

mod peers;

use std::collections::BTreeMap;

use common::*;
use proofkeep_store::ids::{JobNumber, WorkerId};
use proofkeep_store::keys::{self, Family};
use proofkeep_store::machine::{Command, MOST_DEATHS, Refusal, Reply, Rules};
use proofkeep_store::query;
use proofkeep_store::records::{Attempt, FailureClass, Generation, JobState, OnFailure, PartitionState};
use proofkeep_store::view::records;

/// `Ok` when the right thing happened, `Err` with what went wrong.
type Check = Result<(), String>;

macro_rules! must {
    ($holds:expr, $($text:tt)+) => {
        if !$holds {
            return Err(format!($($text)+));
        }
    };
}

/// Runs the scenario with every rule, then without `rule`, where it must show `fault`.
fn prevented_by(rule: &str, fault: &str, scenario: impl Fn(&mut World) -> Check) {
    let mut world = World::with(Rules::ALL, &[("cpu:0", 2)]);
    if let Err(wrong) = scenario(&mut world) {
        panic!("with every rule: {wrong}");
    }
    let rules = Rules::without(rule).expect("there is such a rule");
    let mut world = World::with(rules, &[("cpu:0", 2)]);
    match scenario(&mut world) {
        Ok(()) => panic!("without {rule} the fault does not show, so this test tests nothing"),
        Err(shown) => assert!(
            shown.contains(fault),
            "without {rule}: expected {fault:?}, shown: {shown}"
        ),
    }
}

fn step(world: &mut World, command: &Command) -> Result<Reply, String> {
    world.step(command).map_err(|refusal| refusal.to_string())
}

/// What a status page says of each worker: what it proves.
fn shown_workers(world: &World) -> Vec<Option<(JobNumber, u32)>> {
    let status = query::status(&world.view, world.now, query::StatusLimits::default()).unwrap();
    status
        .workers
        .iter()
        .map(|worker| worker.busy.map(|(job, partition, _)| (job, partition)))
        .collect()
}

fn cuzk(world: &World) -> query::CuzkStatus {
    let status = query::status(&world.view, world.now, query::StatusLimits::default()).unwrap();
    let surroundings = query::Surroundings {
        memory: query::CuzkMemory::default(),
        max_concurrent: 4,
        srs: Vec::new(),
        pce: Vec::new(),
    };
    query::cuzk(&status, &surroundings)
}

/// Counters as told, and as counted from the records that are there plus what pruned jobs left.
fn counted(world: &World) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let told = numbers(world, Family::Counter);
    let mut recount = numbers(world, Family::PrunedCounter);
    recount.retain(|name, _| name.contains('/'));
    for attempt in records::<Attempt>(&world.view, &keys::family(Family::Attempt)).unwrap() {
        if let Some(outcome) = attempt.outcome {
            *recount
                .entry(keys::attempts_counter("groth16", outcome.name()))
                .or_default() += 1;
        }
    }
    for generation in records::<Generation>(&world.view, &keys::family(Family::Generation)).unwrap() {
        if let Some(state) = generation.ended {
            *recount.entry(keys::jobs_counter("groth16", state)).or_default() += 1;
        }
    }
    (told, recount)
}

fn numbers(world: &World, family: Family) -> BTreeMap<String, u64> {
    let pairs = world.view.0.iter().filter(|(key, _)| key[0] == family as u8);
    pairs
        .map(|(key, value)| {
            let name = String::from_utf8(key[1..].to_vec()).unwrap();
            (name, proofkeep_store::codec::read_number(value).unwrap())
        })
        .collect()
}

/// Partition 3 is preempted, its worker starts partition 4, and only then the end of 3 arrives.
fn late_end(world: &mut World) -> Result<JobNumber, String> {
    let job = world.new_job(5);
    let third = world.proving(job, 3, 0);
    step(world, &failed(third, FailureClass::Preempted))?;
    world.proving(job, 4, 0);
    step(world, &gpu_end(third))?;
    Ok(job)
}

#[test]
fn r1_a_late_end_does_not_clear_a_worker_that_holds_the_next_partition() {
    prevented_by("end_names_its_lease", "the worker lost partition 4", |world| {
        let job = late_end(world)?;
        must!(
            world.busy(0) == world.partition(job, 4).token,
            "the worker lost partition 4"
        );
        must!(
            world.state(job, 4) == PartitionState::Proving,
            "partition 4 is {:?}",
            world.state(job, 4)
        );
        Ok(())
    });
}

#[test]
fn r2_every_picture_of_a_worker_is_the_same_truth() {
    prevented_by("end_names_its_lease", "status shows [None", |world| {
        let job = late_end(world)?;
        must!(
            shown_workers(world)[0] == Some((job, 4)),
            "status shows {:?}",
            shown_workers(world)
        );
        let cuzk = cuzk(world);
        let worker = &cuzk.gpu_workers[0];
        must!(
            worker.state == "proving" && worker.current_partition == Some(4),
            "the cuzk picture shows {worker:?}"
        );
        let cell = cuzk.pipelines[0]
            .partitions
            .iter()
            .find(|cell| cell.index == 4)
            .unwrap();
        must!(
            cell.state == "gpu",
            "the cuzk picture shows partition 4 as {}",
            cell.state
        );
        Ok(())
    });
}

#[test]
fn r3_a_late_end_of_another_job_with_the_same_partition_number_ends_nothing() {
    prevented_by("tokens_never_repeat", "the late end was answered Done", |world| {
        let first = world.new_job(1);
        let old = world.proving(first, 0, 0);
        step(world, &failed(old, FailureClass::Unsatisfied))?;
        let second = world.new_job(1);
        let new = world.proving(second, 0, 0);
        let reply = step(world, &gpu_end(old))?;
        must!(reply == Reply::Stale, "the late end was answered {reply:?}");
        must!(world.busy(0) == Some(new), "the worker lost its partition");
        Ok(())
    });
}

#[test]
fn r4_no_picture_shows_all_done_and_the_job_unfinished() {
    prevented_by(
        "last_proof_moves_the_job",
        "3 of 3 proved, the job is running",
        |world| {
            let job = world.new_job(3);
            for partition in 0..3 {
                world.prove(job, partition);
                let record = world.job(job);
                let done = record.tally.proved == record.partitions;
                must!(
                    done == (record.state == JobState::Verifying),
                    "{} of {} proved, the job is {}",
                    record.tally.proved,
                    record.partitions,
                    record.state.name()
                );
            }
            Ok(())
        },
    );
}

#[test]
fn r5_a_partition_that_is_finished_holds_no_slot_and_does_not_count_as_proving() {
    prevented_by(
        "finishing_frees_the_slot",
        "the slot still counts as proving",
        |world| {
            let job = world.new_job(2);
            let token = world.proving(job, 0, 0);
            world.synthesized(job, 1);
            step(world, &gpu_end(token))?;
            must!(
                world.state(job, 0) == PartitionState::Finishing,
                "it is {:?}",
                world.state(job, 0)
            );
            must!(
                shown_workers(world)[0].is_none(),
                "the slot still counts as proving"
            );
            let gpu = Command::GpuStart {
                job,
                partition: 1,
                attempt: 1,
                worker: WorkerId(0),
            };
            step(world, &gpu)?;
            step(world, &proof(token))?;
            must!(
                shown_workers(world)[0] == Some((job, 1)),
                "the tail of partition 0 cleared the slot of 1"
            );
            Ok(())
        },
    );
}

#[test]
fn r6_a_failure_is_never_shown_as_done() {
    prevented_by("failure_is_not_success", "it is Proved", |world| {
        let job = world.new_job(1);
        let token = world.finishing(job, 0);
        step(world, &failed(token, FailureClass::DeviceError))?;
        must!(
            world.state(job, 0) == PartitionState::Waiting,
            "it is {:?}",
            world.state(job, 0)
        );
        let outcome = world.attempt(job, 0, 1).outcome.unwrap();
        must!(
            outcome.name() == "device_error",
            "the attempt ended {}",
            outcome.name()
        );
        must!(
            world.counter("attempts/groth16/device_error") == 1,
            "the failure isn't counted"
        );
        Ok(())
    });
}

#[test]
fn r7_a_worker_of_a_job_that_already_failed_is_freed_by_its_own_end() {
    prevented_by("stopping_frees_workers", "the worker proves for ever", |world| {
        let mut submit = world.submit(3);
        submit.on_failure = OnFailure::Stop;
        let job = world.submitted(submit);
        let proving = world.proving(job, 0, 0);
        let failing = world.synth(job, 1);
        step(world, &failed(failing, FailureClass::Unsatisfied))?;
        must!(shown_workers(world)[0] == Some((job, 0)), "stopping only asks");
        step(world, &failed(proving, FailureClass::Cancelled))?;
        must!(
            world.job(job).state == JobState::Failed,
            "the job is {:?}",
            world.job(job).state
        );
        must!(shown_workers(world)[0].is_none(), "the worker proves for ever");
        let next = world.new_job(1);
        world.synthesized(next, 0);
        let gpu = Command::GpuStart {
            job: next,
            partition: 0,
            attempt: 1,
            worker: WorkerId(0),
        };
        step(world, &gpu)?;
        Ok(())
    });
}

#[test]
fn r8_a_start_that_fails_leaks_nothing_and_its_siblings_stop() {
    prevented_by("every_end_ends_the_lease", "leases are left", |world| {
        let mut submit = world.submit(4);
        submit.on_failure = OnFailure::Stop;
        let job = world.submitted(submit);
        world.synthesized(job, 0);
        let failing = world.proving(job, 1, 0);
        step(world, &failed(failing, FailureClass::ParamsMismatch))?;
        must!(world.leases().is_empty(), "leases are left: {:?}", world.leases());
        must!(world.busy(0).is_none(), "the slot is left busy");
        must!(
            world.state(job, 0) == PartitionState::Cancelled,
            "a sibling goes on"
        );
        must!(
            world.job(job).state == JobState::Failed,
            "the job is {:?}",
            world.job(job).state
        );
        Ok(())
    });
}

#[test]
fn r9_a_failed_job_is_counted_and_leaves() {
    prevented_by("failed_jobs_end", "the job is Stopping(Failed)", |world| {
        let job = world.new_job(2);
        world.prove(job, 0);
        world.fail(job, 1, FailureClass::Unsatisfied);
        must!(
            world.job(job).state == JobState::Failed,
            "the job is {:?}",
            world.job(job).state
        );
        must!(world.counter("jobs/groth16/failed") == 1, "it isn't counted");
        let cuzk = cuzk(world);
        must!(
            cuzk.counters.total_failed == 1,
            "the cuzk picture counts {}",
            cuzk.counters.total_failed
        );
        must!(cuzk.counters.queue_depth == 0, "something of it waits");
        let active = query::active_jobs(&world.view, None, 10).unwrap();
        must!(active.jobs.is_empty(), "it is still in the queue");
        Ok(())
    });
}

#[test]
fn r10_counters_are_what_a_recount_finds_and_never_fall() {
    prevented_by("ends_are_counted", "told {}, counted {", |world| {
        let mut before = BTreeMap::new();
        for round in 0..6 {
            let job = world.new_job(2);
            match round {
                0 => world.succeed(job),
                1 => world.fail(job, 0, FailureClass::Unsatisfied),
                2 => world.fail(job, 0, FailureClass::DeviceError),
                3 => {
                    world.synth(job, 0);
                    world.crash("cpu:0");
                }
                4 => {
                    world.synthesized(job, 1);
                    world.boot(&[("cpu:0", 2)]);
                }
                _ => {
                    let token = world.proving(job, 0, 0);
                    world.run(failed(token, FailureClass::Preempted));
                    world.run(failed(token, FailureClass::Preempted));
                }
            }
            if !world.job(job).state.is_terminal() {
                world.cancel(job);
            }
            if round % 2 == 0 {
                world.prune(job);
            }
            let (told, recount) = counted(world);
            must!(told == recount, "told {told:?}, counted {recount:?}");
            for (name, value) in &before {
                must!(told.get(name) >= Some(value), "{name} fell below {value}");
            }
            before = told;
        }
        Ok(())
    });
}

#[test]
fn r11_two_jobs_with_one_key_are_one_job_and_nobody_waits_for_ever() {
    prevented_by("keys_are_unique", "one key names jobs", |world| {
        let mut first = world.submit(1);
        first.idempotency_key = Some("porep-1000-7".into());
        let mut second = first.clone();
        second.id = uuid::Uuid::from_u128(42);
        let mut numbers = Vec::new();
        for submit in [first, second] {
            match step(world, &Command::Submit(submit))? {
                Reply::Submitted { job, .. } => numbers.push(job),
                other => return Err(format!("{other:?}")),
            }
        }
        must!(numbers[0] == numbers[1], "one key names jobs {numbers:?}");
        // Two keys are two jobs, and both callers get their end.
        let mut other = world.submit(1);
        other.idempotency_key = Some("porep-1000-8".into());
        numbers[1] = world.submitted(other);
        for job in numbers {
            world.succeed(job);
        }
        Ok(())
    });
}

#[test]
fn r12_one_key_with_two_requests_never_mixes_two_proofs() {
    prevented_by(
        "keys_pin_the_request",
        "another request was answered Ok",
        |world| {
            let mut first = world.submit(2);
            first.idempotency_key = Some("snap-1000-7".into());
            let mut other = world.submit(3);
            other.idempotency_key = Some("snap-1000-7".into());
            let job = world.submitted(first.clone());
            world.prove(job, 0);
            for moment in 0..3 {
                let answer = world.step(&Command::Submit(other.clone()));
                must!(
                    matches!(answer, Err(Refusal::IdempotencyMismatch { job: id }) if id == first.id),
                    "moment {moment}: another request was answered {answer:?}"
                );
                let again = world.step(&Command::Submit(first.clone()));
                must!(
                    matches!(again, Ok(Reply::Submitted { job: same, .. }) if same == job),
                    "{again:?}"
                );
                match moment {
                    0 => world.succeed(job),
                    _ => drop(world.boot(&[("cpu:0", 2)])),
                }
            }
            Ok(())
        },
    );
}

/// A partition that died in synthesis, then on the device, then in synthesis again was tried for ever, and cost its
/// device a process each time: to pass a stage that it had passed before cleared the count.
#[test]
fn r13_deaths_that_alternate_between_stages_are_parked() {
    prevented_by("progress_is_new", "is not parked", |world| {
        let job = world.new_job(1);
        for death in 0..MOST_DEATHS {
            let token = world.synth(job, 0);
            if death % 2 == 1 {
                world.run(synth_end(token));
                world.gpu(job, 0, 0);
            }
            world.crash("cpu:0");
            if world.state(job, 0) == PartitionState::Failed {
                return Ok(());
            }
        }
        Err(format!("after {MOST_DEATHS} deaths it is not parked"))
    });
}

#[test]
fn every_rule_has_its_regression_test() {
    let here: String = include_str!("main.rs").split_whitespace().collect();
    for rule in Rules::NAMES {
        let test = format!("prevented_by(\"{rule}\"");
        assert!(here.contains(&test), "{rule} has no test that shows its fault");
    }
}
