//! Keys in words.

use crate::ids::{BootNumber, Digest, JobNumber, JournalNumber, Token};
use crate::keys::{self, Family};

pub(super) fn u64_at(key: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(key.get(at..at + 8)?.try_into().ok()?))
}

pub(super) fn u32_at(key: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(key.get(at..at + 4)?.try_into().ok()?))
}

pub(super) fn digest_at(key: &[u8], at: usize) -> Option<Digest> {
    Some(Digest(key.get(at..at + 32)?.try_into().ok()?))
}

/// The token in a lease's key.
pub(super) fn token_of(key: &[u8]) -> Option<Token> {
    Some(Token {
        boot: BootNumber(u64_at(key, 1)?),
        grant: JournalNumber(u64_at(key, 9)?),
    })
}

/// What lies at a key, in words for a person.
#[must_use]
pub fn describe(key: &[u8]) -> String {
    words(key).unwrap_or_else(|| format!("key {}", hex::encode(key)))
}

fn words(key: &[u8]) -> Option<String> {
    let rest = key.get(1..)?;
    let text = || String::from_utf8_lossy(rest).into_owned();
    let of_job = |what: &str| Some(format!("{what} of job {}", u64_at(key, 1)?));
    let of_partition = |what: &str| Some(format!("{what} {} of job {}", u32_at(key, 9)?, u64_at(key, 1)?));
    match Family::of(key)? {
        Family::Sequence => Some("a sequence's last number".to_owned()),
        Family::Boot => Some(format!("boot {}", u64_at(key, 1)?)),
        Family::Queue => Some("the queue".to_owned()),
        Family::Device => Some(format!("device {}", text())),
        Family::Worker => Some(format!("worker {}", u32_at(key, 1)?)),
        Family::Lease => Some(format!("lease {}", token_of(key)?)),
        Family::Stale => Some(format!("the note on lease {}", token_of(key)?)),
        Family::Job => Some(format!("job {}", u64_at(key, 1)?)),
        Family::JobId => Some(format!("job id {}", hex::encode(rest))),
        Family::Generation => of_partition("generation"),
        Family::Partition => of_partition("partition"),
        Family::Attempt => Some(format!(
            "attempt {} at partition {} of job {}",
            u32_at(key, 13)?,
            u32_at(key, 9)?,
            u64_at(key, 1)?
        )),
        Family::Checkpoint => of_partition("the checkpoint of partition"),
        Family::Proof => of_partition("the proof of partition"),
        Family::Quarantine => of_partition("the quarantined proof of partition"),
        Family::Request => of_job("the request"),
        Family::Active => of_job("the active entry"),
        Family::Ready => {
            let (_, job, partition) = keys::parse_ready(key)?;
            Some(format!("the ready entry of partition {partition} of job {job}"))
        }
        Family::Retry => {
            let (_, job, partition) = keys::parse_retry(key)?;
            Some(format!("the waiting entry of partition {partition} of job {job}"))
        }
        Family::Deadline => Some(format!(
            "the deadline entry of job {}",
            keys::parse_deadline(key)?.1
        )),
        Family::Open => of_partition("the open-attempt entry of partition"),
        Family::Done => of_job("the ended entry"),
        Family::Idempotency => Some(format!("idempotency key {}", text())),
        Family::Reference if key.len() == 41 => Some(format!(
            "the note that job {} needs object {}",
            u64_at(key, 33)?,
            digest_at(key, 1)?
        )),
        Family::Reference => Some(format!(
            "the note that circuit {} needs object {}",
            digest_at(key, 33)?,
            digest_at(key, 1)?
        )),
        Family::Needs => {
            let (job, object) = keys::parse_needs(key)?;
            Some(format!("object {object} of job {job}"))
        }
        Family::Event => Some(format!("event {}", u64_at(key, 1)?)),
        Family::JobEvent => Some(format!(
            "event {} of job {}",
            u64_at(key, 9)?,
            JobNumber(u64_at(key, 1)?)
        )),
        Family::Counter => Some(format!("counter {}", text())),
        Family::PrunedCounter => Some(format!("the pruned part of counter {}", text())),
        Family::Pruned => Some(format!("pruned job id {}", hex::encode(rest))),
        Family::Pruning => of_job("the deletion"),
        Family::Circuit => Some(format!("circuit {}", digest_at(key, 1)?)),
        Family::CircuitName => Some(format!("circuit name {}", text())),
        Family::Importing => Some(format!("the importing entry of circuit {}", digest_at(key, 1)?)),
    }
}
