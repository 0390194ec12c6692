//! Keys for tests and trials, from a seed. **Whoever knows the seed can forge proofs under such a key.**
//!
//! The key is deterministic, so that two machines make the same one, and has the form that snarkjs writes: γ = 1, a
//! circuit hash of zero and no contributions, which tells that no ceremony made it. δ is drawn from the seed too: with
//! γ₂ = δ₂ every reader that knows the danger would refuse the key as unfinished.

use std::io::{self, Seek, Write};
use std::ops::ControlFlow;

use blstrs::Scalar;
use ff::Field;
use proofkeep_formats::r1cs::R1cs;
use proofkeep_formats::zkey::{KeyPoints, PointSection, ZkeyHeader, ZkeyWriter};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::evaluate::{SecretScalars, columns, invert, lagrange};
use super::fixed_base::{Table, batch};
use super::{SetupError, multiple, point_array};
use crate::backend::Backend;
use crate::control::Stopped;
use crate::curve::{Curve, G1, G2, points_as_bytes};
use crate::field::{Root, limbs, wipe};
use crate::matrices::{Csr, Matrices};
use crate::quotient::on_threads;
use crate::sums::SumsOn;

struct Secrets {
    alpha: Scalar,
    beta: Scalar,
    delta: Scalar,
    tau: Scalar,
}

impl Drop for Secrets {
    fn drop(&mut self) {
        for scalar in [&mut self.alpha, &mut self.beta, &mut self.delta, &mut self.tau] {
            wipe(std::slice::from_mut(scalar));
        }
    }
}

impl Secrets {
    fn from_seed(seed: &[u8], log2: u32) -> Self {
        let digest = Sha256::new_with_prefix("proofkeep insecure setup 1\0")
            .chain_update(seed)
            .finalize();
        let mut rng = ChaCha20Rng::from_seed(digest.into());
        let mut next = || loop {
            let value = Scalar::random(&mut rng);
            // A point of the domain or its coset would make some Lagrange polynomial zero or undefined.
            if !value.is_zero_vartime()
                && value != Scalar::ONE
                && value.pow_vartime([2u64 << log2]) != Scalar::ONE
            {
                return value;
            }
        };
        Secrets {
            alpha: next(),
            beta: next(),
            delta: next(),
            tau: next(),
        }
    }
}

/// The scalars whose multiples the key consists of.
struct Exponents {
    ic: SecretScalars,
    a: SecretScalars,
    b: SecretScalars,
    c: SecretScalars,
    h: SecretScalars,
}

fn exponents(matrices: &Matrices, secrets: &Secrets) -> Exponents {
    let (log2, wires) = (matrices.log2(), matrices.wires() as usize);
    let at_tau = lagrange(Root::Snarkjs, secrets.tau, log2, 0, 1);
    let column = |matrix: Option<&Csr>| {
        matrix.map_or_else(
            || SecretScalars::zeros(wires),
            |matrix| columns(matrix, &at_tau, wires),
        )
    };
    let (a, (b, c)) = rayon::join(
        || column(Some(matrices.a())),
        || rayon::join(|| column(Some(matrices.b())), || column(matrices.c())),
    );
    let delta = invert(secrets.delta);
    let combined = |wire: usize| secrets.beta * a[wire] + secrets.alpha * b[wire] + c[wire];
    // γ is one, so the public part is not divided.
    let first = matrices.public() as usize + 1;
    let ic = (0..first).map(combined).collect();
    let private = (first..wires).map(|wire| combined(wire) * delta).collect();
    let mut h = lagrange(Root::Snarkjs, secrets.tau, log2 + 1, 1, 2);
    h.par_iter_mut().for_each(|value| *value *= delta);
    Exponents {
        ic,
        a,
        b,
        c: private,
        h,
    }
}

struct Progress<'a> {
    done: u64,
    total: u64,
    show: &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    stopped: bool,
}

fn write_points<C: SumsOn, W: Write + Seek>(
    writer: &mut ZkeyWriter<W>,
    section: PointSection,
    table: &Table<C>,
    scalars: &[Scalar],
    backend: &dyn Backend,
    progress: &mut Progress<'_>,
) -> Result<(), SetupError> {
    let written = writer.points(section, |out| {
        for scalars in scalars.chunks(batch(backend.threads())) {
            let points = table.multiples(scalars, backend);
            out.write_all(points_as_bytes::<C>(&points))?;
            progress.done += points.len() as u64;
            if (progress.show)(progress.done, progress.total).is_break() && progress.done < progress.total {
                progress.stopped = true;
                return Err(io::Error::other(Stopped));
            }
        }
        Ok(())
    });
    match written {
        Err(_) if progress.stopped => Err(Stopped.into()),
        other => Ok(other?),
    }
}

/// Writes a `.zkey` for a circuit, made from a seed that anyone may know: for tests and trials only.
///
/// `progress` gets how many points are made, of how many, and answers whether to go on. Returns `out`, flushed.
pub fn insecure_setup<W: Write + Seek>(
    r1cs: &R1cs<'_>,
    seed: &[u8],
    out: W,
    backend: &dyn Backend,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<W, SetupError> {
    let matrices = Matrices::from_r1cs(r1cs)?;
    let secrets = Secrets::from_seed(seed, matrices.log2());
    let mut scalars = None;
    on_threads(backend, || scalars = Some(exponents(&matrices, &secrets)));
    let Some(scalars) = scalars else {
        return Err(Stopped.into());
    };
    let (wires, domain) = (matrices.wires() as usize, scalars.h.len());
    let g1 = Table::<G1>::new(&G1::generator(), 3 * wires + domain, backend);
    let g2 = Table::<G2>::new(&G2::generator(), wires, backend);

    let header = ZkeyHeader {
        wires: matrices.wires(),
        public: matrices.public(),
        domain: 1 << matrices.log2(),
        log2: matrices.log2(),
    };
    let mut writer = ZkeyWriter::new(out, header, &key_points(&secrets))?;
    let Exponents { ic, a, b, c, h } = &scalars;
    let total = (ic.len() + a.len() + 2 * b.len() + c.len() + h.len()) as u64;
    let mut progress = Progress {
        done: 0,
        total,
        show: progress,
        stopped: false,
    };
    writer.coefficients(|sink| {
        for (number, matrix) in [(0, matrices.a()), (1, matrices.b())] {
            for row in 0..matrix.rows() {
                for (wire, coefficient) in matrix.row(row) {
                    sink.push(number, row as u32, wire, &limbs(coefficient))?;
                }
            }
        }
        Ok(())
    })?;
    write_points(&mut writer, PointSection::Ic, &g1, ic, backend, &mut progress)?;
    write_points(&mut writer, PointSection::H, &g1, h, backend, &mut progress)?;
    write_points(&mut writer, PointSection::C, &g1, c, backend, &mut progress)?;
    write_points(&mut writer, PointSection::A, &g1, a, backend, &mut progress)?;
    write_points(&mut writer, PointSection::B1, &g1, b, backend, &mut progress)?;
    write_points(&mut writer, PointSection::B2, &g2, b, backend, &mut progress)?;
    Ok(writer.finish(&[0; 64])?)
}

fn key_points(secrets: &Secrets) -> KeyPoints {
    let in_g1 = |scalar| point_array::<G1, 96>(&multiple::<G1>(&G1::generator(), scalar));
    let in_g2 = |scalar| point_array::<G2, 192>(&multiple::<G2>(&G2::generator(), scalar));
    KeyPoints {
        alpha1: in_g1(&secrets.alpha),
        beta1: in_g1(&secrets.beta),
        beta2: in_g2(&secrets.beta),
        gamma2: in_g2(&Scalar::ONE),
        delta1: in_g1(&secrets.delta),
        delta2: in_g2(&secrets.delta),
    }
}
