//! Holds the store against the model: every state, every holder, every count.

use std::collections::BTreeSet;

use proofkeep_store::codec;
use proofkeep_store::ids::Token;
use proofkeep_store::keys::{self, Family};
use proofkeep_store::records::{
    Checkpoint, Circuit as StoredCircuit, CircuitState, Job as StoredJob, Lease,
    Partition as StoredPartition, Queue, Worker, WorkerState,
};
use proofkeep_store::view::{View, for_each, record, records};

use super::model::{Circuit, Model};

/// The first difference, if there is one.
pub fn difference(model: &Model, view: &dyn View) -> Option<String> {
    jobs(model, view)
        .or_else(|| holders(model, view))
        .or_else(|| circuits(model, view))
        .or_else(|| counts(model, view))
}

macro_rules! same {
    ($what:expr, $model:expr, $store:expr) => {
        let (model, store) = (&$model, &$store);
        if model != store {
            return Some(format!(
                "{}: the model says {model:?}, the store {store:?}",
                $what
            ));
        }
    };
}

fn jobs(model: &Model, view: &dyn View) -> Option<String> {
    let stored: Vec<StoredJob> = records(view, &keys::family(Family::Job)).unwrap();
    let numbers: Vec<_> = stored.iter().map(|job| job.number).collect();
    same!("jobs", model.jobs.keys().copied().collect::<Vec<_>>(), numbers);
    for found in stored {
        let number = found.number;
        let job = &model.jobs[&number];
        same!(format!("state of job {number}"), job.state, found.state);
        same!(
            format!("final check of job {number}"),
            job.verify,
            found.verifying
        );
        same!(
            format!("generation of job {number}"),
            job.generation,
            found.generation
        );
        same!(format!("request of job {number}"), job.request, found.request);
        same!(format!("deadline of job {number}"), job.deadline, found.deadline);
        let partitions: Vec<StoredPartition> =
            records(view, &keys::of_job(Family::Partition, number)).unwrap();
        same!(
            format!("partitions of job {number}"),
            job.partitions.len(),
            partitions.len()
        );
        for (partition, found) in job.partitions.iter().zip(partitions) {
            let place = format!("partition {} of job {number}", found.index);
            same!(format!("state of {place}"), partition.state, found.state);
            same!(format!("lease of {place}"), partition.token, found.token);
            same!(format!("worker of {place}"), partition.worker, found.worker);
            same!(format!("process of {place}"), partition.process, found.process);
            same!(format!("attempts at {place}"), partition.attempts, found.attempts);
            same!(
                format!("counted failures of {place}"),
                partition.counted,
                found.counted
            );
            same!(format!("waking of {place}"), partition.wake_at, found.wake_at);
            same!(format!("isolation of {place}"), partition.alone, found.alone);
            same!(format!("re-check of {place}"), partition.recheck, found.recheck);
            let poison = found
                .poison
                .map(|poison| (poison.stage, poison.deaths, poison.deaths_alone));
            same!(format!("deaths of {place}"), partition.poison, poison);
            let kept: Option<Checkpoint> = record(view, &keys::checkpoint(number, found.index)).unwrap();
            let pieces: BTreeSet<String> = kept
                .into_iter()
                .flat_map(|kept| kept.pieces)
                .map(|piece| piece.name)
                .collect();
            same!(format!("pieces of {place}"), partition.pieces, pieces);
        }
    }
    None
}

fn holders(model: &Model, view: &dyn View) -> Option<String> {
    let workers: Vec<Worker> = records(view, &keys::family(Family::Worker)).unwrap();
    let busy: Vec<Option<Token>> = workers
        .iter()
        .map(|worker| match worker.state {
            WorkerState::Idle => None,
            WorkerState::Busy { token, .. } => Some(token),
        })
        .collect();
    same!(
        "workers",
        model.workers.iter().map(|(_, held)| *held).collect::<Vec<_>>(),
        busy
    );
    let leases: Vec<Lease> = records(view, &keys::family(Family::Lease)).unwrap();
    let held: BTreeSet<Token> = leases.iter().map(|lease| lease.token).collect();
    let mut expected: BTreeSet<Token> = model.jobs.values().filter_map(|job| job.verify).collect();
    expected.extend(
        model
            .jobs
            .values()
            .flat_map(|job| &job.partitions)
            .filter_map(|partition| partition.token),
    );
    expected.extend(model.circuits.values().filter_map(|circuit| match circuit {
        Circuit::Importing { token, .. } => *token,
        _ => None,
    }));
    same!("leases", expected, held);
    None
}

fn circuits(model: &Model, view: &dyn View) -> Option<String> {
    let stored: Vec<StoredCircuit> = records(view, &keys::family(Family::Circuit)).unwrap();
    same!("circuits", model.circuits.len(), stored.len());
    for found in stored {
        let same = match (model.circuits.get(&found.digest), &found.state) {
            (
                Some(Circuit::Importing {
                    token, done, deaths, ..
                }),
                CircuitState::Importing(import),
            ) => (*token, *done, *deaths) == (import.token, import.done, import.deaths),
            (Some(Circuit::Ready), CircuitState::Ready)
            | (Some(Circuit::Failed), CircuitState::Failed(_)) => true,
            _ => false,
        };
        if !same {
            return Some(format!(
                "the model has {:?}, the store {:?}",
                model.circuits.get(&found.digest),
                found.state
            ));
        }
    }
    None
}

fn counts(model: &Model, view: &dyn View) -> Option<String> {
    let queue: Queue = record(view, &keys::queue()).unwrap().unwrap_or_default();
    same!(
        "the queue",
        (model.paused, model.draining),
        (queue.paused, queue.draining)
    );
    let mut counters = std::collections::BTreeMap::new();
    for_each(view, &keys::family(Family::Counter), |key, value| {
        let name = String::from_utf8(key[1..].to_vec()).unwrap();
        counters.insert(name, codec::read_number(value).unwrap());
        Ok(())
    })
    .unwrap();
    same!("counters", model.counters, counters);
    None
}
