//! What a daemon can't go on without: a panic there ends the process with one sentence, instead of leaving a daemon that
//! looks alive while somebody waits for an answer that can't come.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::commit::fatal;

/// Runs the body of a thread that nothing replaces. If it panics, the process ends with [`EXIT_STORE`](crate::EXIT_STORE):
/// the fault is the program's, and a start may meet it again, so a person has to look.
pub fn vital<T>(what: &str, body: impl FnOnce() -> T) -> T {
    // Nothing that the body leaves half done is looked at again.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        fatal::stop(&format_args!(
            "{what} panicked; stopping, so that nobody waits for what can't come: this is a fault of proofkeep, please \
             report it with the lines above, then start again, everything acknowledged is kept"
        ))
    })
}
