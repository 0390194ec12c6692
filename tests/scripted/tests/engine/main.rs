//! The engine, whole, with the scripted kind: real worker processes, killed, hung, out of memory; restarts; shutdown.
//!
//! This program is its own worker process and its own daemon to kill, so it has no libtest harness; it takes names of
//! tests to run as arguments, like one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod failures;
mod requests;
mod restarts;
mod running;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

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
        _ => run(&args),
    }
}

fn run(args: &[String]) -> ExitCode {
    let tests: Vec<Test> = [running::TESTS, failures::TESTS, restarts::TESTS, requests::TESTS].concat();
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    if args.iter().any(|arg| arg == "--list") {
        for (name, _) in tests {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let chosen: Vec<Test> = tests
        .into_iter()
        .filter(|(name, _)| filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str())))
        .collect();
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_env("PROOFKEEP_LOG"))
        .with_writer(std::io::stderr)
        .init();
    println!("\nrunning {} tests", chosen.len());
    let mut failed = Vec::new();
    for (name, test) in &chosen {
        let start = Instant::now();
        let passed = catch_unwind(AssertUnwindSafe(test)).is_ok();
        let word = if passed { "ok" } else { "FAILED" };
        println!("test {name} ... {word} ({:.1} s)", start.elapsed().as_secs_f64());
        if !passed {
            failed.push(*name);
        }
    }
    println!(
        "\ntest result: {} passed; {} failed",
        chosen.len() - failed.len(),
        failed.len()
    );
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
