//! Memory of this process: what it uses, and what happens when there is none.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};

use super::EXIT_MEMORY;

static EXIT: AtomicBool = AtomicBool::new(false);

/// The system's allocator, with which a worker process ends with code 71 when an allocation fails, so that the daemon
/// can tell it from a crash. Every other process goes on as without it.
///
/// The binary installs it: `#[global_allocator] static ALLOCATOR: Allocator = Allocator;`
#[derive(Clone, Copy, Debug)]
pub struct Allocator;

// SAFETY: every call goes to the system's allocator unchanged; a null result either is returned or ends the process.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the system allocator's.
        there(unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the system allocator's.
        there(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promises are the system allocator's.
        there(unsafe { System.realloc(pointer, layout, size) })
    }
}

fn there(pointer: *mut u8) -> *mut u8 {
    if pointer.is_null() && EXIT.load(Ordering::Relaxed) {
        // SAFETY: ends the process at once: no destructor runs, nothing is allocated.
        unsafe { libc::_exit(EXIT_MEMORY) }
    }
    pointer
}

/// From now on a failed allocation ends this process.
pub(super) fn exit_when_it_runs_out() {
    EXIT.store(true, Ordering::Relaxed);
}

/// What is as large as this is mapped for itself, so that freeing it gives it back to the system.
const MAPPED: libc::c_int = 1 << 20;

/// From now on this process holds no large memory that it has freed. glibc would raise its limit up to 32 MiB with what
/// it sees freed, and keep as much of each size as the busiest thread ever had, beside what other threads have.
pub(super) fn give_back_at_once() {
    // Elsewhere nothing is known to be kept.
    #[cfg(target_env = "gnu")]
    // SAFETY: sets a number of the allocator, under its lock.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED)
    };
}

/// Resident bytes now, and the most so far, as the kernel counts them.
pub(super) fn resident() -> Option<(u64, u64)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace()
            .next()?
            .parse::<u64>()
            .ok()
            .map(|kilobytes| kilobytes << 10)
    };
    Some((kilobytes("VmRSS:")?, kilobytes("VmHWM:")?))
}

/// The most resident bytes so far.
pub(super) fn peak() -> Option<u64> {
    resident().map(|(_, peak)| peak)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_kernel_says_what_is_resident() {
        let (now, peak) = resident().unwrap();
        assert!(0 < now && now <= peak);
    }
}
