//! Notices what went wrong in a thread of sled's own and may never be told to the thread that waits for it.
//!
//! A batch's log is written by a thread of sled's pool. If that write or its sync fails, sled notes the error and wakes
//! nobody (`exit_reservation` in its `logger.rs`): a `flush` that was waiting already waits for ever, under the commit
//! lock, and the daemon looks alive. A panic in the pool is the same. Here a thread looks at the note, and a panic of the
//! pool's threads ends the process.

use std::convert::Infallible;
use std::io;
use std::panic::{set_hook, take_hook};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::commit::fatal;
use crate::vital::vital;

/// How often the note is looked at.
const EVERY: Duration = Duration::from_millis(100);

/// In most cases the thread that waits is told, and it knows better what it was about.
const GRACE: Duration = Duration::from_secs(1);

/// Databases that are open: only then a panic of sled's pool leaves somebody waiting. While a damaged file is opened
/// sled panics as well, and the opening takes that for an answer.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Looks out for one database until it is dropped. Drop it after the database.
pub(crate) struct Lookout {
    /// Never sent to; the thread ends when it is gone.
    _end: Sender<Infallible>,
}

/// A database is open while this lives.
pub(crate) struct Opened(());

impl Lookout {
    /// Begins before the database is opened, so that an opening that waits is seen too.
    pub fn start(config: sled::Config) -> io::Result<Self> {
        notice_panics();
        let (end, ended) = channel();
        std::thread::Builder::new()
            .name("lookout".to_owned())
            .spawn(move || vital("the lookout for sled's threads", || watch(&config, &ended)))?;
        Ok(Self { _end: end })
    }
}

impl Opened {
    pub fn new() -> Self {
        OPEN.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::SeqCst);
    }
}

fn watch(config: &sled::Config, ended: &Receiver<Infallible>) {
    while goes_on(ended, EVERY) {
        if let Err(error) = config.global_error() {
            if goes_on(ended, GRACE) {
                fatal::stop_writing(
                    &format_args!("a thread of sled's failed: {error}"),
                    fatal::sled_disk_full(&error),
                )
            }
            return;
        }
    }
}

/// Waits so long; `false`: the database was closed meanwhile.
fn goes_on(ended: &Receiver<Infallible>, patience: Duration) -> bool {
    matches!(ended.recv_timeout(patience), Err(RecvTimeoutError::Timeout))
}

/// Makes a panic in one of sled's threads the end of the process, after it was reported as every panic is.
fn notice_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |info| {
            report(info);
            let thread = std::thread::current();
            if is_of_sled(thread.name()) && OPEN.load(Ordering::SeqCst) > 0 {
                fatal::stop_writing(&"a thread of sled's panicked, see above", false)
            }
        }));
    });
}

/// sled names its threads so.
fn is_of_sled(thread: Option<&str>) -> bool {
    thread.is_some_and(|name| name.starts_with("sled-io-"))
}
