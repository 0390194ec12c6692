//! The engine, whole, with the scripted kind: real worker processes, killed, hung, out of memory; restarts; shutdown.
//!
//! This program is its own worker process and its own daemon to kill, so it has a harness of its own, which takes libtest's
//! arguments.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod failures;
mod requests;
mod restarts;
mod running;
mod world;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use proofkeep_engine::kinds::Kinds;
use proofkeep_engine::kinds::groth16::Groth16;
use proofkeep_engine::worker::{self, Allocator};
use proofkeep_scripted::Scripted;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

type Test = (&'static str, fn());

fn kinds() -> Kinds {
    Kinds::none().with(Scripted).with(Groth16::new())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("worker") => std::process::exit(worker::main(&args, kinds())),
        Some("daemon") => {
            world::daemon(&args[1..]);
            ExitCode::SUCCESS
        }
        _ => run(),
    }
}

/// One test after the other: each has worker processes and waits of its own.
fn run() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_env("PROOFKEEP_LOG"))
        .with_writer(std::io::stderr)
        .init();
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(1);
    let tests = [running::TESTS, failures::TESTS, restarts::TESTS, requests::TESTS].concat();
    let trial = |(name, test): Test| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    libtest_mimic::run(&arguments, tests.into_iter().map(trial).collect()).exit_code()
}
