//! The daemon's clock: the wall clock at boot plus monotonic time, so that a step of the wall clock reorders nothing.
//!
//! The only place that asks the system for the time of day.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::ids::Millis;

/// A wall clock that is off by more than this, in milliseconds, has stepped.
pub const STEP_MS: i64 = 60_000;

/// The clock of one boot.
#[derive(Clone, Debug)]
pub struct Clock {
    /// Milliseconds since the epoch when the boot began.
    wall_at_boot: u64,
    started: Instant,
    /// By how much the wall clock was ahead of this clock when that was last reported, in milliseconds.
    reported: i64,
}

impl Clock {
    /// Starts the clock at the wall clock's time.
    #[must_use]
    pub fn start() -> Self {
        Self::starting(Millis(millis(wall())), Instant::now())
    }

    /// A clock that starts at a moment of the wall clock and of a monotonic one.
    #[must_use]
    pub fn starting(wall: Millis, started: Instant) -> Self {
        Self {
            wall_at_boot: wall.0,
            started,
            reported: 0,
        }
    }

    /// Now. Never goes back within a boot.
    #[must_use]
    pub fn now(&self) -> Millis {
        self.at(Instant::now())
    }

    /// What it shows at a moment of the monotonic clock.
    #[must_use]
    pub fn at(&self, moment: Instant) -> Millis {
        let passed = moment.saturating_duration_since(self.started);
        Millis(self.wall_at_boot).after(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX))
    }

    /// Now, for comparing with the times of files.
    #[must_use]
    pub(crate) fn time(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.now().0)
    }

    /// Milliseconds since the boot began.
    #[must_use]
    pub fn uptime_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// By how many milliseconds the wall clock jumped since this was last asked (negative: back), if that is more than
    /// [`STEP_MS`]. [`now`](Self::now) goes on undisturbed; the jump counts from the next boot on.
    pub fn take_step(&mut self) -> Option<i64> {
        self.take_step_at(Millis(millis(wall())), Instant::now())
    }

    /// The same for given moments of the wall clock and the monotonic one.
    pub fn take_step_at(&mut self, wall: Millis, moment: Instant) -> Option<i64> {
        let ahead = i64::try_from(i128::from(wall.0) - i128::from(self.at(moment).0)).unwrap_or(i64::MAX);
        let step = ahead.saturating_sub(self.reported);
        if step.saturating_abs() <= STEP_MS {
            return None;
        }
        self.reported = ahead;
        Some(step)
    }
}

/// The wall clock, for comparing with the times of files.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the clock that everybody else has to use"
)]
pub(crate) fn wall() -> SystemTime {
    SystemTime::now()
}

fn millis(time: SystemTime) -> u64 {
    // A clock before 1970 is an unset one; it reads as the epoch itself.
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn a_step_is_reported_once_and_moves_nothing() {
        let mut clock = Clock::start();
        let before = clock.now();
        assert_eq!(clock.take_step_at(before.after(59_000), Instant::now()), None);
        let step = clock
            .take_step_at(before.after(3_600_000), Instant::now())
            .unwrap();
        assert!((3_590_000..=3_600_000).contains(&step), "{step}");
        assert_eq!(clock.take_step_at(before.after(3_600_000), Instant::now()), None);
        let back = clock.take_step_at(before, Instant::now()).unwrap();
        assert!((-3_610_000..=-3_590_000).contains(&back), "{back}");
        assert!(clock.now().since(before) < 3_000_000);
    }
}
