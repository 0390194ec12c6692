//! The points of a `.ptau` that go into one key, and their check.

use proofkeep_formats::ptau::{Basis, Ptau};
use proofkeep_formats::r1cs::R1csHeader;
use proofkeep_formats::zkey::ZkeyHeader;

use super::super::progress::Progress;
use super::error::{CeremonyError, PtauPointFault};
use crate::backend::Backend;
use crate::check::{self, first_fault};
use crate::curve::{Curve, G1, G2, read_point};
use crate::sums::SumsOn;
use crate::verify::product_is_one;

/// Points checked between two calls of the progress callback.
const SLICE: usize = check::SLICE as usize;

/// The Lagrange bases of one domain.
pub(super) struct Bases<'a> {
    pub tau_g1: &'a [u8],
    pub tau_g2: &'a [u8],
    pub alpha_tau_g1: &'a [u8],
    pub beta_tau_g1: &'a [u8],
    /// Of twice the domain; its odd points are those of the quotient.
    twice: &'a [u8],
    alpha: &'a [u8],
    beta: &'a [u8],
    beta_g2: &'a [u8],
    log2: u32,
}

impl<'a> Bases<'a> {
    /// The bases of a key's domain.
    pub fn of(ptau: &Ptau<'a>, header: &ZkeyHeader, r1cs: &R1csHeader) -> Result<Self, CeremonyError> {
        let log2 = header.log2;
        let too_large = || CeremonyError::TooLarge {
            constraints: r1cs.constraints,
            public: header.public,
            needed: log2,
            power: ptau.power,
        };
        let basis = |basis, log2| ptau.lagrange(basis, log2).ok_or_else(too_large);
        Ok(Bases {
            tau_g1: basis(Basis::TauG1, log2)?,
            tau_g2: basis(Basis::TauG2, log2)?,
            alpha_tau_g1: basis(Basis::AlphaTauG1, log2)?,
            beta_tau_g1: basis(Basis::BetaTauG1, log2)?,
            twice: basis(Basis::TauG1, log2 + 1)?,
            alpha: &ptau.alpha_tau_g1[..G1::AFFINE_BYTES],
            beta: &ptau.beta_tau_g1[..G1::AFFINE_BYTES],
            beta_g2: ptau.beta_g2,
            log2,
        })
    }

    /// The points of the quotient in their order, one after another.
    pub fn quotient(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.twice.chunks_exact(G1::AFFINE_BYTES).skip(1).step_by(2)
    }

    /// How many points [`Bases::check`] looks at, those of the header left out.
    pub fn count(&self) -> u64 {
        5 << self.log2
    }

    /// Checks every point that goes into the key.
    pub fn check(&self, backend: &dyn Backend, progress: &mut Progress<'_>) -> Result<(), CeremonyError> {
        every::<G1>("section 4 (alpha tau)", (self.alpha, 0, 1), backend, None)?;
        every::<G1>("section 5 (beta tau)", (self.beta, 0, 1), backend, None)?;
        every::<G2>("section 6 (beta in G2)", (self.beta_g2, 0, 1), backend, None)?;
        let (beta, beta_g2) = (read_point::<G1>(self.beta), read_point::<G2>(self.beta_g2));
        let minus_one = G1::to_affine(&G1::neg(&G1::to_point(&G1::generator())));
        if !product_is_one(&[(&beta, &G2::generator()), (&minus_one, &beta_g2)]) {
            return Err(CeremonyError::Unequal);
        }
        let name = Basis::name;
        // Bases of smaller domains stand before that of this one.
        let first = (1 << self.log2) - 1;
        for (basis, bytes) in [
            (Basis::TauG1, self.tau_g1),
            (Basis::AlphaTauG1, self.alpha_tau_g1),
            (Basis::BetaTauG1, self.beta_tau_g1),
        ] {
            every::<G1>(name(basis), (bytes, first, 1), backend, Some(progress))?;
        }
        every::<G2>(
            name(Basis::TauG2),
            (self.tau_g2, first, 1),
            backend,
            Some(progress),
        )?;
        let odd = (&self.twice[G1::AFFINE_BYTES..], 2 * first + 2, 2);
        every::<G1>(name(Basis::TauG1), odd, backend, Some(progress))
    }
}

/// Checks points of a section: from its bytes, the number of the first of them, and the distance between them.
fn every<C: SumsOn>(
    section: &'static str,
    (bytes, first, step): (&[u8], u64, usize),
    backend: &dyn Backend,
    mut progress: Option<&mut Progress<'_>>,
) -> Result<(), CeremonyError> {
    let stride = step * C::AFFINE_BYTES;
    for (slice, bytes) in bytes.chunks(SLICE * stride).enumerate() {
        let points: Vec<C::Affine> = bytes
            .chunks(stride)
            .map(|bytes| read_point::<C>(&bytes[..C::AFFINE_BYTES]))
            .collect();
        let identity = points.iter().position(C::is_identity);
        let before = &points[..identity.unwrap_or(points.len())];
        let found = first_fault::<C>(before, backend)
            .map(|(index, fault)| (index, PtauPointFault::Key(fault)))
            .or(identity.map(|index| (index, PtauPointFault::Identity)));
        if let Some((index, fault)) = found {
            return Err(CeremonyError::Point {
                section,
                index: first + ((slice * SLICE + index) * step) as u64,
                fault,
            });
        }
        if let Some(progress) = &mut progress {
            progress.add(points.len() as u64)?;
        }
    }
    Ok(())
}
