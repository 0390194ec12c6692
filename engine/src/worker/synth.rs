//! One synthesis: the witness is made, checked, and waits here for the device.

use std::sync::Arc;
use std::time::Instant;

use proofkeep_store::records::{Failure, FailureClass};

use super::panics::guarded;
use super::shared::Worker;
use super::tasks::Task;
use crate::kinds::{Prepared, SynthTask, Watch as _};
use crate::protocol::{CircuitFiles, FromWorker, WireToken, Work};

/// What `Synth` asked for.
pub(super) struct Order {
    pub token: WireToken,
    pub work: Work,
    pub kind: String,
    pub circuit: Option<CircuitFiles>,
    pub request: Vec<u8>,
    pub recheck: bool,
}

pub(super) fn run(worker: &Arc<Worker>, task: &Arc<Task>, order: Order) {
    let started = Instant::now();
    let (token, work) = (order.token, order.work);
    let result = guarded(|| synthesize(worker, task, &order));
    drop(order);
    let failure = match result {
        Ok(prepared) => {
            let done = FromWorker::SynthDone {
                token,
                synth_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
                witness: prepared.witness().0,
                public: prepared.public().to_vec(),
                key: prepared.key().0,
            };
            let Err(unwanted) = worker.tasks.hold(token, work, prepared, done) else {
                return;
            };
            drop(unwanted);
            task.stopped()
                .unwrap_or_else(|| Failure::new(FailureClass::Cancelled, "the daemon ended this attempt"))
        }
        Err(failure) => failure,
    };
    worker.tasks.end(token, Some(worker.failed(token, &failure)));
}

fn synthesize(worker: &Worker, task: &Task, order: &Order) -> Result<Box<dyn Prepared>, Failure> {
    if let Some(reason) = task.stopped() {
        return Err(reason);
    }
    let kind = worker.kinds.get(&order.kind).ok_or_else(|| {
        let known = worker.kinds.names().join(", ");
        let detail = format!("this build has no proof kind {:?}; it has {known}", order.kind);
        Failure::coded(FailureClass::InputInvalid, "unknown-kind", detail)
    })?;
    kind.synthesize(
        &SynthTask {
            request: &order.request,
            partition: order.work.partition,
            circuit: order.circuit.as_ref(),
            shelf: &worker.shelf,
            scratch: &worker.shelf.scratch,
            threads: &worker.threads,
            wasm: worker.wasm,
            recheck: order.recheck,
            keys: &worker.keys,
        },
        task,
    )
}
