//! Forgetting a job that has ended: at once for everybody who asks, in slices on disk, so that no transaction is large.

use super::{Refusal, Reply, StepError, Transaction};
use crate::event::What;
use crate::ids::JobNumber;
use crate::keys::{self, Family};
use crate::query::PRUNED_EVENTS;
use crate::records::Job;

/// Keys deleted by one command.
const SLICE: usize = 2000;

pub(super) fn prune(tx: &mut Transaction<'_>, number: JobNumber) -> Result<Reply, StepError> {
    if let Some(job) = tx.record::<Job>(&keys::job(number))? {
        if !job.state.is_terminal() {
            return Err(Refusal::JobState(job.state).into());
        }
        tx.emit(
            None,
            What::Pruned {
                job: number,
                id: job.id,
            },
        )?;
        return Ok(Reply::More);
    }
    if tx.get(&keys::pruning(number))?.is_none() {
        return Ok(Reply::Unchanged);
    }
    let mut room = SLICE;
    let mut events = 0;
    for family in [Family::JobEvent, Family::Needs] {
        for key in tx.some_keys(&keys::of_job(family, number), room / 2)? {
            if let Some(other) = other_side(&key) {
                events += u64::from(tx.delete(other)? && family == Family::JobEvent);
            }
            tx.delete(key)?;
            room = room.saturating_sub(2);
        }
    }
    for family in [
        Family::Attempt,
        Family::Generation,
        Family::Partition,
        Family::Proof,
        Family::Quarantine,
        Family::Checkpoint,
    ] {
        for key in tx.some_keys(&keys::of_job(family, number), room)? {
            tx.delete(key)?;
            room -= 1;
        }
    }
    if events > 0 {
        let key = keys::pruned_counter(PRUNED_EVENTS);
        let before = tx.number(&key)?;
        tx.set_number(key, before + events);
    }
    if room > 1 {
        tx.delete(keys::pruning(number))?;
        return Ok(Reply::Done);
    }
    Ok(Reply::More)
}

/// What an index key of the job points to: the event itself, or the object's side of the index.
fn other_side(key: &[u8]) -> Option<keys::Key> {
    if let Some((job, object)) = keys::parse_needs(key) {
        return Some(keys::reference(object, job));
    }
    let number = key.get(9..)?.try_into().ok()?;
    Some(keys::event(crate::ids::JournalNumber(u64::from_be_bytes(number))))
}
