//! Folding an event into the records. The only code that changes them, live or in a replay.
//!
//! It decides nothing: what the fold needs stands in the event. It must also work when only one job's journal is
//! replayed, so records of other families (workers, devices, boots, circuits) may be missing and are then passed over.

mod boot;
mod circuit;
mod job;
mod partition;
mod verify;

pub(super) use self::verify::invalid_stored_proof;
use super::{StepError, Transaction};
use crate::event::{Event, What};

/// Folds one event into the records.
///
/// # Errors
/// When a record that the event is about is missing or damaged.
pub fn apply(tx: &mut Transaction<'_>, event: &Event) -> Result<(), StepError> {
    match &event.what {
        What::Submitted(_)
        | What::Stopping { .. }
        | What::Ended { .. }
        | What::Retried { .. }
        | What::Pruned { .. } => job::apply(tx, event),
        What::VerifyStarted
        | What::VerifyPassed { .. }
        | What::VerifyRefused { .. }
        | What::JoinRefused { .. }
        | What::VerifyDropped { .. } => verify::apply(tx, event),
        What::SynthStarted { .. }
        | What::SynthEnded { .. }
        | What::ProveStarted { .. }
        | What::Checkpointed { .. }
        | What::ProveEnded { .. }
        | What::ProofStored { .. }
        | What::AttemptEnded(_)
        | What::Woken { .. } => partition::apply(tx, event),
        What::StaleIgnored { .. } => Ok(()),
        What::BootOpened { .. }
        | What::BootClosed
        | What::ProcessStarted { .. }
        | What::ProcessLost { .. }
        | What::DeviceSuspended { .. }
        | What::DeviceResumed { .. }
        | What::Paused { .. }
        | What::Resumed { .. }
        | What::Draining { .. }
        | What::ClockStepped { .. } => boot::apply(tx, event),
        What::CircuitAdded { .. }
        | What::CircuitNamed { .. }
        | What::ImportStarted { .. }
        | What::ImportProgressed { .. }
        | What::ImportEnded { .. }
        | What::ImportFailed { .. }
        | What::ImportInterrupted { .. }
        | What::CircuitRemoved { .. } => circuit::apply(tx, event),
    }
}
