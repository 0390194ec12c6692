//! How long a job will still take, from how long its own partitions took on the device.

use super::schedule;
use crate::codec::Record;
use crate::keys::{self, Family};
use crate::records::{Attempt, AttemptRef, Job, JobState, StoredProof};
use crate::view::{self, ReadError, View};

/// Proofs whose times are averaged: the first ones, since partitions of one job are alike.
const SAMPLE: usize = 16;

/// Milliseconds until the last partition is proved, if the device slots work on this job alone; `None` until a first
/// partition is proved, and for a job that isn't running.
pub(super) fn remaining_ms(view: &dyn View, job: &Job) -> Result<Option<u64>, ReadError> {
    if job.state != JobState::Running {
        return Ok(None);
    }
    let mut sum = 0;
    let mut count = 0;
    for (key, value) in view.scan(&keys::of_job(Family::Proof, job.number), None, SAMPLE)? {
        let proof = StoredProof::decode(&value).map_err(|damage| ReadError::damaged(&key, damage))?;
        let of = AttemptRef {
            job: job.number,
            partition: proof.partition,
            number: proof.attempt,
        };
        let attempt = view::record::<Attempt>(view, &keys::attempt(of))?;
        if let Some(took) = attempt.and_then(|attempt| Some(attempt.gpu_ms? + attempt.saved_ms)) {
            sum += took;
            count += 1;
        }
    }
    let slots: u64 = schedule::devices(view)?
        .iter()
        .map(|device| u64::from(device.slots))
        .sum();
    let done = u64::from(job.tally.proved + job.tally.failed + job.tally.cancelled);
    let left = u64::from(job.partitions).saturating_sub(done);
    if count == 0 || slots == 0 {
        return Ok(None);
    }
    Ok(Some((sum / count).saturating_mul(left.div_ceil(slots))))
}
