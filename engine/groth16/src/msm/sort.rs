//! Sorts the scalars of an MSM by how much work each is.

use rayon::prelude::*;

use super::Pointers;
use crate::bases::BaseSet;
use crate::curve::Curve;
use crate::field::ScalarBytes;

/// Scalars of at most this many bits are short.
const SHORT_BITS: usize = 64;
/// Fewer short scalars than this are not worth their own tiles.
const SHORT_LEAST: usize = 64;

/// Points with scalars of at most `bits` bits.
pub(super) struct Terms<C: Curve> {
    pub points: Pointers<C::Affine>,
    pub scalars: Pointers<u8>,
    pub bits: usize,
}

impl<C: Curve> Terms<C> {
    fn empty() -> Self {
        Terms {
            points: Pointers(Vec::new()),
            scalars: Pointers(Vec::new()),
            bits: 0,
        }
    }

    fn push(&mut self, point: &C::Affine, scalar: &ScalarBytes, bits: usize) {
        self.points.0.push(point);
        self.scalars.0.push(scalar.as_ptr());
        self.bits = self.bits.max(bits);
    }

    fn append(&mut self, mut other: Self) {
        self.points.0.append(&mut other.points.0);
        self.scalars.0.append(&mut other.scalars.0);
        self.bits = self.bits.max(other.bits);
    }
}

/// An MSM sorted: the points of ones, and groups of at least two terms. Zeros are gone.
pub(super) struct Sorted<C: Curve> {
    pub ones: Pointers<C::Affine>,
    pub groups: Vec<Terms<C>>,
}

struct Part<C: Curve> {
    ones: Vec<*const C::Affine>,
    short: Terms<C>,
    long: Terms<C>,
}

// SAFETY: only holds pointers into the bases and scalars, which are `Sync` and borrowed throughout.
unsafe impl<C: Curve> Send for Part<C> {}

fn bit_length(scalar: &ScalarBytes) -> usize {
    let words = scalar.as_chunks::<8>().0;
    for (index, word) in words.iter().enumerate().rev() {
        let word = u64::from_le_bytes(*word);
        if word != 0 {
            return 64 * index + 64 - word.leading_zeros() as usize;
        }
    }
    0
}

/// The pointers in the result live as long as `bases` and `scalars` do.
pub(super) fn sort<C: Curve>(bases: &BaseSet<C>, scalars: &[ScalarBytes], threads: usize) -> Sorted<C> {
    assert!(
        bases.scalars_needed() <= scalars.len(),
        "an MSM needs a scalar for each of its points"
    );
    let length = bases.len();
    let step = length.div_ceil(threads.max(1)).max(1024);
    let sort_part = |part: usize| {
        let mut out = Part {
            ones: Vec::new(),
            short: Terms::empty(),
            long: Terms::empty(),
        };
        bases.for_each(part * step..length.min((part + 1) * step), |point, index| {
            let scalar = &scalars[index];
            match bit_length(scalar) {
                0 => {}
                1 => out.ones.push(point),
                bits if bits <= SHORT_BITS => out.short.push(point, scalar, bits),
                // One length for all of these, so that the schedule doesn't tell about the largest.
                _ => out.long.push(point, scalar, 255),
            }
        });
        out
    };
    let count = length.div_ceil(step);
    let parts: Vec<Part<C>> = if threads <= 1 {
        (0..count).map(sort_part).collect()
    } else {
        (0..count).into_par_iter().map(sort_part).collect()
    };
    let mut ones = Vec::new();
    let (mut short, mut long) = (Terms::empty(), Terms::empty());
    for mut part in parts {
        ones.append(&mut part.ones);
        short.append(part.short);
        long.append(part.long);
    }
    if short.len() < SHORT_LEAST {
        long.append(std::mem::replace(&mut short, Terms::empty()));
    }
    let mut groups = Vec::new();
    for mut terms in [short, long] {
        if terms.len() == 1 {
            // A tile takes at least two terms: the second is the same point times zero.
            let point = terms.points.0[0];
            terms.points.0.push(point);
            terms.scalars.0.push(ZERO.as_ptr());
        }
        if terms.len() > 0 {
            groups.push(terms);
        }
    }
    Sorted {
        ones: Pointers(ones),
        groups,
    }
}

static ZERO: ScalarBytes = [0; 32];
