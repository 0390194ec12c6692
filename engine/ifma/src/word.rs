//! Eight 64-bit lanes of a vector register, and the few instructions that the arithmetic is made of.

use std::arch::x86_64::*;

/// Eight lanes.
pub(crate) type Word = __m512i;

/// A zero for initial values outside of vector code.
// SAFETY: a vector of zero bits is a valid vector.
pub(crate) const ZERO: Word = unsafe { std::mem::zeroed() };

/// Functions that may use the instructions this crate is about; callers must have checked that they are there.
macro_rules! vectorized {
    ($($(#[$attribute:meta])* $visibility:vis fn $name:ident $arguments:tt $(-> $result:ty)? $body:block)*) => {
        $(
            $(#[$attribute])*
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma,avx512vbmi2,bmi2")]
            $visibility fn $name $arguments $(-> $result)? $body
        )*
    };
}
pub(crate) use vectorized;

/// Whether this processor has every instruction that [`vectorized`] names.
pub(crate) fn detected() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512ifma")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("bmi2")
}

vectorized! {
/// `acc +` the lower 52 bits of the product of the lower 52 bits.
#[inline]
pub(crate) fn lo(acc: Word, x: Word, y: Word) -> Word { _mm512_madd52lo_epu64(acc, x, y) }
/// `acc +` the upper 52 bits of that product.
#[inline]
pub(crate) fn hi(acc: Word, x: Word, y: Word) -> Word { _mm512_madd52hi_epu64(acc, x, y) }
#[inline]
pub(crate) fn add(x: Word, y: Word) -> Word { _mm512_add_epi64(x, y) }
#[inline]
pub(crate) fn sub(x: Word, y: Word) -> Word { _mm512_sub_epi64(x, y) }
/// What is above the lower 52 bits, with its sign.
#[inline]
pub(crate) fn carry(x: Word) -> Word { _mm512_srai_epi64::<52>(x) }
/// The lower 52 bits.
#[inline]
pub(crate) fn low(x: Word) -> Word { _mm512_and_si512(x, _mm512_set1_epi64(crate::modulus::MASK as i64)) }
#[inline]
pub(crate) fn splat(x: u64) -> Word { _mm512_set1_epi64(x as i64) }
#[inline]
pub(crate) fn zero() -> Word { _mm512_setzero_si512() }
/// The lanes that have this value.
#[inline]
pub(crate) fn equal(x: Word, value: u64) -> u8 { _mm512_cmpeq_epi64_mask(x, splat(value)) }
}

/// The lanes of a word.
pub(crate) fn lanes(word: Word) -> [u64; 8] {
    // SAFETY: both are 64 bytes of plain integers.
    unsafe { std::mem::transmute(word) }
}

/// A word of these lanes.
pub(crate) fn from_lanes(lanes: [u64; 8]) -> Word {
    // SAFETY: both are 64 bytes of plain integers.
    unsafe { std::mem::transmute(lanes) }
}
