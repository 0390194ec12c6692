//! A boot begins and ends. Opening one is recovery's single transaction; what else recovery finds to do are ordinary
//! commands after it.

use super::end::end_and_settle;
use super::{Refusal, Reply, StepError, Transaction, stop};
use crate::event::What;
use crate::ids::BootNumber;
use crate::keys::{self, Family, Sequence};
use crate::records::{Boot, Failure, FailureClass, Lease, Subject};

/// Slots over all devices: opening a boot ends whatever was open in all of them in one transaction.
const MAX_SLOTS: u64 = 32;

/// Bytes of a device's name; every partition that it failed keeps one.
const MAX_DEVICE_NAME: usize = 32;

pub(super) fn open(
    tx: &mut Transaction<'_>,
    version: &str,
    devices: &[(String, u32)],
) -> Result<Reply, StepError> {
    let last = tx.sequence(Sequence::Boot)?;
    if tx.context.boot.0 != last + 1 {
        return Err(Refusal::AlreadyOpen.into());
    }
    check_devices(devices)?;
    tx.emit(
        None,
        What::BootOpened {
            version: version.to_owned(),
            devices: devices.to_vec(),
        },
    )?;
    for partition in tx.open_partitions()? {
        // Ending one may have ended others with its job: look again.
        let partition = tx.partition(partition.job, partition.index)?;
        if !partition.state.is_open() {
            continue;
        }
        let failure = Failure::new(
            FailureClass::Interrupted,
            "the daemon stopped while this attempt was open",
        );
        end_and_settle(tx, &partition, failure, false, None)?;
    }
    for lease in tx.records::<Lease>(&keys::family(Family::Lease))? {
        let token = lease.token;
        match lease.subject {
            Subject::Verify { job } => {
                tx.emit(Some(job), What::VerifyDropped { token })?;
                stop::settle(tx, job)?;
            }
            Subject::Import { circuit } => {
                tx.emit(
                    None,
                    What::ImportInterrupted {
                        token,
                        circuit,
                        crashed: false,
                    },
                )?;
            }
            // Its attempt was open, so it ended above.
            Subject::Partition { .. } => {}
        }
    }
    Ok(Reply::Booted(BootNumber(last + 1)))
}

fn check_devices(devices: &[(String, u32)]) -> Result<(), Refusal> {
    for (index, (name, slots)) in devices.iter().enumerate() {
        let twice = devices[..index].iter().any(|(other, _)| other == name);
        if name.is_empty() || name.len() > MAX_DEVICE_NAME || *slots == 0 || twice {
            return Err(Refusal::OutOfLimits {
                field: "devices",
                expected: format!("distinct names of 1 to {MAX_DEVICE_NAME} bytes with at least 1 slot"),
                found: format!("{name:?} with {slots} slots"),
            });
        }
    }
    let slots: u64 = devices.iter().map(|(_, slots)| u64::from(*slots)).sum();
    if slots > MAX_SLOTS {
        return Err(Refusal::OutOfLimits {
            field: "devices",
            expected: format!("at most {MAX_SLOTS} slots in all"),
            found: format!("{slots} slots"),
        });
    }
    Ok(())
}

pub(super) fn close(tx: &mut Transaction<'_>) -> Result<Reply, StepError> {
    let boot: Boot = tx.record(&keys::boot(tx.context.boot))?.ok_or(Refusal::NoBoot)?;
    if boot.ended.is_some() {
        return Ok(Reply::Unchanged);
    }
    tx.emit(None, What::BootClosed)?;
    Ok(Reply::Done)
}

pub(super) fn clock_step(tx: &mut Transaction<'_>, by_ms: i64) -> Result<Reply, StepError> {
    tx.emit(None, What::ClockStepped { by_ms })?;
    Ok(Reply::Done)
}
