//! One transform of a vector list.

use std::arch::x86_64::*;

use rayon::prelude::*;

use super::{Roots, Words, ours};
use crate::Ifma;
use crate::fr::vector::{self, Element};
use crate::fr::{SIX_TIMES, THREE_TIMES};
use crate::word::*;

/// Vectors that one task takes.
const CHUNK: usize = 256;

/// What a direction of transforms needs.
pub(super) struct Direction {
    /// That the processor has the instructions.
    ifma: Ifma,
    inverse: bool,
    /// `w₈^l` in lane `4 + l`, one below.
    eighths: Element,
    /// `w₈^2l` in lanes `2 + l` of each four, one in the others.
    quarters: Element,
    /// `w_n^rev(l)` in lane `l`, as blst has it.
    steps: [Words; 8],
}

// SAFETY: vectors are plain integers.
unsafe impl Send for Direction {}
// SAFETY: as above.
unsafe impl Sync for Direction {}

/// Product of scalars as blst has them.
fn product(a: &Words, b: &Words) -> Words {
    let mut out = blst::blst_fr::default();
    // SAFETY: the pointers are to values that live through the call.
    unsafe { blst::blst_fr_mul(&mut out, &blst::blst_fr { l: *a }, &blst::blst_fr { l: *b }) };
    out.l
}

fn power(base: &Words, mut exponent: usize) -> Words {
    let (mut out, mut square) = (one(), *base);
    while exponent > 0 {
        if exponent & 1 == 1 {
            out = product(&out, &square);
        }
        square = product(&square, &square);
        exponent >>= 1;
    }
    out
}

fn one() -> Words {
    crate::modulus::to_words(&crate::modulus::power_of_two(&crate::fr::PRIME, 256))
}

fn lanes_of(ifma: Ifma, scalars: &[Words; 8]) -> Element {
    let limbs = ours(ifma, &std::array::from_fn(|lane| &scalars[lane][..]));
    std::array::from_fn(|j| from_lanes(std::array::from_fn(|lane| limbs[lane][j])))
}

impl Direction {
    /// With the root `w` of order `n`, or its inverse.
    pub fn new(ifma: Ifma, w: &Words, n: usize, inverse: bool) -> Self {
        let w = if inverse { power(w, n - 1) } else { *w };
        let eighth = power(&w, n / 8);
        let reversed = [0, 4, 2, 6, 1, 5, 3, 7];
        Direction {
            ifma,
            inverse,
            eighths: lanes_of(
                ifma,
                &std::array::from_fn(|lane| power(&eighth, lane.saturating_sub(4))),
            ),
            quarters: lanes_of(
                ifma,
                &std::array::from_fn(|lane| power(&eighth, if lane & 2 == 0 { 0 } else { 2 * (lane & 1) })),
            ),
            steps: reversed.map(|exponent| power(&w, exponent)),
        }
    }

    /// `w^(rev(l)·b)` in lane `l`, and the factor to the next `b`.
    fn twist(&self, b: usize) -> (Element, Element) {
        let at = self.steps.map(|step| power(&step, b));
        (lanes_of(self.ifma, &at), lanes_of(self.ifma, &self.steps))
    }

    #[inline(always)]
    fn root<'r>(&self, roots: &'r Roots, index: usize) -> &'r [u64; 5] {
        let count = roots.powers.len();
        &roots.powers[if self.inverse && index > 0 {
            count - index
        } else {
            index
        }]
    }

    /// Natural order to bit-reversed. Runs on the current rayon pool. Values below `3r` before and after.
    pub fn split(&self, roots: &Roots, values: &mut [Element]) {
        values
            .par_chunks_mut(CHUNK)
            .enumerate()
            .for_each(|(chunk, values)| {
                let twist = self.twist(chunk * CHUNK);
                // SAFETY: an `Ifma`, which this has, is only made on a processor that has the instructions.
                unsafe { split_lanes(self, values, twist) };
            });
        self.split_each(roots, values, 1);
    }

    /// Bit-reversed order to natural.
    pub fn join(&self, roots: &Roots, values: &mut [Element]) {
        self.join_each(roots, values, 1);
        values
            .par_chunks_mut(CHUNK)
            .enumerate()
            .for_each(|(chunk, values)| {
                let twist = self.twist(chunk * CHUNK);
                // SAFETY: as above.
                unsafe { join_lanes(self, values, twist) };
            });
    }

    fn split_each(&self, roots: &Roots, values: &mut [Element], step: usize) {
        if values.len() < 4 {
            // SAFETY: as above.
            return unsafe { last_pair(values) };
        }
        let four = quarters(values);
        // SAFETY: as above.
        in_chunks(four, |first, four| unsafe {
            split_fours(self, roots, four, first, step)
        });
        if values.len() > 4 * CHUNK {
            let quarter = values.len() / 4;
            values
                .par_chunks_mut(quarter)
                .for_each(|values| self.split_each(roots, values, 4 * step));
        } else {
            let quarter = values.len() / 4;
            for values in values.chunks_mut(quarter) {
                self.split_each(roots, values, 4 * step);
            }
        }
    }

    fn join_each(&self, roots: &Roots, values: &mut [Element], step: usize) {
        if values.len() < 4 {
            // SAFETY: as above.
            return unsafe { last_pair(values) };
        }
        let quarter = values.len() / 4;
        if values.len() > 4 * CHUNK {
            values
                .par_chunks_mut(quarter)
                .for_each(|values| self.join_each(roots, values, 4 * step));
        } else {
            for values in values.chunks_mut(quarter) {
                self.join_each(roots, values, 4 * step);
            }
        }
        // SAFETY: as above.
        in_chunks(quarters(values), |first, four| unsafe {
            join_fours(self, roots, four, first, step)
        });
    }
}

type Quarters<'a> = [&'a mut [Element]; 4];

fn quarters(values: &mut [Element]) -> Quarters<'_> {
    let quarter = values.len() / 4;
    let (low, high) = values.split_at_mut(2 * quarter);
    let (a, b) = low.split_at_mut(quarter);
    let (c, d) = high.split_at_mut(quarter);
    [a, b, c, d]
}

/// Cuts the four into parts of the same places, for all threads.
fn in_chunks(four: Quarters<'_>, work: impl Fn(usize, Quarters<'_>) + Sync) {
    let [a, b, c, d] = four;
    if a.len() <= CHUNK {
        return work(0, [a, b, c, d]);
    }
    a.par_chunks_mut(CHUNK)
        .zip(b.par_chunks_mut(CHUNK))
        .zip(c.par_chunks_mut(CHUNK))
        .zip(d.par_chunks_mut(CHUNK))
        .enumerate()
        .for_each(|(chunk, (((a, b), c), d))| work(chunk * CHUNK, [a, b, c, d]));
}

/// Sums in the lower lanes of each pair, differences in the upper ones: `x + y`, `x − y + 3r`.
macro_rules! across {
    ($value:expr, $mask:literal, $swap:expr) => {{
        let value = $value;
        let mut out = value;
        for (out, (limb, r)) in out.iter_mut().zip(value.iter().zip(THREE_TIMES)) {
            let other = $swap(*limb);
            let difference = add(sub(other, *limb), splat(r));
            *out = _mm512_mask_mov_epi64(add(other, *limb), $mask, difference);
        }
        normalized!(out, [0 1 2 3])
    }};
}

vectorized! {
#[inline]
fn by_four(value: &Element) -> Element {
    across!(*value, 0b1111_0000, |limb| _mm512_shuffle_i64x2::<0x4e>(limb, limb))
}
#[inline]
fn by_two(value: &Element) -> Element {
    across!(*value, 0b1100_1100, |limb| _mm512_permutex_epi64::<0x4e>(limb))
}
#[inline]
fn by_one(value: &Element) -> Element {
    across!(*value, 0b1010_1010, |limb| _mm512_permutex_epi64::<0xb1>(limb))
}

/// Three levels across the lanes.
fn split_lanes(direction: &Direction, values: &mut [Element], twist: (Element, Element)) {
    let (mut twist, step) = twist;
    let (mut product, mut next) = ([zero(); 5], [zero(); 5]);
    for value in values {
        vector::mul(&mut product, &by_four(value), &direction.eighths);
        vector::mul(&mut next, &by_two(&product), &direction.quarters);
        vector::mul(value, &by_one(&next), &twist);
        vector::mul(&mut next, &twist, &step);
        twist = next;
    }
}

/// The same backward.
fn join_lanes(direction: &Direction, values: &mut [Element], twist: (Element, Element)) {
    let (mut twist, step) = twist;
    let (mut product, mut next) = ([zero(); 5], [zero(); 5]);
    for value in values {
        vector::mul(&mut product, value, &twist);
        vector::mul(&mut next, &by_one(&product), &direction.quarters);
        vector::mul(&mut product, &by_two(&next), &direction.eighths);
        *value = vector::shrink(&by_four(&product));
        vector::mul(&mut next, &twist, &step);
        twist = next;
    }
}

/// Two levels at once inside of the lanes, decimation in frequency.
fn split_fours(direction: &Direction, roots: &Roots, four: Quarters<'_>, first: usize, step: usize) {
    let [a, b, c, d] = four;
    let quarter = vector::broadcast(direction.root(roots, roots.powers.len() / 4));
    let mut turned = [zero(); 5];
    for (k, (((a, b), c), d)) in a.iter_mut().zip(b).zip(c).zip(d).enumerate() {
        let j = (first + k) * step;
        let (even, odd) = (vector::sum(a, c), vector::sum(b, d));
        let difference = vector::difference(a, c, &THREE_TIMES);
        vector::mul(&mut turned, &vector::difference(b, d, &THREE_TIMES), &quarter);
        *a = vector::shrink(&vector::sum(&even, &odd));
        vector::mul(b, &vector::difference(&even, &odd, &SIX_TIMES), &vector::broadcast(direction.root(roots, 2 * j)));
        vector::mul(c, &vector::sum(&difference, &turned), &vector::broadcast(direction.root(roots, j)));
        vector::mul(
            d,
            &vector::difference(&difference, &turned, &THREE_TIMES),
            &vector::broadcast(direction.root(roots, 3 * j)),
        );
    }
}

/// Two levels at once, decimation in time.
fn join_fours(direction: &Direction, roots: &Roots, four: Quarters<'_>, first: usize, step: usize) {
    let [a, b, c, d] = four;
    let quarter = vector::broadcast(direction.root(roots, roots.powers.len() / 4));
    let (mut second, mut third, mut fourth, mut turned) = ([zero(); 5], [zero(); 5], [zero(); 5], [zero(); 5]);
    for (k, (((a, b), c), d)) in a.iter_mut().zip(b).zip(c).zip(d).enumerate() {
        let j = (first + k) * step;
        vector::mul(&mut second, b, &vector::broadcast(direction.root(roots, 2 * j)));
        vector::mul(&mut third, c, &vector::broadcast(direction.root(roots, j)));
        vector::mul(&mut fourth, d, &vector::broadcast(direction.root(roots, 3 * j)));
        let (even, odd) = (vector::sum(a, &second), vector::sum(&third, &fourth));
        let difference = vector::difference(a, &second, &THREE_TIMES);
        vector::mul(&mut turned, &vector::difference(&third, &fourth, &THREE_TIMES), &quarter);
        *a = vector::shrink(&vector::sum(&even, &odd));
        *b = vector::shrink(&vector::sum(&difference, &turned));
        *c = vector::shrink(&vector::difference(&even, &odd, &SIX_TIMES));
        *d = vector::shrink(&vector::difference(&difference, &turned, &THREE_TIMES));
    }
}

/// The level that is left where the number of levels is odd.
fn last_pair(values: &mut [Element]) {
    if let [a, b] = values {
        let sum = vector::sum(a, b);
        *b = vector::shrink(&vector::difference(a, b, &THREE_TIMES));
        *a = vector::shrink(&sum);
    }
}

/// `a ← a·b`.
pub(super) fn multiply(a: &mut [Element], b: &[Element]) {
    let mut product = [zero(); 5];
    for (a, b) in a.iter_mut().zip(b) {
        vector::mul(&mut product, a, b);
        *a = product;
    }
}
}
