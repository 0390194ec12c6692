//! How far coordinates may grow while sums of points are added up level by level.
//!
//! Nothing is reduced between the levels of a tree of additions: a difference only gets a multiple of `p` that keeps it
//! positive, and there are bits to spare. Points enter below `2p`. `check::bounds` proves what is said here.

use crate::fp::PRIME;
use crate::modulus::multiple;

/// Levels of additions that the bounds allow: up to 2^8 points make one sum.
pub(crate) const LEVELS: usize = 8;

/// `x` is below this multiple of `p` at a level: a sum's is below `λ² + 2·x`.
pub(crate) const fn x_bound(level: usize) -> u64 {
    (4 << level) - 2
}

/// `y` is below this multiple of `p` at a level, and a point that enters may have `−y` for `y`.
pub(crate) const fn y_bound(level: usize) -> u64 {
    2 + 4 * level as u64
}

const fn multiples(of_level: [u64; LEVELS + 1]) -> [[u64; 8]; LEVELS + 1] {
    let mut all = [[0; 8]; LEVELS + 1];
    let mut level = 0;
    while level <= LEVELS {
        all[level] = multiple(&PRIME, of_level[level]);
        level += 1;
    }
    all
}

const fn x_bounds(times: u64) -> [[u64; 8]; LEVELS + 1] {
    let mut factors = [0; LEVELS + 1];
    let mut level = 0;
    while level <= LEVELS {
        factors[level] = times * x_bound(level);
        level += 1;
    }
    multiples(factors)
}

const fn y_bounds(times: u64) -> [[u64; 8]; LEVELS + 1] {
    let mut factors = [0; LEVELS + 1];
    let mut level = 0;
    while level <= LEVELS {
        factors[level] = times * y_bound(level);
        level += 1;
    }
    multiples(factors)
}

/// More than any `x` of the level.
pub(crate) static X: [[u64; 8]; LEVELS + 1] = x_bounds(1);
/// Twice and three times that.
pub(crate) static X_TWICE: [[u64; 8]; LEVELS + 1] = x_bounds(2);
pub(crate) static X_THRICE: [[u64; 8]; LEVELS + 1] = x_bounds(3);
/// More than any `y` of the level, and twice that.
pub(crate) static Y: [[u64; 8]; LEVELS + 1] = y_bounds(1);
pub(crate) static Y_TWICE: [[u64; 8]; LEVELS + 1] = y_bounds(2);
