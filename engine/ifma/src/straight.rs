//! Straight-line field arithmetic, written once for any kind of word.
//!
//! [`field_arithmetic!`] makes the functions of a field of `N` limbs in the module where it is called, from a type
//! `Word` and the functions `lo hi add sub carry low splat zero` that are in scope there. It is called three times for
//! each field: with vectors of eight lanes (the product), with plain integers (the same code where there is no IFMA),
//! and with intervals (a proof that no limb overflows, see `bounds`). No loop is left to the compiler: from loops it
//! makes code that takes nearly twice as long, since it keeps the limbs in memory.
//!
//! Multiplication is Montgomery's, with one change: the lower limbs are not cleared one by one with multiples of `p`,
//! which needs a product to find each multiple. Instead the limb `t_i` is taken away and `t_i·(2^-52 mod p)` is added
//! one limb higher ("folding"). Only the last limb is cleared in Montgomery's way. The result is below `R^-1·a·b + 2p`.
//!
//! *Normalized* limbs are in `0..2^52`, the top one excepted, which takes the rest of a value. Inputs of products are
//! normalized; sums and differences before normalization are *loose*: any signed 64-bit limbs.

/// `t[i..] += a·b` for all limbs of `a` and one word `b`.
macro_rules! add_row {
    ($t:ident[$i:expr], $a:expr, $b:expr, [$($j:literal)*]) => {
        let factor = $b;
        $( $t[$i + $j] = lo($t[$i + $j], $a[$j], factor); )*
        $( $t[$i + $j + 1] = hi($t[$i + $j + 1], $a[$j], factor); )*
    };
}

/// The same for a constant.
macro_rules! add_constant_row {
    ($t:ident[$i:expr], $a:expr, $b:expr, [$($j:literal)*]) => {
        let factor = $b;
        $( $t[$i + $j] = lo($t[$i + $j], splat($a[$j]), factor); )*
        $( $t[$i + $j + 1] = hi($t[$i + $j + 1], splat($a[$j]), factor); )*
    };
}

/// Takes limb `i` away and adds what it stands for one limb higher.
macro_rules! fold {
    ($t:ident[$i:expr], $limbs:tt) => {
        $t[$i + 1] = add($t[$i + 1], carry($t[$i]));
        add_constant_row!($t[$i + 1], FOLD, $t[$i], $limbs);
    };
}

/// Clears the last of the lower limbs by adding a multiple of `p`.
macro_rules! clear {
    ($t:ident[$i:expr], $limbs:tt) => {
        let multiple = lo(zero(), $t[$i], splat(NEGATIVE_INVERSE));
        add_constant_row!($t[$i], PRIME, multiple, $limbs);
        $t[$i + 1] = add($t[$i + 1], carry($t[$i]));
    };
}

/// Carries every limb into the next.
macro_rules! normalized {
    ($t:expr, [$($j:literal)*]) => {{
        let mut limbs = $t;
        $(
            limbs[$j + 1] = add(limbs[$j + 1], carry(limbs[$j]));
            limbs[$j] = low(limbs[$j]);
        )*
        limbs
    }};
}

/// A field's arithmetic. `limbs` counts from 0 to N − 1, `lower` to N − 2, `last` is N − 1, `wide` counts to 2N − 1,
/// `upper` from N to 2N − 1, and `pairs` has for each limb the limbs after it.
macro_rules! field_arithmetic {
    (
        attributes: { $(#[$attribute:meta])* },
        limbs: $limbs:tt = [$($j:literal)*],
        lower: $lower:tt = [$($i:literal)*],
        last: $last:literal,
        wide: [$($w:literal)*],
        upper: [$($u:literal)*],
        pairs: [$($p:literal $after:tt)*],
    ) => {
        const N: usize = $last + 1;
        /// A field element for each lane.
        pub(crate) type Element = [Word; N];

        /// `a·b/R`. Inputs are normalized; so is the output.
        $(#[$attribute])*
        #[inline(never)]
        #[allow(dead_code, reason = "a field needs not all of it")]
        pub(crate) fn mul(out: &mut Element, a: &Element, b: &Element) {
            let a = *a;
            let mut t = [zero(); 2 * N];
            $(
                add_row!(t[$i], a, b[$i], $limbs);
                fold!(t[$i], $limbs);
            )*
            add_row!(t[$last], a, b[$last], $limbs);
            clear!(t[$last], $limbs);
            *out = normalized!([$(t[$u]),*], $lower);
        }

        /// `a²/R`.
        $(#[$attribute])*
        #[inline(never)]
        #[allow(dead_code, reason = "a field needs not all of it")]
        pub(crate) fn square(out: &mut Element, a: &Element) {
            let a = *a;
            let mut t = wide_square!(a, [$($j)*], [$($w)*], [$($p $after)*]);
            $( fold!(t[$i], $limbs); )*
            clear!(t[$last], $limbs);
            *out = normalized!([$(t[$u]),*], $lower);
        }

        /// `(a² + b²)/R`.
        $(#[$attribute])*
        #[inline(never)]
        #[allow(dead_code, reason = "a field needs not all of it")]
        pub(crate) fn sum_of_squares(out: &mut Element, a: &Element, b: &Element) {
            let mut t = wide_square!(a, [$($j)*], [$($w)*], [$($p $after)*]);
            let other = wide_square!(b, [$($j)*], [$($w)*], [$($p $after)*]);
            $( t[$w] = add(t[$w], other[$w]); )*
            $( fold!(t[$i], $limbs); )*
            clear!(t[$last], $limbs);
            *out = normalized!([$(t[$u]),*], $lower);
        }

        /// `(a₀ + a₁u)·(b₀ + b₁u)/R` with `u² = −1`, by Karatsuba's three products and one reduction each.
        $(#[$attribute])*
        #[inline(never)]
        #[allow(dead_code, reason = "a field needs not all of it")]
        pub(crate) fn mul_complex(out: &mut [Element; 2], a: &[Element; 2], b: &[Element; 2]) {
            let sum_a = normalized!([$(add(a[0][$j], a[1][$j])),*], $lower);
            let sum_b = normalized!([$(add(b[0][$j], b[1][$j])),*], $lower);
            let mut low_product = [zero(); 2 * N];
            $( add_row!(low_product[$j], a[0], b[0][$j], $limbs); )*
            let mut high_product = [zero(); 2 * N];
            $( add_row!(high_product[$j], a[1], b[1][$j], $limbs); )*
            let mut t = [zero(); 2 * N];
            $( add_row!(t[$j], sum_a, sum_b[$j], $limbs); )*
            $( t[$w] = sub(t[$w], add(low_product[$w], high_product[$w])); )*
            $( low_product[$w] = sub(low_product[$w], high_product[$w]); )*
            $( fold!(t[$i], $limbs); )*
            clear!(t[$last], $limbs);
            out[1] = normalized!([$(t[$u]),*], $lower);
            let mut t = low_product;
            $( fold!(t[$i], $limbs); )*
            clear!(t[$last], $limbs);
            // a₀b₀ − a₁b₁ may be negative, by less than p.
            let t = [$(t[$u]),*];
            out[0] = normalized!([$(add(t[$j], splat(PRIME[$j]))),*], $lower);
        }

        /// `(a₀ + a₁u)²/R`, for values below `4p`.
        $(#[$attribute])*
        #[inline]
        #[allow(dead_code, reason = "a field needs not all of it")]
        pub(crate) fn square_complex(out: &mut [Element; 2], a: &[Element; 2]) {
            mul(&mut out[0], &sum(&a[0], &a[1]), &difference(&a[0], &a[1], &FOUR_TIMES));
            mul(&mut out[1], &sum(&a[0], &a[0]), &a[1]);
        }

        /// `a + b`, normalized.
        $(#[$attribute])*
        #[inline]
        #[allow(dead_code, reason = "a field needs not all of it")]
        pub(crate) fn sum(a: &Element, b: &Element) -> Element {
            normalized!([$(add(a[$j], b[$j])),*], $lower)
        }

        /// `a − b + offset`, normalized, for loose `a` and `b`; the value must not be negative.
        $(#[$attribute])*
        #[inline]
        #[allow(dead_code, reason = "a field needs not all of it")]
        pub(crate) fn difference(a: &Element, b: &Element, offset: &[u64; N]) -> Element {
            normalized!([$(add(sub(a[$j], b[$j]), splat(offset[$j]))),*], $lower)
        }

        /// `a − b − c + offset`, normalized, for loose inputs; the value must not be negative.
        $(#[$attribute])*
        #[inline]
        #[allow(dead_code, reason = "a field needs not all of it")]
        pub(crate) fn less_both(a: &Element, b: &Element, c: &Element, offset: &[u64; N]) -> Element {
            normalized!(
                [$(add(sub(a[$j], add(b[$j], c[$j])), splat(offset[$j]))),*],
                $lower
            )
        }

        /// `a − 2b − c + offset`, likewise.
        $(#[$attribute])*
        #[inline]
        #[allow(dead_code, reason = "a field needs not all of it")]
        pub(crate) fn less_twice(a: &Element, b: &Element, c: &Element, offset: &[u64; N]) -> Element {
            normalized!(
                [$(add(sub(a[$j], add(add(b[$j], b[$j]), c[$j])), splat(offset[$j]))),*],
                $lower
            )
        }

        /// The same value less a multiple of `p`: below `p` and a little. The input is normalized.
        $(#[$attribute])*
        #[inline]
        #[allow(dead_code, reason = "a field needs not all of it")]
        pub(crate) fn shrink(a: &Element) -> Element {
            // The estimate is the true quotient or one less: the top limb leaves out less than 2^(52·(N−1)).
            let quotient = hi(zero(), a[$last], splat(RECIPROCAL));
            let mut t = [zero(); N + 1];
            $( t[$j] = a[$j]; )*
            add_constant_row!(t[0], COMPLEMENT, quotient, $limbs);
            let mut t = normalized!([$(t[$j]),*], $lower);
            t[$last] = low(t[$last]);
            t
        }

        /// One value in all lanes.
        $(#[$attribute])*
        #[inline]
        #[allow(dead_code, reason = "a field needs not all of it")]
        pub(crate) fn broadcast(limbs: &[u64; N]) -> Element {
            [$(splat(limbs[$j])),*]
        }
    };
}

/// All products of limbs of `a` with limbs of `a`: those of different limbs once, then doubled.
macro_rules! wide_square {
    ($a:expr, [$($j:literal)*], [$($w:literal)*], [$($p:literal $after:tt)*]) => {{
        let a = $a;
        let mut t = [zero(); 2 * N];
        $( add_row!(t[$p], a, a[$p], $after); )*
        $( t[$w] = add(t[$w], t[$w]); )*
        $(
            t[2 * $j] = lo(t[2 * $j], a[$j], a[$j]);
            t[2 * $j + 1] = hi(t[2 * $j + 1], a[$j], a[$j]);
        )*
        t
    }};
}

/// The arithmetic of the base field: eight limbs.
macro_rules! base_field {
    ({ $(#[$attribute:meta])* }) => {
        field_arithmetic! {
            attributes: { $(#[$attribute])* },
            limbs: [0 1 2 3 4 5 6 7] = [0 1 2 3 4 5 6 7],
            lower: [0 1 2 3 4 5 6] = [0 1 2 3 4 5 6],
            last: 7,
            wide: [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15],
            upper: [8 9 10 11 12 13 14 15],
            pairs: [
                0 [1 2 3 4 5 6 7] 1 [2 3 4 5 6 7] 2 [3 4 5 6 7] 3 [4 5 6 7] 4 [5 6 7] 5 [6 7] 6 [7]
            ],
        }
    };
}

/// The arithmetic of the scalar field: five limbs.
macro_rules! scalar_field {
    ({ $(#[$attribute:meta])* }) => {
        field_arithmetic! {
            attributes: { $(#[$attribute])* },
            limbs: [0 1 2 3 4] = [0 1 2 3 4],
            lower: [0 1 2 3] = [0 1 2 3],
            last: 4,
            wide: [0 1 2 3 4 5 6 7 8 9],
            upper: [5 6 7 8 9],
            pairs: [0 [1 2 3 4] 1 [2 3 4] 2 [3 4] 3 [4]],
        }
    };
}
