//! The two groups of BLS12-381 behind one trait, on blst's own types.
//!
//! A `.zkey` stores points as little-endian Montgomery limbs `x ‖ y`, which is blst's affine layout in memory, so a
//! mapped section can be read as a slice of points. All-zero bytes are the identity in both.

use std::fmt::Debug;

use blst::*;
use zeroize::Zeroize;

use crate::affine::Coordinate;
use crate::field::ScalarBytes;

/// A group of prime order `r`: [`G1`] or [`G2`].
pub trait Curve: Send + Sync + Debug + 'static {
    /// A point `x, y`; the identity is all zero.
    type Affine: Copy + Default + PartialEq + Debug + Send + Sync + 'static;
    /// A point in Jacobian coordinates.
    type Point: Copy + Default + PartialEq + Send + Sync + 'static;
    /// What an affine point has two of.
    type Coordinate: Coordinate;
    /// Bytes of an affine point in memory, in a `.zkey` and uncompressed: 96 or 192.
    const AFFINE_BYTES: usize;
    /// Words of one Pippenger bucket.
    const BUCKET_WORDS: usize;

    /// `x` and `y` as they lie in the point: both zero in the identity.
    fn coordinates(point: &Self::Affine) -> (&Self::Coordinate, &Self::Coordinate);
    /// The same to be written.
    fn coordinates_mut(point: &mut Self::Affine) -> (&mut Self::Coordinate, &mut Self::Coordinate);
    /// Overwrites a point that tells about scalars.
    fn wipe(point: &mut Self::Affine);
    /// The generator that the BLS12-381 standard fixes.
    fn generator() -> Self::Affine;
    /// Whether the point is the identity.
    fn is_identity(point: &Self::Affine) -> bool;
    /// Whether the point satisfies the curve equation (the identity does).
    fn on_curve(point: &Self::Affine) -> bool;
    /// Whether a point of the curve has order `r` (or is the identity).
    fn in_subgroup(point: &Self::Affine) -> bool;
    /// Jacobian to affine.
    fn to_affine(point: &Self::Point) -> Self::Affine;
    /// Affine to Jacobian.
    fn to_point(point: &Self::Affine) -> Self::Point;
    /// Many points at once, with one inversion. Identities are fine.
    fn batch_to_affine(points: &[Self::Point]) -> Vec<Self::Affine>;
    /// `a + b`, complete.
    fn add(a: &Self::Point, b: &Self::Point) -> Self::Point;
    /// `a + b`, complete.
    fn add_affine(a: &Self::Point, b: &Self::Affine) -> Self::Point;
    /// `2a`.
    fn double(a: &Self::Point) -> Self::Point;
    /// `−a`.
    fn neg(a: &Self::Point) -> Self::Point;
    /// `−a`.
    fn neg_affine(a: &Self::Affine) -> Self::Affine;
    /// `scalar·a`, in constant time; the scalar is canonical.
    fn mul(a: &Self::Point, scalar: &ScalarBytes) -> Self::Point;
    /// `scalar·a` for a scalar below `2^bits`, from 1 to 255 bits; takes time by `bits`.
    fn mul_short(a: &Self::Point, scalar: &ScalarBytes, bits: usize) -> Self::Point;
    /// ZCash's compressed encoding, 48 or 96 bytes.
    fn compress(point: &Self::Affine) -> Vec<u8>;
    /// ZCash's uncompressed encoding, 96 or 192 bytes.
    fn serialize(point: &Self::Affine) -> Vec<u8> {
        let mut out = vec![0; Self::AFFINE_BYTES];
        Self::serialize_into(point, &mut out);
        out
    }
    /// The same into [`Curve::AFFINE_BYTES`] bytes.
    ///
    /// # Panics
    /// If `out` has another length.
    fn serialize_into(point: &Self::Affine, out: &mut [u8]);
    /// Big-endian coordinates of [`Curve::AFFINE_BYTES`] as ZCash's uncompressed encoding has them, all below the base
    /// field's order and without flags, as a point. Whether it is one is not checked.
    ///
    /// # Panics
    /// If `bytes` has another length.
    fn from_coordinates(bytes: &[u8]) -> Self::Affine;
    /// Reads a compressed (flag set) or uncompressed encoding. The point is on the curve and the encoding canonical;
    /// the subgroup is not checked.
    fn decode(bytes: &[u8]) -> Option<Self::Affine>;
    /// The sum of the points, by batched affine additions.
    ///
    /// # Safety
    /// `points` is not empty and its pointers are valid.
    unsafe fn sum(points: &[*const Self::Affine]) -> Self::Point;
    /// One tile of Pippenger's method: `Σ digit·point` for the signed window of `window` bits that starts at `bit0`
    /// of scalars of `bits` bits.
    ///
    /// # Safety
    /// `points` and `scalars` are of one length, at least two, their pointers valid, each scalar of 32 bytes.
    /// `buckets` holds [`Self::BUCKET_WORDS`]` << (window − 1)` zero words (they are zero again afterwards).
    unsafe fn tile(
        points: &[*const Self::Affine],
        scalars: &[*const u8],
        bits: usize,
        buckets: &mut [u64],
        bit0: usize,
        window: usize,
    ) -> Self::Point;
}

/// The group of points over the base field.
#[derive(Clone, Copy, Debug)]
pub enum G1 {}

/// The group of points over the quadratic extension.
#[derive(Clone, Copy, Debug)]
pub enum G2 {}

macro_rules! curve {
    ($name:ident, $affine:ident, $point:ident, $coordinate:ident, $half:literal, $bucket_words:literal,
     $generator:ident, $is_inf:ident, $on_curve:ident, $in_group:ident, $to_affine:ident, $from_affine:ident,
     $batch:ident, $add:ident, $add_affine:ident, $double:ident, $cneg:ident, $coordinate_cneg:ident, $mult:ident, $compress:ident,
     $serialize:ident, $uncompress:ident, $deserialize:ident, $sum:ident, $tile:ident, $from_coordinates:expr) => {
        // SAFETY for every call into blst below: pointers come from references that live through the call, and the
        // lengths that blst derives from them are those of the slices; where that needs the caller's word, the trait
        // method is unsafe and says so.
        impl Curve for $name {
            type Affine = $affine;
            type Point = $point;
            type Coordinate = $coordinate;
            const AFFINE_BYTES: usize = 2 * $half;
            const BUCKET_WORDS: usize = $bucket_words;

            #[inline]
            fn coordinates(point: &$affine) -> (&$coordinate, &$coordinate) {
                (&point.x, &point.y)
            }
            #[inline]
            fn coordinates_mut(point: &mut $affine) -> (&mut $coordinate, &mut $coordinate) {
                (&mut point.x, &mut point.y)
            }
            fn wipe(point: &mut $affine) {
                point.x.words().zeroize();
                point.y.words().zeroize();
            }
            fn generator() -> $affine {
                let mut out = $affine::default();
                unsafe { $to_affine(&mut out, $generator()) };
                out
            }
            fn is_identity(point: &$affine) -> bool {
                unsafe { $is_inf(point) }
            }
            fn on_curve(point: &$affine) -> bool {
                unsafe { $on_curve(point) }
            }
            fn in_subgroup(point: &$affine) -> bool {
                unsafe { $in_group(point) }
            }
            fn to_affine(point: &$point) -> $affine {
                let mut out = $affine::default();
                unsafe { $to_affine(&mut out, point) };
                out
            }
            fn to_point(point: &$affine) -> $point {
                let mut out = $point::default();
                unsafe { $from_affine(&mut out, point) };
                out
            }
            fn batch_to_affine(points: &[$point]) -> Vec<$affine> {
                let mut out = vec![$affine::default(); points.len()];
                if !points.is_empty() {
                    let list = [points.as_ptr(), std::ptr::null()];
                    unsafe { $batch(out.as_mut_ptr(), list.as_ptr(), points.len()) };
                }
                out
            }
            fn add(a: &$point, b: &$point) -> $point {
                let mut out = $point::default();
                unsafe { $add(&mut out, a, b) };
                out
            }
            fn add_affine(a: &$point, b: &$affine) -> $point {
                let mut out = $point::default();
                unsafe { $add_affine(&mut out, a, b) };
                out
            }
            fn double(a: &$point) -> $point {
                let mut out = $point::default();
                unsafe { $double(&mut out, a) };
                out
            }
            fn neg(a: &$point) -> $point {
                let mut out = *a;
                unsafe { $cneg(&mut out, true) };
                out
            }
            #[inline]
            fn neg_affine(a: &$affine) -> $affine {
                let mut out = *a;
                unsafe { $coordinate_cneg(&mut out.y, &a.y, true) };
                out
            }
            fn mul(a: &$point, scalar: &ScalarBytes) -> $point {
                let mut out = $point::default();
                unsafe { $mult(&mut out, a, scalar.as_ptr(), 255) };
                out
            }
            fn mul_short(a: &$point, scalar: &ScalarBytes, bits: usize) -> $point {
                debug_assert!((1..=255).contains(&bits));
                let mut out = $point::default();
                unsafe { $mult(&mut out, a, scalar.as_ptr(), bits) };
                out
            }
            fn compress(point: &$affine) -> Vec<u8> {
                let mut out = vec![0; $half];
                unsafe { $compress(out.as_mut_ptr(), point) };
                out
            }
            fn serialize_into(point: &$affine, out: &mut [u8]) {
                assert_eq!(out.len(), Self::AFFINE_BYTES, "an uncompressed point");
                unsafe { $serialize(out.as_mut_ptr(), point) };
            }
            fn from_coordinates(bytes: &[u8]) -> $affine {
                assert_eq!(bytes.len(), Self::AFFINE_BYTES, "an uncompressed point");
                let mut coordinates = bytes.as_chunks::<48>().0.iter().map(|bytes| {
                    let mut out = blst_fp::default();
                    unsafe { blst_fp_from_bendian(&mut out, bytes.as_ptr()) };
                    out
                });
                let mut next = || coordinates.next().unwrap_or_default();
                $from_coordinates(&mut next)
            }
            fn decode(bytes: &[u8]) -> Option<$affine> {
                let compressed = bytes.first().is_some_and(|flags| flags & 0x80 != 0);
                let mut out = $affine::default();
                let error = match (compressed, bytes.len()) {
                    (true, $half) => unsafe { $uncompress(&mut out, bytes.as_ptr()) },
                    (false, length) if length == 2 * $half => unsafe {
                        $deserialize(&mut out, bytes.as_ptr())
                    },
                    _ => return None,
                };
                (error == BLST_ERROR::BLST_SUCCESS).then_some(out)
            }
            unsafe fn sum(points: &[*const $affine]) -> $point {
                let mut out = $point::default();
                match points {
                    [one] => unsafe { $from_affine(&mut out, *one) },
                    _ => unsafe { $sum(&mut out, points.as_ptr(), points.len()) },
                }
                out
            }
            unsafe fn tile(
                points: &[*const $affine],
                scalars: &[*const u8],
                bits: usize,
                buckets: &mut [u64],
                bit0: usize,
                window: usize,
            ) -> $point {
                debug_assert!(points.len() >= 2 && points.len() == scalars.len());
                debug_assert!(buckets.len() >= Self::BUCKET_WORDS << (window - 1));
                let mut out = $point::default();
                unsafe {
                    $tile(
                        &mut out,
                        points.as_ptr(),
                        points.len(),
                        scalars.as_ptr(),
                        bits,
                        buckets.as_mut_ptr(),
                        bit0,
                        window,
                    )
                };
                out
            }
        }
    };
}

curve!(
    G1,
    blst_p1_affine,
    blst_p1,
    blst_fp,
    48,
    24,
    blst_p1_generator,
    blst_p1_affine_is_inf,
    blst_p1_affine_on_curve,
    blst_p1_affine_in_g1,
    blst_p1_to_affine,
    blst_p1_from_affine,
    blst_p1s_to_affine,
    blst_p1_add_or_double,
    blst_p1_add_or_double_affine,
    blst_p1_double,
    blst_p1_cneg,
    blst_fp_cneg,
    blst_p1_mult,
    blst_p1_affine_compress,
    blst_p1_affine_serialize,
    blst_p1_uncompress,
    blst_p1_deserialize,
    blst_p1s_add,
    blst_p1s_tile_pippenger,
    |next: &mut dyn FnMut() -> blst_fp| blst_p1_affine { x: next(), y: next() }
);
curve!(
    G2,
    blst_p2_affine,
    blst_p2,
    blst_fp2,
    96,
    48,
    blst_p2_generator,
    blst_p2_affine_is_inf,
    blst_p2_affine_on_curve,
    blst_p2_affine_in_g2,
    blst_p2_to_affine,
    blst_p2_from_affine,
    blst_p2s_to_affine,
    blst_p2_add_or_double,
    blst_p2_add_or_double_affine,
    blst_p2_double,
    blst_p2_cneg,
    blst_fp2_cneg,
    blst_p2_mult,
    blst_p2_affine_compress,
    blst_p2_affine_serialize,
    blst_p2_uncompress,
    blst_p2_deserialize,
    blst_p2s_add,
    blst_p2s_tile_pippenger,
    |next: &mut dyn FnMut() -> blst_fp| blst_p2_affine {
        x: fp2(next),
        y: fp2(next)
    }
);

/// The imaginary part comes first in ZCash's encodings.
fn fp2(next: &mut dyn FnMut() -> blst_fp) -> blst_fp2 {
    let (imaginary, real) = (next(), next());
    blst_fp2 {
        fp: [real, imaginary],
    }
}

/// Copies a point out of a `.zkey`: little-endian Montgomery limbs. `bytes` is [`Curve::AFFINE_BYTES`] long.
pub(crate) fn read_point<C: Curve>(bytes: &[u8]) -> C::Affine {
    let mut out = C::Affine::default();
    debug_assert!(bytes.len() == C::AFFINE_BYTES && size_of::<C::Affine>() == C::AFFINE_BYTES);
    let length = bytes.len().min(size_of::<C::Affine>());
    // SAFETY: an affine point is plain limbs without padding, of at least `length` bytes; the regions are distinct.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut out).cast::<u8>(), length) };
    out
}

/// Points as the bytes that a `.zkey` holds.
pub(crate) fn points_as_bytes<C: Curve>(points: &[C::Affine]) -> &[u8] {
    // SAFETY: an affine point is plain limbs without padding; bytes have no alignment.
    unsafe { std::slice::from_raw_parts(points.as_ptr().cast(), size_of_val(points)) }
}

/// Bytes of a `.zkey` section as points, if they lie at an address where points can.
pub(crate) fn bytes_as_points<C: Curve>(bytes: &[u8]) -> Option<&[C::Affine]> {
    // SAFETY: any limbs are a valid value of the type (whether it is a point is checked elsewhere).
    let (before, points, after) = unsafe { bytes.align_to::<C::Affine>() };
    (before.is_empty() && after.is_empty()).then_some(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<C: Curve>() {
        let one = C::generator();
        assert!(C::on_curve(&one) && C::in_subgroup(&one) && !C::is_identity(&one));
        let two = C::double(&C::to_point(&one));
        let zero = C::add(&two, &C::neg(&two));
        let all = C::batch_to_affine(&[two, zero, C::to_point(&one), zero]);
        assert_eq!(all[0], C::to_affine(&two));
        assert!(C::is_identity(&all[1]) && C::is_identity(&all[3]));
        assert_eq!(all[2], one);
        for point in &all {
            assert_eq!(C::decode(&C::compress(point)), Some(*point));
            assert_eq!(C::decode(&C::serialize(point)), Some(*point));
            if !C::is_identity(point) {
                assert_eq!(C::from_coordinates(&C::serialize(point)), *point);
            }
            assert_eq!(
                read_point::<C>(points_as_bytes::<C>(std::slice::from_ref(point))),
                *point
            );
        }
        assert_eq!(C::decode(&C::serialize(&one)[1..]), None);
        assert_eq!(C::decode(&[]), None);
    }

    fn short_multiplication_is_multiplication<C: Curve>() {
        let point = C::double(&C::to_point(&C::generator()));
        for bits in 1..=255 {
            // All ones, and one alone in front. 2^255 − 1 exceeds r, which is no matter.
            let mut ones = [0; 32];
            (0..bits).for_each(|bit| ones[bit / 8] |= 1 << (bit % 8));
            let mut first = [0; 32];
            first[(bits - 1) / 8] = 1 << ((bits - 1) % 8);
            for scalar in [ones, first] {
                let expected = C::to_affine(&C::mul(&point, &scalar));
                let found = C::to_affine(&C::mul_short(&point, &scalar, bits));
                assert_eq!(found, expected, "{bits} bits");
            }
        }
    }

    #[test]
    fn multiplication_by_few_bits_is_multiplication() {
        short_multiplication_is_multiplication::<G1>();
        short_multiplication_is_multiplication::<G2>();
    }

    #[test]
    fn points_round_trip_through_every_encoding() {
        round_trip::<G1>();
        round_trip::<G2>();
    }

    #[test]
    fn buckets_are_as_large_as_blst_says() {
        // SAFETY: plain functions of a number.
        unsafe {
            assert_eq!(blst_p1s_mult_pippenger_scratch_sizeof(0), 8 * G1::BUCKET_WORDS);
            assert_eq!(blst_p2s_mult_pippenger_scratch_sizeof(0), 8 * G2::BUCKET_WORDS);
        }
    }
}
