//! Files and records are damaged: a bit flips, an end is cut off, a file is empty or gone. It is detected, named with what
//! to do, and touches only the jobs that need it; never a wrong proof, never a silent loss, never an empty start.
//!
//! ```text
//! cargo test --release -p proofkeep-tests --test crash_damage -- --nocapture
//! PROOFKEEP_DAMAGE=1000 cargo test --release -p proofkeep-tests --test crash_damage -- --nocapture
//! ```
//! `PROOFKEEP_DAMAGE` is how many random bits of the database are flipped (40 without it; at least 10), each in a copy of
//! its own. `PROOFKEEP_SEED` repeats a run.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod damage;
mod database;
mod live;
mod objects;
mod records;
#[path = "../regressions_support/mod.rs"]
mod regressions_support;
mod scene;
mod scrubbed;
mod waiting;
