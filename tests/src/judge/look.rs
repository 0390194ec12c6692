//! One look at an open store, and its recovery.

use std::collections::BTreeMap;

use proofkeep_engine::kinds::Kinds;
use proofkeep_engine::kinds::groth16::Groth16;
use proofkeep_scripted::Scripted;
use proofkeep_store::clock::Clock;
use proofkeep_store::fsck::{Mode, fsck};
use proofkeep_store::ids::{Digest, JobNumber};
use proofkeep_store::keys::{self, Family};
use proofkeep_store::machine::{Command, Machine, Rules};
use proofkeep_store::query;
use proofkeep_store::records::{Job, StoredProof};
use proofkeep_store::view::{self, ReadError, View};
use proofkeep_store::{CommitError, Limits, Store};

use crate::ledger::Ledger;

/// What is looked for beside the rest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// Every job has ended.
    pub ended: bool,
    /// Every proof verifies.
    pub proofs: bool,
}

/// What is wrong with it.
pub(super) fn at(store: &Store, ledger: &Ledger, wanted: Wanted) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut add = |found: Result<Vec<String>, ReadError>| match found {
        Ok(found) => wrong.extend(found),
        Err(error) => wrong.push(format!("it can't be read: {error}")),
    };
    let object_ok = |digest| store.objects().verify(digest).is_ok();
    add(store
        .read(|view| fsck(view, Mode::Full, Some(&object_ok)))
        .map(|report| {
            report
                .findings
                .iter()
                .map(|text| format!("fsck: {text}"))
                .collect()
        }));
    add(ledger.losses(store));
    if wanted.proofs {
        add(proofs(store));
    }
    if wanted.ended {
        add(store.read(unended));
    }
    wrong
}

/// Every proof that is stored verifies.
fn proofs(store: &Store) -> Result<Vec<String>, ReadError> {
    let kinds = Kinds::none().with(Groth16::new()).with(Scripted);
    let (proofs, jobs) = store.read(|view| {
        let proofs = view::records::<StoredProof>(view, &keys::family(Family::Proof))?;
        let jobs = view::records::<Job>(view, &keys::family(Family::Job))?;
        Ok::<_, ReadError>((proofs, jobs))
    })?;
    let jobs: BTreeMap<JobNumber, Job> = jobs.into_iter().map(|job| (job.number, job)).collect();
    let mut wrong = Vec::new();
    for proof in proofs {
        let Some(job) = jobs.get(&proof.job) else {
            // What a job that is being pruned leaves goes in slices.
            let pruning = store.read(|view| view.get(&keys::pruning(proof.job)))?;
            if pruning.is_none() {
                let job = proof.job;
                wrong.push(format!("a proof belongs to job {job}, which is not there"));
            }
            continue;
        };
        if let Err(why) = verifies(store, &kinds, job, &proof) {
            wrong.push(format!(
                "job {}: the proof of partition {} is no good: {why}",
                job.id, proof.partition
            ));
        }
    }
    Ok(wrong)
}

fn verifies(store: &Store, kinds: &Kinds, job: &Job, proof: &StoredProof) -> Result<(), String> {
    let kind = kinds
        .get(&job.kind)
        .ok_or_else(|| format!("there is no kind {}", job.kind))?;
    let read = |digest| {
        store
            .objects()
            .read_verified(digest)
            .map_err(|error| error.to_string())
    };
    let circuit = match job.circuit {
        Some(digest) => store
            .read(|view| query::circuit(view, digest))
            .map_err(|error| error.to_string())?,
        None => None,
    };
    let vk = circuit.and_then(|circuit| circuit.vk).map(read).transpose()?;
    kind.verify(vk.as_deref(), &read(proof.public)?, &proof.bytes)
        .map_err(|failure| failure.detail)
}

/// The digest of every record, keys and values.
pub(super) fn digest(store: &Store) -> Result<Digest, ReadError> {
    let all = store.read(|view| view.scan(&[], None, usize::MAX))?;
    let mut bytes = Vec::new();
    for part in all.iter().flat_map(|(key, value)| [key, value]) {
        bytes.extend(part.len().to_be_bytes());
        bytes.extend(part);
    }
    Ok(Digest::of(&bytes))
}

fn unended(view: &dyn View) -> Result<Vec<String>, ReadError> {
    let jobs = view::records::<Job>(view, &keys::family(Family::Job))?;
    let open = jobs.iter().filter(|job| !job.state.is_terminal());
    Ok(open
        .map(|job| format!("job {} has not ended, it is {}", job.id, job.state.name()))
        .collect())
}

/// The first command of each boot: it ends what an earlier one left open.
pub(super) fn recover(store: &Store) -> Result<(), CommitError> {
    let handle = store
        .start(Machine { rules: Rules::ALL }, Clock::start(), Limits::default())
        .map_err(|error| CommitError::Unreadable(error.to_string()))?;
    handle.commit_blocking(Command::BootOpen {
        version: "judge".to_owned(),
        devices: vec![("cpu:0".to_owned(), 2)],
    })?;
    handle.stop();
    Ok(())
}
