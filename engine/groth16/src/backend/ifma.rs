//! The processor with AVX-512 IFMA: eight field elements at once.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use blst::{blst_p1, blst_p1_affine, blst_p2, blst_p2_affine};
use blstrs::Scalar;
use proofkeep_ifma::{Adder, Group, Ifma, Terms};
use rayon::ThreadPool;
use rayon::prelude::*;

use super::Backend;
use super::choice::{BackendError, pool};
use crate::bases::BaseSet;
use crate::control::{Control, Stopped};
use crate::curve::{Curve, G1, G2};
use crate::domain::Domain;
use crate::field::{ScalarBytes, as_words, from_words, into_words};
use crate::msm::msm;
use crate::quotient::{HBasis, quotient};
use crate::sums::{Groups, sums};

/// Below so many terms blst's multiplication is as fast.
const LEAST_TERMS: usize = 128;

/// Fewer points than this are added up by blst.
const LEAST_ENTRIES: usize = 512;

/// Points whose equation a task looks at.
const CURVE_CHUNK: usize = 1024;

/// The smallest domain whose transforms are done here.
const LEAST_LOG2: u32 = 8;

/// The processor, with our own vector arithmetic. Cheap to clone; clones share their threads.
///
/// Like blst's multi-scalar multiplication it is not constant-time: see [`proofkeep_ifma`].
#[derive(Clone)]
pub struct IfmaBackend {
    pool: Arc<ThreadPool>,
    ifma: Ifma,
}

impl IfmaBackend {
    /// A backend with that many threads of its own (at least one); `None` where the processor lacks the instructions.
    pub fn new(threads: usize) -> Result<Option<Self>, BackendError> {
        let Some(ifma) = Ifma::detect() else {
            return Ok(None);
        };
        let pool = pool(threads)?;
        Ok(Some(IfmaBackend { pool, ifma }))
    }

    fn msm<C: Curve, G: Group<Affine = C::Affine, Point = C::Point>>(
        &self,
        bases: &BaseSet<C>,
        scalars: &[ScalarBytes],
        control: &dyn Control,
    ) -> Result<C::Point, Stopped> {
        if bases.len() < LEAST_TERMS {
            return msm(&self.pool, bases, scalars, control);
        }
        assert!(
            bases.scalars_needed() <= scalars.len(),
            "an MSM needs a scalar for each of its points"
        );
        let terms = BaseTerms { bases, scalars };
        let progress = |done: u64, total: u64| control.progress(done, total);
        proofkeep_ifma::msm::<G>(self.ifma, Some(&self.pool), bases.points(), &terms, &progress)
            .ok_or(Stopped)
    }

    fn first_off_curve<G: Group>(&self, points: &[G::Affine]) -> Option<usize> {
        self.pool.install(|| {
            points
                .par_chunks(CURVE_CHUNK)
                .enumerate()
                .find_map_first(|(chunk, points)| {
                    let index = proofkeep_ifma::first_off_curve::<G>(self.ifma, points)?;
                    Some(chunk * CURVE_CHUNK + index)
                })
        })
    }

    fn sums<C: Curve, G: Group<Affine = C::Affine>>(
        &self,
        points: &[C::Affine],
        groups: &Groups,
        out: &mut [C::Affine],
    ) {
        if groups.entries().len() < LEAST_ENTRIES {
            return self.pool.install(|| sums::<C>(points, groups, out));
        }
        let chunk = groups.chunk(self.threads());
        let chunks = Mutex::new(out.chunks_mut(chunk).enumerate());
        let next = || chunks.lock().unwrap_or_else(PoisonError::into_inner).next();
        self.pool.broadcast(|_| {
            let mut adder = None;
            while let Some((index, out)) = next() {
                let adder = adder.get_or_insert_with(|| Adder::<G>::new(self.ifma));
                let first = index * chunk;
                let offsets = &groups.offsets()[first..=first + out.len()];
                adder.sums(points, groups.entries(), offsets, out);
            }
        });
    }
}

/// Bases with their scalars.
struct BaseTerms<'a, C: Curve> {
    bases: &'a BaseSet<C>,
    scalars: &'a [ScalarBytes],
}

impl<C: Curve> Terms for BaseTerms<'_, C> {
    fn len(&self) -> usize {
        self.bases.len()
    }

    fn for_each(&self, range: Range<usize>, each: &mut dyn FnMut(u32, &[u8; 32])) {
        for k in range {
            each(self.bases.place(k) as u32, &self.scalars[self.bases.wire(k)]);
        }
    }
}

impl fmt::Debug for IfmaBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IfmaBackend")
            .field("threads", &self.threads())
            .finish()
    }
}

impl Backend for IfmaBackend {
    fn name(&self) -> &'static str {
        "ifma"
    }

    fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    fn on_threads(&self, work: &mut (dyn FnMut() + Send)) {
        self.pool.install(work);
    }

    fn quotient(
        &self,
        domain: &Domain,
        a: Vec<Scalar>,
        b: Vec<Scalar>,
        basis: HBasis,
        control: &dyn Control,
    ) -> Result<Vec<Scalar>, Stopped> {
        let Some(eighth_powers) = domain.eighth_powers().filter(|_| domain.log2() >= LEAST_LOG2) else {
            return quotient(self, domain, a, b, basis, control);
        };
        let parts = proofkeep_ifma::Domain {
            log2: domain.log2(),
            root: as_words(&[domain.generator()])[0],
            eighth_powers: as_words(eighth_powers),
            coset: as_words(domain.coset()),
        };
        let basis = match basis {
            HBasis::OddCoset => proofkeep_ifma::Basis::OddCoset,
            HBasis::Powers => proofkeep_ifma::Basis::Powers,
        };
        let progress = |done: u64, total: u64| control.progress(done, total);
        proofkeep_ifma::quotient(
            self.ifma,
            &self.pool,
            parts,
            into_words(a),
            into_words(b),
            basis,
            &progress,
        )
        .map(from_words)
        .ok_or(Stopped)
    }

    fn msm_g1(
        &self,
        bases: &BaseSet<G1>,
        scalars: &[ScalarBytes],
        control: &dyn Control,
    ) -> Result<blst_p1, Stopped> {
        self.msm::<G1, proofkeep_ifma::G1>(bases, scalars, control)
    }

    fn msm_g2(
        &self,
        bases: &BaseSet<G2>,
        scalars: &[ScalarBytes],
        control: &dyn Control,
    ) -> Result<blst_p2, Stopped> {
        self.msm::<G2, proofkeep_ifma::G2>(bases, scalars, control)
    }

    fn sums_g1(&self, points: &[blst_p1_affine], groups: &Groups, out: &mut [blst_p1_affine]) {
        self.sums::<G1, proofkeep_ifma::G1>(points, groups, out);
    }

    fn sums_g2(&self, points: &[blst_p2_affine], groups: &Groups, out: &mut [blst_p2_affine]) {
        self.sums::<G2, proofkeep_ifma::G2>(points, groups, out);
    }

    fn first_off_curve_g1(&self, points: &[blst_p1_affine]) -> Option<usize> {
        self.first_off_curve::<proofkeep_ifma::G1>(points)
    }

    fn first_off_curve_g2(&self, points: &[blst_p2_affine]) -> Option<usize> {
        self.first_off_curve::<proofkeep_ifma::G2>(points)
    }
}
