//! The worker process, with a test in the daemon's place.
//!
//! This test binary is its own worker process: started with `worker` as its first argument it is what `proofkeep
//! worker` is, so it has a harness of its own, which takes libtest's arguments.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, missing_docs)]

mod circuits;
mod daemon;
mod imports;
mod life;
mod memory;
mod proofs;
mod stops;
mod trial;

use libtest_mimic::{Arguments, Trial};
use proofkeep_engine::kinds::Kinds;
use proofkeep_engine::kinds::groth16::Groth16;
use proofkeep_engine::worker;

#[global_allocator]
static ALLOCATOR: worker::Allocator = worker::Allocator;

type Test = (&'static str, fn());

/// Names a list of functions as tests.
#[macro_export]
macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        pub const TESTS: &[$crate::Test] = &[$((stringify!($name), $name)),*];
    };
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "worker") {
        let kinds = Kinds::none().with(Groth16::new()).with(trial::Trial);
        std::process::exit(worker::main(&args, kinds));
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(1);
    let all = [
        proofs::TESTS,
        stops::TESTS,
        life::TESTS,
        imports::TESTS,
        memory::TESTS,
    ]
    .concat();
    let trial = |(name, test): Test| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    libtest_mimic::run(&arguments, all.into_iter().map(trial).collect()).exit();
}
