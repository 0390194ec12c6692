//! The processor with blst's field and curve arithmetic: on any machine.

use std::fmt;
use std::sync::Arc;

use blst::{blst_p1, blst_p1_affine, blst_p2, blst_p2_affine};
use rayon::ThreadPool;

use super::Backend;
use super::choice::{BackendError, pool};
use crate::bases::BaseSet;
use crate::control::{Control, Stopped};
use crate::curve::{G1, G2};
use crate::field::ScalarBytes;
use crate::msm::msm;
use crate::sums::{Groups, sums};

/// The processor, with blst's field and curve arithmetic. Cheap to clone; clones share their threads.
#[derive(Clone)]
pub struct BlstBackend {
    pool: Arc<ThreadPool>,
}

impl BlstBackend {
    /// A backend with that many threads of its own (at least one).
    pub fn new(threads: usize) -> Result<Self, BackendError> {
        Ok(BlstBackend { pool: pool(threads)? })
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
    fn name(&self) -> &'static str {
        "blst"
    }

    fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    fn on_threads(&self, work: &mut (dyn FnMut() + Send)) {
        self.pool.install(work);
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

    fn sums_g1(&self, points: &[blst_p1_affine], groups: &Groups, out: &mut [blst_p1_affine]) {
        self.pool.install(|| sums::<G1>(points, groups, out));
    }

    fn sums_g2(&self, points: &[blst_p2_affine], groups: &Groups, out: &mut [blst_p2_affine]) {
        self.pool.install(|| sums::<G2>(points, groups, out));
    }
}
