//! Scalars sorted by how much work each is, as a sign and a magnitude of at most half the group order.

use std::ops::Range;

use zeroize::Zeroize;

use super::Terms;
use crate::group::NEGATIVE;
use crate::modulus::R;

/// Magnitudes of at most this many bits are short.
const SHORT_BITS: u32 = 64;
/// Bits of the others: one number for all, so that the schedule doesn't tell about the largest.
const LONG_BITS: u32 = 254;

/// Terms of one kind: each a point with a sign, and the words of the magnitudes, one list for each word.
#[derive(Default)]
pub(super) struct Part {
    pub entries: Vec<u32>,
    pub words: Vec<Vec<u64>>,
    pub bits: u32,
}

impl Drop for Part {
    fn drop(&mut self) {
        self.words.iter_mut().for_each(Zeroize::zeroize);
    }
}

impl Part {
    fn with_capacity(capacity: usize, words: usize) -> Self {
        Part {
            entries: Vec::with_capacity(capacity),
            words: (0..words).map(|_| Vec::with_capacity(capacity)).collect(),
            bits: 0,
        }
    }

    fn push(&mut self, entry: u32, magnitude: &[u64; 4], bits: u32) {
        self.entries.push(entry);
        for (list, word) in self.words.iter_mut().zip(magnitude) {
            list.push(*word);
        }
        self.bits = self.bits.max(bits);
    }

    /// Gives the magnitudes as many words as long ones have.
    pub fn widen(&mut self) {
        let count = self.entries.len();
        self.words.resize_with(4, || vec![0; count]);
        self.words.iter_mut().for_each(|words| words.resize(count, 0));
    }

    /// Adds half a window's range to every window but the last, after which a window's digit is its bits less that half.
    pub fn bias(&mut self, window: u32, windows: u32) {
        let mut bias = [0u64; 4];
        for k in 1..windows {
            let bit = k * window - 1;
            bias[bit as usize / 64] |= 1 << (bit % 64);
        }
        let count = self.entries.len();
        let mut words = self.words.iter_mut();
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some(a), Some(b), Some(c), Some(d)) => {
                for k in 0..count {
                    let mut carry = false;
                    for (word, bias) in [&mut a[k], &mut b[k], &mut c[k], &mut d[k]].into_iter().zip(bias) {
                        let (sum, over) = word.overflowing_add(bias);
                        let (sum, over_again) = sum.overflowing_add(u64::from(carry));
                        (*word, carry) = (sum, over || over_again);
                    }
                }
            }
            (Some(a), Some(b), _, _) => {
                for k in 0..count {
                    let (sum, carry) = a[k].overflowing_add(bias[0]);
                    a[k] = sum;
                    b[k] = b[k].wrapping_add(bias[1]).wrapping_add(u64::from(carry));
                }
            }
            _ => {}
        }
    }
}

/// A range of terms sorted. Zeros, and points that are the identity, are gone.
pub(super) struct Sorted {
    pub ones: Vec<u32>,
    pub short: Part,
    pub long: Part,
}

enum Class {
    Nothing,
    One,
    Short(u32),
    Long,
}

/// The sign and the magnitude, for any 256-bit number.
fn magnitude(scalar: &[u8; 32]) -> (u32, [u64; 4]) {
    let mut value = [0; 4];
    for (word, bytes) in value.iter_mut().zip(scalar.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    while !less(&value, &R) {
        value = minus(&value, &R);
    }
    let other = minus(&R, &value);
    if less(&other, &value) {
        (NEGATIVE, other)
    } else {
        (0, value)
    }
}

fn less(a: &[u64; 4], b: &[u64; 4]) -> bool {
    a.iter().rev().lt(b.iter().rev())
}

fn minus(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
    let mut borrow = false;
    let mut out = [0; 4];
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        let (difference, below) = a.overflowing_sub(*b);
        let (difference, below_again) = difference.overflowing_sub(u64::from(borrow));
        (*out, borrow) = (difference, below || below_again);
    }
    out
}

fn class(magnitude: &[u64; 4]) -> Class {
    match magnitude {
        [0, 0, 0, 0] => Class::Nothing,
        [1, 0, 0, 0] => Class::One,
        [word, 0, 0, 0] => Class::Short(SHORT_BITS - word.leading_zeros()),
        _ => Class::Long,
    }
}

/// Sorts a range of the terms.
pub(super) fn sort<W: AsRef<[u64]>>(terms: &dyn Terms, points: &[W], range: Range<usize>) -> Sorted {
    // Counted first, so that the lists are as long as they must be.
    let (mut ones, mut short, mut long) = (0, 0, 0);
    terms.for_each(
        range.clone(),
        &mut |_, scalar| match class(&magnitude(scalar).1) {
            Class::Nothing => {}
            Class::One => ones += 1,
            Class::Short(_) => short += 1,
            Class::Long => long += 1,
        },
    );
    let mut sorted = Sorted {
        ones: Vec::with_capacity(ones),
        short: Part::with_capacity(short, 2),
        long: Part::with_capacity(long, 4),
    };
    terms.for_each(range, &mut |index, scalar| {
        let (sign, magnitude) = magnitude(scalar);
        let class = class(&magnitude);
        let identity = || points[index as usize].as_ref().iter().all(|word| *word == 0);
        if matches!(class, Class::Nothing) || identity() {
            return;
        }
        match class {
            Class::Nothing => {}
            Class::One => sorted.ones.push(index | sign),
            Class::Short(bits) => sorted.short.push(index | sign, &magnitude, bits),
            Class::Long => sorted.long.push(index | sign, &magnitude, LONG_BITS),
        }
    });
    sorted
}
