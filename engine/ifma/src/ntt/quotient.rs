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

/// Replaces `a`, the values of `A·w` over the domain, by the canonical scalars of the H basis; `b` are the values of
/// `B·w`. `progress` hears after each of the six transforms; where it breaks the result is `None` and `a` of no use.
pub fn quotient(
    ifma: Ifma,
    pool: &ThreadPool,
    domain: Domain<'_>,
    a: &mut [Words],
    b: &[Words],
    basis: Basis,
    progress: &(dyn Fn(u64, u64) -> ControlFlow<()> + Sync),
) -> Option<()> {
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
        let (mut x, mut y) = (work.load(a), work.load(b));
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
        match basis {
            Basis::OddCoset => {
                work.interpolate(&mut z);
                step()?;
                work.to_coset(&mut z);
                step()?;
                work.difference(&x, &z, a);
            }
            Basis::Powers => {
                work.interpolate(&mut x);
                step()?;
                work.interpolate(&mut z);
                step()?;
                work.halves(&z, &x, a);
            }
        }
        Some(())
    })
}

struct Work<'a> {
    domain: Domain<'a>,
    roots: Roots,
    forward: Direction,
    backward: Direction,
}

impl Work<'_> {
    fn load(&self, values: &[Words]) -> Secret {
        let mut out = vec![[ZERO; 5]; values.len() / 8];
        out.par_iter_mut()
            .with_min_len(CHUNK)
            .enumerate()
            // SAFETY: an `Ifma`, which the directions have, is only made on a processor that has the instructions.
            .for_each(|(b, out)| unsafe { *out = load_strided(values, b) });
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
    fn difference(&self, x: &Secret, z: &Secret, out: &mut [Words]) {
        let m = out.len() / 8;
        let chunks: Vec<[Words; 8]> =
            x.0.par_iter()
                .zip(&z.0)
                .with_min_len(CHUNK)
                // SAFETY: as above.
                .map(|(x, z)| unsafe { leave(x, z) })
                .collect();
        for (b, scalars) in chunks.iter().enumerate() {
            for (lane, scalar) in scalars.iter().enumerate() {
                out[lane * m + b] = *scalar;
            }
        }
        wipe(chunks);
    }

    /// `h_j = (c_j − p_j·c^−j)/2` in natural order.
    fn halves(&self, z: &Secret, x: &Secret, out: &mut [Words]) {
        let n = out.len();
        let log2 = self.domain.log2;
        let coset = self.domain.coset;
        let reverse = |index: usize| index.reverse_bits() >> (usize::BITS - log2);
        let of_c = power_of_two(&PRIME, 8 - 1 - log2 as i32);
        let chunks: Vec<[Words; 8]> =
            z.0.par_iter()
                .zip(&x.0)
                .enumerate()
                .with_min_len(CHUNK)
                .map(|(b, (z, x))| {
                    // c^n = −1, so −c^−j = c^(n−j); for j = 0 the factor is negated below.
                    let factors: [&[u64]; 8] = std::array::from_fn(|lane| {
                        let j = reverse(lane * (n / 8) + b);
                        &coset[reverse((n - j) % n)][..]
                    });
                    // SAFETY: as above.
                    unsafe { leave_halves(z, x, &load(&factors), &of_c, b == 0) }
                })
                .collect();
        for (b, scalars) in chunks.iter().enumerate() {
            for (lane, scalar) in scalars.iter().enumerate() {
                out[reverse(lane * (n / 8) + b)] = *scalar;
            }
        }
        wipe(chunks);
    }
}

fn wipe(mut scalars: Vec<[Words; 8]>) {
    scalars.iter_mut().for_each(Zeroize::zeroize);
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
