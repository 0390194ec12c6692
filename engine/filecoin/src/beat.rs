//! Published code works for long without a word; somebody has to say that it goes on.

use std::sync::mpsc;
use std::time::Duration;

use proofkeep_engine::kinds::Watch;

/// How often.
const BEAT: Duration = Duration::from_secs(1);
/// After this many beats nothing more is said: work that takes so long hangs.
const MOST: u32 = 3600;

/// Runs `work` on this thread, and shows progress from another one meanwhile.
pub fn with_beats<T>(watch: &dyn Watch, work: impl FnOnce() -> T) -> T {
    let (done, wait) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..MOST {
                if wait.recv_timeout(BEAT) != Err(mpsc::RecvTimeoutError::Timeout) {
                    return;
                }
                watch.progress(100);
            }
        });
        let result = work();
        drop(done);
        result
    })
}
