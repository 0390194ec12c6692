//! The two groups by blst alone, for tests.

use std::fmt::Debug;

use blst::*;

use crate::group::{G1, G2, Group};

/// What the tests need of blst.
pub(crate) trait Slow: Group<Affine: Debug + PartialEq + Default> {
    fn multiple(scalar: &[u8; 32]) -> Self::Affine;
    fn neg(point: &Self::Affine) -> Self::Affine;
    fn affine(point: &Self::Point) -> Self::Affine;
    fn times(point: &Self::Affine, scalar: &[u8; 32]) -> Self::Point;
    /// `x` of the one and `y` of the other.
    fn mixed(x: &Self::Affine, y: &Self::Affine) -> Self::Affine;
    /// The point with one bit flipped in the lower word of `y`.
    fn spoilt(point: &Self::Affine, bit: u8) -> Self::Affine;
}

macro_rules! slow {
    ($name:ident, $affine:ident, $point:ident, $generator:ident, $mult:ident, $to_affine:ident, $from_affine:ident,
     $cneg:ident, $low:expr) => {
        // SAFETY for every call into blst: the pointers are to values that live through the call.
        impl Slow for $name {
            fn multiple(scalar: &[u8; 32]) -> $affine {
                let mut out = $point::default();
                unsafe { $mult(&mut out, $generator(), scalar.as_ptr(), 256) };
                Self::affine(&out)
            }
            fn neg(point: &$affine) -> $affine {
                let mut out = $point::default();
                unsafe {
                    $from_affine(&mut out, point);
                    $cneg(&mut out, true);
                }
                Self::affine(&out)
            }
            fn affine(point: &$point) -> $affine {
                let mut out = $affine::default();
                unsafe { $to_affine(&mut out, point) };
                out
            }
            fn times(point: &$affine, scalar: &[u8; 32]) -> $point {
                let (mut from, mut out) = ($point::default(), $point::default());
                unsafe {
                    $from_affine(&mut from, point);
                    $mult(&mut out, &from, scalar.as_ptr(), 256);
                }
                out
            }
            fn mixed(x: &$affine, y: &$affine) -> $affine {
                $affine { x: x.x, y: y.y }
            }
            fn spoilt(point: &$affine, bit: u8) -> $affine {
                let mut out = *point;
                let low: fn(&mut $affine) -> &mut u64 = $low;
                *low(&mut out) ^= 1 << (bit % 64);
                out
            }
        }
    };
}

slow!(
    G1,
    blst_p1_affine,
    blst_p1,
    blst_p1_generator,
    blst_p1_mult,
    blst_p1_to_affine,
    blst_p1_from_affine,
    blst_p1_cneg,
    |point| &mut point.y.l[0]
);
slow!(
    G2,
    blst_p2_affine,
    blst_p2,
    blst_p2_generator,
    blst_p2_mult,
    blst_p2_to_affine,
    blst_p2_from_affine,
    blst_p2_cneg,
    |point| &mut point.y.fp[1].l[0]
);
