//! Fuzzes for as long as it is told: `proofkeep-fuzz [target|all] [--seconds N] [--seed N]`.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use proofkeep_fuzz::alloc::Counting;
use proofkeep_fuzz::{Limit, Target, all, find, run};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const USAGE: &str = "usage: proofkeep-fuzz [TARGET|all] [--seconds N] [--seed N]";

struct Options {
    targets: Vec<&'static Target>,
    seconds: u64,
    seed: u64,
}

fn options() -> Result<Options, String> {
    let everything = || all().collect();
    let mut options = Options {
        targets: everything(),
        seconds: 60,
        seed: 1,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            arguments
                .next()
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| format!("{argument} takes a number"))
        };
        match argument.as_str() {
            "--seconds" => options.seconds = number()?,
            "--seed" => options.seed = number()?,
            "all" => options.targets = everything(),
            name => {
                let names: Vec<&str> = all().map(|target| target.name).collect();
                let unknown = || format!("no target {name}; there are {}", names.join(", "));
                options.targets = vec![find(name).ok_or_else(unknown)?];
            }
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut out = std::io::stdout();
    for target in options.targets {
        match run(
            target,
            options.seed,
            Limit::Time(Duration::from_secs(options.seconds)),
        ) {
            Ok(report) => {
                let _ = writeln!(out, "{} seed {}: {report:?}", target.name, options.seed);
            }
            Err(failure) => {
                let path = format!("fuzz-{}-{}.bin", failure.target, failure.seed);
                eprintln!("{failure}");
                match std::fs::write(&path, &failure.input) {
                    Ok(()) => eprintln!(
                        "the input is in {path}; put it into tests/fuzz/corpus/{}",
                        failure.target
                    ),
                    Err(error) => eprintln!("the input could not be written to {path}: {error}"),
                }
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
