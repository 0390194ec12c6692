//! Waiting for a condition, with an end.

use std::time::{Duration, Instant};

/// How long a test waits for what must happen: far longer than it takes, since two loaded cores can be slow.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until `condition` holds.
///
/// # Panics
/// After [`PATIENCE`], naming `what`.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    until_some(what, || condition().then_some(()));
}

/// Waits until `attempt` gives something.
///
/// # Panics
/// After [`PATIENCE`], naming `what`.
pub fn until_some<T>(what: &str, attempt: impl FnMut() -> Option<T>) -> T {
    until_some_within(PATIENCE, what, attempt)
}

/// The same for what takes longer.
///
/// # Panics
/// After `patience`, naming `what`.
pub fn until_some_within<T>(patience: Duration, what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(value) = attempt() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited {patience:?} in vain: {what}");
        // A pause between two looks at the thing itself; nothing depends on its length.
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
