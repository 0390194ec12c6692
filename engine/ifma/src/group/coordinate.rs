//! The coordinates of the two groups, eight at once, under the same names.

/// `Fp`: coordinates in G1.
pub(crate) mod one {
    use crate::fp::vector::{self, Element};
    use crate::fp::{ONE, PRIME};
    use crate::lanes;
    use crate::modulus::power_of_two;
    use crate::scalar::canonical;
    use crate::word::{ZERO, equal, vectorized};

    pub(crate) type Coordinate = Element;
    /// Base-field elements in a coordinate.
    pub(crate) const DEGREE: usize = 1;
    pub(crate) const ZEROS: Coordinate = [ZERO; 8];

    /// What one addition keeps between the two passes of a batch.
    #[derive(Clone, Copy)]
    #[repr(C, align(64))]
    pub struct Slot {
        /// The product of the norms before this one.
        pub prefix: Element,
        pub dx: Coordinate,
        pub dy: Coordinate,
    }

    pub(crate) const EMPTY: Slot = Slot {
        prefix: [ZERO; 8],
        dx: ZEROS,
        dy: ZEROS,
    };

    impl Slot {
        /// What has to be inverted for `1/dx`.
        #[inline(always)]
        pub fn norm(&self) -> &Element {
            &self.dx
        }
    }

    vectorized! {
    #[inline]
    pub(crate) fn find_norm(_slot: &mut Slot) {}
    /// `dy/dx`, from the inverse of the norm.
    #[inline]
    pub(crate) fn slope(out: &mut Coordinate, slot: &Slot, inverse: &Element) {
        vector::mul(out, &slot.dy, inverse);
    }
    #[inline]
    pub(crate) fn mul(out: &mut Coordinate, a: &Coordinate, b: &Coordinate) {
        vector::mul(out, a, b);
    }
    #[inline]
    pub(crate) fn square(out: &mut Coordinate, a: &Coordinate) {
        vector::square(out, a);
    }
    #[inline]
    pub(crate) fn difference(a: &Coordinate, b: &Coordinate, offset: &[u64; 8]) -> Coordinate {
        vector::difference(a, b, offset)
    }
    #[inline]
    pub(crate) fn less_both(a: &Coordinate, b: &Coordinate, c: &Coordinate, offset: &[u64; 8]) -> Coordinate {
        vector::less_both(a, b, c, offset)
    }
    #[inline]
    pub(crate) fn less_twice(a: &Coordinate, b: &Coordinate, c: &Coordinate, offset: &[u64; 8]) -> Coordinate {
        vector::less_twice(a, b, c, offset)
    }
    #[inline]
    pub(crate) fn shrink(a: &Coordinate) -> Coordinate {
        vector::shrink(a)
    }
    /// The curve's `b = 4`, as [`crate::lanes`] reads points: `4·2^-96·R`.
    #[inline]
    pub(crate) fn b() -> Coordinate {
        const B: [u64; 8] = power_of_two(&PRIME, 2 - 96 + 416);
        vector::broadcast(&B)
    }
    /// The lanes of a shrunk value that are zero: `0` or `p`.
    #[inline]
    pub(crate) fn zeros(value: &Coordinate) -> u8 {
        let (mut zero, mut prime) = (0xff, 0xff);
        for (limb, p) in value.iter().zip(&PRIME) {
            zero &= equal(*limb, 0);
            prime &= equal(*limb, *p);
        }
        zero | prime
    }
    #[inline]
    pub(crate) fn one() -> Coordinate {
        vector::broadcast(&ONE)
    }
    #[inline]
    pub(crate) fn select(mask: u8, a: &Coordinate, b: &Coordinate) -> Coordinate {
        lanes::select(mask, a, b)
    }
    #[inline]
    pub(crate) fn negate(value: &Coordinate, mask: u8) -> Coordinate {
        lanes::negate(value, mask)
    }
    #[inline]
    pub(crate) fn stored(points: &[&[u64]; 8], at: usize) -> Coordinate {
        lanes::stored(points, at * lanes::STORED)
    }
    #[inline]
    pub(crate) fn packed_as_it_is(points: &[&[u64]; 8], at: usize) -> Coordinate {
        lanes::packed_as_it_is(points, at * lanes::PACKED)
    }
    #[inline]
    pub(crate) fn packed_shifted(points: &[&[u64]; 8], at: usize) -> Coordinate {
        lanes::packed_shifted(points, at * lanes::PACKED)
    }
    }

    /// A lane of a value below `2p`.
    pub(crate) fn lane(value: &Coordinate, lane: usize) -> [[u64; 6]; DEGREE] {
        [canonical(&lanes::lane(value, lane))]
    }
    pub(crate) fn limbs(value: &Coordinate, lane: usize) -> [[u64; 8]; DEGREE] {
        [lanes::lane(value, lane)]
    }
    pub(crate) fn set_lane(value: &mut Coordinate, lane: usize, limbs: &[[u64; 8]; DEGREE]) {
        lanes::set_lane(value, lane, &limbs[0]);
    }
}

/// `Fp2`: coordinates in G2.
pub(crate) mod two {
    use super::one;
    use crate::fp::vector::{self, Element};
    use crate::fp::{FOUR_TIMES, ONE};
    use crate::word::{ZERO, vectorized, zero};

    pub(crate) type Coordinate = [Element; 2];
    pub(crate) const DEGREE: usize = 2;
    pub(crate) const ZEROS: Coordinate = [[ZERO; 8]; 2];

    /// What one addition keeps between the two passes of a batch.
    #[derive(Clone, Copy)]
    #[repr(C, align(64))]
    pub struct Slot {
        /// The product of the norms before this one.
        pub prefix: Element,
        pub norm: Element,
        pub dx: Coordinate,
        pub dy: Coordinate,
    }

    pub(crate) const EMPTY: Slot = Slot {
        prefix: [ZERO; 8],
        norm: [ZERO; 8],
        dx: ZEROS,
        dy: ZEROS,
    };

    impl Slot {
        /// What has to be inverted for `1/dx`.
        #[inline(always)]
        pub fn norm(&self) -> &Element {
            &self.norm
        }
    }

    vectorized! {
    /// `dx₀² + dx₁²`, which is zero only for zero, since −1 is no square in `Fp`.
    #[inline]
    pub(crate) fn find_norm(slot: &mut Slot) {
        vector::sum_of_squares(&mut slot.norm, &slot.dx[0], &slot.dx[1]);
    }
    /// `dy/dx = dy·(dx₀ − dx₁u)/norm`.
    #[inline]
    pub(crate) fn slope(out: &mut Coordinate, slot: &Slot, inverse: &Element) {
        let mut factor = [[zero(); 8]; 2];
        let mut imaginary = [zero(); 8];
        vector::mul(&mut factor[0], &slot.dx[0], inverse);
        vector::mul(&mut imaginary, &slot.dx[1], inverse);
        factor[1] = vector::difference(&[zero(); 8], &imaginary, &FOUR_TIMES);
        vector::mul_complex(out, &slot.dy, &factor);
    }
    #[inline]
    pub(crate) fn mul(out: &mut Coordinate, a: &Coordinate, b: &Coordinate) {
        vector::mul_complex(out, a, b);
    }
    #[inline]
    pub(crate) fn square(out: &mut Coordinate, a: &Coordinate) {
        vector::square_complex(out, a);
    }
    #[inline]
    pub(crate) fn difference(a: &Coordinate, b: &Coordinate, offset: &[u64; 8]) -> Coordinate {
        [vector::difference(&a[0], &b[0], offset), vector::difference(&a[1], &b[1], offset)]
    }
    #[inline]
    pub(crate) fn less_both(a: &Coordinate, b: &Coordinate, c: &Coordinate, offset: &[u64; 8]) -> Coordinate {
        [vector::less_both(&a[0], &b[0], &c[0], offset), vector::less_both(&a[1], &b[1], &c[1], offset)]
    }
    #[inline]
    pub(crate) fn less_twice(a: &Coordinate, b: &Coordinate, c: &Coordinate, offset: &[u64; 8]) -> Coordinate {
        [vector::less_twice(&a[0], &b[0], &c[0], offset), vector::less_twice(&a[1], &b[1], &c[1], offset)]
    }
    #[inline]
    pub(crate) fn shrink(a: &Coordinate) -> Coordinate {
        [vector::shrink(&a[0]), vector::shrink(&a[1])]
    }
    /// The curve's `b = 4·(1 + u)`, likewise.
    #[inline]
    pub(crate) fn b() -> Coordinate {
        [one::b(), one::b()]
    }
    /// The lanes of a shrunk value that are zero.
    #[inline]
    pub(crate) fn zeros(value: &Coordinate) -> u8 {
        one::zeros(&value[0]) & one::zeros(&value[1])
    }
    #[inline]
    pub(crate) fn one() -> Coordinate {
        [vector::broadcast(&ONE), [zero(); 8]]
    }
    #[inline]
    pub(crate) fn select(mask: u8, a: &Coordinate, b: &Coordinate) -> Coordinate {
        [one::select(mask, &a[0], &b[0]), one::select(mask, &a[1], &b[1])]
    }
    #[inline]
    pub(crate) fn negate(value: &Coordinate, mask: u8) -> Coordinate {
        [one::negate(&value[0], mask), one::negate(&value[1], mask)]
    }
    #[inline]
    pub(crate) fn stored(points: &[&[u64]; 8], at: usize) -> Coordinate {
        [one::stored(points, 2 * at), one::stored(points, 2 * at + 1)]
    }
    #[inline]
    pub(crate) fn packed_as_it_is(points: &[&[u64]; 8], at: usize) -> Coordinate {
        [one::packed_as_it_is(points, 2 * at), one::packed_as_it_is(points, 2 * at + 1)]
    }
    #[inline]
    pub(crate) fn packed_shifted(points: &[&[u64]; 8], at: usize) -> Coordinate {
        [one::packed_shifted(points, 2 * at), one::packed_shifted(points, 2 * at + 1)]
    }
    }

    /// A lane of a value below `2p`.
    pub(crate) fn lane(value: &Coordinate, lane: usize) -> [[u64; 6]; DEGREE] {
        [one::lane(&value[0], lane)[0], one::lane(&value[1], lane)[0]]
    }
    pub(crate) fn limbs(value: &Coordinate, lane: usize) -> [[u64; 8]; DEGREE] {
        [one::limbs(&value[0], lane)[0], one::limbs(&value[1], lane)[0]]
    }
    pub(crate) fn set_lane(value: &mut Coordinate, lane: usize, limbs: &[[u64; 8]; DEGREE]) {
        one::set_lane(&mut value[0], lane, &[limbs[0]]);
        one::set_lane(&mut value[1], lane, &[limbs[1]]);
    }
}
