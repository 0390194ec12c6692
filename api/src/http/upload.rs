//! A body of any size on its way to the disk. It is written while it arrives, on a thread that may block, and the
//! client is held back while the disk is slower. What was cut off on its way leaves nothing.

use bytes::Bytes;
use proofkeep_engine::problem::Problem;
use proofkeep_store::ids::Digest;
use proofkeep_store::{ObjectError, Objects};
use sha2::Digest as _;
use tokio::sync::mpsc;

use super::context::Context;
use super::problem::{internal, too_large};
use super::request::Request;

/// Pieces that may lie between the network and the disk; a piece is at most a few hundred KiB.
const BETWEEN: usize = 8;

/// What was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received {
    pub digest: Digest,
    pub size: u64,
    /// The same bytes were there before.
    pub was_there: bool,
}

/// A piece, or the end. A body that is cut off has no end.
enum Part {
    Bytes(Bytes),
    End,
}

/// Keeps the body as an object; durable when it returns. Bytes with another digest than `expected` are refused.
pub(super) async fn receive(
    context: &Context,
    request: &mut Request,
    expected: Option<Digest>,
    limit: u64,
) -> Result<Received, Problem> {
    request.check_length(limit)?;
    let objects = context.engine.store().objects().clone();
    let (parts, from) = mpsc::channel(BETWEEN);
    let writer = tokio::task::spawn_blocking(move || write(&objects, from, expected));
    let sent = send(request, &parts, limit).await;
    drop(parts);
    let written = writer.await.map_err(|error| {
        tracing::error!(%error, "an upload's writer failed");
        internal()
    })?;
    // The reason for which the writer got no end comes first.
    sent?;
    match written {
        Ok(Some(received)) => Ok(received),
        Ok(None) => Err(internal()),
        Err(error) => Err(problem(&error)),
    }
}

async fn send(request: &mut Request, parts: &mpsc::Sender<Part>, limit: u64) -> Result<(), Problem> {
    let mut size = 0_u64;
    while let Some(bytes) = request.chunk().await? {
        size += bytes.len() as u64;
        if size > limit {
            return Err(too_large(limit));
        }
        if parts.send(Part::Bytes(bytes)).await.is_err() {
            // The writer has ended, and says why.
            return Ok(());
        }
    }
    // Nobody takes the end if the writer has ended, and then it says why.
    let _ = parts.send(Part::End).await;
    Ok(())
}

/// `None`: the body was cut off, and what was written of it is gone again.
fn write(
    objects: &Objects,
    mut parts: mpsc::Receiver<Part>,
    expected: Option<Digest>,
) -> Result<Option<Received>, ObjectError> {
    let mut upload = objects.create()?;
    // An announced digest is checked by the upload itself; otherwise somebody has to know it before the name is taken.
    let mut hasher = expected.is_none().then(sha2::Sha256::new);
    loop {
        match parts.blocking_recv() {
            Some(Part::Bytes(bytes)) => {
                if let Some(hasher) = &mut hasher {
                    hasher.update(&bytes);
                }
                upload.write(&bytes)?;
            }
            Some(Part::End) => break,
            None => return Ok(None),
        }
    }
    let digest = match (expected, hasher) {
        (Some(digest), _) => digest,
        (None, Some(hasher)) => Digest(hasher.finalize().into()),
        (None, None) => return Ok(None),
    };
    let was_there = objects.stat(digest)?.is_some();
    let size = upload.finish_as(digest)?;
    Ok(Some(Received {
        digest,
        size,
        was_there,
    }))
}

/// What an object that can't be written means for who sent it.
fn problem(error: &ObjectError) -> Problem {
    match error {
        ObjectError::DiskFull(_) => {
            let detail = "no space is left on the disk of the data directory; nothing was kept, free some and send it again";
            Problem::new(507, "disk-budget", "the disk is full", detail).retryable()
        }
        ObjectError::Mismatch { .. } => Problem::input("digest-mismatch", error.to_string()),
        ObjectError::Missing(_) | ObjectError::Damaged { .. } | ObjectError::Io { .. } => {
            tracing::error!(%error, "an upload failed");
            let detail = "the disk refused to keep the bytes; the daemon's log says more";
            Problem::new(500, "io", "the disk refused something", detail).retryable()
        }
    }
}
