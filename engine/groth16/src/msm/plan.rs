//! How many tiles an MSM is cut into.

use super::buckets::LEAST_TERMS;
use crate::affine::Summer;
use crate::curve::{Curve, G2};

/// Points in one tile at most. They are read in the order of their buckets, once for each window, which is slow from so
/// many on that they are no longer in a processor's caches: it costs more than to sum up the buckets once more.
const TILE_POINTS: usize = 1 << 16;
/// Widest window: its buckets are 3 MiB a thread in G1, 6 in G2.
const MAX_WINDOW: usize = 16;
/// Points of ones summed in one task.
pub(super) const SUM_CHUNK: usize = 1 << 12;
/// What one method costs, in multiplications of the field.
#[derive(Clone, Copy)]
struct Costs {
    /// An addition into a bucket.
    add: usize,
    /// To sum up a bucket at the end.
    bucket: usize,
    /// To add up a row or a column of buckets' sums with its weight.
    line: usize,
}

/// blst's tiles: buckets of four coordinates, two additions to sum one up.
const TILE: Costs = Costs {
    add: 10,
    bucket: 28,
    line: 0,
};
/// Batched affine additions: six, and what it takes to find the points; a bucket is in a row and in a column.
const BATCHED: Costs = Costs {
    add: 8,
    bucket: 17,
    line: 25,
};
/// Terms that one task takes at least, over all its windows, if there are as many.
const TASK_TERMS: usize = 8192;

/// `rows` windows of `window` bits for each chunk of `chunk` points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub window: usize,
    pub rows: usize,
    pub chunk: usize,
}

impl Plan {
    /// The plan with the least work on the busiest of `threads` threads.
    pub fn new(points: usize, bits: usize, threads: usize) -> Self {
        let threads = threads.max(1);
        let costs = if points < LEAST_TERMS { TILE } else { BATCHED };
        let least = points.div_ceil(TILE_POINTS).max(1);
        let mut best = (
            usize::MAX,
            Plan {
                window: 1,
                rows: bits + 1,
                chunk: points.max(2),
            },
        );
        for chunks in least..least + 4.min(threads) {
            let chunk = points.div_ceil(chunks).max(2);
            for window in 2..=MAX_WINDOW {
                let rows = bits / window + 1;
                // The same number of rows may do with a narrower window.
                let window = (bits / rows + 1).min(window);
                let lines = (1 << ((window - 1) / 2)) + (1 << (window / 2));
                let tile = chunk * costs.add + (costs.bucket << (window - 1)) + lines * costs.line;
                let cost = (rows * chunks).div_ceil(threads) * tile;
                if cost < best.0 {
                    best = (cost, Plan { window, rows, chunk });
                }
            }
        }
        best.1
    }

    /// How many windows a task takes of a chunk of so many points: few points are better worked many windows at once, if
    /// that leaves every thread as much to do.
    pub fn rows_at_once(&self, points: usize, threads: usize) -> usize {
        let enough = TASK_TERMS.div_ceil(points.max(1));
        enough.min(self.rows.div_ceil(threads.max(1))).max(1)
    }
}

/// Bytes that one thread holds for an MSM over G2 of this many dense scalars, the largest there is: the terms of its
/// buckets, sums, and what it adds up with.
pub fn thread_bytes(points: usize, threads: usize) -> u64 {
    let plan = Plan::new(points, 255, threads);
    let rows = plan.rows_at_once(plan.chunk, threads);
    let buckets = rows << (plan.window - 1);
    // A bucket has an offset and a sum, and is in a row and in a column; these are fewer than the buckets are.
    let entries = (rows * plan.chunk).max(2 * buckets);
    (4 * entries + buckets * (4 + 2 * G2::AFFINE_BYTES) + Summer::<G2>::bytes()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_cover_every_bit_and_the_carry() {
        for points in [2, 3, 31, 1000, 1 << 14, 1 << 20] {
            for bits in [1, 8, 63, 64, 128, 255] {
                for threads in [1, 2, 3, 16, 128] {
                    let plan = Plan::new(points, bits, threads);
                    assert!(
                        plan.rows * plan.window > bits,
                        "{points} {bits} {threads}: {plan:?}"
                    );
                    assert!(
                        (plan.rows - 1) * plan.window <= bits,
                        "{points} {bits} {threads}: {plan:?}"
                    );
                    assert!(plan.chunk <= TILE_POINTS && plan.window <= MAX_WINDOW);
                }
            }
        }
    }
}
