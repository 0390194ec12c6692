//! The processor as a device: the fastest arithmetic that it can run, on threads of its own.

use std::fs;

use proofkeep_groth16::backend::{Backend, CpuBackend};

use super::{Device, DeviceError, LeasedBackend};
use crate::lease::Lease;

/// The processor.
#[derive(Debug)]
pub struct Cpu {
    name: String,
    threads: u32,
    backend: CpuBackend,
}

impl Cpu {
    /// The processor under that name, with that many threads, at least one.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn new(name: &str, threads: u32) -> Result<Self, DeviceError> {
        let threads = threads.max(1);
        let backend =
            CpuBackend::new(threads as usize).map_err(|error| DeviceError::Threads(error.to_string()))?;
        Ok(Self {
            name: name.to_owned(),
            threads,
            backend,
        })
    }
}

impl Device for Cpu {
    fn name(&self) -> &str {
        &self.name
    }

    fn threads(&self) -> u32 {
        self.threads
    }

    fn backend<'l>(&'l self, lease: &'l Lease) -> LeasedBackend<'l> {
        LeasedBackend::new(lease, &self.backend)
    }
}

/// The processor's own name for itself, from `/proc/cpuinfo`, and what we compute with on it.
///
/// # Errors
/// When the backend's setting is wrong.
pub(super) fn description() -> Result<String, DeviceError> {
    let backend = CpuBackend::new(1).map_err(|error| DeviceError::Threads(error.to_string()))?;
    let backend = backend.name();
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .and_then(|rest| rest.split_once(':'))
        .map_or("processor", |(_, model)| model.trim());
    Ok(format!("{model}, {backend}"))
}
