//! An allocator that counts, so that a parser which believes a count in its input is caught.
//!
//! Counters are kept for each thread: tests run side by side and don't disturb each other. What a parser has other
//! threads allocate isn't counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write;
use std::ptr::null_mut;

/// No parser of a fuzz target may ask for this much at once. More is refused, which ends the process.
pub const HARD_CAP: usize = 1 << 30;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
    static RUNNING: Cell<Option<(&'static str, u64, u64)>> = const { Cell::new(None) };
}

/// The system's allocator, counted. Installed by whatever links this crate:
/// `#[global_allocator] static A: Counting = Counting;`
#[derive(Debug)]
pub struct Counting;

/// Runs `work` and returns the most bytes that it held at one moment, beyond what was held before.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    let result = work();
    (result, PEAK.get().saturating_sub(before))
}

/// Notes what this thread is running, for the message if it asks for too much.
pub(crate) fn set_running(target: &'static str, seed: u64, iteration: u64) {
    RUNNING.set(Some((target, seed, iteration)));
}

fn grew(bytes: usize) {
    let live = LIVE.get().saturating_add(bytes);
    LIVE.set(live);
    PEAK.set(PEAK.get().max(live));
}

fn shrank(bytes: usize) {
    // Memory may be given back by another thread than the one that took it.
    LIVE.set(LIVE.get().saturating_sub(bytes));
}

/// Whether a request must be refused; says so, since the process is about to end.
fn refused(bytes: usize) -> bool {
    if bytes <= HARD_CAP {
        return false;
    }
    if let Some((target, seed, iteration)) = RUNNING.get() {
        let _ = writeln!(
            std::io::stderr(),
            "{target} asked for {bytes} bytes at once; PROOFKEEP_FUZZ_REPLAY={target}:{seed}:{iteration}"
        );
    }
    true
}

// SAFETY: every call goes to the system's allocator with the layout that it came with, or returns null, which the
// contract allows.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refused(layout.size()) {
            return null_mut();
        }
        grew(layout.size());
        // SAFETY: the caller's layout is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if refused(layout.size()) {
            return null_mut();
        }
        grew(layout.size());
        // SAFETY: the caller's layout is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        shrank(layout.size());
        // SAFETY: `block` came from `System` with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if refused(size) {
            return null_mut();
        }
        // Both blocks may exist for a moment.
        grew(size);
        shrank(layout.size());
        // SAFETY: `block` came from `System` with this layout, and the caller vouches for `size`.
        unsafe { System.realloc(block, layout, size) }
    }
}
