//! One job: its counts, its lives, its places in the indexes, its end.

use std::collections::BTreeSet;

use super::checker::Checker;
use super::whole::Whole;
use super::{Invariant, partition, replay};
use crate::ids::{Digest, JobNumber};
use crate::keys;
use crate::records::{Circuit, Job, JobState, Lease, PartitionState, Subject, Tally};
use crate::view::ReadError;

/// Checks a job with everything that hangs on it; `full`: its journal as well.
pub(super) fn check(
    checker: &mut Checker<'_>,
    number: JobNumber,
    full: bool,
) -> Result<Option<Whole>, ReadError> {
    let Some(whole) = Whole::read(checker, number)? else {
        return Ok(None);
    };
    tally(checker, &whole);
    state(checker, &whole)?;
    generations(checker, &whole);
    indexes(checker, &whole.job)?;
    for index in 0..whole.job.partitions {
        partition::check(checker, &whole, index)?;
    }
    leftovers(checker, &whole);
    if full {
        request(checker, &whole.job)?;
        replay::check(checker, &whole)?;
    }
    Ok(Some(whole))
}

/// The one derived fact that is stored.
fn tally(checker: &mut Checker<'_>, whole: &Whole) {
    let count = |state| {
        whole
            .partitions
            .values()
            .filter(|partition| partition.state == state)
            .count()
    };
    let staged = whole
        .partitions
        .values()
        .filter(|partition| partition.state.stage().is_some())
        .count();
    let leases = staged + usize::from(whole.job.verifying.is_some());
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let recount = Tally {
        proved: number(count(PartitionState::Proved)),
        failed: number(count(PartitionState::Failed)),
        cancelled: number(count(PartitionState::Cancelled)),
        leases: number(leases),
    };
    let told = whole.job.tally;
    let words = |tally: Tally| {
        let Tally {
            proved,
            failed,
            cancelled,
            leases,
        } = tally;
        format!("{proved} proved, {failed} failed, {cancelled} cancelled, {leases} leases")
    };
    let text = format!("it says {}; counted are {}", words(told), words(recount));
    checker.find_if(
        told != recount,
        Invariant::Derived,
        &keys::job(whole.job.number),
        text,
    );
}

/// What the job's state says about its partitions and its leases.
fn state(checker: &mut Checker<'_>, whole: &Whole) -> Result<(), ReadError> {
    let job = &whole.job;
    let key = keys::job(job.number);
    let states = || whole.partitions.values().map(|partition| partition.state);
    let all_proved = states().all(|state| state == PartitionState::Proved);
    let all_over = states().all(|state| {
        matches!(
            state,
            PartitionState::Proved | PartitionState::Failed | PartitionState::Cancelled
        )
    });
    match job.state {
        JobState::Queued => {
            let open = states().any(PartitionState::is_open);
            checker.find_if(
                open,
                Invariant::Edges,
                &key,
                "it is queued and has an open attempt",
            );
        }
        JobState::Running => {
            checker.find_if(
                all_over,
                Invariant::Edges,
                &key,
                "it is running and nothing is left to run",
            );
        }
        JobState::Verifying => {
            checker.find_if(
                !all_proved,
                Invariant::Proofs,
                &key,
                "it is verifying and not all is proved",
            );
        }
        JobState::Succeeded => {
            checker.find_if(
                !all_proved,
                Invariant::Proofs,
                &key,
                "it succeeded and not all is proved",
            );
        }
        JobState::Stopping(_) => {
            let idle = !states().any(|state| state.stage().is_some()) && job.verifying.is_none();
            checker.find_if(
                idle,
                Invariant::Edges,
                &key,
                "it is stopping and holds no lease, so it should have ended",
            );
            let granted = states().any(|state| {
                matches!(
                    state,
                    PartitionState::Ready | PartitionState::Waiting | PartitionState::Synthesized
                )
            });
            checker.find_if(
                granted,
                Invariant::Edges,
                &key,
                "it is stopping and a partition without a lease goes on",
            );
        }
        _ => {}
    }
    if job.state.is_terminal() {
        checker.find_if(
            !all_over,
            Invariant::Terminal,
            &key,
            "it has ended and a partition has not",
        );
        checker.find_if(
            job.verifying.is_some(),
            Invariant::Terminal,
            &key,
            "it has ended and holds a lease",
        );
        let kept = !whole.checkpoints.is_empty();
        checker.find_if(
            kept,
            Invariant::Terminal,
            &key,
            "it has ended and keeps a checkpoint",
        );
    }
    if let Some(token) = job.verifying {
        let lease = checker.get::<Lease>(&keys::lease(token))?;
        let held = lease.is_some_and(|lease| lease.subject == Subject::Verify { job: job.number });
        let text = format!("it is checked under lease {token}, which isn't in force for it");
        checker.find_if(!held, Invariant::Workers, &key, text);
        let fits = matches!(job.state, JobState::Verifying | JobState::Stopping(_));
        let text = format!("it is {} and holds a lease for its final check", job.state.name());
        checker.find_if(!fits, Invariant::Workers, &key, text);
    }
    if let Some(circuit) = job.circuit.filter(|_| !job.state.is_terminal()) {
        let there = checker.get::<Circuit>(&keys::circuit(circuit))?.is_some();
        let text = format!("its circuit {circuit} is not there");
        checker.find_if(!there, Invariant::Record, &key, text);
    }
    Ok(())
}

/// Lives are numbered without a hole; all but the last have ended, and the last has if the job has.
fn generations(checker: &mut Checker<'_>, whole: &Whole) {
    let job = &whole.job;
    for number in 1..=job.generation {
        let key = keys::generation(job.number, number);
        let Some(generation) = whole.generations.get(&number) else {
            checker.missing(Invariant::Record, &key, "it is missing");
            continue;
        };
        let expected = if number < job.generation {
            generation.ended
        } else {
            Some(job.state)
        };
        let ended = expected.filter(|state| state.is_terminal());
        let whole_end = generation.ended == ended
            && generation.ended_at.is_some() == ended.is_some()
            && (number == job.generation || ended.is_some());
        let name = |state: Option<JobState>| state.map_or("open", JobState::name);
        checker.find_if(
            !whole_end,
            Invariant::Terminal,
            &key,
            format!(
                "it is {}, the job is {}",
                name(generation.ended),
                job.state.name()
            ),
        );
    }
    for number in whole
        .generations
        .keys()
        .filter(|number| **number == 0 || **number > job.generation)
    {
        let text = format!("the job is in generation {}", job.generation);
        checker.find(Invariant::Record, &keys::generation(job.number, *number), text);
    }
}

fn indexes(checker: &mut Checker<'_>, job: &Job) -> Result<(), ReadError> {
    let number = job.number;
    let ended = job.state.is_terminal();
    let entry =
        |checker: &mut Checker<'_>, key: keys::Key, wanted: bool, invariant| -> Result<(), ReadError> {
            let there = checker.has(&key)?;
            let text = if wanted {
                "it is missing"
            } else {
                "it should be gone"
            };
            checker.find_if(
                there != wanted,
                invariant,
                &key,
                format!("{text}: the job is {}", job.state.name()),
            );
            Ok(())
        };
    let active = if ended {
        Invariant::Terminal
    } else {
        Invariant::Index
    };
    entry(checker, keys::active(number), !ended, active)?;
    entry(checker, keys::done(number), ended, Invariant::Index)?;
    if let Some(at) = job.deadline {
        entry(checker, keys::deadline(at, number), job.state.grants(), active)?;
    }
    let id = keys::job_id(job.id);
    let found = checker.number(&id)?;
    let text = format!("expected job {number}, found {found:?}");
    checker.find_if(found != Some(number.0), Invariant::Index, &id, text);
    if let Some(text) = &job.idempotency_key {
        let key = keys::idempotency(text);
        let found = checker.number(&key)?;
        let text = match found {
            Some(other) => format!("job {number} was submitted with it, and it points to job {other}"),
            None => format!("job {number} was submitted with it, and it points nowhere"),
        };
        checker.find_if(found != Some(number.0), Invariant::Keys, &key, text);
    }
    Ok(())
}

/// Records beyond the job's partitions.
fn leftovers(checker: &mut Checker<'_>, whole: &Whole) {
    let job = &whole.job;
    let mut beyond = BTreeSet::new();
    let over = |index: u32| index >= job.partitions;
    beyond.extend(
        whole
            .partitions
            .keys()
            .filter(|index| over(**index))
            .map(|i| keys::partition(job.number, *i)),
    );
    beyond.extend(
        whole
            .proofs
            .keys()
            .filter(|index| over(**index))
            .map(|i| keys::proof(job.number, *i)),
    );
    beyond.extend(
        whole
            .checkpoints
            .keys()
            .filter(|i| over(**i))
            .map(|i| keys::checkpoint(job.number, *i)),
    );
    beyond.extend(
        whole
            .attempts
            .values()
            .filter(|a| over(a.of.partition))
            .map(|a| keys::attempt(a.of)),
    );
    for key in beyond {
        checker.find(
            Invariant::Record,
            &key,
            format!("the job has {} partitions", job.partitions),
        );
    }
}

/// The canonical request is where the job says, and is the one that its digest names.
fn request(checker: &mut Checker<'_>, job: &Job) -> Result<(), ReadError> {
    let key = keys::request(job.number);
    match checker.view.get(&key)? {
        Some(value) if job.request_inline => {
            if let Some(bytes) = checker.decode_bytes(&key, &value) {
                let found = Digest::of(&bytes);
                let text = format!("its digest is {found}; the job names {}", job.request);
                checker.find_if(found != job.request, Invariant::Keys, &key, text);
            }
        }
        Some(_) => checker.find(
            Invariant::Record,
            &key,
            "the job's request is an object, not this",
        ),
        None if job.request_inline => checker.find(Invariant::Record, &key, "it is missing"),
        None => {
            let needs = keys::needs(job.number, job.request);
            let there = checker.has(&needs)?;
            checker.find_if(
                !there,
                Invariant::Index,
                &needs,
                "the request's own object is missing in the list",
            );
        }
    }
    Ok(())
}
