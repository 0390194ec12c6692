//! One partition: its place in the queue, its lease, its attempts, its proof.

use super::Invariant;
use super::checker::Checker;
use super::whole::Whole;
use crate::ids::Digest;
use crate::keys::{self, Key};
use crate::records::{
    Attempt, Lease, Outcome, Partition, PartitionState, Stage, Subject, Worker, WorkerState,
};
use crate::view::ReadError;

pub(super) fn check(checker: &mut Checker<'_>, whole: &Whole, index: u32) -> Result<(), ReadError> {
    let key = keys::partition(whole.job.number, index);
    let Some(partition) = whole.partitions.get(&index) else {
        checker.missing(Invariant::Record, &key, "it is missing");
        return Ok(());
    };
    fields(checker, whole, partition, &key);
    queue(checker, whole, partition)?;
    lease(checker, partition, &key)?;
    attempts(checker, whole, partition);
    proof(checker, whole, partition, &key);
    Ok(())
}

/// What goes with the state.
fn fields(checker: &mut Checker<'_>, whole: &Whole, partition: &Partition, key: &Key) {
    let state = partition.state;
    let is = state.name();
    let process = partition.process.is_some();
    let text = format!(
        "it is {is} and {} a process",
        if process { "names" } else { "names no" }
    );
    checker.find_if(
        process != state.is_open(),
        Invariant::Workers,
        key,
        text.replace("no a", "no"),
    );
    let waits = state == PartitionState::Waiting;
    checker.find_if(
        partition.wake_at.is_some() != waits,
        Invariant::Queue,
        key,
        format!(
            "it is {is} and {}",
            if waits {
                "has no moment to wake"
            } else {
                "has a moment to wake"
            }
        ),
    );
    checker.find_if(
        state == PartitionState::Failed && partition.failure.is_none(),
        Invariant::Edges,
        key,
        "it failed and nothing says why",
    );
    let again = matches!(state, PartitionState::Ready | PartitionState::Waiting) || state.is_open();
    checker.find_if(
        again && partition.counted >= whole.job.max_attempts,
        Invariant::Edges,
        key,
        format!(
            "it is {is} after {} of {} counted failures",
            partition.counted, whole.job.max_attempts
        ),
    );
}

/// Invariant 5, from the partition's side; and the index of open attempts.
fn queue(checker: &mut Checker<'_>, whole: &Whole, partition: &Partition) -> Result<(), ReadError> {
    let (job, index, state) = (partition.job, partition.index, partition.state);
    let mut entries = vec![
        (
            keys::ready(whole.job.priority, job, index),
            state == PartitionState::Ready,
            Invariant::Queue,
        ),
        (keys::open(job, index), state.is_open(), Invariant::Attempts),
    ];
    if let Some(at) = partition.wake_at {
        entries.push((
            keys::retry(at, job, index),
            state == PartitionState::Waiting,
            Invariant::Queue,
        ));
    }
    for (entry, wanted, invariant) in entries {
        let there = checker.has(&entry)?;
        let text = if wanted {
            "it is missing"
        } else {
            "it should be gone"
        };
        let ended = whole.job.state.is_terminal() && there;
        let invariant = if ended { Invariant::Terminal } else { invariant };
        checker.find_if(
            there != wanted,
            invariant,
            &entry,
            format!("{text}: the partition is {}", state.name()),
        );
    }
    Ok(())
}

/// Invariant 1, from the partition's side.
fn lease(checker: &mut Checker<'_>, partition: &Partition, key: &Key) -> Result<(), ReadError> {
    let is = partition.state.name();
    let Some(stage) = partition.state.stage() else {
        let free = partition.token.is_none() && partition.worker.is_none();
        checker.find_if(
            !free,
            Invariant::Workers,
            key,
            format!("it is {is} and holds a lease or a worker"),
        );
        return Ok(());
    };
    let Some(token) = partition.token else {
        checker.find(Invariant::Workers, key, format!("it is {is} and holds no lease"));
        return Ok(());
    };
    let subject = Subject::Partition {
        job: partition.job,
        partition: partition.index,
        stage,
    };
    let lease = checker.get::<Lease>(&keys::lease(token))?;
    let held = lease.as_ref().is_some_and(|lease| {
        lease.subject == subject && lease.process == partition.process && lease.worker == partition.worker
    });
    let text = format!(
        "it is {is} under lease {token}, which isn't in force for it in stage {}",
        stage.name()
    );
    checker.find_if(!held, Invariant::Workers, key, text);
    let busy = match partition.worker {
        Some(worker) => checker
            .get::<Worker>(&keys::worker(worker))?
            .is_some_and(|worker| match worker.state {
                WorkerState::Busy {
                    token: held,
                    job,
                    partition: index,
                    ..
                } => held == token && job == partition.job && index == partition.index,
                WorkerState::Idle => false,
            }),
        None => false,
    };
    if stage == Stage::Prove {
        checker.find_if(
            !busy,
            Invariant::Workers,
            key,
            format!("it is {is} and no worker is busy with it"),
        );
    } else {
        let worker = partition.worker.is_some();
        checker.find_if(
            worker,
            Invariant::Workers,
            key,
            format!("it is {is} and occupies a worker"),
        );
    }
    Ok(())
}

/// Invariant 2.
fn attempts(checker: &mut Checker<'_>, whole: &Whole, partition: &Partition) {
    let job = partition.job;
    let mut expected = 1;
    let mut generation = 0;
    for attempt in whole.attempts_at(partition.index) {
        let key = keys::attempt(attempt.of);
        let number = attempt.of.number;
        let text = format!("expected attempt {expected} next, found {number}");
        checker.find_if(number != expected, Invariant::Attempts, &key, text);
        expected = number.saturating_add(1);
        let last = number == partition.attempts;
        let open = attempt.outcome.is_none();
        checker.find_if(
            open != (last && partition.state.is_open()),
            Invariant::Attempts,
            &key,
            format!(
                "it is {}, the partition is {} at attempt {}",
                if open { "open" } else { "closed" },
                partition.state.name(),
                partition.attempts
            ),
        );
        closing(checker, attempt, &key);
        let lives = attempt.generation >= generation.max(1)
            && attempt.generation <= whole.job.generation
            && (!open || attempt.generation == whole.job.generation);
        generation = attempt.generation;
        checker.find_if(
            !lives,
            Invariant::Attempts,
            &key,
            format!(
                "it is of generation {generation}, the job is in generation {}",
                whole.job.generation
            ),
        );
    }
    let text = format!(
        "its last attempt is said to be {}, found is {}",
        partition.attempts,
        expected - 1
    );
    let key = keys::partition(job, partition.index);
    checker.find_if(
        partition.attempts != expected - 1,
        Invariant::Attempts,
        &key,
        text,
    );
}

fn closing(checker: &mut Checker<'_>, attempt: &Attempt, key: &Key) {
    let closed = attempt.outcome.is_some();
    let told = attempt.closed_in.is_some() == closed && attempt.ended_at.is_some() == closed;
    checker.find_if(
        !told,
        Invariant::Attempts,
        key,
        "its outcome and its end contradict each other",
    );
    let last = checker.boot;
    let order = attempt.opened_in.0 >= 1
        && attempt.closed_in.unwrap_or(attempt.opened_in) >= attempt.opened_in
        && attempt.closed_in.unwrap_or(attempt.opened_in) <= last;
    let closed_in = attempt
        .closed_in
        .map_or_else(|| "none".to_owned(), |boot| boot.to_string());
    let text = format!(
        "it was opened in boot {} and closed in {closed_in}; the last boot is {last}",
        attempt.opened_in
    );
    checker.find_if(!order, Invariant::Attempts, key, text);
    let stale = !closed && attempt.opened_in != last;
    let text = format!(
        "it is open since boot {}, and boot {last} began after it",
        attempt.opened_in
    );
    checker.find_if(stale, Invariant::Attempts, key, text);
}

/// Invariant 3, and what is kept of unfinished proofs.
fn proof(checker: &mut Checker<'_>, whole: &Whole, partition: &Partition, key: &Key) {
    let proved = partition.state == PartitionState::Proved;
    let at = keys::proof(partition.job, partition.index);
    match whole.proofs.get(&partition.index) {
        Some(stored) => {
            let text = format!("the partition is {}", partition.state.name());
            checker.find_if(!proved, Invariant::Proofs, &at, text);
            let found = Digest::of(&stored.bytes);
            let text = format!(
                "its bytes have digest {found}, it names {}; retry the job",
                stored.digest
            );
            checker.find_if(found != stored.digest, Invariant::Proofs, &at, text);
            let length = stored.bytes.len();
            checker.find_if(
                length != 192,
                Invariant::Proofs,
                &at,
                format!("it has {length} bytes, not 192"),
            );
            let made = whole
                .attempts
                .get(&(partition.index, stored.attempt))
                .is_some_and(|attempt| {
                    attempt.outcome == Some(Outcome::Ok) && attempt.public == Some(stored.public)
                });
            let text = format!("attempt {} did not make it", stored.attempt);
            checker.find_if(!made, Invariant::Proofs, &at, text);
        }
        None if proved => checker.missing(
            Invariant::Proofs,
            &at,
            "the partition is proved and it is missing",
        ),
        None => {}
    }
    if let Some(checkpoint) = whole.checkpoints.get(&partition.index) {
        let at = keys::checkpoint(partition.job, partition.index);
        checker.find_if(
            proved,
            Invariant::Proofs,
            &at,
            "the proof is stored, so it should be gone",
        );
        let later = checkpoint
            .pieces
            .iter()
            .any(|piece| piece.attempt == 0 || piece.attempt > partition.attempts);
        checker.find_if(
            later,
            Invariant::Attempts,
            &at,
            "a piece names an attempt that never was",
        );
    }
    let over = matches!(partition.state, PartitionState::Cancelled) && !whole.job.state.is_terminal();
    let stopping = matches!(whole.job.state, crate::records::JobState::Stopping(_));
    checker.find_if(
        over && !stopping,
        Invariant::Edges,
        key,
        "it is cancelled and its job goes on",
    );
}
