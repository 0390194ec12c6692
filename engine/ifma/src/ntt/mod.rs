//! Number-theoretic transforms over the scalar field, and the quotient of a proof.
//!
//! Of `n = 8·m` elements, lane `l` of vector `b` holds number `l·m + b`. A transform is then three levels across the
//! lanes and transforms of `m` elements inside each lane, all lanes with the same factors, two levels at a time. As in
//! `proofkeep-groth16`, interpolation goes from natural to bit-reversed order and evaluation back.

mod quotient;
mod transform;

pub use quotient::{Basis, Domain, quotient};

use crate::fr::PRIME;
use crate::fr::vector::{self, Element};
use crate::modulus::{self, MASK, power_of_two, to_limbs};
use crate::word::*;
use std::arch::x86_64::*;

/// A scalar as blst keeps it, `v·2^256 mod r`, canonical. As one of ours, with `R = 2^260`, that is `v·2^-4`.
pub type Words = [u64; 4];

vectorized! {
/// Eight scalars, as they are.
#[inline]
fn load(scalars: &[&[u64]; 8]) -> Element {
    let ((a, b), (c, d)) = (crate::lanes::pair(scalars, 0), crate::lanes::pair(scalars, 2));
    [
        low(a),
        low(_mm512_shrdi_epi64::<52>(a, b)),
        low(_mm512_shrdi_epi64::<40>(b, c)),
        low(_mm512_shrdi_epi64::<28>(c, d)),
        _mm512_srli_epi64::<16>(d),
    ]
}

/// Numbers `b`, `m + b`, … of a list.
#[inline]
fn load_strided(list: &[Words], b: usize) -> Element {
    let m = list.len() / 8;
    load(&std::array::from_fn(|lane| &list[lane * m + b][..]))
}

/// Eight canonical scalars of a value below `4r`.
#[inline]
fn store(value: &Element) -> [Words; 8] {
    let [a, b, c, d, e] = vector::shrink(value);
    let words = [
        _mm512_or_si512(a, _mm512_slli_epi64::<52>(b)),
        _mm512_or_si512(_mm512_srli_epi64::<12>(b), _mm512_slli_epi64::<40>(c)),
        _mm512_or_si512(_mm512_srli_epi64::<24>(c), _mm512_slli_epi64::<28>(d)),
        _mm512_or_si512(_mm512_srli_epi64::<36>(d), _mm512_slli_epi64::<16>(e)),
    ]
    .map(lanes);
    std::array::from_fn(|lane| canonical(words.map(|word| word[lane])))
}
}

/// Less `r`, once, if it isn't below.
fn canonical(value: Words) -> Words {
    let mut reduced = [0; 4];
    let mut borrow = false;
    for ((out, word), r) in reduced.iter_mut().zip(value).zip(modulus::R) {
        let (difference, below) = word.overflowing_sub(r);
        let (difference, below_again) = difference.overflowing_sub(u64::from(borrow));
        (*out, borrow) = (difference, below || below_again);
    }
    if borrow { value } else { reduced }
}

/// The powers of a root of unity of order `m`, as our elements.
struct Roots {
    powers: Vec<[u64; 5]>,
}

impl Roots {
    /// From the first half of the powers as blst has them.
    fn new(ifma: crate::Ifma, half: &[Words]) -> Self {
        let mut powers = Vec::with_capacity(2 * half.len());
        for chunk in half.chunks(8) {
            let eight: [&[u64]; 8] = std::array::from_fn(|lane| &chunk[lane.min(chunk.len() - 1)][..]);
            powers.extend_from_slice(&ours(ifma, &eight)[..chunk.len()]);
        }
        // The second half is the negative of the first.
        for k in 0..half.len() {
            let mut borrow = 0;
            let mut negative = [0; 5];
            for ((out, limb), r) in negative.iter_mut().zip(powers[k]).zip(PRIME) {
                let difference = r.wrapping_sub(limb).wrapping_sub(borrow);
                (*out, borrow) = (difference & MASK, difference >> 63);
            }
            powers.push(negative);
        }
        Roots { powers }
    }
}

/// Eight of blst's scalars as canonical elements of ours.
fn ours(_: crate::Ifma, scalars: &[&[u64]; 8]) -> [[u64; 5]; 8] {
    const FACTOR: [u64; 5] = power_of_two(&PRIME, 264);
    let mut out = [ZERO; 5];
    // SAFETY: an `Ifma` is only made on a processor that has the instructions.
    let words = unsafe {
        vector::mul(&mut out, &load(scalars), &vector::broadcast(&FACTOR));
        store(&out)
    };
    words.map(|words| to_limbs(&words))
}
