//! bellperson's parameters, byte for byte as its own generator makes them from the same randomness.
//!
//! The file is written from front to back in batches of points; what its scalars follow from, the Lagrange polynomials
//! and the columns of the matrices at τ, is held, and no list of points is. Wires that no row of a matrix holds have no
//! point in the lists A and B; every private wire must count in some row, as with bellperson.

use std::io::{self, Write};
use std::ops::ControlFlow;

use blstrs::Scalar;
use ff::Field;

use super::ToxicWaste;
use super::evaluate::{SecretScalars, columns, invert, lagrange, outside_domain};
use super::fixed_base::Table;
use super::progress::Progress;
use crate::backend::Backend;
use crate::control::Stopped;
use crate::curve::{Curve, G1, G2};
use crate::field::{Root, scalar_to_bytes};
use crate::matrices::Matrices;
use crate::quotient::on_threads;

/// Points made between two calls of the progress callback, for each thread.
const BATCH: usize = 8192;

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
    let mut at_tau = AtTau::default();
    on_threads(backend, || at_tau = AtTau::new(matrices, secrets.tau));
    let private = matrices.public() as usize + 1;
    let (gamma, delta) = (invert(secrets.gamma), invert(secrets.delta));
    let combined = |wire: usize, inverse: &Scalar| {
        let sum = secrets.beta * at_tau.a[wire] + secrets.alpha * at_tau.b[wire] + at_tau.c[wire];
        sum * inverse
    };
    let wires = matrices.wires() as usize;
    if let Some(wire) = (private..wires).find(|wire| combined(*wire, &delta).is_zero_vartime()) {
        return Err(ParametersError::Unconstrained { wire: wire as u32 });
    }
    let not_zero = |values: &[Scalar]| values.iter().filter(|value| !value.is_zero_vartime()).count();
    let (in_a, in_b) = (not_zero(&at_tau.a), not_zero(&at_tau.b));
    let h = (1usize << matrices.log2()) - 1;
    let total = (wires + h + in_a + 2 * in_b) as u64;

    let (mut g1, mut g2) = (None, None);
    on_threads(backend, || {
        g1 = Some(Table::<G1>::new(&waste.g1, in_a + in_b + wires + h));
        g2 = Some(Table::<G2>::new(&waste.g2, in_b));
    });
    let (Some(g1), Some(g2)) = (g1, g2) else {
        return Err(Stopped.into());
    };
    let mut writer = ListWriter {
        out: &mut out,
        backend,
        batch: BATCH * backend.threads(),
        progress: Progress::new(total, progress),
    };
    writer.point::<G1>(&waste.g1, &secrets.alpha)?;
    writer.point::<G1>(&waste.g1, &secrets.beta)?;
    writer.point::<G2>(&waste.g2, &secrets.beta)?;
    writer.point::<G2>(&waste.g2, &secrets.gamma)?;
    writer.point::<G1>(&waste.g1, &secrets.delta)?;
    writer.point::<G2>(&waste.g2, &secrets.delta)?;
    writer.list(&g1, private, (0..private).map(|wire| combined(wire, &gamma)))?;
    let last = secrets.tau.pow_vartime([1u64 << matrices.log2()]) - Scalar::ONE;
    let powers = std::iter::successors(Some(last * delta), |power| Some(*power * secrets.tau));
    writer.list(&g1, h, powers.take(h))?;
    writer.list(
        &g1,
        wires - private,
        (private..wires).map(|wire| combined(wire, &delta)),
    )?;
    let present = |values: &'_ SecretScalars| -> Vec<u32> {
        (0u32..)
            .zip(values.iter())
            .filter(|(_, value)| !value.is_zero_vartime())
            .map(|(wire, _)| wire)
            .collect()
    };
    let present_in_a = present(&at_tau.a);
    writer.list(
        &g1,
        in_a,
        present_in_a.iter().map(|wire| at_tau.a[*wire as usize]),
    )?;
    drop(present_in_a);
    let present_in_b = present(&at_tau.b);
    let b = || present_in_b.iter().map(|wire| at_tau.b[*wire as usize]);
    writer.list(&g1, in_b, b())?;
    writer.list(&g2, in_b, b())?;
    out.flush()?;
    Ok(out)
}

/// The columns of the matrices at τ.
#[derive(Default)]
struct AtTau {
    a: SecretScalars,
    b: SecretScalars,
    c: SecretScalars,
}

impl AtTau {
    fn new(matrices: &Matrices, tau: Scalar) -> Self {
        let wires = matrices.wires() as usize;
        let at_tau = lagrange(Root::Bellperson, tau, matrices.log2(), 0, 1);
        let (a, (b, c)) = rayon::join(
            || columns(matrices.a(), &at_tau, wires),
            || {
                rayon::join(
                    || columns(matrices.b(), &at_tau, wires),
                    || match matrices.c() {
                        Some(c) => columns(c, &at_tau, wires),
                        None => SecretScalars::zeros(wires),
                    },
                )
            },
        );
        AtTau { a, b, c }
    }
}

struct ListWriter<'a, W> {
    out: &'a mut W,
    backend: &'a dyn Backend,
    batch: usize,
    progress: Progress<'a>,
}

impl<W: Write> ListWriter<'_, W> {
    fn point<C: Curve>(&mut self, base: &C::Affine, scalar: &Scalar) -> io::Result<()> {
        let point = C::mul(&C::to_point(base), &scalar_to_bytes(scalar));
        self.out.write_all(&C::serialize(&C::to_affine(&point)))
    }

    /// The count in four bytes, then the multiples.
    fn list<C: Curve>(
        &mut self,
        table: &Table<C>,
        count: usize,
        mut scalars: impl Iterator<Item = Scalar>,
    ) -> Result<(), ParametersError> {
        let in_file = u32::try_from(count).map_err(|_| ParametersError::TooLarge)?;
        self.out.write_all(&in_file.to_be_bytes())?;
        let mut left = count;
        while left > 0 {
            let batch: SecretScalars = scalars.by_ref().take(left.min(self.batch)).collect();
            let mut encoded = Vec::new();
            on_threads(self.backend, || encoded = table.encoded_multiples(&batch));
            self.out.write_all(&encoded)?;
            left -= batch.len();
            self.progress.add(batch.len() as u64)?;
        }
        Ok(())
    }
}
