//! `A·w` and `B·w` over the domain, made while a witness is held against the constraints, and kept for the quotient.

use std::fmt;

use blstrs::Scalar;
use ff::Field;
use rayon::prelude::*;

use super::Matrices;
use crate::field::wipe;
use crate::witness::Witness;

/// Rows that one task evaluates.
const CHUNK: usize = 1024;

/// The values of `A·w` and `B·w` over the domain, for a witness that breaks no known constraint. They tell the witness,
/// so they are wiped and never shown. They take the place of two of the vectors that a proof needs anyway.
pub struct Products {
    a: Vec<Scalar>,
    b: Vec<Scalar>,
}

impl Products {
    /// Both vectors, for the one who wipes them. None are left here.
    pub(crate) fn take(&mut self) -> (Vec<Scalar>, Vec<Scalar>) {
        (std::mem::take(&mut self.a), std::mem::take(&mut self.b))
    }

    /// Wipes them and gives their memory back.
    pub(crate) fn forget(&mut self) {
        let (mut a, mut b) = self.take();
        wipe(&mut a);
        wipe(&mut b);
    }

    /// Points of the domain.
    pub(crate) fn domain(&self) -> usize {
        self.a.len()
    }
}

impl Drop for Products {
    fn drop(&mut self) {
        self.forget();
    }
}

impl fmt::Debug for Products {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Products")
            .field("domain", &self.domain())
            .finish_non_exhaustive()
    }
}

impl Matrices {
    /// The products, or the first constraint that the witness does not satisfy, counted from 0. Where the constraints are
    /// not known (no `C`) nothing is held against the witness. Runs on the current rayon pool.
    ///
    /// # Panics
    /// If the witness has fewer wires than the matrices.
    pub fn products(&self, witness: &Witness<'_>) -> Result<Products, usize> {
        let (size, values) = (1 << self.log2, witness.values());
        let constraints = match (&self.c, self.constraints) {
            (Some(c), Some(constraints)) => Some((c, constraints as usize)),
            _ => None,
        };
        let mut products = Products {
            a: vec![Scalar::ZERO; size],
            b: vec![Scalar::ZERO; size],
        };
        let broken = products
            .a
            .par_chunks_mut(CHUNK)
            .zip(products.b.par_chunks_mut(CHUNK))
            .enumerate()
            .filter_map(|(chunk, (a, b))| {
                let mut broken = None;
                for (offset, (a, b)) in a.iter_mut().zip(b).enumerate() {
                    let row = chunk * CHUNK + offset;
                    *a = self.a.dot(row, values);
                    *b = self.b.dot(row, values);
                    if let Some((c, constraints)) = constraints
                        && row < constraints
                        && *a * *b != c.dot(row, values)
                    {
                        broken = broken.or(Some(row));
                    }
                }
                broken
            })
            .min();
        broken.map_or(Ok(products), Err)
    }
}
