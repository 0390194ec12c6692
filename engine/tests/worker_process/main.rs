//! The worker process, with a test in the daemon's place.
//!
//! This test binary is its own worker process: started with `worker` as its first argument it is what `proofkeep
//! worker` is, so it has no libtest harness but runs its tests one after another. Arguments that aren't flags choose
//! tests by a part of their names, as with libtest.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, missing_docs)]

mod circuits;
mod daemon;
mod imports;
mod life;
mod memory;
mod proofs;
mod stops;
mod trial;

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
    let wanted: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let all = [
        proofs::TESTS,
        stops::TESTS,
        life::TESTS,
        imports::TESTS,
        memory::TESTS,
    ]
    .concat();
    let chosen: Vec<Test> = all
        .into_iter()
        .filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str())))
        .collect();
    if args.iter().any(|arg| arg == "--list") {
        chosen.iter().for_each(|(name, _)| println!("{name}: test"));
        return;
    }
    let mut failed = Vec::new();
    for (name, test) in &chosen {
        let passed = std::panic::catch_unwind(test).is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        if !passed {
            failed.push(name);
        }
    }
    println!(
        "\ntest result: {} passed; {} failed",
        chosen.len() - failed.len(),
        failed.len()
    );
    if !failed.is_empty() {
        println!("failed: {failed:?}");
        std::process::exit(101);
    }
}
