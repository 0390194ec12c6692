//! How a caller watches long work and stops it.

use std::cell::RefCell;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bellpepper_core::SynthesisError;

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

thread_local! {
    static HALT: RefCell<Option<Halt>> = const { RefCell::new(None) };
}

/// Stops a synthesis. The circuit's code hears nothing while it runs, and makes constraint systems for its parts out of
/// nothing, on threads of its own choice; so each constraint system asks for the halt of the thread that it is made on, and
/// refuses the next variable once it is set. Clones are the same halt.
#[derive(Clone, Debug, Default)]
pub struct Halt(Arc<AtomicBool>);

impl Halt {
    /// The one of this thread; one that nobody sets where there is none.
    #[must_use]
    pub fn of_this_thread() -> Self {
        HALT.with_borrow(Clone::clone).unwrap_or_default()
    }

    /// Constraint systems that are made on this thread from now on ask this one.
    pub fn enter_thread(&self) {
        HALT.set(Some(self.clone()));
    }

    /// Stops what asks.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether to go on, for a constraint system.
    ///
    /// # Errors
    /// When it is set.
    #[inline]
    pub fn check(&self) -> Result<(), SynthesisError> {
        match self.0.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(io::Error::other(Stopped).into()),
        }
    }
}
