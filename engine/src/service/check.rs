//! The final check of a job whose partitions are all proved: each stored proof again, then the whole, as its consumer
//! would. On a blocking thread, milliseconds a proof.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use proofkeep_store::ids::{Digest, JobNumber, Token};
use proofkeep_store::machine::{Command, VerifyVerdict};
use proofkeep_store::records::{Failure, FailureClass, Job, StoredProof};
use proofkeep_store::{CommitError, query};

use crate::kinds::Kind;
use crate::shared::{Core, LookError};

/// Proofs read at a time.
const PAGE: usize = 64;

/// Checks a job and stores the verdict; gives the lease back if it is told to stop.
pub(super) fn run(core: &Core, job: JobNumber, token: Token, stop: &AtomicBool) {
    let checked = catch_unwind(AssertUnwindSafe(|| verdict(core, job, stop)));
    let command = match checked {
        Ok(Ok(Some(verdict))) => Command::VerifyEnd { token, verdict },
        Ok(Ok(None)) => Command::VerifyDrop { token },
        Ok(Err(error)) => {
            let text = format!("the proofs can't be verified: {error}");
            let failure = Failure::coded(FailureClass::InputMissing, "not-verifiable", text);
            Command::VerifyEnd {
                token,
                verdict: VerifyVerdict::JoinInvalid(failure),
            }
        }
        Err(_) => {
            let text = "the verifier panicked; this is a fault of proofkeep, please report it";
            let failure = Failure::coded(FailureClass::JoinInvalid, "verifier-panicked", text);
            Command::VerifyEnd {
                token,
                verdict: VerifyVerdict::JoinInvalid(failure),
            }
        }
    };
    match core.commit(command) {
        Ok(_) | Err(CommitError::Stopped) => {}
        Err(error) => tracing::error!(%job, "the verdict of a final check was not stored: {error}"),
    }
}

/// `None`: told to stop.
fn verdict(core: &Core, number: JobNumber, stop: &AtomicBool) -> Result<Option<VerifyVerdict>, LookError> {
    let job = core.job(number)?;
    let kind = core
        .kinds
        .get(&job.kind)
        .ok_or_else(|| LookError::Missing(format!("kind {:?}", job.kind)))?;
    let vk = core.verification_key_of(&job, kind.as_ref())?;
    let mut proofs = Vec::with_capacity(job.partitions as usize);
    let mut bad = Vec::new();
    let mut from = Some(0);
    while let Some(first) = from {
        let page = core
            .handle
            .read(|view| query::proofs(view, number, first, PAGE))?;
        for proof in page.proofs {
            if stop.load(Ordering::Acquire) {
                return Ok(None);
            }
            if let Err(why) = check(core, kind.as_ref(), vk.as_deref().map(Vec::as_slice), &proof) {
                tracing::error!(job = %job.id, partition = proof.partition, "a stored proof is refused: {why}");
                bad.push(proof.partition);
            }
            proofs.push(proof);
        }
        from = page.next;
    }
    bad.extend(missing(&job, &proofs));
    if !bad.is_empty() {
        bad.sort_unstable();
        return Ok(Some(VerifyVerdict::BadPartitions(bad)));
    }
    let request = core.request(&job)?;
    let proofs: Vec<Vec<u8>> = proofs.into_iter().map(|proof| proof.bytes).collect();
    Ok(Some(match kind.verify_joined(&request, &proofs) {
        Ok(()) => VerifyVerdict::Passed,
        Err(failure) => VerifyVerdict::JoinInvalid(failure),
    }))
}

fn check(core: &Core, kind: &dyn Kind, vk: Option<&[u8]>, proof: &StoredProof) -> Result<(), String> {
    if Digest::of(&proof.bytes) != proof.digest {
        return Err("its bytes are not what was stored".to_owned());
    }
    let public = core
        .objects
        .read_verified(proof.public)
        .map_err(|error| error.to_string())?;
    kind.verify(vk, &public, &proof.bytes)
        .map_err(|failure| failure.detail)
}

fn missing(job: &Job, proofs: &[StoredProof]) -> Vec<u32> {
    (0..job.partitions)
        .filter(|index| !proofs.iter().any(|proof| proof.partition == *index))
        .collect()
}

/// Partitions of a job that succeeded whose stored proof or public signals aren't what was stored; the only reason to try
/// it again.
pub(super) fn damaged(core: &Core, job: &Job) -> Vec<u32> {
    let intact = |index: &u32| {
        let proof = core.handle.read(|view| query::proof(view, job.number, *index));
        matches!(proof, Ok(Some(proof)) if Digest::of(&proof.bytes) == proof.digest
            && core.objects.verify(proof.public).is_ok())
    };
    (0..job.partitions).filter(|index| !intact(index)).collect()
}
