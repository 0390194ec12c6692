//! What this process holds: tasks that run, by their lease, and witnesses that wait, by their attempt.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use proofkeep_store::records::{Failure, FailureClass};

use super::outbox::Outbox;
use crate::kinds::{Prepared, Watch};
use crate::protocol::{FromWorker, WireToken, Work};

/// How often the daemon hears that work goes on.
const BEAT: Duration = Duration::from_millis(500);

/// One running task: hears its progress, knows whether it should stop.
pub(super) struct Task {
    token: WireToken,
    outbox: Arc<Outbox>,
    stopping: AtomicBool,
    reason: Mutex<Option<Failure>>,
    said: Mutex<Instant>,
}

impl Task {
    fn new(token: WireToken, outbox: Arc<Outbox>) -> Self {
        let said = Mutex::new(Instant::now());
        Self {
            token,
            outbox,
            stopping: AtomicBool::new(false),
            reason: Mutex::new(None),
            said,
        }
    }

    /// The work begins now.
    pub fn begin(&self) {
        self.say(0);
    }

    fn stop(&self, reason: Failure) {
        self.reason.lock().get_or_insert(reason);
        self.stopping.store(true, Ordering::Release);
    }

    fn say(&self, permille: u16) {
        self.outbox.say(FromWorker::Progress {
            token: self.token,
            permille,
        });
    }
}

impl Watch for Task {
    fn progress(&self, permille: u16) {
        // Whoever finds the lock taken lets the other one say it.
        if let Some(mut said) = self.said.try_lock()
            && said.elapsed() >= BEAT
        {
            *said = Instant::now();
            self.say(permille);
        }
    }

    fn stopped(&self) -> Option<Failure> {
        if self.stopping.load(Ordering::Acquire) {
            self.reason.lock().clone()
        } else {
            None
        }
    }
}

struct Running {
    task: Arc<Task>,
    work: Option<Work>,
    /// The daemon ended this attempt while it ran, and waits to hear that its memory is free.
    dropped: bool,
}

#[derive(Default)]
struct State {
    running: HashMap<WireToken, Running>,
    held: HashMap<Work, Box<dyn Prepared>>,
}

/// Everything that is held.
pub(super) struct Tasks {
    state: Mutex<State>,
    idle: Condvar,
    outbox: Arc<Outbox>,
}

impl Tasks {
    pub fn new(outbox: Arc<Outbox>) -> Self {
        Self {
            state: Mutex::default(),
            idle: Condvar::new(),
            outbox,
        }
    }

    /// A task under a lease. A lease that is in work already is not begun twice.
    pub fn begin(&self, token: WireToken, work: Option<Work>) -> Option<Arc<Task>> {
        let mut state = self.state.lock();
        if state.running.contains_key(&token) {
            return None;
        }
        let task = Arc::new(Task::new(token, Arc::clone(&self.outbox)));
        state.running.insert(
            token,
            Running {
                task: Arc::clone(&task),
                work,
                dropped: false,
            },
        );
        Some(task)
    }

    /// The task under this lease is over; `last` is its last word. Everything it used is free by now.
    pub fn end(&self, token: WireToken, last: Option<FromWorker>) {
        let mut state = self.state.lock();
        let ended = state.running.remove(&token);
        // Said under the lock, so that a `Drop` that comes now is answered after it.
        if let Some(word) = last {
            self.outbox.say(word);
        }
        if let Some(Running {
            dropped: true,
            work: Some(work),
            ..
        }) = ended
        {
            self.outbox.say(FromWorker::Dropped { work });
        }
        if state.running.is_empty() {
            self.idle.notify_all();
        }
    }

    /// Keeps a witness until its device is free, and says so. A witness that nobody waits for comes back.
    pub fn hold(
        &self,
        token: WireToken,
        work: Work,
        prepared: Box<dyn Prepared>,
        done: FromWorker,
    ) -> Result<(), Box<dyn Prepared>> {
        let mut state = self.state.lock();
        let unwanted = state
            .running
            .get(&token)
            .is_none_or(|running| running.dropped || running.task.stopping.load(Ordering::Acquire));
        if unwanted {
            return Err(prepared);
        }
        state.running.remove(&token);
        state.held.insert(work, prepared);
        self.outbox.say(done);
        if state.running.is_empty() {
            self.idle.notify_all();
        }
        Ok(())
    }

    /// Takes a witness that waits.
    pub fn take(&self, work: Work) -> Option<Box<dyn Prepared>> {
        self.state.lock().held.remove(&work)
    }

    /// Forgets whatever there is of an attempt; answered when its memory is free.
    pub fn drop_work(&self, work: Work) {
        let mut state = self.state.lock();
        let running = state
            .running
            .values_mut()
            .find(|running| running.work == Some(work));
        if let Some(running) = running {
            running.dropped = true;
            running.task.stop(Failure::new(
                FailureClass::Cancelled,
                "the daemon ended this attempt",
            ));
            return;
        }
        let held = state.held.remove(&work);
        drop(state);
        drop(held);
        self.outbox.say(FromWorker::Dropped { work });
    }

    /// Asks a task to stop; one that is over needs no answer.
    pub fn stop(&self, token: WireToken, reason: Failure) {
        if let Some(running) = self.state.lock().running.get(&token) {
            running.task.stop(reason);
        }
    }

    /// Whether anything runs or waits.
    pub fn is_busy(&self) -> bool {
        let state = self.state.lock();
        !state.running.is_empty() || !state.held.is_empty()
    }

    /// Waits until nothing runs.
    pub fn wait_idle(&self) {
        let mut state = self.state.lock();
        while !state.running.is_empty() {
            self.idle.wait(&mut state);
        }
    }
}
