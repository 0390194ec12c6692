//! The end of the process when the store can't be trusted any more.
//!
//! The caller holds the commit lock and keeps it: nobody reads, and nothing is answered, between the failure and the
//! end. No second try and no later sync: after a failed one the kernel marks the pages clean, and the next succeeds.

use std::fmt::Display;
use std::path::Path;

use parking_lot::Mutex;

use crate::error::{EXIT_STORE, is_disk_full};

/// Says why, and ends the process with [`EXIT_STORE`]. Who comes second waits for that end.
pub(crate) fn stop(why: &dyn Display) -> ! {
    static SAYING: Mutex<()> = Mutex::new(());
    let _saying = SAYING.lock();
    if tracing::dispatcher::has_been_set() {
        tracing::error!("{why}");
    } else {
        use std::io::Write as _;
        // Nobody is left to hear of a failure to write this.
        let _ = writeln!(std::io::stderr(), "proofkeep: {why}");
    }
    end()
}

/// Ends the process at once. No exit handlers and no destructors: sled's would write and sync again.
#[expect(unsafe_code, reason = "the C library's _exit has no safe counterpart in std")]
fn end() -> ! {
    // SAFETY: _exit takes any status and ends the process; it touches no memory of ours.
    unsafe { libc::_exit(EXIT_STORE) }
}

/// The store could not make changes durable.
pub(crate) fn stop_writing(error: &dyn Display, disk_full: bool) -> ! {
    if disk_full {
        stop(&format_args!(
            "the disk is full ({error}); stopping, so that nothing is answered that isn't stored: free some space and \
             start again, everything acknowledged is kept"
        ))
    }
    stop(&format_args!(
        "the store could not be written ({error}); stopping, so that nothing is answered that isn't stored: check the \
         disk (dmesg, SMART), then start again, everything acknowledged is kept"
    ))
}

/// The store could not be read.
pub(crate) fn stop_reading(path: &Path, error: &dyn Display) -> ! {
    stop(&format_args!(
        "the database {} could not be read ({error}); stopping: check the disk (dmesg, SMART) and start again; if it \
         comes back, the file db in it is damaged: keep a copy of the directory, and restore the last backup into a new one",
        path.display()
    ))
}

/// sled's error says that the disk is full.
pub(crate) fn sled_disk_full(error: &sled::Error) -> bool {
    matches!(error, sled::Error::Io(error) if is_disk_full(error))
}
