//! Limits of what a command carries, so that no record outgrows its place. A request out of its limits is refused; the
//! text of a failure is cut instead, since an end must never be refused.

use super::{Refusal, Submit};
use crate::ids::Digest;
use crate::records::{CircuitFacts, Failure};

/// The largest canonical request that is kept in the store itself; a larger one is an object.
pub const MAX_INLINE: usize = 2048;

/// Pieces that one checkpoint may have.
pub(super) const MAX_PIECES: usize = 12;

/// Bytes of a piece's name.
const MAX_PIECE_NAME: usize = 16;

fn refuse(field: &'static str, expected: impl Into<String>, found: impl Into<String>) -> Refusal {
    Refusal::OutOfLimits {
        field,
        expected: expected.into(),
        found: found.into(),
    }
}

/// Who asks.
pub(super) fn actor(actor: &str) -> Result<(), Refusal> {
    if actor.is_empty() || actor.len() > 64 {
        return Err(refuse("actor", "1 to 64 bytes", format!("{} bytes", actor.len())));
    }
    Ok(())
}

/// A request is either inline, and then is what its digest says, or one of the job's objects.
pub(super) fn request(digest: Digest, inline: Option<&[u8]>, objects: &[Digest]) -> Result<(), Refusal> {
    match inline {
        Some(bytes) if bytes.len() > MAX_INLINE => Err(refuse(
            "request",
            format!("at most {MAX_INLINE} bytes in the store, or an object"),
            format!("{} bytes", bytes.len()),
        )),
        Some(bytes) if Digest::of(bytes) != digest => {
            let found = Digest::of(bytes).to_string();
            Err(refuse("request", format!("bytes with digest {digest}"), found))
        }
        None if !objects.contains(&digest) => Err(refuse(
            "request",
            format!("{digest} among the objects, or its bytes"),
            "neither",
        )),
        _ => Ok(()),
    }
}

/// The same failure with its texts cut to their limits.
pub(super) fn cut(failure: &Failure) -> Failure {
    Failure::coded(failure.class, failure.code.as_str(), failure.detail.as_str())
}

/// What is told of a circuit's key.
pub(super) fn facts(facts: &CircuitFacts) -> Result<(), Refusal> {
    if facts.setup.len() > 1024 {
        let found = format!("{} bytes", facts.setup.len());
        return Err(refuse("setup", "at most 1024 bytes", found));
    }
    Ok(())
}

/// Names of pieces: few and short.
pub(super) fn piece_names<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> Result<(), Refusal> {
    let count = names.len();
    let mut longest = 0;
    for name in names {
        longest = longest.max(name.len());
    }
    if count > MAX_PIECES || longest > MAX_PIECE_NAME {
        return Err(refuse(
            "pieces",
            format!("at most {MAX_PIECES} pieces with names of at most {MAX_PIECE_NAME} bytes"),
            format!("{count} pieces, the longest name of {longest} bytes"),
        ));
    }
    Ok(())
}

/// As many names of pieces as there can be.
pub(super) fn cut_names(names: &[String]) -> Vec<String> {
    let fits = names.iter().filter(|name| name.len() <= MAX_PIECE_NAME);
    fits.take(MAX_PIECES).cloned().collect()
}

/// Everything about a submit that needs no look into the store.
pub(super) fn submit(submit: &Submit) -> Result<(), Refusal> {
    if submit.partitions == 0 || submit.partitions > super::MAX_PARTITIONS {
        return Err(refuse(
            "inputs",
            "1 to 1024 inputs",
            submit.partitions.to_string(),
        ));
    }
    if submit.kind.is_empty() || submit.kind.len() > 64 {
        let found = format!("{} bytes", submit.kind.len());
        return Err(refuse("kind", "1 to 64 bytes", found));
    }
    actor(&submit.actor)?;
    if submit.max_attempts == 0 || submit.max_attempts > 100 {
        return Err(refuse(
            "max_attempts",
            "1 to 100",
            submit.max_attempts.to_string(),
        ));
    }
    request(submit.request, submit.inline.as_deref(), &submit.objects)?;
    if let Some(key) = &submit.idempotency_key
        && (key.is_empty() || key.len() > 128 || !key.bytes().all(|byte| byte.is_ascii_graphic()))
    {
        let found = format!("{} bytes", key.len());
        return Err(refuse(
            "idempotency_key",
            "1 to 128 visible ASCII characters",
            found,
        ));
    }
    labels(&submit.labels)
}

fn labels(labels: &[(String, String)]) -> Result<(), Refusal> {
    if labels.len() > 16 {
        return Err(refuse("labels", "at most 16 labels", labels.len().to_string()));
    }
    let mut bytes = 0;
    for (key, value) in labels {
        if key.is_empty() || key.len() > 63 || value.len() > 128 {
            let found = format!("{} and {} bytes", key.len(), value.len());
            let expected = "keys of 1 to 63 bytes, values of at most 128 bytes";
            return Err(refuse("labels", expected, found));
        }
        bytes += key.len() + value.len();
    }
    if bytes > 1024 {
        return Err(refuse(
            "labels",
            "at most 1024 bytes together",
            format!("{bytes} bytes"),
        ));
    }
    Ok(())
}
