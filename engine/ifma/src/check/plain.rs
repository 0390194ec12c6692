//! One lane of plain integers. Any machine runs this, Miri too.

use crate::modulus::{BITS, MASK};

/// One signed 64-bit lane.
pub(crate) type Word = i64;

fn product(x: Word, y: Word) -> u128 {
    u128::from(x as u64 & MASK) * u128::from(y as u64 & MASK)
}

pub(crate) fn lo(acc: Word, x: Word, y: Word) -> Word {
    acc.wrapping_add((product(x, y) as u64 & MASK) as i64)
}

pub(crate) fn hi(acc: Word, x: Word, y: Word) -> Word {
    acc.wrapping_add((product(x, y) >> BITS) as i64)
}

pub(crate) fn add(x: Word, y: Word) -> Word {
    x.wrapping_add(y)
}

pub(crate) fn sub(x: Word, y: Word) -> Word {
    x.wrapping_sub(y)
}

pub(crate) fn carry(x: Word) -> Word {
    x >> BITS
}

pub(crate) fn low(x: Word) -> Word {
    x & MASK as i64
}

pub(crate) fn splat(x: u64) -> Word {
    x as i64
}

pub(crate) fn zero() -> Word {
    0
}
