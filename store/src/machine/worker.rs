//! Worker processes and their devices.

use super::end::end_and_settle;
use super::{Refusal, Reply, StepError, Transaction, limits};
use crate::event::What;
use crate::ids::{Millis, ProcessId, Token};
use crate::keys::{self, Family};
use crate::records::{Device, DeviceState, Failure, FailureClass, Partition, Subject};

pub(super) fn process_start(tx: &mut Transaction<'_>, name: &str) -> Result<Reply, StepError> {
    let boot = tx.open_boot()?;
    if tx.device(name)?.process.is_some() {
        return Err(Refusal::SlotTaken.into());
    }
    let process = ProcessId {
        boot: boot.number,
        spawn: boot.spawns + 1,
    };
    tx.emit(
        None,
        What::ProcessStarted {
            process,
            device: name.to_owned(),
        },
    )?;
    Ok(Reply::Process(process))
}

pub(super) fn process_lost(
    tx: &mut Transaction<'_>,
    process: ProcessId,
    failure: &Failure,
    culprit: Option<&(Token, Failure)>,
    own_fault: bool,
    process_peak_bytes: Option<u64>,
) -> Result<Reply, StepError> {
    let devices: Vec<Device> = tx.records(&keys::family(Family::Device))?;
    let Some(device) = devices.into_iter().find(|device| device.process == Some(process)) else {
        return Ok(Reply::Unchanged);
    };
    // A process that was killed for one of its partitions did not die by its own fault.
    let own_fault = own_fault && culprit.is_none();
    // Each end may stop a job of a thousand partitions. What doesn't fit waits for the same command again; until then
    // the process keeps its name, and whatever it is granted ends with it.
    let at_work = is_at_work(tx, process)?;
    for partition in tx.open_partitions()? {
        // Ending one may have stopped its job, which ends others: look again.
        let partition = tx.partition(partition.job, partition.index)?;
        if partition.state.is_open() && partition.process == Some(process) {
            if tx.is_heavy() {
                return Ok(Reply::More);
            }
            let own_fault = own_fault && (partition.token.is_some() || !at_work);
            end_lost(tx, &partition, failure, culprit, own_fault, process_peak_bytes)?;
        }
    }
    tx.emit(
        None,
        What::ProcessLost {
            process,
            device: device.name,
            cause: limits::cut(failure).detail,
            own_fault,
        },
    )?;
    for lease in tx.leases()? {
        if let Subject::Import { circuit } = lease.subject
            && lease.process == Some(process)
        {
            let token = lease.token;
            tx.emit(
                None,
                What::ImportInterrupted {
                    token,
                    circuit,
                    crashed: own_fault,
                },
            )?;
        }
    }
    Ok(Reply::Done)
}

/// The process works on something. If it doesn't, a death of it is the doing of a witness that waits in it: the code that
/// made it may have left a thread behind.
fn is_at_work(tx: &Transaction<'_>, process: ProcessId) -> Result<bool, StepError> {
    let leases = tx.leases()?;
    Ok(leases.iter().any(|lease| lease.process == Some(process)))
}

/// Ends one open attempt of a process that is gone. Memory ran out for those at work, not for a witness that waits;
/// the one that it was killed for ends with its own failure.
fn end_lost(
    tx: &mut Transaction<'_>,
    partition: &Partition,
    failure: &Failure,
    culprit: Option<&(Token, Failure)>,
    own_fault: bool,
    process_peak_bytes: Option<u64>,
) -> Result<(), StepError> {
    let interrupted = || Failure::new(FailureClass::Interrupted, failure.detail.clone());
    let failure = match culprit {
        Some((token, failure)) if partition.token == Some(*token) => failure.clone(),
        Some(_) => interrupted(),
        None if partition.token.is_none() => interrupted(),
        None => failure.clone(),
    };
    end_and_settle(tx, partition, failure, own_fault, process_peak_bytes)
}

pub(super) fn suspend(
    tx: &mut Transaction<'_>,
    name: &str,
    until: Option<Millis>,
    reason: &str,
) -> Result<Reply, StepError> {
    let device = tx.device(name)?;
    let state = DeviceState::Suspended {
        until,
        reason: reason.to_owned(),
    };
    if device.state == state {
        return Ok(Reply::Unchanged);
    }
    let device = name.to_owned();
    tx.emit(
        None,
        What::DeviceSuspended {
            device,
            until,
            reason: reason.to_owned(),
        },
    )?;
    Ok(Reply::Done)
}

pub(super) fn resume(tx: &mut Transaction<'_>, name: &str) -> Result<Reply, StepError> {
    if tx.device(name)?.state == DeviceState::Up {
        return Ok(Reply::Unchanged);
    }
    tx.emit(
        None,
        What::DeviceResumed {
            device: name.to_owned(),
        },
    )?;
    Ok(Reply::Done)
}
