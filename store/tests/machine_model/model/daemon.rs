//! Boots, processes, devices and imports.

use proofkeep_store::ids::{Digest, JobNumber, Millis, ProcessId, Token};
use proofkeep_store::records::FailureClass;

use super::{Answer, Circuit, Device, Model, answer};

impl Model {
    pub(super) fn lost(
        &mut self,
        process: ProcessId,
        class: FailureClass,
        culprit: Option<(Token, FailureClass)>,
        own_fault: bool,
        now: Millis,
    ) -> Option<Answer> {
        let Some(at) = self
            .devices
            .iter()
            .position(|device| device.process == Some(process))
        else {
            return Some(Answer::Unchanged);
        };
        self.devices[at].process = None;
        let own_fault = own_fault && culprit.is_none();
        // A witness that waits is to blame only where nothing was at work.
        let imports = self
            .circuits
            .values()
            .any(|circuit| matches!(circuit, Circuit::Importing { process: Some(of), .. } if *of == process));
        let at_work = imports
            || self
                .opened_in(process)
                .iter()
                .any(|partition| partition.token.is_some());
        let numbers: Vec<JobNumber> = self.jobs.keys().copied().collect();
        for number in numbers {
            for index in 0..self.jobs[&number].partitions.len() {
                let partition = &self.jobs[&number].partitions[index];
                if !partition.state.is_open() || partition.process != Some(process) {
                    continue;
                }
                let class = match (culprit, partition.token) {
                    (Some((token, class)), held) if held == Some(token) => class,
                    (None, Some(_)) => class,
                    _ => FailureClass::Interrupted,
                };
                let own_fault = own_fault && (partition.token.is_some() || !at_work);
                self.end(number, index, class, own_fault, now);
            }
        }
        self.imports_end(Some(process), own_fault);
        Some(Answer::Done)
    }

    pub(super) fn imports_end(&mut self, of: Option<ProcessId>, own_fault: bool) {
        for circuit in self.circuits.values_mut() {
            if let Circuit::Importing {
                token,
                process,
                deaths,
                ..
            } = circuit
                && process.is_some()
                && (of.is_none() || *process == of)
            {
                (*token, *process) = (None, None);
                *deaths += u32::from(own_fault);
            }
        }
    }

    pub(super) fn suspend(&mut self, name: &str, suspended: bool) -> Option<Answer> {
        let device = self.devices.iter_mut().find(|device| device.name == name)?;
        Some(answer(
            std::mem::replace(&mut device.suspended, suspended) != suspended,
        ))
    }

    pub(super) fn boot_open(&mut self, devices: &[(String, u32)], now: Millis) -> Answer {
        self.boot += 1;
        (self.open, self.draining, self.spawns) = (true, false, 0);
        self.devices.clear();
        self.workers.clear();
        for (name, slots) in devices {
            self.workers
                .extend((0..*slots).map(|_| (self.devices.len(), None)));
            let (name, slots) = (name.clone(), *slots);
            self.devices.push(Device {
                name,
                slots,
                process: None,
                suspended: false,
            });
        }
        let numbers: Vec<JobNumber> = self.jobs.keys().copied().collect();
        for number in numbers {
            for index in 0..self.jobs[&number].partitions.len() {
                if self.jobs[&number].partitions[index].state.is_open() {
                    self.end(number, index, FailureClass::Interrupted, false, now);
                }
            }
            if self.job(number).verify.take().is_some() {
                self.settle(number);
            }
        }
        self.imports_end(None, false);
        Answer::Booted
    }

    pub(super) fn import_start(
        &mut self,
        circuit: Digest,
        process: ProcessId,
        granted: Token,
    ) -> Option<Answer> {
        let Circuit::Importing {
            token: None, deaths, ..
        } = *self.circuits.get(&circuit)?
        else {
            return Some(Answer::Unchanged);
        };
        let live = self.devices.iter().any(|device| device.process == Some(process));
        if !self.open || !live || self.crowded(process, deaths >= 2) {
            return None;
        }
        if deaths >= 3 {
            self.circuits.insert(circuit, Circuit::Failed);
            return Some(Answer::Done);
        }
        if let Some(Circuit::Importing {
            token,
            process: at,
            done,
            local,
            ..
        }) = self.circuits.get_mut(&circuit)
        {
            (*token, *at) = (Some(granted), Some(process));
            if *local {
                *done = 0;
            }
        }
        Some(Answer::Granted(0))
    }

    pub(super) fn import_of(&mut self, wanted: Token) -> Option<&mut Circuit> {
        self.circuits
            .values_mut()
            .find(|circuit| matches!(circuit, Circuit::Importing { token, .. } if *token == Some(wanted)))
    }

    pub(super) fn import_ends(&mut self, token: Token, end: Circuit) -> Answer {
        match self.import_of(token) {
            Some(circuit) => {
                *circuit = end;
                Answer::Done
            }
            None => Answer::Stale,
        }
    }
}
