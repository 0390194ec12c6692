//! The polynomials of a constraint system at the secret point τ.

use std::ops::{Deref, DerefMut};

use blstrs::Scalar;
use ff::Field;
use rayon::prelude::*;

use crate::field::{Root, from_montgomery, wipe};
use crate::matrices::Csr;

/// Scalars that tell about toxic waste: wiped when dropped.
#[derive(Default)]
pub(super) struct SecretScalars(Vec<Scalar>);

impl SecretScalars {
    pub fn zeros(count: usize) -> Self {
        SecretScalars(vec![Scalar::ZERO; count])
    }
}

impl FromIterator<Scalar> for SecretScalars {
    fn from_iter<I: IntoIterator<Item = Scalar>>(scalars: I) -> Self {
        let scalars = scalars.into_iter();
        // Allocated once: a list that grows leaves copies behind.
        let mut list = Vec::with_capacity(scalars.size_hint().1.unwrap_or(0));
        list.extend(scalars);
        SecretScalars(list)
    }
}

impl Drop for SecretScalars {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

impl Deref for SecretScalars {
    type Target = [Scalar];

    fn deref(&self) -> &[Scalar] {
        &self.0
    }
}

impl DerefMut for SecretScalars {
    fn deref_mut(&mut self) -> &mut [Scalar] {
        &mut self.0
    }
}

/// The inverse of a value that was checked or drawn as nonzero, or of a difference that can't be zero.
pub(super) fn invert(value: Scalar) -> Scalar {
    Option::from(value.invert()).unwrap_or(Scalar::ZERO)
}

/// Whether τ is no point of the domain of `2^log2` points, so that every Lagrange polynomial has a value there.
pub(super) fn outside_domain(tau: &Scalar, log2: u32) -> bool {
    tau.pow_vartime([1u64 << log2]) != Scalar::ONE
}

/// `L_i(τ)` for `i = first, first + step, …`, over the domain of `2^log2` points, of which τ is none. Runs on the
/// current rayon pool.
pub(super) fn lagrange(root: Root, tau: Scalar, log2: u32, first: usize, step: usize) -> SecretScalars {
    let n = 1usize << log2;
    let root = root.of_order(log2);
    let scale = (tau.pow_vartime([n as u64]) - Scalar::ONE) * invert(Scalar::from(n as u64));
    let stride = root.pow_vartime([step as u64]);
    let mut out = SecretScalars::zeros(n / step);
    out.par_chunks_mut(1024).enumerate().for_each(|(part, out)| {
        let mut power = root.pow_vartime([(first + part * 1024 * step) as u64]);
        let mut powers = Vec::with_capacity(out.len());
        // Montgomery's trick: one inversion for the chunk.
        let mut product = Scalar::ONE;
        for value in out.iter_mut() {
            *value = product;
            product *= tau - power;
            powers.push(power);
            power *= stride;
        }
        let mut inverse = invert(product);
        for (value, power) in out.iter_mut().zip(powers).rev() {
            let this = *value * inverse;
            inverse *= tau - power;
            *value = scale * power * this;
        }
    });
    out
}

/// The columns of a matrix at τ: `Σ_row L_row(τ)·entry` for each wire.
pub(super) fn columns(matrix: &Csr, lagrange: &[Scalar], wires: usize) -> SecretScalars {
    let mut out = SecretScalars::zeros(wires);
    for (row, at_tau) in lagrange.iter().enumerate().take(matrix.rows()) {
        for (wire, coefficient) in matrix.row(row) {
            out[wire as usize] += *coefficient * at_tau;
        }
    }
    // A coefficient stands as v·R², so the sums have one R too many.
    for value in out.iter_mut() {
        *value = from_montgomery(value);
    }
    out
}
