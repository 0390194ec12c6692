//! How silence is noticed: work without progress is asked to stop, and who doesn't answer is killed with its process.

use std::time::{Duration, Instant};

use proofkeep_store::ids::Token;
use proofkeep_store::records::{Failure, FailureClass};

use super::{Held, Task};

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Work without progress is asked to stop.
    pub stalled: Duration,
    /// An attempt may hold one lease at most this long.
    pub timeout: Duration,
    /// Who was asked to stop and doesn't answer is killed with its process.
    pub answer: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            stalled: Duration::from_secs(60),
            timeout: Duration::from_secs(24 * 3600),
            answer: Duration::from_secs(30),
        }
    }
}

/// What silence calls for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Overdue {
    /// Ask this lease to end.
    Stop(Token, Failure),
    /// Kill the process; this lease is the reason, and how its attempt ends.
    Kill(Option<(Token, Failure)>),
}

impl Held {
    /// What has been silent for too long. Work that is queued in the process counts as moving while other work of its
    /// stage moves.
    #[must_use]
    pub fn overdue(&self, now: Instant, patience: &Patience) -> Vec<Overdue> {
        let tasks = self
            .tasks
            .values()
            .filter_map(|task| self.task_overdue(task, now, patience));
        let imports = self.imports.iter().filter_map(|(token, import)| {
            if let Some((at, failure)) = &import.asked {
                let late = now.duration_since(*at) > patience.answer;
                return late.then(|| Overdue::Kill(Some((*token, failure.clone()))));
            }
            let silent = now.duration_since(import.moved);
            let stalled = import.again.is_none() && silent > patience.stalled;
            stalled.then(|| Overdue::Stop(*token, stalled_failure(silent)))
        });
        tasks.chain(imports).collect()
    }

    fn task_overdue(&self, task: &Task, now: Instant, patience: &Patience) -> Option<Overdue> {
        if let Some(at) = task.dropping {
            return (now.duration_since(at) > patience.answer).then_some(Overdue::Kill(None));
        }
        let token = task.stage.token()?;
        if let Some((at, failure)) = &task.asked {
            let late = now.duration_since(*at) > patience.answer;
            return late.then(|| Overdue::Kill(Some((token, failure.clone()))));
        }
        let silent = now.duration_since(self.last_move(task));
        if silent > patience.stalled {
            return Some(Overdue::Stop(token, stalled_failure(silent)));
        }
        let long = now.duration_since(task.since);
        (long > patience.timeout).then(|| {
            let limit = patience.timeout.as_secs();
            let text = format!("it took more than the {limit} s that one stage of an attempt may take");
            Overdue::Stop(token, Failure::new(FailureClass::TimedOut, text))
        })
    }

    fn last_move(&self, task: &Task) -> Instant {
        if task.begun {
            return task.moved;
        }
        let same =
            |other: &&Task| std::mem::discriminant(&other.stage) == std::mem::discriminant(&task.stage);
        self.tasks
            .values()
            .filter(same)
            .map(|other| other.moved)
            .max()
            .unwrap_or(task.moved)
    }
}

fn stalled_failure(silent: Duration) -> Failure {
    let text = format!(
        "no progress was seen for {} s, so it was stopped",
        silent.as_secs()
    );
    Failure::new(FailureClass::Stalled, text)
}

#[cfg(test)]
mod tests {
    use proofkeep_store::ids::{BootNumber, JobNumber, JournalNumber};
    use proofkeep_store::records::AttemptRef;

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

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn silence_is_asked_to_stop_and_killed_when_it_does_not_answer() {
        let start = Instant::now();
        let patience = Patience::default();
        let mut held = Held::default();
        held.synth(attempt(1), token(1), start);
        held.moved(token(1), start + seconds(10));
        assert!(held.overdue(start + seconds(69), &patience).is_empty());
        let overdue = held.overdue(start + seconds(71), &patience);
        let [Overdue::Stop(stopped, failure)] = &overdue[..] else {
            panic!("{overdue:?}")
        };
        assert_eq!((*stopped, failure.class), (token(1), FailureClass::Stalled));
        assert!(held.ask(token(1), failure, start + seconds(71)));
        assert!(!held.ask(token(1), failure, start + seconds(72)));
        assert!(held.overdue(start + seconds(100), &patience).is_empty());
        let overdue = held.overdue(start + seconds(102), &patience);
        assert!(
            matches!(&overdue[..], [Overdue::Kill(Some((killed, _)))] if *killed == token(1)),
            "{overdue:?}"
        );
    }

    #[test]
    fn queued_work_is_not_stalled_while_its_stage_moves() {
        let start = Instant::now();
        let patience = Patience::default();
        let mut held = Held::default();
        held.synth(attempt(1), token(1), start);
        held.synth(attempt(2), token(2), start);
        for second in (0..300).step_by(5) {
            held.moved(token(1), start + seconds(second));
        }
        assert!(held.overdue(start + seconds(300), &patience).is_empty());
        assert_eq!(held.overdue(start + seconds(400), &patience).len(), 2);
        // One that has begun and then hangs is seen, whatever moves beside it.
        held.moved(token(2), start + seconds(300));
        for second in (300..400).step_by(5) {
            held.moved(token(1), start + seconds(second));
        }
        let overdue = held.overdue(start + seconds(399), &patience);
        assert!(
            matches!(&overdue[..], [Overdue::Stop(stopped, _)] if *stopped == token(2)),
            "{overdue:?}"
        );
    }
}
