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
    /// Both, in seconds.
    pub fn seconds(self) -> (f64, f64) {
        (self.wall.as_secs_f64(), self.processor.as_secs_f64())
    }
}

/// What the same work took, round after round.
#[derive(Default)]
pub struct Rounds(Vec<Cost>);

impl Rounds {
    /// One round of work that these processes do.
    pub fn round<T>(&mut self, processes: &[u32], work: impl FnOnce() -> T) -> T {
        let all = || {
            processes
                .iter()
                .map(|process| processor_time(*process))
                .sum::<Duration>()
        };
        let (wall, processor) = (Instant::now(), all());
        let value = work();
        self.0.push(Cost {
            wall: wall.elapsed(),
            processor: all().saturating_sub(processor),
        });
        value
    }

    /// The median of each.
    pub fn median(&self) -> Cost {
        let middle = |of: fn(&Cost) -> Duration| {
            let mut all: Vec<Duration> = self.0.iter().map(of).collect();
            all.sort_unstable();
            all.get(all.len() / 2).copied().unwrap_or_default()
        };
        Cost {
            wall: middle(|cost| cost.wall),
            processor: middle(|cost| cost.processor),
        }
    }
}

/// User and system time of a process so far, threads that have ended included; none of a process that is gone.
fn processor_time(process: u32) -> Duration {
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both pointers are to values that live through the calls.
    let failed = unsafe {
        libc::clock_getcpuclockid(process as libc::pid_t, &raw mut clock) != 0
            || libc::clock_gettime(clock, &raw mut time) != 0
    };
    if failed {
        return Duration::ZERO;
    }
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
