//! The device-shaped seam: transforms and multi-scalar multiplications behind one small trait.

use std::fmt;
use std::sync::Arc;

use blst::{blst_p1, blst_p2};
use blstrs::Scalar;
use rayon::ThreadPool;

use crate::bases::BaseSet;
use crate::control::{Control, Stopped};
use crate::curve::{G1, G2};
use crate::domain::Domain;
use crate::field::ScalarBytes;
use crate::msm::msm;

/// What a device does for the prover. Everything else is done by the processor, on [`Backend::on_threads`].
pub trait Backend: Sync {
    /// How many threads of the processor the backend may use.
    fn threads(&self) -> usize;

    /// Runs `work` once, with rayon's parallel iterators on the backend's own threads.
    fn on_threads(&self, work: &mut (dyn FnMut() + Send));

    /// See [`Domain::interpolate`].
    fn interpolate(&self, domain: &Domain, values: &mut [Scalar]);

    /// See [`Domain::evaluate`].
    fn evaluate(&self, domain: &Domain, coefficients: &mut [Scalar]);

    /// `Σ scalars[wire(k)]·point(k)` over G1. Scalars are canonical, little-endian, one for every wire that the bases
    /// name. `control` is asked between slices of at most about a second.
    fn msm_g1(
        &self,
        bases: &BaseSet<G1>,
        scalars: &[ScalarBytes],
        control: &dyn Control,
    ) -> Result<blst_p1, Stopped>;

    /// The same over G2.
    fn msm_g2(
        &self,
        bases: &BaseSet<G2>,
        scalars: &[ScalarBytes],
        control: &dyn Control,
    ) -> Result<blst_p2, Stopped>;
}

/// The processor, with blst's field and curve arithmetic. Cheap to clone; clones share their threads.
#[derive(Clone)]
pub struct BlstBackend {
    pool: Arc<ThreadPool>,
}

/// The operating system gave no threads.
#[derive(Debug, thiserror::Error)]
#[error("could not start {threads} prover threads: {source}")]
pub struct ThreadsError {
    threads: usize,
    source: rayon::ThreadPoolBuildError,
}

impl BlstBackend {
    /// A backend with that many threads of its own (at least one).
    pub fn new(threads: usize) -> Result<Self, ThreadsError> {
        let threads = threads.max(1);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("prover-{index}"))
            .build()
            .map_err(|source| ThreadsError { threads, source })?;
        Ok(BlstBackend { pool: Arc::new(pool) })
    }
}

impl fmt::Debug for BlstBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlstBackend")
            .field("threads", &self.threads())
            .finish()
    }
}

impl Backend for BlstBackend {
    fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    fn on_threads(&self, work: &mut (dyn FnMut() + Send)) {
        self.pool.install(work);
    }

    fn interpolate(&self, domain: &Domain, values: &mut [Scalar]) {
        self.pool.install(|| domain.interpolate(values));
    }

    fn evaluate(&self, domain: &Domain, coefficients: &mut [Scalar]) {
        self.pool.install(|| domain.evaluate(coefficients));
    }

    fn msm_g1(
        &self,
        bases: &BaseSet<G1>,
        scalars: &[ScalarBytes],
        control: &dyn Control,
    ) -> Result<blst_p1, Stopped> {
        msm(&self.pool, bases, scalars, control)
    }

    fn msm_g2(
        &self,
        bases: &BaseSet<G2>,
        scalars: &[ScalarBytes],
        control: &dyn Control,
    ) -> Result<blst_p2, Stopped> {
        msm(&self.pool, bases, scalars, control)
    }
}
