//! Between points in memory and lanes.
//!
//! A point as blst keeps it is *packed*: coordinates of six 64-bit words, `x·2^384` and `y·2^384`. Taken as they are they
//! would be `x·2^-32` and `y·2^-32` in our form with `R = 2^416`. We read `y` as `y·2^-48` instead, and then
//! `(x, y) → (2^-32·x, 2^-48·y)` is an isomorphism to another curve, `u²x, u³y` with `u = 2^-16`, whose affine addition is
//! the same formula. So `x` costs nothing but shifts, and `y` one limb of Montgomery reduction: no table of converted
//! points is made, and a mapped key is used in place.
//!
//! A point that we stored ourselves has eight limbs a coordinate.

use std::arch::x86_64::*;

use crate::fp::vector::Element;
use crate::fp::{NEGATIVE_INVERSE, PRIME};
use crate::word::*;

/// Words of a packed coordinate, and of a stored one.
pub(crate) const PACKED: usize = 6;
pub(crate) const STORED: usize = 8;

vectorized! {
/// Words `at` and `at + 1` of eight points.
#[inline]
pub(crate) fn pair(points: &[&[u64]; 8], at: usize) -> (Word, Word) {
    debug_assert!(points.iter().all(|point| at + 2 <= point.len()));
    // SAFETY: the words are inside the slice: callers name places inside of a point.
    let load = |lane: usize| unsafe { _mm_loadu_si128(points[lane].as_ptr().add(at).cast()) };
    // The first lanes of a masked broadcast need no shuffle: load ports do that.
    let four = |first: usize| {
        let pairs = _mm512_castsi128_si512(load(first));
        let pairs = _mm512_mask_broadcast_i64x2(pairs, 0b0000_1100, load(first + 2));
        let pairs = _mm512_mask_broadcast_i64x2(pairs, 0b0011_0000, load(first + 4));
        _mm512_mask_broadcast_i64x2(pairs, 0b1100_0000, load(first + 6))
    };
    let (even, odd) = (four(0), four(1));
    (_mm512_unpacklo_epi64(even, odd), _mm512_unpackhi_epi64(even, odd))
}

/// A stored coordinate of eight points.
#[inline]
pub(crate) fn stored(points: &[&[u64]; 8], at: usize) -> Element {
    let ((a, b), (c, d)) = (pair(points, at), pair(points, at + 2));
    let ((e, f), (g, h)) = (pair(points, at + 4), pair(points, at + 6));
    [a, b, c, d, e, f, g, h]
}

#[inline]
fn words(points: &[&[u64]; 8], at: usize) -> [Word; 6] {
    let ((a, b), (c, d), (e, f)) = (pair(points, at), pair(points, at + 2), pair(points, at + 4));
    [a, b, c, d, e, f]
}

/// A packed coordinate of eight points as it is: `v·2^384 = (v·2^-32)·R`, normalized.
#[inline]
pub(crate) fn packed_as_it_is(points: &[&[u64]; 8], at: usize) -> Element {
    let [a, b, c, d, e, f] = words(points, at);
    [
        low(a),
        low(_mm512_shrdi_epi64::<52>(a, b)),
        low(_mm512_shrdi_epi64::<40>(b, c)),
        low(_mm512_shrdi_epi64::<28>(c, d)),
        low(_mm512_shrdi_epi64::<16>(d, e)),
        low(_mm512_srli_epi64::<4>(e)),
        low(_mm512_shrdi_epi64::<56>(e, f)),
        _mm512_srli_epi64::<44>(f),
    ]
}

/// A packed coordinate of eight points divided by 2^16: `v·2^384 → (v·2^-48)·R`. Limbs below 2^54, value below `p` and
/// a little.
#[inline]
pub(crate) fn packed_shifted(points: &[&[u64]; 8], at: usize) -> Element {
    let [a, b, c, d, e, f] = words(points, at);
    // v·2^36, whose lowest limb Montgomery reduction clears: v·2^36/2^52.
    divide_by_2_to_52([
        low(_mm512_slli_epi64::<36>(a)),
        low(_mm512_shrdi_epi64::<16>(a, b)),
        low(_mm512_srli_epi64::<4>(b)),
        low(_mm512_shrdi_epi64::<56>(b, c)),
        low(_mm512_shrdi_epi64::<44>(c, d)),
        low(_mm512_shrdi_epi64::<32>(d, e)),
        low(_mm512_shrdi_epi64::<20>(e, f)),
        low(_mm512_srli_epi64::<8>(f)),
        _mm512_srli_epi64::<60>(f),
    ])
}

#[inline]
fn divide_by_2_to_52(mut t: [Word; 9]) -> Element {
    clear!(t[0], [0 1 2 3 4 5 6 7]);
    let [_, a, b, c, d, e, f, g, h] = t;
    [a, b, c, d, e, f, g, h]
}

/// `−v` in the lanes of the mask, limb for limb.
#[inline]
pub(crate) fn negate(value: &Element, mask: u8) -> Element {
    let mut out = *value;
    for limb in &mut out {
        *limb = _mm512_mask_sub_epi64(*limb, mask, zero(), *limb);
    }
    out
}

/// `b` in the lanes of the mask, `a` in the others.
#[inline]
pub(crate) fn select(mask: u8, a: &Element, b: &Element) -> Element {
    let mut out = *a;
    for (limb, other) in out.iter_mut().zip(b) {
        *limb = _mm512_mask_mov_epi64(*limb, mask, *other);
    }
    out
}

/// The value of lane `l + by` in lane `l`.
#[inline]
pub(crate) fn rotate_by_one(value: &Element) -> Element {
    let mut out = *value;
    for limb in &mut out {
        *limb = _mm512_alignr_epi64::<1>(*limb, *limb);
    }
    out
}
#[inline]
pub(crate) fn rotate_by_two(value: &Element) -> Element {
    let mut out = *value;
    for limb in &mut out {
        *limb = _mm512_alignr_epi64::<2>(*limb, *limb);
    }
    out
}
#[inline]
pub(crate) fn rotate_by_four(value: &Element) -> Element {
    let mut out = *value;
    for limb in &mut out {
        *limb = _mm512_alignr_epi64::<4>(*limb, *limb);
    }
    out
}

/// The signs of eight entries as a mask.
#[inline]
pub(crate) fn signs(entries: &[u32; 8]) -> u8 {
    // SAFETY: eight words of 32 bits are 256 bits.
    _mm256_movepi32_mask(unsafe { _mm256_loadu_si256(entries.as_ptr().cast()) })
}
}

/// One lane of an element.
pub(crate) fn lane(value: &Element, lane: usize) -> [u64; 8] {
    std::array::from_fn(|j| lanes(value[j])[lane])
}

/// Puts a value into one lane.
pub(crate) fn set_lane(value: &mut Element, lane: usize, limbs: &[u64; 8]) {
    for (word, limb) in value.iter_mut().zip(limbs) {
        let mut all = lanes(*word);
        all[lane] = *limb;
        *word = from_lanes(all);
    }
}

/// Asks for a point's memory before it is needed.
#[inline(always)]
pub(crate) fn prefetch<const HINT: i32>(point: &[u64]) {
    let start: *const u64 = point.as_ptr();
    for word in (0..point.len()).step_by(8).chain([point.len() - 1]) {
        // SAFETY: a prefetch reads nothing that the program sees, and the address is inside the slice.
        unsafe { _mm_prefetch::<HINT>(start.add(word).cast()) };
    }
}
