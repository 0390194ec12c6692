//! Boots, devices, worker processes and the queue.

use crate::event::{Event, What};
use crate::ids::WorkerId;
use crate::keys::{self, Family, Sequence};
use crate::machine::{StepError, Transaction};
use crate::records::{Boot, BootEnd, Device, DeviceState, Queue, Worker, WorkerState};

pub(super) fn apply(tx: &mut Transaction<'_>, event: &Event) -> Result<(), StepError> {
    match &event.what {
        What::BootOpened { version, devices } => open(tx, event, version, devices),
        What::BootClosed => {
            change_boot(tx, event, |boot| boot.ended = Some((event.at, BootEnd::Clean)))?;
            change_queue(tx, |queue| queue.draining = false)
        }
        What::ProcessStarted { process, device } => {
            change_boot(tx, event, |boot| boot.spawns = process.spawn)?;
            change_device(tx, device, |device| device.process = Some(*process))
        }
        What::ProcessLost { process, device, .. } => change_device(tx, device, |device| {
            if device.process == Some(*process) {
                device.process = None;
            }
        }),
        What::DeviceSuspended {
            device,
            until,
            reason,
        } => change_device(tx, device, |device| {
            device.state = DeviceState::Suspended {
                until: *until,
                reason: reason.clone(),
            };
        }),
        What::DeviceResumed { device } => change_device(tx, device, |device| device.state = DeviceState::Up),
        What::Paused { .. } => change_queue(tx, |queue| queue.paused = true),
        What::Resumed { .. } => change_queue(tx, |queue| queue.paused = false),
        What::Draining { .. } => change_queue(tx, |queue| queue.draining = true),
        _ => Ok(()),
    }
}

fn open(
    tx: &mut Transaction<'_>,
    event: &Event,
    version: &str,
    devices: &[(String, u32)],
) -> Result<(), StepError> {
    for mut boot in tx.records::<Boot>(&keys::family(Family::Boot))? {
        if boot.ended.is_none() {
            boot.ended = Some((event.at, BootEnd::Crashed));
            tx.put(keys::boot(boot.number), &boot);
        }
    }
    for family in [Family::Worker, Family::Device, Family::Stale] {
        for key in tx.pairs(&keys::family(family))?.into_keys() {
            tx.delete(key)?;
        }
    }
    tx.set_sequence(Sequence::Boot, event.boot.0);
    tx.put(
        keys::boot(event.boot),
        &Boot {
            number: event.boot,
            version: version.to_owned(),
            started_at: event.at,
            ended: None,
            spawns: 0,
            interrupted: 0,
        },
    );
    let mut id = 0;
    for (name, slots) in devices {
        let device = Device {
            name: name.clone(),
            slots: *slots,
            state: DeviceState::Up,
            process: None,
        };
        tx.put(keys::device(name), &device);
        for slot in 0..*slots {
            let worker = Worker {
                id: WorkerId(id),
                device: name.clone(),
                slot,
                state: WorkerState::Idle,
                last: None,
            };
            tx.put(keys::worker(worker.id), &worker);
            id += 1;
        }
    }
    change_queue(tx, |queue| queue.draining = false)
}

fn change_boot(
    tx: &mut Transaction<'_>,
    event: &Event,
    change: impl FnOnce(&mut Boot),
) -> Result<(), StepError> {
    let key = keys::boot(event.boot);
    if let Some(mut boot) = tx.record::<Boot>(&key)? {
        change(&mut boot);
        tx.put(key, &boot);
    }
    Ok(())
}

fn change_device(
    tx: &mut Transaction<'_>,
    name: &str,
    change: impl FnOnce(&mut Device),
) -> Result<(), StepError> {
    let key = keys::device(name);
    if let Some(mut device) = tx.record::<Device>(&key)? {
        change(&mut device);
        tx.put(key, &device);
    }
    Ok(())
}

fn change_queue(tx: &mut Transaction<'_>, change: impl FnOnce(&mut Queue)) -> Result<(), StepError> {
    let before = tx.queue()?;
    let mut queue = before;
    change(&mut queue);
    if queue != before {
        tx.put(keys::queue(), &queue);
    }
    Ok(())
}
