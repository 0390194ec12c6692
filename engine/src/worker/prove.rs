//! One proof: the device stage under its lease, then what needs no device.

use std::sync::Arc;
use std::time::Instant;

use proofkeep_store::ids::Digest;
use proofkeep_store::records::{Failure, FailureClass, Piece};

use super::memory;
use super::panics::guarded;
use super::shared::Worker;
use super::tasks::Task;
use crate::kinds::{Prepared, Proved};
use crate::lease::Lease;
use crate::protocol::{FromWorker, WirePiece, WireToken, Work};

/// What `Prove` asked for.
pub(super) struct Order {
    pub token: WireToken,
    pub work: Work,
    pub witness: [u8; 32],
    pub key: [u8; 32],
    pub pieces: Vec<WirePiece>,
}

pub(super) fn run(worker: &Arc<Worker>, task: &Arc<Task>, order: Order) {
    let (token, outbox) = (order.token, Arc::clone(&worker.outbox));
    let last = Arc::clone(worker);
    // A lease that fails is the end of its task; one that is released is not.
    let report = move |word: FromWorker| match word {
        FromWorker::Failed { .. } => last.tasks.end(token, Some(word)),
        other => outbox.say(other),
    };
    let lease = Lease::new(token, Arc::clone(&worker.device), Box::new(report));
    let Some(prepared) = worker.tasks.take(order.work) else {
        let failure = Failure::coded(
            FailureClass::DeviceError,
            "witness-gone",
            "the witness of this attempt is not in this process any more; it is made again",
        );
        lease.fail(&failure, memory::peak());
        return;
    };
    let started = Instant::now();
    match on_device(worker, task, &lease, prepared, order) {
        Err(failure) => lease.fail(&failure, memory::peak()),
        Ok((prepared, proved)) => {
            let gpu_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            lease.release(gpu_ms, proved.reused, proved.saved_ms);
            worker.outbox.flush();
            let finished = guarded(|| prepared.finish(&**task));
            let word = match finished {
                Ok(bytes) => FromWorker::Proof {
                    token,
                    bytes,
                    peak_bytes: memory::peak(),
                },
                Err(failure) => worker.failed(token, &failure),
            };
            worker.tasks.end(token, Some(word));
        }
    }
}

/// The device stage. On failure the witness is gone when this returns.
fn on_device(
    worker: &Worker,
    task: &Task,
    lease: &Lease,
    mut prepared: Box<dyn Prepared>,
    order: Order,
) -> Result<(Box<dyn Prepared>, Proved), Failure> {
    let belongs = prepared.witness() == Digest(order.witness) && prepared.key() == Digest(order.key);
    let known: Vec<Piece> = if belongs {
        order
            .pieces
            .into_iter()
            .map(|piece| piece.into_piece(order.work.attempt))
            .collect()
    } else {
        Vec::new()
    };
    let mut unsaved: Vec<WirePiece> = Vec::new();
    let mut sink = |piece: Piece| {
        unsaved.push((&piece).into());
        if unsaved.iter().map(|piece| piece.millis).sum::<u64>() >= worker.checkpoint_after_ms {
            save(worker, order.token, &mut unsaved);
        }
    };
    let result = guarded(|| prepared.prove(lease, &known, &mut sink, task));
    match result {
        Ok(proved) => Ok((prepared, proved)),
        Err(failure) => {
            // Whoever tries next goes on from here; a stopped job has no next try.
            if failure.class != FailureClass::Cancelled {
                save(worker, order.token, &mut unsaved);
            }
            Err(failure)
        }
    }
}

fn save(worker: &Worker, token: WireToken, unsaved: &mut Vec<WirePiece>) {
    if !unsaved.is_empty() {
        worker.outbox.say(FromWorker::Pieces {
            token,
            pieces: std::mem::take(unsaved),
        });
        worker.outbox.flush();
    }
}
