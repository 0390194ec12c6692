//! Many multiples of one point, from a table of its multiples.

use blstrs::Scalar;
use rayon::prelude::*;

use crate::curve::Curve;
use crate::field::{ScalarBytes, scalar_to_bytes};

/// Scalars that one task multiplies.
const CHUNK: usize = 512;

/// For each window `j`, the points `d·2^(width·j)·base` for `d` from 1 to `2^width − 1`.
pub(super) struct Table<C: Curve> {
    width: usize,
    windows: Vec<Vec<C::Affine>>,
}

/// Bits of a window worth its while for so many multiplications.
fn width(scalars: u64) -> usize {
    (scalars.max(1).ilog2() as usize).saturating_sub(4).clamp(5, 13)
}

/// Bytes of a table for about `scalars` multiplications at most, while it is made.
pub(crate) fn table_bytes<C: Curve>(scalars: u64) -> u64 {
    let width = width(scalars);
    // Its points, and beside them those not normalized yet with as much to normalize them with.
    let point = C::AFFINE_BYTES + 2 * size_of::<C::Point>();
    ((256usize.div_ceil(width) * point) << width) as u64
}

impl<C: Curve> Table<C> {
    /// A table worth its while for about `scalars` multiplications.
    pub fn new(base: &C::Affine, scalars: usize) -> Self {
        let width = width(scalars as u64);
        let mut bases = vec![C::to_point(base)];
        while bases.len() < 256usize.div_ceil(width) {
            let next = (0..width).fold(bases[bases.len() - 1], |point, _| C::double(&point));
            bases.push(next);
        }
        let windows = bases
            .into_par_iter()
            .map(|base| {
                let step = C::to_affine(&base);
                let mut point = base;
                let multiples: Vec<C::Point> = (1..1usize << width)
                    .map(|_| {
                        let this = point;
                        point = C::add_affine(&point, &step);
                        this
                    })
                    .collect();
                C::batch_to_affine(&multiples)
            })
            .collect();
        Table { width, windows }
    }

    fn multiple(&self, scalar: &ScalarBytes) -> C::Point {
        let mut sum = C::Point::default();
        for (index, window) in self.windows.iter().enumerate() {
            match digit(scalar, index * self.width, self.width) {
                0 => {}
                digit => sum = C::add_affine(&sum, &window[digit - 1]),
            }
        }
        sum
    }

    /// The multiples in ZCash's uncompressed encoding, one after another. Runs on the current rayon pool.
    pub fn encoded_multiples(&self, scalars: &[Scalar]) -> Vec<u8> {
        self.multiples(scalars)
            .par_iter()
            .with_min_len(64)
            .flat_map_iter(|point| C::serialize(point))
            .collect()
    }

    /// `scalar·base` for each scalar, in their order. Runs on the current rayon pool.
    pub fn multiples(&self, scalars: &[Scalar]) -> Vec<C::Affine> {
        scalars
            .par_chunks(CHUNK)
            .flat_map_iter(|scalars| {
                let points: Vec<C::Point> = scalars
                    .iter()
                    .map(|scalar| self.multiple(&scalar_to_bytes(scalar)))
                    .collect();
                C::batch_to_affine(&points)
            })
            .collect()
    }
}

/// `width` bits from `start` on; bits past the end are zero.
fn digit(scalar: &ScalarBytes, start: usize, width: usize) -> usize {
    let byte = |index: usize| u32::from(*scalar.get(index).unwrap_or(&0));
    let first = start / 8;
    let bits = byte(first) | byte(first + 1) << 8 | byte(first + 2) << 16;
    (bits >> (start % 8)) as usize & ((1 << width) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::{G1, G2};
    use ff::Field;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    fn agrees<C: Curve>() {
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        let mut scalars = vec![Scalar::ZERO, Scalar::ONE, -Scalar::ONE];
        scalars.extend((0..20).map(|_| Scalar::random(&mut rng)));
        let one = C::to_point(&C::generator());
        let expected: Vec<C::Affine> = scalars
            .iter()
            .map(|s| C::to_affine(&C::mul(&one, &scalar_to_bytes(s))))
            .collect();
        for count in [1, 1 << 11, 1 << 13] {
            assert_eq!(
                Table::<C>::new(&C::generator(), count).multiples(&scalars),
                expected
            );
        }
    }

    #[test]
    fn tables_agree_with_plain_multiplication() {
        agrees::<G1>();
        agrees::<G2>();
    }
}
