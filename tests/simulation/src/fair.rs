//! What is promised of the scheduler, checked on each of its decisions against the queue itself, not against the
//! scheduler's own view of it: nobody is overtaken for memory, and nothing idles while the head of the queue could run.

use proofkeep_engine::budget::{Accounts, Ask, AskedKey, TicketFor};
use proofkeep_engine::schedule::{Decision, DeviceNow, Snapshot};
use proofkeep_store::ids::{JobNumber, ProcessId};
use proofkeep_store::keys;
use proofkeep_store::query::{self, ReadyEntry};
use proofkeep_store::records::{CircuitState, Partition, PartitionState, Priority};
use proofkeep_store::view::{MemoryView, ReadError, record};

/// Of partitions that ask for more, one is ahead of a slot of the processor and not two.
const LARGE: u64 = 256 << 20;

/// A ready partition that nothing but room keeps from running.
struct Candidate {
    entry: ReadyEntry,
    attempt: u32,
    bytes: u64,
    key: Option<AskedKey>,
    alone: bool,
}

/// Checks what was decided.
///
/// # Errors
/// What is wrong, in words.
pub fn check(
    view: &MemoryView,
    seen: &Snapshot,
    accounts: &Accounts,
    decisions: &[Decision],
) -> Result<(), String> {
    if seen.stopping {
        return Ok(());
    }
    slots(seen, decisions)?;
    if seen.paused {
        return Ok(());
    }
    let queue = candidates(view, accounts.budget()).map_err(|error| error.to_string())?;
    overtaken(&queue, decisions)?;
    head(&queue, seen, accounts, decisions)
}

fn candidates(view: &MemoryView, budget: u64) -> Result<Vec<Candidate>, ReadError> {
    let mut found = Vec::new();
    for entry in query::ready_page(view, None, 64)? {
        let Some(job) = query::job_by_number(view, entry.job)?.filter(|job| job.state.grants()) else {
            continue;
        };
        let key = match job.circuit {
            None => None,
            Some(digest) => match query::circuit(view, digest)? {
                Some(circuit) if circuit.state == CircuitState::Ready => Some(AskedKey {
                    key: digest,
                    bytes: circuit.facts.key_bytes,
                    private: false,
                }),
                _ => continue,
            },
        };
        let Some(partition) = record::<Partition>(view, &keys::partition(entry.job, entry.partition))? else {
            continue;
        };
        if job.ticket_bytes + key.map_or(0, |key| key.bytes) <= budget {
            found.push(Candidate {
                entry,
                attempt: partition.attempts + 1,
                bytes: job.ticket_bytes,
                key,
                alone: partition.alone,
            });
        }
    }
    Ok(found)
}

fn starts(decisions: &[Decision], job: JobNumber, partition: u32) -> bool {
    decisions.iter().any(|decision| {
        matches!(decision, Decision::SynthStart { job: of, partition: index, .. } if (*of, *index) == (job, partition))
    })
}

/// Every free slot goes to a witness that waits in its process.
fn slots(seen: &Snapshot, decisions: &[Decision]) -> Result<(), String> {
    for device in &seen.devices {
        let Some(process) = device.process else { continue };
        let waits = seen.open.iter().filter(|open| {
            open.process == process && open.state == PartitionState::Synthesized && !open.stopping
        });
        let given = decisions
            .iter()
            .filter(|decision| matches!(decision, Decision::GpuStart { process: to, .. } if *to == process));
        let (waits, given) = (waits.count(), given.count());
        if given != waits.min(device.idle.len()) {
            return Err(format!(
                "device {} has {} idle slots and {waits} witnesses wait; {given} were given a slot",
                device.name,
                device.idle.len()
            ));
        }
    }
    Ok(())
}

/// Nobody who needs no process of its own stands before one that is started, unless it is started too.
fn overtaken(queue: &[Candidate], decisions: &[Decision]) -> Result<(), String> {
    let is_started = |of: &&Candidate| starts(decisions, of.entry.job, of.entry.partition);
    let Some(last) = queue.iter().rposition(|of| is_started(&of)) else {
        return Ok(());
    };
    let passed = queue[..last].iter().find(|of| !of.alone && !is_started(of));
    match passed {
        Some(of) => Err(format!(
            "partition {} of job {} was overtaken by partition {} of job {}",
            of.entry.partition, of.entry.job, queue[last].entry.partition, queue[last].entry.job
        )),
        None => Ok(()),
    }
}

/// The first of the queue that isn't started can't be.
fn head(
    queue: &[Candidate],
    seen: &Snapshot,
    accounts: &Accounts,
    decisions: &[Decision],
) -> Result<(), String> {
    let head = queue
        .iter()
        .find(|of| !starts(decisions, of.entry.job, of.entry.partition));
    let Some(head) = head else { return Ok(()) };
    let mut accounts = accounts.clone();
    for ask in decisions.iter().filter_map(Decision::ticket) {
        accounts
            .ask(ask)
            .map_err(|short| format!("{} bytes too many were granted", short.by))?;
    }
    for device in &seen.devices {
        let Some(process) = device.process else { continue };
        if !takes(device, process, head, seen, decisions) {
            continue;
        }
        let of = TicketFor::Attempt {
            job: head.entry.job,
            partition: head.entry.partition,
            attempt: head.attempt,
        };
        let ask = Ask {
            of,
            process,
            bytes: head.bytes,
            key: head.key,
            critical: head.entry.priority == Priority::Critical,
        };
        if accounts.clone().ask(&ask).is_ok() {
            return Err(format!(
                "partition {} of job {} (alone: {}) is at the head of the queue, could run on {} and isn't started; {}",
                head.entry.partition,
                head.entry.job,
                head.alone,
                device.name,
                if accounts.reserved() == 0 {
                    "no memory is taken"
                } else {
                    "some memory is taken"
                }
            ));
        }
    }
    Ok(())
}

/// The device has room for one more, who may have to be alone.
fn takes(
    device: &DeviceNow,
    process: ProcessId,
    head: &Candidate,
    seen: &Snapshot,
    decisions: &[Decision],
) -> bool {
    let here: Vec<_> = seen.open.iter().filter(|open| open.process == process).collect();
    let ahead = here.iter().filter(|open| {
        matches!(
            open.state,
            PartitionState::Synthesizing | PartitionState::Synthesized
        )
    });
    let started: Vec<_> = decisions
        .iter()
        .filter(|decision| decision.ticket().is_some_and(|ask| ask.process == process))
        .collect();
    let few = head.bytes > LARGE && device.name.starts_with("cpu:");
    let most = if few { 1 } else { 2 } * device.slots as usize;
    let room = ahead.count() + started.len() < most;
    let loner = here.iter().any(|open| open.alone);
    let empty = here.is_empty() && started.is_empty() && !seen.importing.contains(&process);
    // One that was started here just now may be alone; then nobody can be added, and it isn't known here.
    let unknown = started
        .iter()
        .any(|decision| matches!(decision, Decision::SynthStart { .. }))
        && here.is_empty();
    room && !loner && !unknown && (!head.alone || empty)
}
