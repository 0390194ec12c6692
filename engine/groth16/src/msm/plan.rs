//! How many tiles an MSM is cut into.

/// Points in one tile at most, so that a tile takes well under a second in G1 and about one in G2.
const TILE_POINTS: usize = 1 << 19;
/// Widest window: its buckets are 6 MiB a thread in G1, 12 in G2.
const MAX_WINDOW: usize = 16;
/// Points of ones summed in one task.
pub(super) const SUM_CHUNK: usize = 1 << 12;
/// Field multiplications of one addition into a bucket, and of the two that sum up a bucket at the end (XYZZ).
const ADD_COST: usize = 10;
const BUCKET_COST: usize = 28;

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
                let tile = chunk * ADD_COST + (BUCKET_COST << (window - 1));
                let cost = (rows * chunks).div_ceil(threads) * tile;
                if cost < best.0 {
                    best = (cost, Plan { window, rows, chunk });
                }
            }
        }
        best.1
    }
}

/// Bytes of buckets that one thread holds for an MSM over G2 of this many dense scalars, the largest there is.
pub fn bucket_bytes(points: usize, threads: usize) -> u64 {
    (48 * 8) << (Plan::new(points, 255, threads).window - 1)
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
