//! A deterministic simulation of the whole daemon: scheduler, memory, worker processes, commits and recovery, with a
//! simulated clock, disk, devices, users and crashes. One seed is one run, byte for byte.
//!
//! What decides is the product's own code: the state machine, the lanes and groups of the commit thread, the accounts of
//! memory, the scheduler, what a process holds and what its words mean, starts and orphans, the clock, and what recovery
//! does. What is simulated is what surrounds it: threads become steps (any order of them that the product allows), the
//! store an ordered map whose last commands may not be durable yet, worker processes state machines that hang, crash and
//! run out of memory as their inputs and the weather will.
//!
//! After each step the invariants of the states' page are checked on what it touched (`watch`), the scheduler's promises
//! on each of its decisions (`fair`), the ledger of acknowledged answers (`users`), and now and then everything (`fsck`).
//! Now and then all trouble stops, and every job must end (`calm`). A run that fails is shortened to the steps that it takes
//! (`shorten`).
//!
//! ```text
//! PROOFKEEP_SIM_STEPS=20000000 PROOFKEEP_SIM_SEED=7 cargo test --release -p proofkeep-simulation --test simulation
//! ```

mod boot;
mod calm;
mod chance;
mod child;
mod commit;
mod daemon;
mod disk;
mod fair;
mod fault;
mod nature;
mod reader;
mod run_loop;
mod shorten;
mod time;
mod trace;
mod users;
mod watch;
mod world;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proofkeep_store::machine::{Machine, Rules};

pub use disk::Broken;
pub use shorten::{Short, shorten};
pub use trace::Counts;
use world::World;

/// Steps of trouble between two times of calm.
const ROUGH: (u64, u64) = (400, 6_000);

/// A run that held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Steps that it had.
    pub steps: u64,
    /// What happened, how often.
    pub counts: Counts,
    /// The same for the same run: it covers every step and every byte of the store.
    pub fingerprint: u64,
}

/// A run that found a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The seed.
    pub seed: u64,
    /// At which step.
    pub step: u64,
    /// Steps that were asked for.
    pub steps: u64,
    /// What is wrong.
    pub wrong: String,
    /// The last steps.
    pub last: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.last {
            writeln!(f, "{line}")?;
        }
        writeln!(f, "seed {}, step {}: {}", self.seed, self.step, self.wrong)?;
        write!(
            f,
            "again: PROOFKEEP_SIM_REPLAY={} PROOFKEEP_SIM_STEPS={} cargo test --release -p proofkeep-simulation --test \
             simulation replay -- --nocapture",
            self.seed, self.steps
        )
    }
}

/// Makes one run of at least `steps` steps; it ends in a time of calm.
///
/// # Errors
/// The first fault.
pub fn run(seed: u64, steps: u64, rules: Rules) -> Result<Held, Box<Violation>> {
    run_on(seed, steps, rules, Broken::Not)
}

/// The same on a disk that may be broken, to show that it is noticed.
///
/// # Errors
/// The first fault.
pub fn run_on(seed: u64, steps: u64, rules: Rules, disk: Broken) -> Result<Held, Box<Violation>> {
    let mut world = World::new(seed, Machine { rules }, disk);
    // A broken machine may make the product's own checks stop it; that is noticed too.
    let outcome = catch_unwind(AssertUnwindSafe(|| live(&mut world, steps)));
    let wrong = match outcome {
        Ok(Ok(())) => {
            return Ok(Held {
                steps: world.steps(),
                counts: world.counts().clone(),
                fingerprint: world.fingerprint(),
            });
        }
        Ok(Err(wrong)) => wrong,
        Err(panic) => said(panic.as_ref()),
    };
    Err(Box::new(Violation {
        seed,
        step: world.steps(),
        steps,
        wrong,
        last: world.last(),
    }))
}

/// What a panic said.
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    format!("panic: {}", text.unwrap_or_default())
}

fn live(world: &mut World, steps: u64) -> Result<(), String> {
    while world.steps() < steps {
        let until = world.steps() + world.chance.between(ROUGH.0, ROUGH.1);
        while world.steps() < until {
            world.step()?;
        }
        world.calm()?;
    }
    Ok(())
}
