//! Many multiples of one point, from a table of its multiples.
//!
//! A scalar is cut into windows with signed digits, and its multiple is the sum of one table point for each window.
//! Those sums, and the table's own points (each a multiple of few bits and one of the bits above), are sums of groups
//! of points, which the backend makes.

use blstrs::Scalar;
use rayon::prelude::*;

use crate::backend::Backend;
use crate::curve::Curve;
use crate::field::{ScalarBytes, scalar_to_bytes};
use crate::quotient::on_threads;
use crate::sums::{CHUNK, Groups, SumsOn};

/// Scalars that one task cuts into digits.
const TASK: usize = 512;

/// For each window `j`, the points `d·2^(width·j)·base` for `d` from 1 to `2^(width − 1)`.
pub(super) struct Table<C: Curve> {
    width: usize,
    points: Vec<C::Affine>,
}

fn windows(width: usize) -> usize {
    // A scalar has 255 bits; the last window has room for a carry.
    256usize.div_ceil(width)
}

/// The width with the least additions for so many multiplications.
fn width(scalars: u64) -> usize {
    let cost = |width: &usize| windows(*width) as u64 * (scalars + (1 << width));
    (4..=16).min_by_key(cost).unwrap_or(4)
}

/// Bits of the multiples of few bits that a window's points are made from.
fn low_bits(width: usize) -> usize {
    (width - 1) / 2
}

/// Bytes of a table for about `scalars` multiplications at most, while it is made.
pub(crate) fn table_bytes<C: Curve>(scalars: u64) -> u64 {
    let width = width(scalars);
    let points = windows(width) << (width - 1);
    // For each of its points two entries and an offset; those of few bits and of the bits above, before and after they
    // are made affine.
    let parts = windows(width) * ((2 << low_bits(width)) + (2 << (width - 1 - low_bits(width))));
    let a_part = C::AFFINE_BYTES + 2 * size_of::<C::Point>();
    (points * (C::AFFINE_BYTES + 12) + parts * a_part) as u64
}

/// Bytes that a batch of multiplications takes beside what comes out.
pub(crate) fn multiples_bytes(scalars: u64, of: u64) -> u64 {
    // Entries, once by task and once joined.
    2 * 4 * scalars * (windows(width(of)) as u64 + 2)
}

impl<C: SumsOn> Table<C> {
    /// A table worth its while for about `scalars` multiplications of a point of order `r`.
    pub fn new(base: &C::Affine, scalars: usize, backend: &dyn Backend) -> Self {
        let width = width(scalars as u64);
        let low = low_bits(width);
        let mut bases = vec![C::to_point(base)];
        while bases.len() < windows(width) {
            let next = (0..width).fold(bases[bases.len() - 1], |point, _| C::double(&point));
            bases.push(next);
        }
        // d = high·2^low + rest, with rest from 1 to 2^low.
        let (rests, highs) = (1usize << low, 1usize << (width - 1 - low));
        let mut parts = Vec::new();
        on_threads(backend, || {
            parts = bases
                .par_iter()
                .flat_map_iter(|base| {
                    let high_base = (0..low).fold(*base, |point, _| C::double(&point));
                    let mut points = multiples_up_to::<C>(base, rests);
                    points.extend(multiples_up_to::<C>(&high_base, highs - 1));
                    points
                })
                .collect();
        });
        let in_window = rests + highs - 1;
        let count = windows(width) << (width - 1);
        let mut groups = Groups::with_capacity(count, 2 * count);
        for first in (0..windows(width)).map(|window| window * in_window) {
            for high in 0..highs {
                for rest in 0..rests {
                    groups.point((first + rest) as u32, false);
                    if high > 0 {
                        groups.point((first + rests + high - 1) as u32, false);
                    }
                    groups.end();
                }
            }
        }
        let points = C::sums(backend, &parts, &groups);
        Table { width, points }
    }

    /// `scalar·base` for each scalar, in their order. Scalars should come in batches of [`batch`].
    pub fn multiples(&self, scalars: &[Scalar], backend: &dyn Backend) -> Vec<C::Affine> {
        let mut tasks = Vec::new();
        on_threads(backend, || {
            tasks = scalars
                .par_chunks(TASK)
                .map(|scalars| {
                    let mut groups =
                        Groups::with_capacity(scalars.len(), scalars.len() * windows(self.width));
                    for scalar in scalars {
                        self.digits(&scalar_to_bytes(scalar), &mut groups);
                        groups.end();
                    }
                    groups
                })
                .collect();
        });
        let mut groups = Groups::with_capacity(scalars.len(), scalars.len() * windows(self.width));
        tasks.iter().for_each(|task| groups.append(task));
        C::sums(backend, &self.points, &groups)
    }

    /// The points whose sum is the scalar's multiple.
    fn digits(&self, scalar: &ScalarBytes, groups: &mut Groups) {
        let half = 1usize << (self.width - 1);
        let mut carry = 0;
        for window in 0..windows(self.width) {
            let mut digit = bits(scalar, window * self.width, self.width) + carry;
            let negative = digit > half;
            carry = usize::from(negative);
            if negative {
                digit = 2 * half - digit;
            }
            if digit > 0 {
                groups.point((window * half + digit - 1) as u32, negative);
            }
        }
    }
}

/// How many scalars to multiply at once.
pub(crate) fn batch(threads: usize) -> usize {
    CHUNK * threads.clamp(1, 4)
}

/// `base, 2·base, …, count·base`.
fn multiples_up_to<C: Curve>(base: &C::Point, count: usize) -> Vec<C::Affine> {
    let step = C::to_affine(base);
    let multiples: Vec<C::Point> =
        std::iter::successors(Some(*base), |point| Some(C::add_affine(point, &step)))
            .take(count)
            .collect();
    C::batch_to_affine(&multiples)
}

/// `width` bits from `start` on; bits past the end are zero.
fn bits(scalar: &ScalarBytes, start: usize, width: usize) -> usize {
    let byte = |index: usize| u32::from(*scalar.get(index).unwrap_or(&0));
    let first = start / 8;
    let bits = byte(first) | byte(first + 1) << 8 | byte(first + 2) << 16;
    (bits >> (start % 8)) as usize & ((1 << width) - 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::backend::CpuBackend;
    use crate::curve::{G1, G2};
    use ff::Field;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    fn agrees<C: SumsOn>(counts: &[usize]) {
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        let mut scalars = vec![Scalar::ZERO, Scalar::ONE, -Scalar::ONE, -Scalar::from(2u64)];
        for bit in 1..255 {
            let power = Scalar::from(2u64).pow_vartime([bit]);
            scalars.extend([power, power - Scalar::ONE, -power]);
        }
        scalars.extend((0..20).map(|_| Scalar::random(&mut rng)));
        let base = C::to_affine(&C::mul(
            &C::to_point(&C::generator()),
            &scalar_to_bytes(&scalars[scalars.len() - 1]),
        ));
        let expected: Vec<C::Affine> = scalars
            .iter()
            .map(|s| C::to_affine(&C::mul(&C::to_point(&base), &scalar_to_bytes(s))))
            .collect();
        for name in CpuBackend::possible() {
            let backend = CpuBackend::named(name, 2).unwrap();
            for count in counts {
                let table = Table::<C>::new(&base, *count, &backend);
                assert!(table.multiples(&scalars, &backend) == expected, "{name}, {count}");
                assert!(
                    table.multiples(&scalars[..3], &backend) == expected[..3],
                    "{name}, {count}"
                );
            }
        }
    }

    #[test]
    fn tables_agree_with_plain_multiplication() {
        agrees::<G1>(&[1, 100, 1 << 11, 1 << 13, 1 << 16]);
        agrees::<G2>(&[1, 1 << 12]);
    }
}
