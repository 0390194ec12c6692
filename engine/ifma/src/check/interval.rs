//! Intervals of integers: each operation gives every value it can take, and fails where one leaves 64 bits.

use crate::modulus::{BITS, MASK};

/// All integers from `least` to `most`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub least: i128,
    pub most: i128,
}

impl Word {
    pub fn new(least: i128, most: i128) -> Self {
        assert!(least <= most);
        assert!(
            i128::from(i64::MIN) <= least && most <= i128::from(i64::MAX),
            "a limb may leave 64 bits: {least}..={most}"
        );
        Word { least, most }
    }

    /// Any normalized limb but the top one.
    pub fn full() -> Self {
        Word::new(0, i128::from(MASK))
    }

    pub fn within(self, other: Self) -> bool {
        other.least <= self.least && self.most <= other.most
    }
}

/// The lower 52 bits, which is what `vpmadd52` multiplies.
fn factor(x: Word) -> Word {
    if x.within(Word::full()) { x } else { Word::full() }
}

pub(crate) fn lo(acc: Word, x: Word, y: Word) -> Word {
    let most = factor(x).most * factor(y).most;
    Word::new(acc.least, acc.most + most.min(i128::from(MASK)))
}

pub(crate) fn hi(acc: Word, x: Word, y: Word) -> Word {
    let (x, y) = (factor(x), factor(y));
    Word::new(
        acc.least + ((x.least * y.least) >> BITS),
        acc.most + ((x.most * y.most) >> BITS),
    )
}

pub(crate) fn add(x: Word, y: Word) -> Word {
    Word::new(x.least + y.least, x.most + y.most)
}

pub(crate) fn sub(x: Word, y: Word) -> Word {
    Word::new(x.least - y.most, x.most - y.least)
}

pub(crate) fn carry(x: Word) -> Word {
    Word::new(x.least >> BITS, x.most >> BITS)
}

pub(crate) fn low(x: Word) -> Word {
    factor(x)
}

pub(crate) fn splat(x: u64) -> Word {
    let x = i128::from(x as i64);
    Word::new(x, x)
}

pub(crate) fn zero() -> Word {
    Word::new(0, 0)
}
