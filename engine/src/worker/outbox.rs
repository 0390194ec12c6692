//! Words to the daemon: queued by any thread, written by one, in order.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use parking_lot::Mutex;

use super::panics::vital;
use crate::protocol::{self, FromWorker};

/// What the writing thread is given.
enum Entry {
    Word(FromWorker),
    /// Everything before it is written: say so.
    Written(Sender<()>),
}

/// The queue. What was said before [`finish`](Self::finish) or [`flush`](Self::flush) is written before they return.
pub(super) struct Outbox {
    queue: Mutex<Option<Sender<Entry>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Outbox {
    /// Starts the thread that writes.
    pub fn start(to: UnixStream) -> std::io::Result<Arc<Self>> {
        let (queue, entries) = channel();
        let writer = Builder::new()
            .name("words".to_owned())
            .spawn(move || vital(|| write(to, &entries)))?;
        Ok(Arc::new(Self {
            queue: Mutex::new(Some(queue)),
            writer: Mutex::new(Some(writer)),
        }))
    }

    /// Queues a word. After the daemon is gone it is dropped.
    pub fn say(&self, word: FromWorker) {
        if let Some(queue) = self.queue.lock().as_ref() {
            // The reading thread sees the same end of the socket and ends the process.
            let _ = queue.send(Entry::Word(word));
        }
    }

    /// Writes what is queued. Done before something begins that may end this process: what was said then is heard even so,
    /// and the death counts for the stage that it came in.
    pub fn flush(&self) {
        let (written, waits) = channel();
        let queued = self
            .queue
            .lock()
            .as_ref()
            .is_some_and(|queue| queue.send(Entry::Written(written)).is_ok());
        if queued {
            // An error: the writer is gone meanwhile, and there is nobody to write to.
            let _ = waits.recv();
        }
    }

    /// Writes what is queued; later words are dropped.
    pub fn finish(&self) {
        self.queue.lock().take();
        if let Some(writer) = self.writer.lock().take() {
            let _ = writer.join();
        }
    }
}

fn write(mut to: UnixStream, entries: &Receiver<Entry>) {
    for entry in entries {
        let word = match entry {
            Entry::Word(word) => word,
            Entry::Written(written) => {
                // Who waits for it lives as long as this thread.
                let _ = written.send(());
                continue;
            }
        };
        if let Err(error) = protocol::write(&mut to, &word) {
            tracing::warn!(%error, "a word to the daemon was not sent");
            // Half a frame may be out: the daemon must see an end, not wait for the rest.
            let _ = to.shutdown(std::net::Shutdown::Both);
            return;
        }
    }
}
