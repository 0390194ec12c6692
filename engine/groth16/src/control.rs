//! How a caller watches long work and stops it.

use std::ops::ControlFlow;

/// The work was stopped by its [`Control`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped before it was finished")]
pub struct Stopped;

/// Asked between slices of work, from whichever thread finished one: shows progress and answers whether to go on.
///
/// A slice is one tile of an MSM, at most about a second of one thread, or one transform of the quotient, so a stop is
/// followed within that time. Piece `H` has two phases, each counted from zero: six transforms, then its MSM.
pub trait Control: Sync {
    /// `done` of `total` slices of the phase in work are finished.
    fn progress(&self, done: u64, total: u64) -> ControlFlow<()>;
}

impl<F: Fn(u64, u64) -> ControlFlow<()> + Sync> Control for F {
    fn progress(&self, done: u64, total: u64) -> ControlFlow<()> {
        self(done, total)
    }
}

/// Never stops and shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Control for Unwatched {
    fn progress(&self, _done: u64, _total: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
