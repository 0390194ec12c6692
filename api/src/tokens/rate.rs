//! How often a token may be used.

use std::time::{Duration, Instant};

/// So much of a rate may be used at once.
const BURST: Duration = Duration::from_secs(1);

/// Requests of one token: the moment at which all that it has used would have come one by one, at its rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    used_until: Instant,
}

impl Bucket {
    /// One of which nothing is used.
    pub fn new(now: Instant) -> Self {
        Self { used_until: now }
    }

    /// Takes one request at `rate` a second; `false` if there is none left now. There is one within a second.
    pub fn take(&mut self, rate: u32, now: Instant) -> bool {
        let each = BURST / rate.max(1);
        let used = self.used_until.max(now) + each;
        let fits = used - now <= BURST;
        if fits {
            self.used_until = used;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_the_rate_at_once_and_then_as_it_comes() {
        let start = Instant::now();
        let mut bucket = Bucket::new(start);
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!((0..50).filter(|_| bucket.take(10, start)).count(), 10);
        assert!(!bucket.take(10, at(99)));
        assert!(bucket.take(10, at(100)));
        assert!(!bucket.take(10, at(199)));
        // What isn't used doesn't pile up.
        assert_eq!((0..50).filter(|_| bucket.take(10, at(60_000))).count(), 10);
    }

    #[test]
    fn one_a_second_is_one_a_second() {
        let start = Instant::now();
        let mut bucket = Bucket::new(start);
        assert!(bucket.take(1, start));
        assert!(!bucket.take(1, start + Duration::from_millis(999)));
        assert!(bucket.take(1, start + Duration::from_secs(1)));
    }
}
