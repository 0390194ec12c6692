//! A small generator of pseudorandom numbers whose sequence is part of what a failure report means.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The generator of iteration `iteration` of a run with `seed`.
    pub fn new(seed: u64, iteration: u64) -> Self {
        let mut rng = Rng(seed);
        let start = rng.next_u64() ^ iteration.wrapping_mul(0xd134_2543_de82_ef95);
        Rng(start)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, or 0 if `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        if limit == 0 {
            return 0;
        }
        // The bias is below 2^-32 for the sizes used here.
        (self.next_u64() % limit as u64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A number of changes: one, and each further one half as often, eight at most.
    pub fn few(&mut self) -> u32 {
        1 + self.next_u64().trailing_zeros().min(7)
    }

    /// One of `items`, which must not be empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}
