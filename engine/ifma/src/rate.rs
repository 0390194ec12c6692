//! How fast this processor multiplies: what benchmarks hold the arithmetic against.
//!
//! The bound of everything here is how many `vpmadd52` the processor can start. [`bound`] does nothing else; the others
//! say how many of them a field's product takes.

use std::hint::black_box;

use crate::word::*;
use crate::{Ifma, fp, fr};

/// Accumulators that don't depend on each other: more than an instruction's latency in cycles times two of them a cycle.
const INDEPENDENT: usize = 12;

/// Products a field does at once.
pub const LANES: u64 = 8;

/// `vpmadd52` of one product in the base field, for eight lanes: rows of the product, rows of the reduction, its last
/// limb.
pub const IN_BASE_FIELD: u64 = product_of(8);

/// The same in the scalar field.
pub const IN_SCALAR_FIELD: u64 = product_of(5);

const fn product_of(limbs: u64) -> u64 {
    2 * limbs * limbs + 2 * limbs * (limbs - 1) + 2 * limbs + 1
}

/// Runs so many rounds of independent `vpmadd52`; answers how many those were.
pub fn bound(_ifma: Ifma, rounds: u64) -> u64 {
    // SAFETY: the token says that the instructions are there.
    unsafe { instructions(rounds) };
    rounds * INDEPENDENT as u64
}

/// Multiplies so often in the base field, a factor that doesn't depend on the result before; answers how many lanes'
/// products those were.
pub fn base_field(_ifma: Ifma, rounds: u64) -> u64 {
    // SAFETY: the token says that the instructions are there.
    unsafe { base_products(rounds) };
    rounds * LANES
}

/// The same in the scalar field.
pub fn scalar_field(_ifma: Ifma, rounds: u64) -> u64 {
    // SAFETY: the token says that the instructions are there.
    unsafe { scalar_products(rounds) };
    rounds * LANES
}

vectorized! {
fn instructions(rounds: u64) {
    let (x, y) = (black_box(splat(3)), black_box(splat(5)));
    let mut sums = [zero(); INDEPENDENT];
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = lo(*sum, x, y);
        }
    }
    black_box(sums);
}

fn base_products(rounds: u64) {
    let a = black_box(fp::vector::broadcast(&fp::ONE));
    let mut out = a;
    for _ in 0..rounds {
        fp::vector::mul(&mut out, black_box(&a), &a);
    }
    black_box(out);
}

fn scalar_products(rounds: u64) {
    let a = black_box(fr::vector::broadcast(&fr::THREE_TIMES));
    let mut out = a;
    for _ in 0..rounds {
        fr::vector::mul(&mut out, black_box(&a), &a);
    }
    black_box(out);
}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_what_was_done() {
        let Some(ifma) = Ifma::detect() else { return };
        assert_eq!((IN_BASE_FIELD, IN_SCALAR_FIELD), (257, 101));
        assert_eq!(bound(ifma, 10), 120);
        assert_eq!((base_field(ifma, 10), scalar_field(ifma, 10)), (80, 80));
    }
}
