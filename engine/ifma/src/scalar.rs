//! Single field elements between the lanes' form and blst's.

use blst::{blst_fp, blst_fp_inverse, blst_fp_mul};

use crate::fp::PRIME;
use crate::modulus::{P, power_of_two, to_limbs, to_words};

/// Limbs of a value below `2p`, normalized, as canonical words.
pub(crate) fn canonical(limbs: &[u64; 8]) -> [u64; 6] {
    let words: [u64; 6] = to_words(limbs);
    let mut reduced = [0; 6];
    let mut borrow = false;
    for ((out, word), p) in reduced.iter_mut().zip(words).zip(P) {
        let (difference, below) = word.overflowing_sub(p);
        let (difference, below_again) = difference.overflowing_sub(u64::from(borrow));
        (*out, borrow) = (difference, below || below_again);
    }
    if borrow { words } else { reduced }
}

pub(crate) fn product(a: &blst_fp, b: &blst_fp) -> blst_fp {
    let mut out = blst_fp::default();
    // SAFETY: the pointers are to values that live through the call.
    unsafe { blst_fp_mul(&mut out, a, b) };
    out
}

/// The inverse of `v·2^416`, as `v^-1·2^416`; `None` for zero. The limbs are normalized, below `2p`.
pub(crate) fn inverse(limbs: &[u64; 8]) -> Option<[u64; 8]> {
    const SHIFT: [u64; 6] = to_words(&power_of_two(&PRIME, 448));
    let value = canonical(limbs);
    if value == [0; 6] {
        return None;
    }
    let mut inverse = blst_fp::default();
    // SAFETY: as above.
    unsafe { blst_fp_inverse(&mut inverse, &blst_fp { l: value }) };
    // To blst the words are v·2^32, whose inverse has a 2^-32; another 2^32 is missing to our form.
    Some(to_limbs(&product(&inverse, &blst_fp { l: SHIFT }).l))
}
