//! How far a setup is, and whether to go on.

use std::ops::ControlFlow;

use crate::control::Stopped;

/// Counts points and tells the caller.
pub(super) struct Progress<'a> {
    done: u64,
    total: u64,
    show: &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>,
}

impl<'a> Progress<'a> {
    pub fn new(total: u64, show: &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>) -> Self {
        Progress { done: 0, total, show }
    }

    /// That many points more. With the last ones nothing is left to stop.
    pub fn add(&mut self, points: u64) -> Result<(), Stopped> {
        self.done += points;
        let go_on = (self.show)(self.done, self.total);
        if go_on.is_break() && self.done < self.total {
            return Err(Stopped);
        }
        Ok(())
    }
}
