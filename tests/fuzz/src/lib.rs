//! Fuzzing of every parser, with nothing but stable Rust.
//!
//! A [`Target`] is a parser with its seeds: the circom fixtures of this repository, the golden bytes of the store, one
//! of each word of the worker protocol, and under `corpus/` the inputs that once broke something. [`run`] mutates seeds and holds the parser to four promises: it doesn't panic, it doesn't
//! allocate more than a small multiple of its input, it comes back in time, and what it accepts keeps the properties
//! that the target states (such as: written again, it is read as the same).
//!
//! There is no coverage feedback. In its place, an input whose refusal was worded as none before joins the seeds, so
//! that the search goes on from each check that was passed.
//!
//! A run is determined by a target, a seed and a number of iterations, and each failure prints the command that
//! repeats it. `tests/parsers.rs` runs each target for `PROOFKEEP_FUZZ_ITERS` iterations, and the binary for as long
//! as it is told:
//!
//! ```text
//! PROOFKEEP_FUZZ_ITERS=1000000 cargo test --release -p proofkeep-fuzz
//! cargo run --release -p proofkeep-fuzz -- zkey --seconds 600
//! ```
//!
//! `libfuzzer/` has the same targets for cargo-fuzz, whose coverage sees further and which needs a nightly compiler.

pub mod alloc;
mod binary;
mod rng;
mod runner;
mod seeds;
mod targets;
mod text;

pub use rng::Rng;
pub use runner::{Failure, Limit, Report, replay, run};
pub use targets::{Outcome, Shape, Target, all, find, hold};
