//! One import: a circuit is checked and compiled, and its key made if there is none.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::panics::guarded;
use super::shared::Worker;
use super::tasks::Task;
use crate::kinds::groth16;
use crate::protocol::{CircuitFiles, FromWorker, WireToken};

/// How often the daemon hears how many points are made and checked; it makes each such word durable.
const TELL: Duration = Duration::from_secs(2);

pub(super) fn run(worker: &Arc<Worker>, task: &Arc<Task>, token: WireToken, files: &CircuitFiles, done: u64) {
    let mut told = Instant::now();
    let mut checked = |done| {
        if told.elapsed() >= TELL {
            told = Instant::now();
            worker.outbox.say(FromWorker::Imported { token, done });
        }
    };
    let result = guarded(|| {
        groth16::import(
            files,
            &worker.shelf,
            &worker.threads,
            worker.wasm,
            done,
            &**task,
            &mut checked,
        )
    });
    let word = match result {
        Ok(imported) => FromWorker::ImportDone {
            token,
            facts: (&imported.facts).into(),
            zkey: imported.zkey.map(|zkey| zkey.0),
            vk: imported.vk.0,
            matrices: imported.matrices.0,
        },
        Err(failure) => worker.failed(token, &failure),
    };
    worker.tasks.end(token, Some(word));
}
