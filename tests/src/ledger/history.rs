//! What a store held at one moment, to be compared with what it holds at a later one.

use std::collections::BTreeMap;

use proofkeep_store::Store;
use proofkeep_store::ids::{Digest, JobNumber};
use proofkeep_store::keys::{self, Family};
use proofkeep_store::query;
use proofkeep_store::records::{Attempt, AttemptRef, JobState, Outcome};
use proofkeep_store::view::{self, ReadError};

/// Attempts, proofs and ends of jobs, as a store holds them.
#[derive(Clone, Debug, Default)]
pub struct History {
    attempts: BTreeMap<AttemptRef, Attempt>,
    /// Digest of the proof, and attempts of its partition.
    proofs: BTreeMap<(JobNumber, u32), (Digest, u32)>,
    ended: BTreeMap<JobNumber, JobState>,
}

impl History {
    /// Reads it, all at once: for stores that no daemon uses.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn read(store: &Store) -> Result<Self, ReadError> {
        store.read(|view| {
            let mut history = Self::default();
            for attempt in view::records::<Attempt>(view, &keys::family(Family::Attempt))? {
                history.attempts.insert(attempt.of, attempt);
            }
            for number in 1..=query::last_job(view)?.0 {
                let Some(job) = query::job_by_number(view, JobNumber(number))? else {
                    continue;
                };
                if job.state.is_terminal() {
                    history.ended.insert(job.number, job.state);
                }
                for detail in query::partitions(view, job.number, 0, 1024, 1)?.partitions {
                    if let Some(proof) = detail.proof {
                        let key = (job.number, detail.partition.index);
                        history
                            .proofs
                            .insert(key, (proof.digest, detail.partition.attempts));
                    }
                }
            }
            Ok(history)
        })
    }

    /// How many attempts it holds.
    #[must_use]
    pub fn attempts(&self) -> usize {
        self.attempts.len()
    }

    /// Everything that `later` lacks or says otherwise. Nothing is pruned or tried again between the two.
    #[must_use]
    pub fn contradicted_by(&self, later: &Self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (of, before) in &self.attempts {
            match later.attempts.get(of) {
                None => wrong.push(format!("{of:?} is gone")),
                Some(after) if !continues(before, after) => {
                    wrong.push(format!("{of:?} was {before:?}, now it is {after:?}"));
                }
                Some(_) => {}
            }
        }
        for (of, before) in &self.proofs {
            let after = later.proofs.get(of);
            if after != Some(before) {
                wrong.push(format!("the proof of {of:?} was {before:?}, now it is {after:?}"));
            }
        }
        for (job, before) in &self.ended {
            let after = later.ended.get(job);
            if after != Some(before) {
                wrong.push(format!("job {job} had ended as {before:?}, now it is {after:?}"));
            }
        }
        for (of, attempt) in &later.attempts {
            let missing = of.number > 1
                && !later.attempts.contains_key(&AttemptRef {
                    number: of.number - 1,
                    ..*of
                });
            let twice = attempt.outcome == Some(Outcome::Ok)
                && later.attempts.contains_key(&AttemptRef {
                    number: of.number + 1,
                    ..*of
                });
            if missing {
                wrong.push(format!("{of:?} has no attempt before it"));
            }
            if twice {
                wrong.push(format!("{of:?} was proved, and tried again"));
            }
        }
        wrong
    }
}

/// An attempt that has ended never changes; an open one keeps how it began.
fn continues(before: &Attempt, after: &Attempt) -> bool {
    if before.outcome.is_some() {
        return before == after;
    }
    let begin = |attempt: &Attempt| {
        (
            attempt.generation,
            attempt.opened_in,
            attempt.process,
            attempt.device.clone(),
            attempt.started_at,
        )
    };
    begin(before) == begin(after)
}
