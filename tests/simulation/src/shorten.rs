//! A failing run, shortened: steps are left out as long as it still fails. What fails in the end may be another symptom, of
//! the same fault as a rule.
//!
//! In each step of a run something is chosen to happen, and numbers are drawn: to whom, how long it takes. Both are
//! written down step by step. A candidate is the same list with a part left out; in each step that is left the same
//! happens, if it can, else nothing. Parts of half the length are tried, then of a quarter, down to single steps
//! (delta debugging), until nothing can be left out any more or so many steps have been made.

use std::panic::{AssertUnwindSafe, catch_unwind};

use proofkeep_store::machine::{Machine, Rules};

use crate::chance::Draws;
use crate::disk::Broken;
use crate::world::World;
use crate::{Violation, live, said};

/// Steps of all candidates together: a bound of the time that this takes.
const STEPS: u64 = 600_000;

/// What is left of a failing run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Short {
    /// What is wrong.
    pub wrong: String,
    /// Steps that are needed to show it, with the time of calm at the end if it is one that shows only there.
    pub steps: usize,
    /// These steps in words.
    pub lines: Vec<String>,
    /// Steps that the run had.
    pub of: usize,
}

/// How a list of steps is made, and what it shows.
struct Lab {
    seed: u64,
    rules: Rules,
    disk: Broken,
    /// The fault shows only when all trouble stops.
    calm: bool,
    left: u64,
}

/// Shortens a failing run. `None` if what was written down doesn't fail again.
#[must_use]
pub fn shorten(violation: &Violation, rules: Rules, disk: Broken) -> Option<Short> {
    let mut world = World::new(violation.seed, Machine { rules }, disk);
    world.chance.write_down();
    // It fails, as it did before.
    let _ = catch_unwind(AssertUnwindSafe(|| live(&mut world, violation.steps)));
    let all = world.chance.written();
    let of = all.len();
    let mut lab = Lab {
        seed: violation.seed,
        rules,
        disk,
        calm: false,
        left: STEPS,
    };
    // A fault of liveness shows at the end of a time of calm, whatever is drawn in it.
    let mut rough = all.clone();
    while rough.last().is_some_and(|step| step.calm) {
        rough.pop();
    }
    let mut steps = all;
    if lab.shows(&steps).is_none() {
        (lab.calm, steps) = (true, rough);
        lab.shows(&steps)?;
    }
    let mut part = steps.len().div_ceil(2);
    while part > 0 {
        let mut from = 0;
        let mut less = false;
        while from < steps.len() && lab.left > 0 {
            let mut candidate = steps[..from].to_vec();
            candidate.extend_from_slice(&steps[(from + part).min(steps.len())..]);
            match lab.shows(&candidate) {
                // It may have failed before the end: the rest isn't needed either.
                Some(made) if lab.calm || made >= candidate.len() => (steps, less) = (candidate, true),
                Some(made) => {
                    candidate.truncate(made);
                    (steps, less) = (candidate, true);
                }
                None => from += part,
            }
        }
        if lab.left == 0 {
            break;
        }
        // Single steps are tried until none of them can be left out.
        part = if part == 1 && less { 1 } else { part / 2 };
    }
    let (world, wrong) = lab.run(&steps);
    Some(Short {
        wrong: wrong?,
        steps: steps.len(),
        lines: world.last(),
        of,
    })
}

impl Lab {
    fn run(&self, steps: &[Draws]) -> (World, Option<String>) {
        let mut world = World::new(self.seed, Machine { rules: self.rules }, self.disk);
        world.keep_lines(steps.len().saturating_mul(2).max(50));
        world.chance.give(steps.to_vec());
        let outcome = catch_unwind(AssertUnwindSafe(|| self.replay(&mut world, steps)));
        let wrong = match outcome {
            Ok(outcome) => outcome.err(),
            Err(panic) => Some(said(panic.as_ref())),
        };
        (world, wrong)
    }

    fn replay(&self, world: &mut World, steps: &[Draws]) -> Result<(), String> {
        for step in steps {
            if step.calm && world.rough {
                world.calm_down();
            }
            world.rough = !step.calm;
            world.step()?;
            if step.calm {
                world.go_on();
            }
        }
        // What was broken on the way may be seen only now.
        world.fsck()?;
        if self.calm { world.calm() } else { Ok(()) }
    }

    /// The steps that were made when it failed; `None` if it doesn't.
    fn shows(&mut self, steps: &[Draws]) -> Option<usize> {
        let (world, wrong) = self.run(steps);
        self.left = self.left.saturating_sub(world.steps());
        wrong.map(|_| usize::try_from(world.steps()).unwrap_or(usize::MAX))
    }
}
