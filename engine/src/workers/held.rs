//! What one worker process holds, as the daemon knows it: which token stands for which work, since when, and who was
//! asked to stop. The store decides; this is only how words find their attempt.

mod silence;

use std::collections::BTreeMap;
use std::time::Instant;

use proofkeep_store::ids::{Digest, Token};
use proofkeep_store::machine::Command;
use proofkeep_store::records::{AttemptRef, Checkpoint, Failure, FailureClass, Piece};

use crate::schedule::OpenNow;

pub use silence::{Overdue, Patience};

/// The stage of a lease, or the wait between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldStage {
    /// The witness is being made.
    Synth(Token),
    /// The witness waits for a slot.
    Waiting,
    /// On the device.
    Prove(Token),
    /// Assembled and verified.
    Finish(Token),
}

impl HeldStage {
    /// Its lease.
    #[must_use]
    pub fn token(self) -> Option<Token> {
        match self {
            Self::Waiting => None,
            Self::Synth(token) | Self::Prove(token) | Self::Finish(token) => Some(token),
        }
    }
}

/// One attempt in the process.
#[derive(Clone, Debug)]
pub struct Task {
    /// Which.
    pub attempt: AttemptRef,
    /// Its stage.
    pub stage: HeldStage,
    /// What the witness is and which key its pieces belong to, once it is there.
    pub made: Option<Made>,
    /// It was asked to stop, when and why.
    pub asked: Option<(Instant, Failure)>,
    /// It was told to drop its witness, when.
    pub dropping: Option<Instant>,
    begun: bool,
    moved: Instant,
    since: Instant,
}

/// A witness, by name.
#[derive(Clone, Debug)]
pub struct Made {
    /// Its digest.
    pub witness: Digest,
    /// The key's digest.
    pub key: Digest,
    /// Public signals.
    pub public: Vec<u8>,
}

impl Made {
    /// The pieces of a checkpoint that belong to this witness and its key; none if it is of another one.
    #[must_use]
    pub fn pieces(&self, kept: Option<Checkpoint>) -> Vec<Piece> {
        kept.filter(|kept| kept.witness == self.witness && kept.key == self.key)
            .map(|kept| kept.pieces)
            .unwrap_or_default()
    }
}

/// The end of an attempt that got a slot and has no witness any more.
#[must_use]
pub fn witness_lost(token: Token) -> Command {
    let failure = Failure::coded(
        FailureClass::DeviceError,
        "witness-lost",
        "the witness was not in the worker process any more; this is a fault of proofkeep, please report it",
    );
    Command::AttemptFailed {
        token,
        failure,
        process_peak_bytes: None,
    }
}

/// An import in the process.
#[derive(Clone, Debug)]
pub struct Import {
    /// Which circuit.
    pub circuit: Digest,
    /// When its progress was last stored.
    pub stored: Option<Instant>,
    /// Units done, as last heard.
    pub done: u64,
    /// It gave up for a reason that may pass; it is sent again then.
    pub again: Option<Instant>,
    /// It was asked to stop, when and why.
    pub asked: Option<(Instant, Failure)>,
    moved: Instant,
}

/// What a daemon that stops asks of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindDown {
    /// Leases to end.
    pub stop: Vec<Token>,
    /// Witnesses to drop.
    pub drop: Vec<AttemptRef>,
    /// There is nothing left but imports that wait for another try.
    pub idle: bool,
}

/// Everything that one process holds.
#[derive(Debug, Default)]
pub struct Held {
    tasks: BTreeMap<AttemptRef, Task>,
    tokens: BTreeMap<Token, AttemptRef>,
    /// Imports by lease.
    pub imports: BTreeMap<Token, Import>,
    /// Something was granted to it once.
    had_work: bool,
}

impl Held {
    /// Something was granted to the process, now or before.
    #[must_use]
    pub fn had_work(&self) -> bool {
        self.had_work
    }

    /// A synthesis was granted.
    pub fn synth(&mut self, attempt: AttemptRef, token: Token, now: Instant) {
        let stage = HeldStage::Synth(token);
        let task = Task {
            attempt,
            stage,
            made: None,
            asked: None,
            dropping: None,
            begun: false,
            moved: now,
            since: now,
        };
        self.tokens.insert(token, attempt);
        self.tasks.insert(attempt, task);
        self.had_work = true;
    }

    /// Its witness is there.
    pub fn waiting(&mut self, token: Token, made: Made) {
        if let Some(task) = self
            .tokens
            .remove(&token)
            .and_then(|attempt| self.tasks.get_mut(&attempt))
        {
            (task.stage, task.made, task.asked) = (HeldStage::Waiting, Some(made), None);
        }
    }

    /// A device slot was granted. `None` if no such witness waits.
    pub fn prove(&mut self, attempt: AttemptRef, token: Token, now: Instant) -> Option<Made> {
        let task = self
            .tasks
            .get_mut(&attempt)
            .filter(|task| task.stage == HeldStage::Waiting)?;
        let made = task.made.clone()?;
        (task.stage, task.begun, task.moved, task.since) = (HeldStage::Prove(token), false, now, now);
        self.tokens.insert(token, attempt);
        Some(made)
    }

    /// The device is free.
    pub fn finish(&mut self, token: Token, now: Instant) {
        if let Some(task) = self.task_mut(token) {
            (task.stage, task.begun, task.moved, task.since) = (HeldStage::Finish(token), false, now, now);
        }
    }

    /// The attempt is over and its memory free.
    pub fn remove(&mut self, attempt: AttemptRef) -> Option<Task> {
        let task = self.tasks.remove(&attempt)?;
        if let Some(token) = task.stage.token() {
            self.tokens.remove(&token);
        }
        Some(task)
    }

    /// The task under a lease.
    #[must_use]
    pub fn task(&self, token: Token) -> Option<&Task> {
        self.tokens
            .get(&token)
            .and_then(|attempt| self.tasks.get(attempt))
    }

    fn task_mut(&mut self, token: Token) -> Option<&mut Task> {
        self.tokens
            .get(&token)
            .and_then(|attempt| self.tasks.get_mut(attempt))
    }

    /// The task of an attempt.
    #[must_use]
    pub fn attempt(&self, attempt: AttemptRef) -> Option<&Task> {
        self.tasks.get(&attempt)
    }

    /// All tasks.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values()
    }

    /// Nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.imports.is_empty()
    }

    /// Attempts whose witness is held and that aren't open any more.
    #[must_use]
    pub fn unwanted(&self, open: &[OpenNow]) -> Vec<AttemptRef> {
        let wanted = |attempt: AttemptRef| open.iter().any(|open| open.attempt == attempt);
        self.tasks
            .keys()
            .copied()
            .filter(|attempt| !wanted(*attempt))
            .collect()
    }

    /// The open attempt is held here, under the same lease. Between a word and its commit the two differ for a moment.
    #[must_use]
    pub fn knows(&self, open: &OpenNow) -> bool {
        match open.token {
            Some(token) => self.task(token).is_some(),
            None => self.attempt(open.attempt).is_some(),
        }
    }

    /// What is to be asked of the process when the daemon stops: leases to end (those that are being finished may),
    /// witnesses to drop, and whether it has nothing left.
    #[must_use]
    pub fn wind_down(&self) -> WindDown {
        let finishing = |task: &&Task| !matches!(task.stage, HeldStage::Finish(_));
        let stop = self
            .tasks()
            .filter(finishing)
            .filter_map(|task| task.stage.token())
            .chain(self.imports.keys().copied())
            .collect();
        let drop = self
            .tasks()
            .filter(|task| task.stage.token().is_none())
            .map(|task| task.attempt)
            .collect();
        let idle = self.tasks.is_empty() && self.imports.values().all(|import| import.again.is_some());
        WindDown { stop, drop, idle }
    }

    /// Imports that gave up for a while and are to be sent again now, with the units they had done.
    #[must_use]
    pub fn imports_due(&self, now: Instant) -> Vec<(Token, Digest, u64)> {
        self.imports
            .iter()
            .filter(|(_, import)| import.again.is_some_and(|at| at <= now))
            .map(|(token, import)| (*token, import.circuit, import.done))
            .collect()
    }

    /// Something was heard under a lease.
    pub fn moved(&mut self, token: Token, now: Instant) {
        if let Some(task) = self.task_mut(token) {
            (task.begun, task.moved) = (true, now);
        }
        if let Some(import) = self.imports.get_mut(&token) {
            import.moved = now;
        }
    }

    /// An import was granted.
    pub fn import(&mut self, circuit: Digest, token: Token, done: u64, now: Instant) {
        let import = Import {
            circuit,
            stored: None,
            done,
            again: None,
            asked: None,
            moved: now,
        };
        self.imports.insert(token, import);
        self.had_work = true;
    }

    /// An import is sent again.
    pub fn import_again(&mut self, token: Token, now: Instant) {
        if let Some(import) = self.imports.get_mut(&token) {
            (import.again, import.asked, import.moved) = (None, None, now);
        }
    }

    /// Notes that a lease was asked to stop. `false` if it was before, or isn't here.
    pub fn ask(&mut self, token: Token, failure: &Failure, now: Instant) -> bool {
        let asked = match self
            .tokens
            .get(&token)
            .and_then(|attempt| self.tasks.get_mut(attempt))
        {
            Some(task) => &mut task.asked,
            None => match self
                .imports
                .get_mut(&token)
                .filter(|import| import.again.is_none())
            {
                Some(import) => &mut import.asked,
                None => return false,
            },
        };
        let first = asked.is_none();
        if first {
            *asked = Some((now, failure.clone()));
        }
        first
    }

    /// Notes that a witness was told to go. `false` if it was before, or isn't waiting.
    pub fn drop_witness(&mut self, attempt: AttemptRef, now: Instant) -> bool {
        match self.tasks.get_mut(&attempt) {
            Some(task) if task.stage == HeldStage::Waiting && task.dropping.is_none() => {
                task.dropping = Some(now);
                true
            }
            _ => false,
        }
    }

    /// Leases that were asked to stop.
    pub fn asked(&self) -> impl Iterator<Item = Token> {
        let imports = self
            .imports
            .iter()
            .filter(|(_, import)| import.asked.is_some())
            .map(|(token, _)| *token);
        self.tasks
            .values()
            .filter(|task| task.asked.is_some())
            .filter_map(|task| task.stage.token())
            .chain(imports)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use proofkeep_store::ids::{BootNumber, JobNumber, JournalNumber};

    use super::*;

    fn attempt(job: u64) -> AttemptRef {
        AttemptRef {
            job: JobNumber(job),
            partition: 0,
            number: 1,
        }
    }

    fn token(grant: u64) -> Token {
        Token {
            boot: BootNumber(1),
            grant: JournalNumber(grant),
        }
    }

    #[test]
    fn a_late_token_finds_nothing() {
        let now = Instant::now();
        let mut held = Held::default();
        held.synth(attempt(1), token(1), now);
        let made = Made {
            witness: Digest([1; 32]),
            key: Digest([2; 32]),
            public: Vec::new(),
        };
        held.waiting(token(1), made);
        assert!(held.task(token(1)).is_none());
        assert!(held.prove(attempt(2), token(5), now).is_none());
        assert!(held.prove(attempt(1), token(2), now).is_some());
        assert!(held.prove(attempt(1), token(3), now).is_none());
        assert_eq!(held.task(token(2)).unwrap().stage, HeldStage::Prove(token(2)));
        assert!(held.remove(attempt(1)).is_some());
        assert!(held.task(token(2)).is_none() && held.is_empty());
    }
}
