//! Devices: what transforms and multi-scalar multiplications run on.
//!
//! A device is used under a [`Lease`] only. Work that needs no device (checks of a witness, of a key's points) runs on
//! [`Threads`] of the processor.

mod cpu;

use std::fmt;
use std::sync::Arc;

use blst::{blst_p1, blst_p1_affine, blst_p2, blst_p2_affine};
use blstrs::Scalar;
use proofkeep_groth16::backend::{Backend, CpuBackend};
use proofkeep_groth16::bases::BaseSet;
use proofkeep_groth16::control::{Control, Stopped};
use proofkeep_groth16::curve::{G1, G2};
use proofkeep_groth16::domain::Domain;
use proofkeep_groth16::field::ScalarBytes;
use proofkeep_groth16::quotient::HBasis;
use proofkeep_groth16::sums::Groups;

pub use cpu::Cpu;

use crate::lease::Lease;

/// One device of one worker process.
pub trait Device: Send + Sync + 'static {
    /// Its name: `cpu:0`.
    fn name(&self) -> &str;

    /// Threads of the processor that it uses.
    fn threads(&self) -> u32;

    /// What it does, while the lease is held.
    fn backend<'l>(&'l self, lease: &'l Lease) -> LeasedBackend<'l>;
}

/// A device that can't be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// This build has no such device.
    #[error("there is no device {0:?} in this build; devices are named cpu:0, cpu:1, …")]
    Unknown(String),
    /// The system gave no threads.
    #[error("the device can't be opened: {0}")]
    Threads(String),
}

/// A description of a device for people, without opening it.
///
/// # Errors
/// When this build has no such device, or the setting of its backend is wrong.
pub fn describe(name: &str) -> Result<String, DeviceError> {
    check_name(name)?;
    cpu::description()
}

/// Opens a device by its name, with that many threads of the processor.
///
/// # Errors
/// When this build has no such device, or the system gives no threads.
pub fn open(name: &str, threads: u32) -> Result<Arc<dyn Device>, DeviceError> {
    check_name(name)?;
    Ok(Arc::new(Cpu::new(name, threads)?))
}

fn check_name(name: &str) -> Result<(), DeviceError> {
    let number = name
        .strip_prefix("cpu:")
        .and_then(|number| number.parse::<u32>().ok());
    // The number written again must be the name, so that `cpu:01` is no second name of `cpu:1`.
    match number {
        Some(number) if name == format!("cpu:{number}") => Ok(()),
        _ => Err(DeviceError::Unknown(name.to_owned())),
    }
}

/// A device's backend, which can't outlive the lease that it was lent under.
pub struct LeasedBackend<'l> {
    backend: &'l dyn Backend,
}

impl<'l> LeasedBackend<'l> {
    /// Lends a backend under a lease.
    #[must_use]
    pub fn new(_lease: &'l Lease, backend: &'l dyn Backend) -> Self {
        Self { backend }
    }
}

impl fmt::Debug for LeasedBackend<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeasedBackend")
            .field("threads", &self.threads())
            .finish_non_exhaustive()
    }
}

impl Backend for LeasedBackend<'_> {
    fn name(&self) -> &'static str {
        self.backend.name()
    }

    fn threads(&self) -> usize {
        self.backend.threads()
    }

    fn on_threads(&self, work: &mut (dyn FnMut() + Send)) {
        self.backend.on_threads(work);
    }

    fn interpolate(&self, domain: &Domain, values: &mut [Scalar]) {
        self.backend.interpolate(domain, values);
    }

    fn evaluate(&self, domain: &Domain, coefficients: &mut [Scalar]) {
        self.backend.evaluate(domain, coefficients);
    }

    fn quotient(
        &self,
        domain: &Domain,
        a: Vec<Scalar>,
        b: Vec<Scalar>,
        basis: HBasis,
        control: &dyn Control,
    ) -> Result<Vec<Scalar>, Stopped> {
        self.backend.quotient(domain, a, b, basis, control)
    }

    fn msm_g1(
        &self,
        bases: &BaseSet<G1>,
        scalars: &[ScalarBytes],
        control: &dyn Control,
    ) -> Result<blst_p1, Stopped> {
        self.backend.msm_g1(bases, scalars, control)
    }

    fn msm_g2(
        &self,
        bases: &BaseSet<G2>,
        scalars: &[ScalarBytes],
        control: &dyn Control,
    ) -> Result<blst_p2, Stopped> {
        self.backend.msm_g2(bases, scalars, control)
    }

    fn sums_g1(&self, points: &[blst_p1_affine], groups: &Groups, out: &mut [blst_p1_affine]) {
        self.backend.sums_g1(points, groups, out);
    }

    fn sums_g2(&self, points: &[blst_p2_affine], groups: &Groups, out: &mut [blst_p2_affine]) {
        self.backend.sums_g2(points, groups, out);
    }
}

/// Threads of the processor for work that needs no device. Clones share them.
#[derive(Clone, Debug)]
pub struct Threads(CpuBackend);

impl Threads {
    /// That many threads, at least one.
    ///
    /// # Errors
    /// When the system gives none.
    pub fn new(threads: u32) -> Result<Self, DeviceError> {
        CpuBackend::new(threads as usize)
            .map(Self)
            .map_err(|error| DeviceError::Threads(error.to_string()))
    }

    /// Runs `work` there, with rayon's parallel iterators on these threads, and waits for it.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Option<T> {
        let (mut work, mut result) = (Some(work), None);
        self.0.on_threads(&mut || result = work.take().map(|work| work()));
        result
    }

    /// For setups, checks of points and assembling, which need no device.
    #[must_use]
    pub fn backend(&self) -> &CpuBackend {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_name_names_a_device() {
        assert!(describe("cpu:0").is_ok() && describe("cpu:12").is_ok());
        for name in ["", "cpu", "cpu:", "cpu:x", "cpu:01", "cpu:-1", "cpu:+1", "cuda:0"] {
            assert_eq!(
                describe(name),
                Err(DeviceError::Unknown(name.to_owned())),
                "{name}"
            );
        }
    }
}
