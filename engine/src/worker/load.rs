//! One key that is loaded before anybody needs it.

use std::sync::Arc;

use proofkeep_store::ids::Digest;
use proofkeep_store::records::{Failure, FailureClass};

use super::panics::guarded;
use super::shared::Worker;
use crate::kinds::{LoadTask, Watch};
use crate::protocol::FromWorker;

/// What `Load` asked for.
pub(super) struct Order {
    pub kind: String,
    pub key: [u8; 32],
    pub name: String,
    pub file: Option<String>,
}

/// No lease, so nobody hears of progress; it ends with the process.
struct Unwatched;

impl Watch for Unwatched {
    fn progress(&self, _permille: u16) {}

    fn stopped(&self) -> Option<Failure> {
        None
    }
}

pub(super) fn run(worker: &Arc<Worker>, order: &Order) {
    let loaded = guarded(|| {
        let kind = worker.kinds.get(&order.kind).ok_or_else(|| {
            let detail = format!("this build has no proof kind {:?}", order.kind);
            Failure::coded(FailureClass::InputInvalid, "unknown-kind", detail)
        })?;
        kind.load(
            &LoadTask {
                key: Digest(order.key),
                name: &order.name,
                file: order.file.as_deref(),
                threads: &worker.threads,
                keys: &worker.keys,
            },
            &Unwatched,
        )
    });
    worker.outbox.say(FromWorker::Loaded {
        key: order.key,
        failure: loaded.err().as_ref().map(Into::into),
    });
}
