//! Invariant 8, one job: folding its journal gives its records again; and on the way, that each event was allowed.

use std::collections::BTreeMap;
use std::fmt::Debug;

use super::checker::Checker;
use super::edges::{job_edge, partition_edge};
use super::whole::Whole;
use super::{Invariant, names};
use crate::codec::Record;
use crate::event::{Event, What};
use crate::ids::{Digest, JobNumber, JournalNumber, Token};
use crate::keys::{self, Family, Key};
use crate::machine::{Context, Reply, Rules, Transaction, apply};
use crate::records::{Attempt, Generation, Job, JobState, Partition, PartitionState};
use crate::view::{MemoryView, ReadError, View, record, records};

pub(super) fn check(checker: &mut Checker<'_>, whole: &Whole) -> Result<(), ReadError> {
    let number = whole.job.number;
    let mut replay = Replay {
        number,
        memory: MemoryView::default(),
        verified: false,
        proofs: BTreeMap::new(),
    };
    let mut broken = false;
    checker.walk(&keys::of_job(Family::JobEvent, number), |checker, key, _| {
        let Some(at) = names::u64_at(key, 9) else {
            return Ok(());
        };
        let key = keys::event(JournalNumber(at));
        match checker.get::<Event>(&key)? {
            Some(event) if event.job == Some(number) && !broken => {
                checker.checked().events += 1;
                broken = !replay.fold(checker, &key, &event)?;
            }
            Some(_) => {}
            None => broken = true,
        }
        Ok(())
    })?;
    if broken {
        checker.find(
            Invariant::Journal,
            &keys::job(number),
            "its journal can't be replayed to the end",
        );
        return Ok(());
    }
    replay.compare(checker, whole)
}

struct Replay {
    number: JobNumber,
    memory: MemoryView,
    /// The final check passed and the job hasn't ended since.
    verified: bool,
    /// Digests of the proofs that the journal says are stored.
    proofs: BTreeMap<u32, Digest>,
}

impl Replay {
    fn job(&self) -> Result<Option<Job>, ReadError> {
        record(&self.memory, &keys::job(self.number))
    }

    fn partition(&self, index: u32) -> Result<Option<Partition>, ReadError> {
        record(&self.memory, &keys::partition(self.number, index))
    }

    /// The partitions that an event may touch.
    fn touched(&self, event: &Event) -> Result<BTreeMap<u32, PartitionState>, ReadError> {
        let touched = match event.what.partition() {
            Some(index) => self.partition(index)?.into_iter().collect(),
            None if self.whole_job(event) => {
                records::<Partition>(&self.memory, &keys::of_job(Family::Partition, self.number))?
            }
            None => Vec::new(),
        };
        Ok(touched
            .into_iter()
            .map(|partition| (partition.index, partition.state))
            .collect())
    }

    fn whole_job(&self, event: &Event) -> bool {
        matches!(
            event.what,
            What::Submitted(_)
                | What::Stopping { .. }
                | What::Ended { .. }
                | What::Retried { .. }
                | What::VerifyRefused { .. }
        )
    }

    /// Folds one event; says whether that worked.
    fn fold(&mut self, checker: &mut Checker<'_>, key: &Key, event: &Event) -> Result<bool, ReadError> {
        let job_before = self.job()?.map(|job| job.state);
        let before = self.touched(event)?;
        self.named(checker, key, event)?;
        let context = Context {
            now: event.at,
            boot: event.boot,
        };
        let mut tx = Transaction::begin(&self.memory, context, Rules::ALL)?;
        if let Err(error) = apply(&mut tx, event) {
            checker.find(
                Invariant::Journal,
                key,
                format!("it can't be replayed ({}): {error}", event.what.name()),
            );
            return Ok(false);
        }
        let changes = tx.finish(Reply::Done).changes;
        self.memory.apply(&changes);
        if let Some(job) = self.job()? {
            let what = event.what.name();
            let name = job_before.map_or("new", JobState::name);
            let text = format!("{what}: no edge leads a job from {name} to {}", job.state.name());
            checker.find_if(!job_edge(job_before, job.state), Invariant::Edges, key, text);
        }
        for (index, after) in self.touched(event)? {
            let from = before.get(&index).copied();
            let name = from.map_or("new", PartitionState::name);
            let what = event.what.name();
            let text = format!(
                "{what}: no edge leads partition {index} from {name} to {}",
                after.name()
            );
            checker.find_if(!partition_edge(from, after), Invariant::Edges, key, text);
        }
        self.remember(checker, key, event);
        Ok(true)
    }

    /// What the event names must be what is in force: its lease, its attempt.
    fn named(&self, checker: &mut Checker<'_>, key: &Key, event: &Event) -> Result<(), ReadError> {
        if let (Some(token), Some(index)) = (event.what.token(), event.what.partition()) {
            let held = self.partition(index)?.and_then(|partition| partition.token);
            differs(checker, key, token, held, &format!("partition {index}"));
        } else if let Some(token) = event.what.token() {
            let held = self.job()?.and_then(|job| job.verifying);
            differs(checker, key, token, held, "the final check");
        }
        let attempt = match &event.what {
            What::SynthStarted {
                partition, attempt, ..
            } => Some((*partition, *attempt, 1)),
            What::AttemptEnded(end) => Some((end.partition, end.attempt, 0)),
            _ => None,
        };
        if let Some((index, attempt, step)) = attempt {
            let last = self.partition(index)?.map_or(0, |partition| partition.attempts);
            let text =
                format!("it names attempt {attempt} at partition {index}, whose last attempt was {last}");
            checker.find_if(attempt != last + step, Invariant::Attempts, key, text);
        }
        Ok(())
    }

    /// What no record of the replay holds.
    fn remember(&mut self, checker: &mut Checker<'_>, key: &Key, event: &Event) {
        match &event.what {
            What::ProofStored {
                partition, digest, ..
            } => {
                self.proofs.insert(*partition, *digest);
            }
            What::VerifyRefused { partitions, .. } => {
                self.proofs.retain(|index, _| !partitions.contains(index))
            }
            What::Retried { replaced, .. } => {
                self.proofs.retain(|index, _| !replaced.contains(index));
                self.verified = false;
            }
            What::VerifyPassed { .. } => self.verified = true,
            What::Ended {
                state: JobState::Succeeded,
            } => {
                let text = "the job succeeded and its final check did not pass";
                checker.find_if(!self.verified, Invariant::Proofs, key, text);
            }
            _ => {}
        }
    }

    fn compare(&self, checker: &mut Checker<'_>, whole: &Whole) -> Result<(), ReadError> {
        let number = self.number;
        let told = self.job()?;
        let key = keys::job(number);
        match &told {
            Some(told) => differ(checker, &key, told, Some(&whole.job)),
            None => checker.find(Invariant::Journal, &key, "its journal does not submit it"),
        }
        let generations: BTreeMap<u32, &Generation> =
            whole.generations.iter().map(|(k, v)| (*k, v)).collect();
        self.each(
            checker,
            Family::Generation,
            |told: &Generation| {
                (
                    keys::generation(number, told.number),
                    generations.get(&told.number).copied(),
                )
            },
            generations.len(),
        )?;
        self.each(
            checker,
            Family::Partition,
            |told: &Partition| {
                (
                    keys::partition(number, told.index),
                    whole.partitions.get(&told.index),
                )
            },
            whole.partitions.len(),
        )?;
        self.each(
            checker,
            Family::Attempt,
            |told: &Attempt| {
                (
                    keys::attempt(told.of),
                    whole.attempts.get(&(told.of.partition, told.of.number)),
                )
            },
            whole.attempts.len(),
        )?;
        for (index, digest) in &self.proofs {
            let stored = whole.proofs.get(index).map(|proof| proof.digest);
            let text = format!("its journal stored {digest}, found is {stored:?}");
            checker.find_if(
                stored != Some(*digest),
                Invariant::Proofs,
                &keys::proof(number, *index),
                text,
            );
        }
        for index in whole
            .proofs
            .keys()
            .filter(|index| !self.proofs.contains_key(index))
        {
            checker.find(
                Invariant::Proofs,
                &keys::proof(number, *index),
                "its journal stored no proof there",
            );
        }
        Ok(())
    }

    /// Compares each record of the replay with the one that is kept, and their number.
    fn each<'w, R: Record + Debug + PartialEq + 'w>(
        &self,
        checker: &mut Checker<'_>,
        family: Family,
        kept: impl Fn(&R) -> (Key, Option<&'w R>),
        count: usize,
    ) -> Result<(), ReadError> {
        let told = records::<R>(&self.memory, &keys::of_job(family, self.number))?;
        for record in &told {
            let (key, found) = kept(record);
            differ(checker, &key, record, found);
        }
        if count <= told.len() {
            return Ok(());
        }
        checker.walk(&keys::of_job(family, self.number), |checker, key, _| {
            let known = self.memory.get(key)?.is_some();
            checker.find_if(
                !known,
                Invariant::Journal,
                key,
                "the job's journal knows nothing of it",
            );
            Ok(())
        })
    }
}

fn differs(checker: &mut Checker<'_>, key: &Key, token: Token, held: Option<Token>, who: &str) {
    let now = held.map_or_else(|| "none".to_owned(), |held| held.to_string());
    let text = format!("it acts under lease {token}; {who} held {now}");
    checker.find_if(held != Some(token), Invariant::Attempts, key, text);
}

/// Says where a record differs from what the journal makes of it: the first field that does.
pub(super) fn differ<R: Debug + PartialEq>(
    checker: &mut Checker<'_>,
    key: &Key,
    told: &R,
    found: Option<&R>,
) {
    let Some(found) = found else {
        checker.missing(
            Invariant::Journal,
            key,
            "the journal makes it and it is not there",
        );
        return;
    };
    if told == found {
        return;
    }
    let (told, found) = (format!("{told:#?}"), format!("{found:#?}"));
    let pair = told
        .lines()
        .zip(found.lines())
        .find(|(told, found)| told != found);
    let (told, found) = pair.unwrap_or((&told, &found));
    let text = format!(
        "the journal says `{}`, the record says `{}`",
        told.trim(),
        found.trim()
    );
    checker.find(Invariant::Journal, key, text);
}
