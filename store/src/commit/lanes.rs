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
    queues: Mutex<Queues<Request>>,
    arrived: Condvar,
}

/// The lanes themselves: pure.
#[derive(Clone, Debug)]
pub struct Queues<T> {
    ends: VecDeque<T>,
    requests: VecDeque<T>,
    closed: bool,
    limit: usize,
}

impl<T> Queues<T> {
    /// Empty lanes; at most `limit` requests wait.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            ends: VecDeque::new(),
            requests: VecDeque::new(),
            closed: false,
            limit,
        }
    }

    /// Puts something into its lane.
    ///
    /// # Errors
    /// [`CommitError::Stopped`] after [`close`](Self::close), [`CommitError::Busy`] when too many requests wait.
    pub fn push(&mut self, lane: Lane, waiting: T) -> Result<(), CommitError> {
        if self.closed {
            return Err(CommitError::Stopped);
        }
        match lane {
            Lane::Ends => self.ends.push_back(waiting),
            Lane::Requests if self.requests.len() >= self.limit => return Err(CommitError::Busy),
            Lane::Requests => self.requests.push_back(waiting),
        }
        Ok(())
    }

    /// What is next.
    pub fn pop(&mut self) -> Option<T> {
        self.ends.pop_front().or_else(|| self.requests.pop_front())
    }

    /// Takes nothing more; what waits stays.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// How much waits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len() + self.requests.len()
    }

    /// Nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.requests.is_empty()
    }
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
            queues: Mutex::new(Queues::new(limit)),
            arrived: Condvar::new(),
        }
    }

    /// Puts a command into its lane.
    pub fn push(&self, command: Command) -> Result<Waiting, CommitError> {
        let (answer, waiting) = oneshot::channel();
        let lane = command.lane();
        self.queues.lock().push(lane, Request { command, answer })?;
        self.arrived.notify_one();
        Ok(waiting)
    }

    /// The next command, if one waits.
    pub fn pop(&self) -> Option<Request> {
        self.queues.lock().pop()
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
        self.queues.lock().close();
        self.arrived.notify_all();
    }

    /// Commands that wait.
    pub fn len(&self) -> usize {
        self.queues.lock().len()
    }
}
