//! A panic in a task fails that task. Its message may hold a value, so only its place is kept.

use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};

use parking_lot::Mutex;
use proofkeep_store::records::{Failure, FailureClass};

use super::EXIT_PANIC;

static PLACE: Mutex<Option<String>> = Mutex::new(None);

/// Replaces the hook that prints panics, message and all.
pub(super) fn install() {
    set_hook(Box::new(|info: &PanicHookInfo<'_>| {
        let place = info
            .location()
            .map(|place| format!("{}:{}", place.file(), place.line()));
        tracing::error!(place = place.as_deref().unwrap_or("unknown"), "a task panicked");
        *PLACE.lock() = place;
    }));
}

/// Runs a task; a panic becomes its failure.
pub(super) fn guarded<T>(task: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // What the task leaves behind is dropped with it, or is behind locks that hold whole values.
    catch_unwind(AssertUnwindSafe(task)).unwrap_or_else(|_| {
        let place = PLACE
            .lock()
            .take()
            .unwrap_or_else(|| "an unknown place".to_owned());
        let detail = format!("a fault of proofkeep ended the work at {place}; please report it");
        Err(Failure::coded(FailureClass::DeviceError, "panic", detail))
    })
}

/// Runs the body of a thread that this process can't go on without. A panic that nobody caught ends the process, and the
/// daemon takes it for a crash: a task that never ends would hold its lease until somebody finds it stalled.
pub(super) fn vital(body: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(body)).is_err() {
        std::process::exit(EXIT_PANIC);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_panic_fails_its_task_without_its_message() {
        let failure = guarded::<()>(|| panic!("a secret")).unwrap_err();
        assert_eq!(
            (failure.class, failure.code.as_str()),
            (FailureClass::DeviceError, "panic")
        );
        assert!(!failure.detail.contains("secret"));
        assert_eq!(guarded(|| Ok(7)), Ok(7));
    }

    #[test]
    fn a_panic_that_nobody_caught_ends_the_process() {
        const CHILD: &str = "PROOFKEEP_TEST_PANICS";
        if std::env::var_os(CHILD).is_some() {
            let thread = std::thread::spawn(|| vital(|| panic!("nobody catches this")));
            let _ = thread.join();
            return;
        }
        let name = "worker::panics::tests::a_panic_that_nobody_caught_ends_the_process";
        let ended = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert_eq!(ended.status.code(), Some(EXIT_PANIC), "{ended:?}");
    }
}
