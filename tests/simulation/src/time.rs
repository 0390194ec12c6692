//! Simulated time: a monotonic clock that only the run moves, and a wall clock that jumps.

use std::time::{Duration, Instant};

use proofkeep_store::ids::Millis;

/// The time of a run.
#[derive(Clone, Debug)]
pub struct Time {
    /// Where the monotonic clock begins; only differences to it matter.
    origin: Instant,
    passed_ms: u64,
    wall_at_origin: u64,
    jumped_ms: i64,
}

impl Time {
    /// The beginning.
    #[must_use]
    pub fn begin() -> Self {
        Self {
            origin: Instant::now(),
            passed_ms: 0,
            wall_at_origin: 1_800_000_000_000,
            jumped_ms: 0,
        }
    }

    /// Now, by the monotonic clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.origin + Duration::from_millis(self.passed_ms)
    }

    /// Now, by the wall clock.
    #[must_use]
    pub fn wall(&self) -> Millis {
        let wall = (self.wall_at_origin + self.passed_ms).saturating_add_signed(self.jumped_ms);
        Millis(wall)
    }

    /// Milliseconds since the beginning.
    #[must_use]
    pub fn passed_ms(&self) -> u64 {
        self.passed_ms
    }

    /// Time passes.
    pub fn pass(&mut self, ms: u64) {
        self.passed_ms += ms;
    }

    /// Somebody sets the wall clock.
    pub fn jump(&mut self, by_ms: i64) {
        // Not before the epoch, and not so far that adding to it overflows.
        let jumped = self.jumped_ms.saturating_add(by_ms);
        self.jumped_ms = jumped.clamp(-1_000_000_000_000, 10_000_000_000_000);
    }
}
