//! The two groups: sums of many points, eight at a time.

mod batch;
pub(crate) mod bounds;
mod coordinate;
pub(crate) mod sum;

use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1};

use blst::*;

use crate::Ifma;
use crate::fp::PRIME;
use crate::lanes::{PACKED, STORED, prefetch};
use crate::modulus::{power_of_two, to_words};
use crate::scalar::{canonical, product};
pub(crate) use batch::Job;

/// The sign of an entry; the rest is the index of a point.
pub const NEGATIVE: u32 = 1 << 31;

/// Where leaves are read: points as blst keeps them, or points that we stored.
pub enum Source<'a, P, S> {
    Packed(&'a [P]),
    Stored(&'a [S]),
}

impl<P: AsRef<[u64]>, S: AsRef<[u64]>> Source<'_, P, S> {
    /// The words of the point that an entry names.
    #[inline(always)]
    fn words(&self, entry: u32) -> &[u64] {
        match self {
            Source::Packed(points) => points[(entry & !NEGATIVE) as usize].as_ref(),
            Source::Stored(points) => points[(entry & !NEGATIVE) as usize].as_ref(),
        }
    }

    /// Asks for a point's memory long before it is needed.
    #[inline(always)]
    fn prefetch(&self, entry: u32) {
        prefetch::<_MM_HINT_T1>(self.words(entry));
    }

    /// Asks for it shortly before.
    #[inline(always)]
    fn fetch(&self, entry: u32) {
        prefetch::<_MM_HINT_T0>(self.words(entry));
    }
}

/// [`G1`] or [`G2`].
pub trait Group: Copy + Send + Sync + 'static {
    /// A point as blst keeps it, `x, y`; the identity is all zero.
    type Affine: Copy + Default + Send + Sync;
    /// A point in Jacobian coordinates.
    type Point: Copy + Default + Send + Sync;
    #[doc(hidden)]
    type Packed: AsRef<[u64]> + Send + Sync;
    #[doc(hidden)]
    type Stored: Copy + AsRef<[u64]> + Send + Sync;
    #[doc(hidden)]
    type Row: Copy + Send;
    #[doc(hidden)]
    type Slot: Copy + Send;
    #[doc(hidden)]
    type Inner: Sums<Self>;

    /// `a + b`.
    fn add(a: &Self::Point, b: &Self::Point) -> Self::Point;
    /// `a + b`.
    fn add_affine(a: &Self::Point, b: &Self::Affine) -> Self::Point;
    /// `2a`.
    fn double(a: &Self::Point) -> Self::Point;
    /// Points seen as words.
    #[doc(hidden)]
    fn packed(points: &[Self::Affine]) -> &[Self::Packed];
}

/// The vector code of a group.
#[doc(hidden)]
pub trait Sums<G: Group> {
    const BLANK: G::Row;
    const EMPTY: G::Slot;
    const NOWHERE: G::Stored;

    fn add(
        ifma: Ifma,
        jobs: &mut [Job],
        source: &Source<'_, G::Packed, G::Stored>,
        leaves: &[u32],
        rows: &mut [G::Row],
        slots: &mut [G::Slot],
        upcoming: &[u32],
    );
    fn store(
        ifma: Ifma,
        source: &Source<'_, G::Packed, G::Stored>,
        leaves: &[u32],
        rows: &[G::Row],
        row: (u32, usize),
        to: &mut dyn FnMut(usize, G::Stored),
    );
    /// The lanes whose points lie on the curve.
    fn satisfied(ifma: Ifma, points: &[&[u64]; 8]) -> u8;
    /// A stored point as blst keeps it.
    fn unpack(stored: &G::Stored) -> G::Affine;
}

/// A stored coordinate in blst's form: see [`crate::lanes`] for the factors.
fn x_of(limbs: &[u64]) -> blst_fp {
    let limbs: &[u64; STORED] = &limbs.as_chunks().0[0];
    blst_fp { l: canonical(limbs) }
}

fn y_of(limbs: &[u64]) -> blst_fp {
    const SHIFT: [u64; PACKED] = to_words(&power_of_two(&PRIME, 384 + 16));
    product(&x_of(limbs), &blst_fp { l: SHIFT })
}

fn fp2_of(limbs: &[u64], of: fn(&[u64]) -> blst_fp) -> blst_fp2 {
    blst_fp2 {
        fp: [of(limbs), of(&limbs[STORED..])],
    }
}

macro_rules! group {
    ($(#[$documentation:meta])* $name:ident, $module:ident, $affine:ident, $point:ident,
     $add:ident, $add_affine:ident, $double:ident, $unpack:expr) => {
        $(#[$documentation])*
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}

        // SAFETY for every call into blst below: pointers come from references that live through the call.
        impl Group for $name {
            type Affine = $affine;
            type Point = $point;
            type Packed = batch::$module::Packed;
            type Stored = batch::$module::Stored;
            type Row = batch::$module::Row;
            type Slot = batch::$module::Slot;
            type Inner = Self;

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
            fn packed(points: &[$affine]) -> &[Self::Packed] {
                const { assert!(size_of::<$affine>() == size_of::<batch::$module::Packed>()) };
                // SAFETY: an affine point is plain 64-bit words without padding, as many as a packed point has.
                unsafe { std::slice::from_raw_parts(points.as_ptr().cast(), points.len()) }
            }
        }

        impl Sums<$name> for $name {
            const BLANK: batch::$module::Row = batch::$module::BLANK;
            const EMPTY: batch::$module::Slot = batch::$module::EMPTY;
            const NOWHERE: batch::$module::Stored =
                batch::$module::Stored([0; batch::$module::STORED_WORDS]);

            fn add(
                ifma: Ifma,
                jobs: &mut [Job],
                source: &Source<'_, batch::$module::Packed, batch::$module::Stored>,
                leaves: &[u32],
                rows: &mut [batch::$module::Row],
                slots: &mut [batch::$module::Slot],
                upcoming: &[u32],
            ) {
                batch::$module::add(ifma, jobs, source, leaves, rows, slots, upcoming);
            }
            fn store(
                ifma: Ifma,
                source: &Source<'_, batch::$module::Packed, batch::$module::Stored>,
                leaves: &[u32],
                rows: &[batch::$module::Row],
                row: (u32, usize),
                to: &mut dyn FnMut(usize, batch::$module::Stored),
            ) {
                batch::$module::store(ifma, source, leaves, rows, row, to);
            }
            fn satisfied(ifma: Ifma, points: &[&[u64]; 8]) -> u8 {
                batch::$module::satisfied(ifma, points)
            }
            fn unpack(stored: &batch::$module::Stored) -> $affine {
                $unpack(&stored.0)
            }
        }
    };
}

group!(
    /// The group of points over the base field.
    G1,
    first,
    blst_p1_affine,
    blst_p1,
    blst_p1_add_or_double,
    blst_p1_add_or_double_affine,
    blst_p1_double,
    |words: &[u64; 2 * STORED]| blst_p1_affine {
        x: x_of(words),
        y: y_of(&words[STORED..]),
    }
);
group!(
    /// The group of points over the quadratic extension.
    G2,
    second,
    blst_p2_affine,
    blst_p2,
    blst_p2_add_or_double,
    blst_p2_add_or_double_affine,
    blst_p2_double,
    |words: &[u64; 4 * STORED]| blst_p2_affine {
        x: fp2_of(words, x_of),
        y: fp2_of(&words[2 * STORED..], y_of),
    }
);
