//! Which code the processor runs: chosen by what it can, or forced by a setting.

use std::env;
use std::sync::Arc;

use blst::{blst_p1, blst_p1_affine, blst_p2, blst_p2_affine};
use blstrs::Scalar;
use rayon::ThreadPool;

use super::{Backend, BlstBackend};
use crate::bases::BaseSet;
use crate::control::{Control, Stopped};
use crate::curve::{G1, G2};
use crate::domain::Domain;
use crate::field::ScalarBytes;
use crate::quotient::HBasis;
use crate::sums::Groups;

/// The environment variable that forces a backend: `blst` or `ifma`; `auto`, empty or unset chooses.
pub const SETTING: &str = "PROOFKEEP_BACKEND";

/// No backend came of it.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The operating system gave no threads.
    #[error("could not start {threads} prover threads: {source}")]
    Threads {
        /// So many were asked for.
        threads: usize,
        /// What it said.
        source: rayon::ThreadPoolBuildError,
    },
    /// The setting names none.
    #[error("{SETTING} is {found:?}: expected `auto`, `blst` or `ifma`; correct it or unset it")]
    Unknown {
        /// What it says.
        found: String,
    },
    /// The setting names one that this processor can't run.
    #[error(
        "{SETTING} is `ifma`, but this processor has no AVX-512 IFMA; set it to `auto` or `blst`, or unset it"
    )]
    NoIfma,
}

/// The threads of one backend, at least one.
pub(super) fn pool(threads: usize) -> Result<Arc<ThreadPool>, BackendError> {
    let threads = threads.max(1);
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("prover-{index}"))
        .build()
        .map(Arc::new)
        .map_err(|source| BackendError::Threads { threads, source })
}

/// The processor, with the fastest code that it can run. Cheap to clone; clones share their threads.
#[derive(Clone, Debug)]
pub enum CpuBackend {
    /// blst's arithmetic.
    Blst(BlstBackend),
    /// AVX-512 IFMA.
    #[cfg(target_arch = "x86_64")]
    Ifma(super::IfmaBackend),
}

impl CpuBackend {
    /// A backend with that many threads of its own (at least one), chosen by [`SETTING`] or else by the processor.
    pub fn new(threads: usize) -> Result<Self, BackendError> {
        let setting = env::var_os(SETTING).unwrap_or_default();
        Self::named(&setting.to_string_lossy(), threads)
    }

    /// The same with a setting at hand.
    pub fn named(setting: &str, threads: usize) -> Result<Self, BackendError> {
        let blst = || BlstBackend::new(threads).map(CpuBackend::Blst);
        match setting {
            "blst" => blst(),
            "ifma" => Self::ifma(threads)?.ok_or(BackendError::NoIfma),
            "" | "auto" => match Self::ifma(threads)? {
                Some(ifma) => Ok(ifma),
                None => blst(),
            },
            other => Err(BackendError::Unknown {
                found: other.to_owned(),
            }),
        }
    }

    /// The names of the backends that this processor can run, the slowest first.
    pub fn possible() -> Vec<&'static str> {
        let mut names = vec!["blst"];
        #[cfg(target_arch = "x86_64")]
        if proofkeep_ifma::Ifma::detect().is_some() {
            names.push("ifma");
        }
        names
    }

    #[cfg(target_arch = "x86_64")]
    fn ifma(threads: usize) -> Result<Option<Self>, BackendError> {
        Ok(super::IfmaBackend::new(threads)?.map(CpuBackend::Ifma))
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn ifma(_threads: usize) -> Result<Option<Self>, BackendError> {
        Ok(None)
    }

    fn inner(&self) -> &dyn Backend {
        match self {
            CpuBackend::Blst(backend) => backend,
            #[cfg(target_arch = "x86_64")]
            CpuBackend::Ifma(backend) => backend,
        }
    }
}

impl Backend for CpuBackend {
    fn name(&self) -> &'static str {
        self.inner().name()
    }

    fn threads(&self) -> usize {
        self.inner().threads()
    }

    fn on_threads(&self, work: &mut (dyn FnMut() + Send)) {
        self.inner().on_threads(work);
    }

    fn interpolate(&self, domain: &Domain, values: &mut [Scalar]) {
        self.inner().interpolate(domain, values);
    }

    fn evaluate(&self, domain: &Domain, coefficients: &mut [Scalar]) {
        self.inner().evaluate(domain, coefficients);
    }

    fn quotient(
        &self,
        domain: &Domain,
        a: Vec<Scalar>,
        b: Vec<Scalar>,
        basis: HBasis,
        control: &dyn Control,
    ) -> Result<Vec<Scalar>, Stopped> {
        self.inner().quotient(domain, a, b, basis, control)
    }

    fn msm_g1(
        &self,
        bases: &BaseSet<G1>,
        scalars: &[ScalarBytes],
        control: &dyn Control,
    ) -> Result<blst_p1, Stopped> {
        self.inner().msm_g1(bases, scalars, control)
    }

    fn msm_g2(
        &self,
        bases: &BaseSet<G2>,
        scalars: &[ScalarBytes],
        control: &dyn Control,
    ) -> Result<blst_p2, Stopped> {
        self.inner().msm_g2(bases, scalars, control)
    }

    fn sums_g1(&self, points: &[blst_p1_affine], groups: &Groups, out: &mut [blst_p1_affine]) {
        self.inner().sums_g1(points, groups, out);
    }

    fn sums_g2(&self, points: &[blst_p2_affine], groups: &Groups, out: &mut [blst_p2_affine]) {
        self.inner().sums_g2(points, groups, out);
    }

    fn first_off_curve_g1(&self, points: &[blst_p1_affine]) -> Option<usize> {
        self.inner().first_off_curve_g1(points)
    }

    fn first_off_curve_g2(&self, points: &[blst_p2_affine]) -> Option<usize> {
        self.inner().first_off_curve_g2(points)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    #[test]
    fn a_setting_forces_the_backend_and_a_wrong_one_says_what_is_right() {
        for name in CpuBackend::possible() {
            assert_eq!(CpuBackend::named(name, 1).unwrap().name(), name);
        }
        for setting in ["", "auto"] {
            assert_eq!(
                Some(CpuBackend::named(setting, 1).unwrap().name()),
                CpuBackend::possible().last().copied()
            );
        }
        if !CpuBackend::possible().contains(&"ifma") {
            assert!(matches!(CpuBackend::named("ifma", 1), Err(BackendError::NoIfma)));
        }
        let error = CpuBackend::named("cuda", 1).unwrap_err().to_string();
        assert!(
            error.contains("PROOFKEEP_BACKEND is \"cuda\"") && error.contains("`blst`"),
            "{error}"
        );
    }
}
