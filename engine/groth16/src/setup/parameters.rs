//! bellperson's parameters, byte for byte as its own generator makes them from the same randomness.
//!
//! The file is written from front to back in batches of points; what its scalars follow from, the Lagrange polynomials
//! and the columns of the matrices at τ, is held, and no list of points is. Wires that no row of a matrix holds have no
//! point in the lists A and B; every private wire must count in some row, as with bellperson.

use std::io::{self, Write};
use std::ops::ControlFlow;

use blstrs::Scalar;
use ff::Field;
use rayon::prelude::*;

use super::evaluate::{SecretScalars, columns, invert, lagrange, outside_domain};
use super::fixed_base::{Table, batch};
use super::progress::Progress;
use super::toxic_waste::ToxicScalars;
use super::{ToxicWaste, multiple};
use crate::backend::Backend;
use crate::control::Stopped;
use crate::curve::{Curve, G1, G2};
use crate::field::Root;
use crate::matrices::{Csr, Matrices};
use crate::quotient::on_threads;
use crate::sums::SumsOn;

/// Scalars that one task fills in.
const TASK: usize = 512;

/// Parameters that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ParametersError {
    /// There is nothing to prove, or it is not known what.
    #[error(
        "the circuit has no constraints, or its matrices come from a key, which doesn't hold them all: \
         compile the circuit itself"
    )]
    NoConstraints,
    /// A private wire has no influence on any constraint, so its value could be anything.
    #[error(
        "private wire {wire} (the constant is wire 0) counts in no constraint: constrain it or leave it out"
    )]
    Unconstrained {
        /// The first one.
        wire: u32,
    },
    /// τ is a point of the evaluation domain.
    #[error("the secret point τ lies in the evaluation domain: draw the randomness again")]
    Tau,
    /// A list has more points than its count can say.
    #[error("the circuit is too large: parameters hold at most 2^32 − 1 points of a kind")]
    TooLarge,
    /// The parameters can't be written.
    #[error("the parameters could not be written: {0}")]
    Io(#[from] io::Error),
    /// Stopped by the caller.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// What [`generate_parameters`] makes, as its progress callback counts it: the points of the six lists.
pub fn parameter_points(matrices: &Matrices) -> u64 {
    let wires = matrices.wires() as usize;
    let used = |columns: Vec<bool>| columns.iter().filter(|used| **used).count() as u64;
    let (a, b) = (
        used(matrices.a().columns(wires)),
        used(matrices.b().columns(wires)),
    );
    (1 << matrices.log2()) - 1 + u64::from(matrices.wires()) + a + 2 * b
}

/// Makes the parameters of a circuit and writes them to `out` as bellperson's `Parameters::write` does.
///
/// On the backend's threads, in batches; after each, `progress` gets how many points are made, of how many, and answers
/// whether to go on. Takes [`crate::memory::parameters_bytes`] at most. Returns `out`, flushed.
///
/// # Errors
/// [`ParametersError::NoConstraints`] for matrices without `C` (those of a `.zkey`) or without a row,
/// [`ParametersError::Unconstrained`] for a private wire that counts in no constraint, [`ParametersError::Tau`] for a τ that is a
/// point of the domain; when `out` can't be written, or `progress` stops.
pub fn generate_parameters<W: Write>(
    matrices: &Matrices,
    waste: &ToxicWaste,
    mut out: W,
    backend: &dyn Backend,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<W, ParametersError> {
    if matrices.constraints().unwrap_or(0) == 0 {
        return Err(ParametersError::NoConstraints);
    }
    let secrets = &waste.scalars;
    if !outside_domain(&secrets.tau, matrices.log2()) {
        return Err(ParametersError::Tau);
    }
    let private = matrices.public() as usize + 1;
    let wires = matrices.wires() as usize;
    let (mut at_tau, mut unconstrained) = (AtTau::default(), None);
    on_threads(backend, || {
        at_tau = AtTau::new(matrices, secrets);
        unconstrained = at_tau.combined[private..]
            .par_iter()
            .position_first(Field::is_zero_vartime);
    });
    if let Some(wire) = unconstrained {
        return Err(ParametersError::Unconstrained {
            wire: (private + wire) as u32,
        });
    }
    let (in_a, in_b) = (present(&at_tau.a), present(&at_tau.b));
    let h = (1usize << matrices.log2()) - 1;
    let total = (wires + h + in_a.len() + 2 * in_b.len()) as u64;
    let mut writer = ListWriter {
        out: &mut out,
        backend,
        progress: Progress::new(total, progress),
    };
    writer.point::<G1>(&waste.g1, &secrets.alpha)?;
    writer.point::<G1>(&waste.g1, &secrets.beta)?;
    writer.point::<G2>(&waste.g2, &secrets.beta)?;
    writer.point::<G2>(&waste.g2, &secrets.gamma)?;
    writer.point::<G1>(&waste.g1, &secrets.delta)?;
    writer.point::<G2>(&waste.g2, &secrets.delta)?;

    let table = Table::<G1>::new(&waste.g1, in_a.len() + in_b.len() + wires + h, backend);
    let combined = |first: usize, out: &mut [Scalar]| {
        out.copy_from_slice(&at_tau.combined[first..first + out.len()]);
    };
    let at = |values: &'_ [Scalar], wires: &'_ [u32], first: usize, out: &mut [Scalar]| {
        for (out, wire) in out.iter_mut().zip(&wires[first..]) {
            *out = values[*wire as usize];
        }
    };
    writer.list(&table, private, &combined)?;
    let tau = secrets.tau;
    let last = (tau.pow_vartime([1u64 << matrices.log2()]) - Scalar::ONE) * invert(secrets.delta);
    writer.list(&table, h, &|first, out| {
        let mut power = last * tau.pow_vartime([first as u64]);
        for out in out {
            *out = power;
            power *= tau;
        }
    })?;
    writer.list(&table, wires - private, &|first, out| {
        combined(private + first, out)
    })?;
    writer.list(&table, in_a.len(), &|first, out| at(&at_tau.a, &in_a, first, out))?;
    let b = |first: usize, out: &mut [Scalar]| at(&at_tau.b, &in_b, first, out);
    writer.list(&table, in_b.len(), &b)?;
    drop(table);
    let table = Table::<G2>::new(&waste.g2, in_b.len(), backend);
    writer.list(&table, in_b.len(), &b)?;
    out.flush()?;
    Ok(out)
}

/// The wires with a value.
fn present(values: &[Scalar]) -> Vec<u32> {
    (0u32..)
        .zip(values)
        .filter(|(_, value)| !value.is_zero_vartime())
        .map(|(wire, _)| wire)
        .collect()
}

/// The columns of the matrices at τ: `A`, `B`, and `β·A + α·B + C`, divided by γ for public wires and by δ for others.
#[derive(Default)]
struct AtTau {
    a: SecretScalars,
    b: SecretScalars,
    combined: SecretScalars,
}

impl AtTau {
    fn new(matrices: &Matrices, secrets: &ToxicScalars) -> Self {
        let wires = matrices.wires() as usize;
        let at_tau = lagrange(Root::Bellperson, secrets.tau, matrices.log2(), 0, 1);
        let column = |matrix: Option<&Csr>| {
            matrix.map_or_else(
                || SecretScalars::zeros(wires),
                |matrix| columns(matrix, &at_tau, wires),
            )
        };
        let (a, (b, mut combined)) = rayon::join(
            || column(Some(matrices.a())),
            || rayon::join(|| column(Some(matrices.b())), || column(matrices.c())),
        );
        let (gamma, delta) = (invert(secrets.gamma), invert(secrets.delta));
        let public = matrices.public() as usize;
        combined.par_iter_mut().enumerate().for_each(|(wire, value)| {
            let sum = secrets.beta * a[wire] + secrets.alpha * b[wire] + *value;
            *value = sum * if wire <= public { gamma } else { delta };
        });
        AtTau { a, b, combined }
    }
}

struct ListWriter<'a, W> {
    out: &'a mut W,
    backend: &'a dyn Backend,
    progress: Progress<'a>,
}

impl<W: Write> ListWriter<'_, W> {
    fn point<C: Curve>(&mut self, base: &C::Affine, scalar: &Scalar) -> io::Result<()> {
        self.out.write_all(&C::serialize(&multiple::<C>(base, scalar)))
    }

    /// The count in four bytes, then the multiples; `scalars` fills in those from a number on.
    fn list<C: SumsOn>(
        &mut self,
        table: &Table<C>,
        count: usize,
        scalars: &(dyn Fn(usize, &mut [Scalar]) + Sync),
    ) -> Result<(), ParametersError> {
        let in_file = u32::try_from(count).map_err(|_| ParametersError::TooLarge)?;
        self.out.write_all(&in_file.to_be_bytes())?;
        let most = batch(self.backend.threads()).min(count);
        let (mut values, mut encoded) = (SecretScalars::zeros(most), vec![0; most * C::AFFINE_BYTES]);
        for first in (0..count).step_by(most.max(1)) {
            let values = &mut values[..most.min(count - first)];
            on_threads(self.backend, || {
                values
                    .par_chunks_mut(TASK)
                    .enumerate()
                    .for_each(|(task, values)| scalars(first + task * TASK, values));
            });
            let points = table.multiples(values, self.backend);
            let encoded = &mut encoded[..points.len() * C::AFFINE_BYTES];
            on_threads(self.backend, || {
                encoded
                    .par_chunks_mut(C::AFFINE_BYTES)
                    .with_min_len(256)
                    .zip(&points)
                    .for_each(|(out, point)| C::serialize_into(point, out));
            });
            self.out.write_all(encoded)?;
            self.progress.add(points.len() as u64)?;
        }
        Ok(())
    }
}
