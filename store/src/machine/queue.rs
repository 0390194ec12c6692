//! What an operator asks of the queue.

use super::{Reply, StepError, Transaction, limits};
use crate::event::What;

pub(super) fn pause(tx: &mut Transaction<'_>, actor: &str) -> Result<Reply, StepError> {
    limits::actor(actor)?;
    if tx.queue()?.paused {
        return Ok(Reply::Unchanged);
    }
    tx.emit(
        None,
        What::Paused {
            actor: actor.to_owned(),
        },
    )?;
    Ok(Reply::Done)
}

pub(super) fn resume(tx: &mut Transaction<'_>, actor: &str) -> Result<Reply, StepError> {
    limits::actor(actor)?;
    // Only the end of the boot ends a drain; a daemon that is going away must not start anything again.
    if !tx.queue()?.paused {
        return Ok(Reply::Unchanged);
    }
    tx.emit(
        None,
        What::Resumed {
            actor: actor.to_owned(),
        },
    )?;
    Ok(Reply::Done)
}

pub(super) fn drain(tx: &mut Transaction<'_>, actor: &str) -> Result<Reply, StepError> {
    limits::actor(actor)?;
    if tx.queue()?.draining {
        return Ok(Reply::Unchanged);
    }
    tx.emit(
        None,
        What::Draining {
            actor: actor.to_owned(),
        },
    )?;
    Ok(Reply::Done)
}
