//! Boots, devices, workers and leases.

use std::collections::BTreeMap;

use super::Invariant;
use super::checker::Checker;
use super::names::token_of;
use crate::event::{Event, What};
use crate::keys::{self, Family};
use crate::records::{
    Boot, Circuit, CircuitState, Device, Job, JobState, Lease, Partition, Queue, Stage, Subject, Worker,
    WorkerState,
};
use crate::view::ReadError;

pub(super) fn check(checker: &mut Checker<'_>) -> Result<(), ReadError> {
    let boot = boots(checker)?;
    checker.get::<Queue>(&keys::queue())?;
    let devices: Vec<Device> = checker.records(&keys::family(Family::Device))?;
    check_devices(checker, &devices, boot.as_ref());
    workers(checker, &devices)?;
    leases(checker, &devices)?;
    checker.walk(&keys::family(Family::Stale), |checker, key, _| {
        let old = token_of(key).is_none_or(|token| token.boot != checker.boot);
        checker.find_if(
            old,
            Invariant::Index,
            key,
            "the note is of an earlier boot and should be gone",
        );
        Ok(())
    })
}

/// Boots are numbered without a hole, and only the last one may be open. Answers the last.
fn boots(checker: &mut Checker<'_>) -> Result<Option<Boot>, ReadError> {
    let boots: Vec<Boot> = checker.records(&keys::family(Family::Boot))?;
    let last = checker.boot;
    let mut expected = 1;
    for boot in &boots {
        let key = keys::boot(boot.number);
        let hole = boot.number.0 != expected;
        checker.find_if(
            hole,
            Invariant::Journal,
            &key,
            format!("expected boot {expected} next, found {}", boot.number),
        );
        expected = boot.number.0 + 1;
        let open = boot.ended.is_none() && boot.number != last;
        checker.find_if(
            open,
            Invariant::Journal,
            &key,
            "it is open although a later boot began",
        );
    }
    if last.0 != expected - 1 {
        let text = format!(
            "the last boot is said to be {last}, the last one found is {}",
            expected - 1
        );
        checker.missing(Invariant::Journal, &keys::sequence(keys::Sequence::Boot), text);
    }
    Ok(boots.into_iter().find(|boot| boot.number == last))
}

fn check_devices(checker: &mut Checker<'_>, devices: &[Device], boot: Option<&Boot>) {
    for device in devices {
        let Some(process) = device.process else { continue };
        let spawns = boot.map_or(0, |boot| boot.spawns);
        let known = process.boot == checker.boot && process.spawn >= 1 && process.spawn <= spawns;
        checker.find_if(
            !known,
            Invariant::Workers,
            &keys::device(&device.name),
            format!(
                "its process is {process}, which boot {} with {spawns} processes did not start",
                checker.boot
            ),
        );
    }
}

/// Invariant 1 from the worker's side.
fn workers(checker: &mut Checker<'_>, devices: &[Device]) -> Result<(), ReadError> {
    let workers: Vec<Worker> = checker.records(&keys::family(Family::Worker))?;
    let mut slots: BTreeMap<&str, u32> = devices.iter().map(|device| (device.name.as_str(), 0)).collect();
    let mut holders = BTreeMap::new();
    for (expected, worker) in (0..).zip(&workers) {
        let key = keys::worker(worker.id);
        checker.find_if(
            worker.id.0 != expected,
            Invariant::Workers,
            &key,
            format!("expected worker {expected} next, found {}", worker.id),
        );
        match slots.get_mut(worker.device.as_str()) {
            Some(count) => *count += 1,
            None => checker.find(
                Invariant::Workers,
                &key,
                format!("there is no device {}", worker.device),
            ),
        }
        let WorkerState::Busy {
            token,
            job,
            partition,
            ..
        } = worker.state
        else {
            continue;
        };
        if let Some(other) = holders.insert(token, worker.id) {
            checker.find(
                Invariant::Workers,
                &key,
                format!("worker {other} holds the same lease {token}"),
            );
        }
        let lease = checker.get::<Lease>(&keys::lease(token))?;
        let subject = Subject::Partition {
            job,
            partition,
            stage: Stage::Prove,
        };
        let backed = lease.is_some_and(|lease| lease.subject == subject && lease.worker == Some(worker.id));
        checker.find_if(
            !backed,
            Invariant::Workers,
            &key,
            format!(
                "it is busy with partition {partition} of job {job} under lease {token}, and no such lease is in \
                 force for it"
            ),
        );
        let held = checker
            .get::<Partition>(&keys::partition(job, partition))?
            .is_some_and(|found| found.token == Some(token) && found.worker == Some(worker.id));
        checker.find_if(
            !held,
            Invariant::Workers,
            &key,
            format!(
                "it is busy with partition {partition} of job {job}, which isn't proving under lease {token}"
            ),
        );
    }
    for device in devices {
        let found = slots.get(device.name.as_str()).copied().unwrap_or(0);
        checker.find_if(
            found != device.slots,
            Invariant::Workers,
            &keys::device(&device.name),
            format!("it has {} slots and {found} workers", device.slots),
        );
    }
    Ok(())
}

/// Invariant 1 from the lease's side.
fn leases(checker: &mut Checker<'_>, devices: &[Device]) -> Result<(), ReadError> {
    let leases: Vec<Lease> = checker.records(&keys::family(Family::Lease))?;
    for lease in &leases {
        let key = keys::lease(lease.token);
        let text = format!("it was granted by boot {}, which has ended", lease.token.boot);
        checker.find_if(lease.token.boot != checker.boot, Invariant::Workers, &key, text);
        if let Some(process) = lease.process
            && !devices.iter().any(|device| device.process == Some(process))
        {
            let text = format!("its process {process} is not the live process of any device");
            checker.find(Invariant::Workers, &key, text);
        }
        let held = match lease.subject {
            Subject::Partition {
                job,
                partition,
                stage,
            } => {
                let found = checker.get::<Partition>(&keys::partition(job, partition))?;
                found.is_some_and(|found| {
                    found.token == Some(lease.token)
                        && found.state.stage() == Some(stage)
                        && found.worker == lease.worker
                })
            }
            Subject::Verify { job } => {
                let found = checker.get::<Job>(&keys::job(job))?;
                found.is_some_and(|found| {
                    found.verifying == Some(lease.token)
                        && matches!(found.state, JobState::Verifying | JobState::Stopping(_))
                })
            }
            Subject::Import { circuit } => {
                let found = checker.get::<Circuit>(&keys::circuit(circuit))?;
                found.is_some_and(|found| {
                    matches!(found.state, CircuitState::Importing(import) if import.token == Some(lease.token))
                })
            }
        };
        let text = format!("nothing is held by it; expected {}", subject_words(lease.subject));
        checker.find_if(!held, Invariant::Workers, &key, text);
        grant(checker, lease)?;
    }
    Ok(())
}

fn subject_words(subject: Subject) -> String {
    match subject {
        Subject::Partition {
            job,
            partition,
            stage,
        } => {
            format!("partition {partition} of job {job} in stage {}", stage.name())
        }
        Subject::Verify { job } => format!("job {job} in its final check"),
        Subject::Import { circuit } => format!("circuit {circuit} in its import"),
    }
}

/// A token is named after the event that granted it, which is what keeps tokens from repeating.
fn grant(checker: &mut Checker<'_>, lease: &Lease) -> Result<(), ReadError> {
    let event = checker.get::<Event>(&keys::event(lease.token.grant))?;
    let granted = event.is_some_and(|event| {
        let same = match (&event.what, lease.subject) {
            (
                What::SynthStarted {
                    partition: granted, ..
                },
                Subject::Partition {
                    job,
                    partition,
                    stage,
                },
            ) => stage == Stage::Synth && event.job == Some(job) && *granted == partition,
            (
                What::ProveStarted {
                    partition: granted, ..
                },
                Subject::Partition {
                    job,
                    partition,
                    stage,
                },
            ) => stage != Stage::Synth && event.job == Some(job) && *granted == partition,
            (What::VerifyStarted, Subject::Verify { job }) => event.job == Some(job),
            (What::ImportStarted { circuit: granted, .. }, Subject::Import { circuit }) => {
                *granted == circuit
            }
            _ => false,
        };
        same && event.boot == lease.token.boot
    });
    checker.find_if(
        !granted,
        Invariant::Attempts,
        &keys::lease(lease.token),
        format!(
            "event {} of boot {} did not grant it",
            lease.token.grant, lease.token.boot
        ),
    );
    Ok(())
}
