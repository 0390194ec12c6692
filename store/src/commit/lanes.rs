//! The two lanes in which commands wait.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::{CommitError, Committed};
use crate::machine::{Command, Lane};

/// What a caller waits on; resolves when its command is durable or refused.
pub type Waiting = oneshot::Receiver<Result<Committed, CommitError>>;

/// A command and the one who waits for it.
pub(super) struct Request {
    pub command: Command,
    pub answer: oneshot::Sender<Result<Committed, CommitError>>,
}

/// Ends first, then requests, each in order of arrival.
pub(super) struct Lanes {
    queues: Mutex<Queues>,
    arrived: Condvar,
    limit: usize,
}

#[derive(Default)]
struct Queues {
    ends: VecDeque<Request>,
    requests: VecDeque<Request>,
    closed: bool,
}

/// What there is to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// Something waits.
    Work,
    /// Nothing came for a while.
    Idle,
    /// Nothing waits and nothing will.
    Closed,
}

impl Lanes {
    /// Empty lanes; at most `limit` requests wait.
    pub fn new(limit: usize) -> Self {
        Self {
            queues: Mutex::default(),
            arrived: Condvar::new(),
            limit,
        }
    }

    /// Puts a command into its lane.
    pub fn push(&self, command: Command) -> Result<Waiting, CommitError> {
        let (answer, waiting) = oneshot::channel();
        let lane = command.lane();
        let request = Request { command, answer };
        let mut queues = self.queues.lock();
        if queues.closed {
            return Err(CommitError::Stopped);
        }
        match lane {
            Lane::Ends => queues.ends.push_back(request),
            Lane::Requests if queues.requests.len() >= self.limit => return Err(CommitError::Busy),
            Lane::Requests => queues.requests.push_back(request),
        }
        drop(queues);
        self.arrived.notify_one();
        Ok(waiting)
    }

    /// The next command, if one waits.
    pub fn pop(&self) -> Option<Request> {
        let mut queues = self.queues.lock();
        queues.ends.pop_front().or_else(|| queues.requests.pop_front())
    }

    /// Waits until there is something to do, at most `patience`.
    pub fn wait(&self, patience: Duration) -> Wake {
        let mut queues = self.queues.lock();
        if queues.is_empty() && !queues.closed {
            self.arrived.wait_for(&mut queues, patience);
        }
        match (queues.is_empty(), queues.closed) {
            (false, _) => Wake::Work,
            (true, false) => Wake::Idle,
            (true, true) => Wake::Closed,
        }
    }

    /// Takes no more commands; those that wait stay.
    pub fn close(&self) {
        self.queues.lock().closed = true;
        self.arrived.notify_all();
    }

    /// Commands that wait.
    pub fn len(&self) -> usize {
        let queues = self.queues.lock();
        queues.ends.len() + queues.requests.len()
    }
}

impl Queues {
    fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.requests.is_empty()
    }
}
