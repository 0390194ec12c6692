//! The bounds that the arithmetic relies on, proven by running it on intervals.
//!
//! A normalized value's bound is that of its top limb: with `T` there, it is below `(T + 1)·2^364`, and the top limb
//! of `p` is 106,513, so that is fine enough.

use super::interval::{self, Word};
use crate::fp::interval as fp;
use crate::fr::interval as fr;
use crate::group::bounds::{LEVELS, X, X_THRICE, X_TWICE, Y, Y_TWICE, x_bound, y_bound};
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
    [interval::zero(); N]
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
        let product = ((4 * times * R_TOP * R_TOP) >> 52) + 2;
        assert!(top(&out) <= R_TOP * 9 / 4 + product, "{times}: {}", top(&out));
        fr::square(&mut out, &one);
        assert!(top(&out) <= R_TOP * 9 / 4 + ((16 * R_TOP * R_TOP) >> 52) + 2);
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

/// A point as it enters an addition at some level: `x` normalized, `y` perhaps loose and negated. A point from memory
/// has a `y` of at most `p·(1 + 2^-16)`.
struct Entering {
    x: [Word; 8],
    y: [Word; 8],
}

fn entering(level: usize) -> Entering {
    // A few units of the top limb less than the bound, for the borrows of the limbs below.
    let times = |bound: u64| i128::from(bound) * P_TOP - 16;
    let mut y = [Word::new(-(1 << 54), 1 << 54); 8];
    y[7] = Word::new(-(P_TOP + 16), times(y_bound(level)));
    Entering {
        x: below(times(x_bound(level))),
        y,
    }
}

/// One level of affine additions as `group::batch` does them, on all values at once: nothing overflows, nothing becomes
/// negative, and the sum is within the bounds of the next level.
#[test]
fn no_level_of_a_tree_of_additions_leaves_its_bounds() {
    for level in 0..LEVELS {
        let (a, b) = (entering(level), entering(level));
        let dx = fp::difference(&b.x, &a.x, &X[level]);
        let dy = fp::difference(&b.y, &a.y, &Y_TWICE[level]);
        top(&dx);
        top(&dy);
        // G1: dx is a factor of the product that is inverted, whose inverse is below 5p/4; dy becomes the slope.
        let product = below::<8>(P_TOP * 5 / 4 + 64);
        let mut slope = nothing();
        fp::mul(&mut slope, &dx, &product);
        assert!(top(&slope) <= P_TOP * 5 / 4 + 64);
        fp::mul(&mut slope, &dy, &product);
        let mut square = nothing();
        fp::square(&mut square, &slope);
        check_sum(level, &a, &b, &dx, &square, |down| {
            let mut out = nothing();
            fp::mul(&mut out, &slope, down);
            out
        });
        // G2: the norm and the quotient by it, the slope and its square.
        let mut norm = nothing();
        fp::sum_of_squares(&mut norm, &dx, &dx);
        assert!(top(&norm) <= P_TOP * 5 / 4 + 64);
        let mut factor = nothing();
        fp::mul(&mut factor, &dx, &product);
        top(&fp::difference(&nothing(), &factor, &base::FOUR_TIMES));
        let factor = below::<8>(4 * P_TOP + 4);
        let mut slope = [nothing(); 2];
        fp::mul_complex(&mut slope, &[dy, dy], &[factor, factor]);
        // The imaginary part is no negative number, which intervals can't know: a₀b₁ + a₁b₀.
        slope[1][7].least = 0;
        let mut square = [nothing(); 2];
        fp::square_complex(&mut square, &slope);
        for part in &square {
            check_sum(level, &a, &b, &dx, part, |down| {
                let mut out = [nothing(); 2];
                fp::mul_complex(&mut out, &slope, &[*down, *down]);
                out[0]
            });
        }
    }
}

fn check_sum(
    level: usize,
    a: &Entering,
    b: &Entering,
    dx: &[Word; 8],
    square: &[Word; 8],
    times_slope: impl Fn(&[Word; 8]) -> [Word; 8],
) {
    let next = entering(level + 1);
    // Both ways give the same number; only from the points themselves intervals know how small it is.
    fp::less_twice(square, &a.x, dx, &X_THRICE[level]);
    let x = fp::less_both(square, &a.x, &b.x, &X_TWICE[level]);
    assert!(top(&x) <= top(&next.x), "level {level}");
    let down = fp::difference(&a.x, &x, &X[level + 1]);
    top(&down);
    let y = fp::difference(&times_slope(&down), &a.y, &Y[level]);
    assert!(top(&y) <= next.y[7].most, "level {level}");
}

/// The butterflies of `ntt::transform`, on values below `3r`: nothing overflows, nothing becomes negative, and what
/// comes out is below `3r` again.
#[test]
fn butterflies_stay_within_their_bounds() {
    use crate::fr::{SIX_TIMES, THREE_TIMES};
    let value = below::<5>(3 * R_TOP - 4);
    let root = below::<5>(R_TOP);
    let times_root = |x: &[Word; 5]| {
        let mut out = nothing();
        fr::mul(&mut out, x, &root);
        assert!(top(&out) < 3 * R_TOP - 4);
        out
    };
    let two = fr::sum(&value, &value);
    let four = fr::sum(&two, &two);
    let difference = fr::difference(&value, &value, &THREE_TIMES);
    let turned = times_root(&difference);
    times_root(&fr::difference(&two, &two, &SIX_TIMES));
    times_root(&fr::sum(&difference, &turned));
    times_root(&fr::difference(&difference, &turned, &THREE_TIMES));
    // What is shrunk is within what `shrink` takes: `check::fields` shows that it leaves r·(1 + T/2^52) and a little.
    for sum in [
        &four,
        &fr::sum(&difference, &value),
        &fr::difference(&two, &two, &SIX_TIMES),
    ] {
        assert!(R_TOP + R_TOP * top(sum) / (1 << 52) + 4 < 2 * R_TOP);
    }
}

/// The curve's equation as `group::batch` looks at it: nothing overflows, nothing becomes negative, and what is held against
/// `0` and `p` is below `2p`.
#[test]
fn the_equation_of_the_curve_stays_within_its_bounds() {
    let x = below::<8>(P_TOP);
    // As it comes from memory: of limbs below 2^54, not normalized.
    let mut loose = [Word::new(0, 1 << 54); 8];
    loose[7] = Word::new(0, P_TOP + 16);
    let y = fp::difference(&loose, &nothing(), &[0; 8]);
    top(&y);
    let constant = below::<8>(P_TOP);
    let held = |y_square: &[Word; 8], cube: &[Word; 8]| {
        let difference = fp::less_both(y_square, cube, &constant, &base::FOUR_TIMES);
        // What `shrink` leaves: `check::fields` has the bound.
        assert!(P_TOP + P_TOP * top(&difference) / (1 << 52) + 4 < 2 * P_TOP);
    };
    let (mut square, mut cube, mut y_square) = (nothing(), nothing(), nothing());
    fp::square(&mut square, &x);
    fp::mul(&mut cube, &square, &x);
    fp::square(&mut y_square, &y);
    held(&y_square, &cube);
    let (mut square, mut cube, mut y_square) = ([nothing(); 2], [nothing(); 2], [nothing(); 2]);
    fp::square_complex(&mut square, &[x, x]);
    fp::square_complex(&mut y_square, &[y, y]);
    fp::mul_complex(&mut cube, &square, &[x, x]);
    // The imaginary part is no negative number, which intervals can't know.
    cube[1][7].least = 0;
    for part in 0..2 {
        held(&y_square[part], &cube[part]);
    }
}
