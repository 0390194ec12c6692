//! The bounds that the arithmetic relies on, proven by running it on intervals.
//!
//! A normalized value's bound is that of its top limb: with `T` there, it is below `(T + 1)·2^364`, and the top limb
//! of `p` is 106,513, so that is fine enough.

use super::interval::Word;
use crate::fp::interval as fp;
use crate::fr::interval as fr;
use crate::modulus::MASK;
use crate::{fp as base, fr as scalar};

const P_TOP: i128 = base::PRIME[7] as i128;
const R_TOP: i128 = scalar::PRIME[4] as i128;

/// Every normalized value with a top limb up to `top`.
fn below<const N: usize>(top: i128) -> [Word; N] {
    let mut limbs = [Word::full(); N];
    limbs[N - 1] = Word::new(0, top);
    limbs
}

fn nothing<const N: usize>() -> [Word; N] {
    [super::interval::zero(); N]
}

/// Fails where a limb isn't normalized; gives the most that the top limb can be.
fn top<const N: usize>(value: &[Word; N]) -> i128 {
    for limb in &value[..N - 1] {
        assert!(limb.within(Word::full()), "not normalized: {limb:?}");
    }
    assert!(value[N - 1].least >= 0, "may be negative: {value:?}");
    value[N - 1].most
}

#[test]
fn products_of_the_base_field_stay_below_five_quarters_of_p_and_a_little() {
    let mut out = nothing();
    for bits in [17, 26, 34] {
        let input = below::<8>((1 << bits) - 1);
        fp::mul(&mut out, &input, &input);
        let product = top(&out);
        fp::square(&mut out, &input);
        assert_eq!(top(&out), product);
        fp::sum_of_squares(&mut out, &input, &input);
        let sum = top(&out);
        let little = 1i128 << (2 * bits).max(54) >> 52;
        assert!(product <= P_TOP * 5 / 4 + little + 2, "{bits}: {product}");
        assert!(sum <= P_TOP * 5 / 4 + 2 * little + 2, "{bits}: {sum}");
    }
}

#[test]
fn complex_products_stay_below_nine_quarters_of_p() {
    let mut out = [nothing::<8>(); 2];
    let input = [below::<8>((1 << 26) - 1); 2];
    // The real part's intervals forget that the two products are of one size, so the negative one counts in full.
    fp::mul_complex(&mut out, &input, &input);
    assert!(top(&out[0]) <= P_TOP * 9 / 4 + 16);
    assert!(out[1][7].most <= P_TOP * 5 / 4 + 16);
}

#[test]
fn products_of_the_scalar_field_stay_below_two_r_and_a_quarter() {
    let mut out = nothing();
    for times in [1, 4, 16, 32] {
        let input = below::<5>(times * R_TOP);
        let one = below::<5>(4 * R_TOP);
        fr::mul(&mut out, &input, &one);
        let product = (4 * times * R_TOP * R_TOP >> 52) + 2;
        assert!(top(&out) <= R_TOP * 9 / 4 + product, "{times}: {}", top(&out));
        fr::square(&mut out, &one);
        assert!(top(&out) <= R_TOP * 9 / 4 + (16 * R_TOP * R_TOP >> 52) + 2);
    }
}

#[test]
fn full_limbs_never_overflow() {
    let extreme = [Word::full(); 8];
    let mut out = nothing();
    fp::mul(&mut out, &extreme, &extreme);
    fp::square(&mut out, &extreme);
    fp::sum_of_squares(&mut out, &extreme, &extreme);
    let extreme = [Word::full(); 5];
    let mut out = nothing();
    fr::mul(&mut out, &extreme, &extreme);
    fr::square(&mut out, &extreme);
    assert_eq!(extreme[0].most, i128::from(MASK));
}
