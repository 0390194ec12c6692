//! Sorts the scalars of an MSM by how much work each is.

use std::ops::Range;

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
    fn with_capacity(capacity: usize) -> Self {
        Terms {
            points: Pointers(Vec::with_capacity(capacity)),
            scalars: Pointers(Vec::with_capacity(capacity)),
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

/// The class of a scalar: how long it counts as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Zero,
    One,
    Short(usize),
    Long,
}

fn class(scalar: &ScalarBytes) -> Class {
    match bit_length(scalar) {
        0 => Class::Zero,
        1 => Class::One,
        bits if bits <= SHORT_BITS => Class::Short(bits),
        _ => Class::Long,
    }
}

fn sort_part<C: Curve>(bases: &BaseSet<C>, scalars: &[ScalarBytes], range: Range<usize>) -> Part<C> {
    // Counted first, so that the lists are as long as they must be: they are most of an MSM's memory.
    let (mut ones, mut short, mut long) = (0, 0, 0);
    bases.for_each(range.clone(), |_, index| match class(&scalars[index]) {
        Class::Zero => {}
        Class::One => ones += 1,
        Class::Short(_) => short += 1,
        Class::Long => long += 1,
    });
    let mut part = Part {
        ones: Vec::with_capacity(ones),
        short: Terms::with_capacity(short),
        long: Terms::with_capacity(long),
    };
    bases.for_each(range, |point, index| {
        let scalar = &scalars[index];
        match class(scalar) {
            Class::Zero => {}
            Class::One => part.ones.push(point),
            Class::Short(bits) => part.short.push(point, scalar, bits),
            // One length for all of these, so that the schedule doesn't tell about the largest.
            Class::Long => part.long.push(point, scalar, 255),
        }
    });
    part
}

/// The pointers in the result live as long as `bases` and `scalars` do.
pub(super) fn sort<C: Curve>(bases: &BaseSet<C>, scalars: &[ScalarBytes], threads: usize) -> Sorted<C> {
    assert!(
        bases.scalars_needed() <= scalars.len(),
        "an MSM needs a scalar for each of its points"
    );
    let length = bases.len();
    let step = length.div_ceil(threads.max(1)).max(1024);
    let range = |part: usize| part * step..length.min((part + 1) * step);
    let count = length.div_ceil(step);
    let mut parts: Vec<Part<C>> = if threads <= 1 {
        (0..count)
            .map(|part| sort_part(bases, scalars, range(part)))
            .collect()
    } else {
        (0..count)
            .into_par_iter()
            .map(|part| sort_part(bases, scalars, range(part)))
            .collect()
    };
    let sorted = if parts.len() == 1 {
        parts.pop()
    } else {
        Some(join(parts))
    };
    let Part {
        ones,
        mut short,
        mut long,
    } = sorted.unwrap_or_else(|| join(Vec::new()));
    if short.len() < SHORT_LEAST {
        long.append(std::mem::replace(&mut short, Terms::with_capacity(0)));
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

fn join<C: Curve>(parts: Vec<Part<C>>) -> Part<C> {
    let total = |count: fn(&Part<C>) -> usize| parts.iter().map(count).sum();
    let mut joined = Part {
        ones: Vec::with_capacity(total(|part| part.ones.len())),
        short: Terms::with_capacity(total(|part| part.short.len())),
        long: Terms::with_capacity(total(|part| part.long.len())),
    };
    for mut part in parts {
        joined.ones.append(&mut part.ones);
        joined.short.append(part.short);
        joined.long.append(part.long);
    }
    joined
}

static ZERO: ScalarBytes = [0; 32];
