//! Many times of one thing, and what is told of them.

use std::fmt;
use std::time::{Duration, Instant};

/// Times of one thing.
#[derive(Default)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Does it once and notes how long it took.
    pub fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let value = work();
        self.0.push(start.elapsed());
        value
    }

    /// All of both.
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The shortest.
    pub fn best(&self) -> Duration {
        self.0.iter().min().copied().unwrap_or_default()
    }

    fn rank(&self, permille: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let place = (sorted.len() * permille / 1000).min(sorted.len().saturating_sub(1));
        sorted.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (half, most, all) = (self.rank(500), self.rank(990), self.rank(1000));
        write!(
            f,
            "p50 {half:.2} ms, p99 {most:.2} ms, max {all:.2} ms ({} times)",
            self.0.len()
        )
    }
}
