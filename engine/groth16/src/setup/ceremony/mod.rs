//! The first key of a ceremony, from powers of tau: byte for byte what `snarkjs groth16 setup` makes of the same files.
//!
//! γ and δ are the generators, so **anyone can forge proofs under such a key** until somebody contributes to it
//! (`snarkjs zkey contribute`). Wire `w` has the points `Σ_row M[row][w]·L_row(τ)` of its columns in A and B, and
//! `Σ_row A[row][w]·βL_row(τ) + B[row][w]·αL_row(τ) + C[row][w]·L_row(τ)`; the quotient's points are the odd ones of the
//! Lagrange basis of twice the domain. All bases stand ready in the `.ptau`; nothing secret is used.

mod columns;
mod error;
mod past_end;
mod points;
mod transcript;

use std::io::{self, Seek, Write};
use std::ops::{ControlFlow, Range};

use proofkeep_formats::ptau::Ptau;
use proofkeep_formats::r1cs::R1cs;
use proofkeep_formats::zkey::{KeyPoints, PointSection, ZkeyHeader, ZkeyWriter};

use super::point_array;
use super::progress::Progress;
use crate::backend::Backend;
use crate::curve::{Curve, G1, G2, points_as_bytes};
use crate::field::{limbs, scalar_from_bytes, to_double_montgomery};
use columns::{Columns, ONE, Part};
pub use error::{CeremonyError, PtauPointFault};
use points::Bases;
use transcript::Transcript;

/// Wires whose points are made between two calls of the progress callback.
const BATCH: usize = 2048;

/// What was made.
#[derive(Debug)]
pub struct FirstKey<W> {
    /// The writer, flushed.
    pub out: W,
    /// BLAKE2b hash of the key and of the powers of tau behind its quotient's points, as `snarkjs` shows it.
    pub circuit_hash: [u8; 64],
}

/// Writes the first `.zkey` of a ceremony for a circuit.
///
/// Every point that goes into the key is checked first: canonical, on the curve, of order r, not the identity. That the
/// powers of tau belong together is what `snarkjs powersoftau verify` checks. `progress` gets how many points are
/// checked or made, of how many, and answers whether to go on.
///
/// # Errors
/// Powers of tau that are too small for the circuit, that nobody contributed to, or with a bad point; a circuit that
/// can't be read; those of `out`; stopped.
pub fn ceremony_setup<W: Write + Seek>(
    r1cs: &R1cs<'_>,
    ptau: &Ptau<'_>,
    out: W,
    backend: &dyn Backend,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<FirstKey<W>, CeremonyError> {
    let header = ZkeyHeader {
        wires: r1cs.wires,
        public: r1cs.public(),
        domain: 1_u32.checked_shl(r1cs.domain_log2()).unwrap_or(0),
        log2: r1cs.domain_log2(),
    };
    let bases = Bases::of(ptau, &header, r1cs)?;
    if ptau.contributions.is_empty() {
        return Err(CeremonyError::NobodyContributed);
    }
    let [a, b, c] = Columns::of(r1cs)?;

    let wires = u64::from(header.wires);
    let made = 4 * wires + u64::from(header.domain);
    let mut progress = Progress::new(bases.count() + made, progress);
    bases.check(backend, &mut progress)?;

    let mut transcript = Transcript::default();
    let points = key_points(ptau);
    transcript.header(&points);
    let mut maker = Maker {
        writer: ZkeyWriter::new(out, header, &points)?,
        transcript,
        backend,
        progress,
    };
    maker.writer.coefficients(|sink| coefficients(r1cs, sink))?;
    let combined = [
        Part::<G1>::new(&a, bases.beta_tau_g1),
        Part::new(&b, bases.alpha_tau_g1),
        Part::new(&c, bases.tau_g1),
    ];
    let public = header.public + 1;
    maker.section(PointSection::Ic, &combined, 0..public)?;
    maker.writer.points(PointSection::H, |out| {
        bases.quotient().try_for_each(|point| out.write_all(point))
    })?;
    maker.progress.add(u64::from(header.domain))?;
    maker.transcript.quotient(ptau, &header, backend)?;
    maker.section(PointSection::C, &combined, public..header.wires)?;
    let all = 0..header.wires;
    maker.section(PointSection::A, &[Part::<G1>::new(&a, bases.tau_g1)], all.clone())?;
    maker.section(
        PointSection::B1,
        &[Part::<G1>::new(&b, bases.tau_g1)],
        all.clone(),
    )?;
    maker.section(PointSection::B2, &[Part::<G2>::new(&b, bases.tau_g2)], all)?;
    let circuit_hash = maker.transcript.finish();
    Ok(FirstKey {
        out: maker.writer.finish(&circuit_hash)?,
        circuit_hash,
    })
}

/// α, β from the ceremony; γ and δ are the generators.
fn key_points(ptau: &Ptau<'_>) -> KeyPoints {
    let first = |powers: &[u8]| powers.first_chunk().copied().unwrap_or([0; 96]);
    KeyPoints {
        alpha1: first(ptau.alpha_tau_g1),
        beta1: first(ptau.beta_tau_g1),
        beta2: *ptau.beta_g2,
        gamma2: point_array::<G2, 192>(&G2::generator()),
        delta1: point_array::<G1, 96>(&G1::generator()),
        delta2: point_array::<G2, 192>(&G2::generator()),
    }
}

/// The entries as they stand in the circuit, zeros too: constraint by constraint, A before B; then the input rows.
fn coefficients(r1cs: &R1cs<'_>, sink: &mut proofkeep_formats::zkey::CoefficientSink<'_>) -> io::Result<()> {
    // `Columns` walked the circuit before: what it found canonical is so.
    let broken = || io::Error::from(io::ErrorKind::InvalidData);
    let value = |bytes: &[u8; 32]| {
        let scalar = scalar_from_bytes(bytes).ok_or_else(broken)?;
        Ok::<_, io::Error>(limbs(&to_double_montgomery(&scalar)))
    };
    for (row, constraint) in (0..).zip(r1cs.constraints()) {
        let [a, b, _] = constraint.map_err(io::Error::other)?;
        for (matrix, combination) in [(0, a), (1, b)] {
            for (wire, coefficient) in combination {
                sink.push(matrix, row, wire, &value(coefficient)?)?;
            }
        }
    }
    let one = value(&ONE)?;
    (0..=r1cs.public()).try_for_each(|wire| sink.push(0, r1cs.constraints + wire, wire, &one))
}

struct Maker<'a, W> {
    writer: ZkeyWriter<W>,
    transcript: Transcript,
    backend: &'a dyn Backend,
    progress: Progress<'a>,
}

impl<W: Write + Seek> Maker<'_, W> {
    /// Makes, writes and hashes the points of some wires.
    fn section<C: Curve>(
        &mut self,
        section: PointSection,
        parts: &[Part<'_, C>],
        wires: Range<u32>,
    ) -> Result<(), CeremonyError> {
        self.transcript.count(wires.end - wires.start);
        let mut stopped = None;
        let (transcript, progress, backend) = (&mut self.transcript, &mut self.progress, self.backend);
        let written = self.writer.points(section, |out| {
            for start in wires.clone().step_by(BATCH) {
                let end = wires.end.min(start.saturating_add(BATCH as u32));
                let points = columns::points(parts, start..end, backend);
                out.write_all(points_as_bytes::<C>(&points))?;
                transcript.points::<C>(&points);
                if let Err(error) = progress.add(points.len() as u64) {
                    stopped = Some(error);
                    return Err(io::ErrorKind::Interrupted.into());
                }
            }
            Ok(())
        });
        match stopped {
            Some(stopped) => Err(stopped.into()),
            None => Ok(written?),
        }
    }
}
