//! The quotient `h = (a·b − c)/(xⁿ − 1)` in the form that a key's H basis takes: the same six transforms as in
//! `proofkeep-groth16`'s module of that name, where the formulas are explained.
//!
//! No scalar is converted on the way in: taken as ours, blst's are `2^-4` of what they are, and so are the factors of
//! the coset. What is missing at the end, powers of two, is in the last factor, which leaves Montgomery form as well.

use std::ops::ControlFlow;

use rayon::ThreadPool;
use rayon::prelude::*;
use zeroize::Zeroize;

use super::transform::{Direction, multiply};
use super::{Roots, Words, load, load_strided, store};
use crate::Ifma;
use crate::fr::vector::{self, Element};
use crate::fr::{PRIME, THREE_TIMES};
use crate::modulus::power_of_two;
use crate::word::*;

/// Vectors that one task takes.
const CHUNK: usize = 256;

/// A domain of `2^log2` points, at least 64, as `proofkeep-groth16` has it.
#[derive(Clone, Copy, Debug)]
pub struct Domain<'a> {
    /// The exponent of its size.
    pub log2: u32,
    /// The root of unity `ω` that generates it.
    pub root: Words,
    /// `ω^8j` for the first `2^log2/16` numbers `j`.
    pub eighth_powers: &'a [Words],
    /// `c^j/n` at the bit-reversed place of `j`, where `c² = ω`.
    pub coset: &'a [Words],
}

/// What the scalars of the H basis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The values of `a·b − c` on the odd coset.
    OddCoset,
    /// The coefficients of the quotient.
    Powers,
}

/// A list of vectors that is wiped when it goes.
struct Secret(Vec<Element>);

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.as_flattened_mut().iter_mut().for_each(Zeroize::zeroize);
    }
}

/// The canonical scalars of the H basis, from `a`, the values of `A·w` over the domain, and `b`, those of `B·w`, which are
/// wiped as soon as they are read. `progress` hears after each of the six transforms; where it breaks there is no result.
///
/// Takes 120 bytes for each point of the domain at most, `a` and `b` among them.
pub fn quotient(
    ifma: Ifma,
    pool: &ThreadPool,
    domain: Domain<'_>,
    a: Vec<Words>,
    b: Vec<Words>,
    basis: Basis,
    progress: &(dyn Fn(u64, u64) -> ControlFlow<()> + Sync),
) -> Option<Vec<Words>> {
    let n = 1 << domain.log2;
    assert!(n >= 64 && a.len() == n && b.len() == n && domain.coset.len() == n);
    assert!(domain.eighth_powers.len() == n / 16);
    pool.install(|| {
        let work = Work {
            domain,
            roots: Roots::new(ifma, domain.eighth_powers),
            forward: Direction::new(ifma, &domain.root, n, false),
            backward: Direction::new(ifma, &domain.root, n, true),
        };
        let mut done = 0;
        let mut step = || {
            done += 1;
            progress(done, 6).is_continue().then_some(())
        };
        let (mut x, mut y) = (work.take(a), work.take(b));
        let mut z = Secret(x.0.clone());
        work.multiply(&mut z, &y);
        for values in [&mut x, &mut y] {
            work.interpolate(values);
            step()?;
            work.to_coset(values);
            step()?;
        }
        work.multiply(&mut x, &y);
        drop(y);
        Some(match basis {
            Basis::OddCoset => {
                work.interpolate(&mut z);
                step()?;
                work.to_coset(&mut z);
                step()?;
                work.difference(&x, &z)
            }
            Basis::Powers => {
                work.interpolate(&mut x);
                step()?;
                work.interpolate(&mut z);
                step()?;
                work.halves(&z, &x)
            }
        })
    })
}

struct Work<'a> {
    domain: Domain<'a>,
    roots: Roots,
    forward: Direction,
    backward: Direction,
}

impl Work<'_> {
    /// The values as vectors; they themselves are wiped.
    fn take(&self, mut values: Vec<Words>) -> Secret {
        let mut out = vec![[ZERO; 5]; values.len() / 8];
        out.par_iter_mut()
            .with_min_len(CHUNK)
            .enumerate()
            // SAFETY: an `Ifma`, which the directions have, is only made on a processor that has the instructions.
            .for_each(|(b, out)| unsafe { *out = load_strided(&values, b) });
        values
            .par_iter_mut()
            .with_min_len(CHUNK)
            .for_each(Zeroize::zeroize);
        Secret(out)
    }

    fn multiply(&self, a: &mut Secret, b: &Secret) {
        a.0.par_chunks_mut(CHUNK)
            .zip(b.0.par_chunks(CHUNK))
            // SAFETY: as above.
            .for_each(|(a, b)| unsafe { multiply(a, b) });
    }

    fn interpolate(&self, values: &mut Secret) {
        self.backward.split(&self.roots, &mut values.0);
    }

    /// Coefficients times `n` to values on the odd coset.
    fn to_coset(&self, values: &mut Secret) {
        let coset = self.domain.coset;
        values
            .0
            .par_chunks_mut(CHUNK)
            .enumerate()
            .for_each(|(chunk, values)| {
                // SAFETY: as above.
                unsafe { scale(values, coset, chunk * CHUNK) };
            });
        self.forward.join(&self.roots, &mut values.0);
    }

    /// `2^16·x − 2^12·z`, out of Montgomery form.
    fn difference(&self, x: &Secret, z: &Secret) -> Vec<Words> {
        let m = x.0.len();
        scatter(
            m,
            // SAFETY: as above.
            |b| unsafe { leave(&x.0[b], &z.0[b]) },
            |lane, b| lane * m + b,
        )
    }

    /// `h_j = (c_j − p_j·c^−j)/2` in natural order.
    fn halves(&self, z: &Secret, x: &Secret) -> Vec<Words> {
        let m = x.0.len();
        let log2 = self.domain.log2;
        let coset = self.domain.coset;
        let reverse = |index: usize| index.reverse_bits() >> (usize::BITS - log2);
        let of_c = power_of_two(&PRIME, 8 - 1 - log2 as i32);
        scatter(
            m,
            |b| {
                // c^n = −1, so −c^−j = c^(n−j); for j = 0 the factor is negated below.
                let factors: [&[u64]; 8] = std::array::from_fn(|lane| {
                    let j = reverse(lane * m + b);
                    &coset[reverse((8 * m - j) % (8 * m))][..]
                });
                // SAFETY: as above.
                unsafe { leave_halves(&z.0[b], &x.0[b], &load(&factors), &of_c, b == 0) }
            },
            |lane, b| reverse(lane * m + b),
        )
    }
}

/// Vectors that are made, side by side, before their scalars are put where they belong.
const BATCH: usize = 64 * CHUNK;

/// The scalars of `m` vectors, each at its place.
fn scatter(
    m: usize,
    vector: impl Fn(usize) -> [Words; 8] + Sync,
    place: impl Fn(usize, usize) -> usize,
) -> Vec<Words> {
    let mut out = vec![[0; 4]; 8 * m];
    for first in (0..m).step_by(BATCH) {
        let mut batch: Vec<[Words; 8]> = (first..m.min(first + BATCH))
            .into_par_iter()
            .with_min_len(CHUNK)
            .map(&vector)
            .collect();
        for (b, scalars) in (first..).zip(&batch) {
            for (lane, scalar) in scalars.iter().enumerate() {
                out[place(lane, b)] = *scalar;
            }
        }
        batch.iter_mut().for_each(Zeroize::zeroize);
    }
    out
}

vectorized! {
fn scale(values: &mut [Element], coset: &[Words], first: usize) {
    let mut product = [zero(); 5];
    for (k, value) in values.iter_mut().enumerate() {
        vector::mul(&mut product, value, &load_strided(coset, first + k));
        *value = product;
    }
}

fn leave(x: &Element, z: &Element) -> [Words; 8] {
    const OF_X: [u64; 5] = power_of_two(&PRIME, 16);
    const OF_Z: [u64; 5] = power_of_two(&PRIME, 12);
    let (mut a, mut b) = ([zero(); 5], [zero(); 5]);
    vector::mul(&mut a, x, &vector::broadcast(&OF_X));
    vector::mul(&mut b, z, &vector::broadcast(&OF_Z));
    store(&vector::difference(&a, &b, &THREE_TIMES))
}

fn leave_halves(z: &Element, x: &Element, factor: &Element, of_c: &[u64; 5], first: bool) -> [Words; 8] {
    const OF_P: [u64; 5] = power_of_two(&PRIME, 20 - 1);
    let (mut p, mut twisted, mut c) = ([zero(); 5], [zero(); 5], [zero(); 5]);
    vector::mul(&mut p, x, factor);
    if first {
        // Lane 0 of the first vector is j = 0.
        let negative = vector::difference(&[zero(); 5], &p, &THREE_TIMES);
        for (limb, other) in p.iter_mut().zip(negative) {
            *limb = std::arch::x86_64::_mm512_mask_mov_epi64(*limb, 1, other);
        }
    }
    vector::mul(&mut twisted, &p, &vector::broadcast(&OF_P));
    vector::mul(&mut c, z, &vector::broadcast(of_c));
    store(&vector::sum(&c, &twisted))
}
}
