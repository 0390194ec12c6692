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

/// What a proof takes: the clock's time, and the processor's, which other work on the machine changes less.
#[derive(Clone, Copy)]
pub struct Cost {
    /// The clock's.
    pub wall: Duration,
    /// The processor's, all threads.
    pub processor: Duration,
}

impl Cost {
    /// The least of each over some rounds of work that these processes do.
    pub fn least(rounds: usize, processes: &[u32], mut work: impl FnMut()) -> Self {
        let all = || {
            processes
                .iter()
                .map(|process| processor_time(*process))
                .sum::<Duration>()
        };
        let one = |_| {
            let (wall, processor) = (Instant::now(), all());
            work();
            Self {
                wall: wall.elapsed(),
                processor: all().saturating_sub(processor),
            }
        };
        let least = |a: Self, b: Self| Self {
            wall: a.wall.min(b.wall),
            processor: a.processor.min(b.processor),
        };
        (0..rounds).map(one).reduce(least).unwrap()
    }

    /// Both, in seconds.
    pub fn seconds(self) -> (f64, f64) {
        (self.wall.as_secs_f64(), self.processor.as_secs_f64())
    }
}

/// User and system time of a process so far; the kernel counts in hundredths of a second.
fn processor_time(process: u32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name in parentheses may hold anything, so the fields are counted from its end.
    let fields = text
        .rsplit_once(')')
        .map_or("", |(_, fields)| fields)
        .split_whitespace();
    let ticks: u64 = fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    Duration::from_millis(10 * ticks)
}
