//! The constants of the two fields in limbs of 52 bits, computed by the compiler from the two primes.
//!
//! A field element `v` is kept as `v·R mod p`, where `R = 2^(52·N)` for `N` limbs. `N` is one limb more than Montgomery
//! multiplication needs, so that sums and differences need not be reduced.

/// Bits of a limb: what `vpmadd52` multiplies.
pub(crate) const BITS: u32 = 52;
/// The bits of a full limb.
pub(crate) const MASK: u64 = (1 << BITS) - 1;

/// The prime of the base field of BLS12-381, little-endian.
pub(crate) const P: [u64; 6] = [
    0xb9fe_ffff_ffff_aaab,
    0x1eab_fffe_b153_ffff,
    0x6730_d2a0_f6b0_f624,
    0x6477_4b84_f385_12bf,
    0x4b1b_a7b6_434b_acd7,
    0x1a01_11ea_397f_e69a,
];

/// The prime of its scalar field.
pub(crate) const R: [u64; 4] = [
    0xffff_ffff_0000_0001,
    0x53bd_a402_fffe_5bfe,
    0x3339_d808_09a1_d805,
    0x73ed_a753_299d_7d48,
];

/// Words of 64 bits as limbs of 52.
pub(crate) const fn to_limbs<const N: usize>(words: &[u64]) -> [u64; N] {
    let mut limbs = [0; N];
    let mut j = 0;
    while j < N {
        let (word, shift) = (j * BITS as usize / 64, (j * BITS as usize % 64) as u32);
        if word < words.len() {
            limbs[j] = words[word] >> shift;
            if shift > 64 - BITS && word + 1 < words.len() {
                limbs[j] |= words[word + 1] << (64 - shift);
            }
            limbs[j] &= MASK;
        }
        j += 1;
    }
    limbs
}

/// Limbs of 52 bits as words of 64; the limbs are below 2^52 and the value fits.
pub(crate) const fn to_words<const N: usize>(limbs: &[u64]) -> [u64; N] {
    let mut words = [0; N];
    let mut j = 0;
    while j < limbs.len() {
        let (word, shift) = (j * BITS as usize / 64, (j * BITS as usize % 64) as u32);
        if word < N {
            words[word] |= limbs[j] << shift;
            if shift > 64 - BITS && word + 1 < N {
                words[word + 1] |= limbs[j] >> (64 - shift);
            }
        }
        j += 1;
    }
    words
}

/// `a − b`, and whether it borrowed.
const fn minus<const N: usize>(a: &[u64; N], b: &[u64; N]) -> ([u64; N], bool) {
    let mut out = [0; N];
    let mut borrow = 0;
    let mut j = 0;
    while j < N {
        let difference = a[j].wrapping_sub(b[j]).wrapping_sub(borrow);
        out[j] = difference & MASK;
        borrow = difference >> 63;
        j += 1;
    }
    (out, borrow != 0)
}

/// `times·a` in limbs; the product fits.
pub(crate) const fn multiple<const N: usize>(a: &[u64; N], times: u64) -> [u64; N] {
    let mut out = [0; N];
    let mut carry = 0u128;
    let mut j = 0;
    while j < N {
        let product = a[j] as u128 * times as u128 + carry;
        out[j] = product as u64 & MASK;
        carry = product >> BITS;
        j += 1;
    }
    assert!(carry == 0, "the multiple has too many limbs");
    out
}

/// `2^exponent mod p`, also for negative exponents.
pub(crate) const fn power_of_two<const N: usize>(p: &[u64; N], exponent: i32) -> [u64; N] {
    let mut x = [0; N];
    x[0] = 1;
    let mut k = 0;
    while k < exponent {
        let doubled = multiple(&x, 2);
        let (reduced, borrowed) = minus(&doubled, p);
        x = if borrowed { doubled } else { reduced };
        k += 1;
    }
    while k > exponent {
        // An odd x is made even by adding p, which is odd.
        let mut j = 0;
        let odd = x[0] & 1 == 1;
        let mut carry = 0;
        while j < N {
            let sum = x[j] + if odd { p[j] } else { 0 } + carry;
            x[j] = sum & MASK;
            carry = sum >> BITS;
            j += 1;
        }
        j = 0;
        while j < N {
            let above = if j + 1 < N { x[j + 1] & 1 } else { 0 };
            x[j] = x[j] >> 1 | above << (BITS - 1);
            j += 1;
        }
        k -= 1;
    }
    x
}

/// `−1/p mod 2^52`.
pub(crate) const fn negative_inverse(p0: u64) -> u64 {
    // Newton's iteration doubles the number of right bits; p0 itself is right to three.
    let mut inverse = p0;
    let mut k = 0;
    while k < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(p0.wrapping_mul(inverse)));
        k += 1;
    }
    inverse.wrapping_neg() & MASK
}

/// `2^(52·N) − p`: adding it `q` times and dropping what overflows subtracts `q·p`.
pub(crate) const fn complement<const N: usize>(p: &[u64; N]) -> [u64; N] {
    minus(&[0; N], p).0
}

/// `⌊2^(52·N) / p⌋`, by long division. Estimates how often `p` goes into a value from the value's top limb.
pub(crate) const fn reciprocal<const N: usize>(p: &[u64; N]) -> u64 {
    let mut rest = [0; N];
    rest[0] = 1;
    let mut quotient = 0;
    let mut k = 0;
    while k < BITS as usize * N {
        rest = multiple(&rest, 2);
        let (reduced, borrowed) = minus(&rest, p);
        quotient <<= 1;
        if !borrowed {
            rest = reduced;
            quotient |= 1;
        }
        k += 1;
    }
    quotient
}
