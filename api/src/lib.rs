//! The binary `proofkeep` as a library: configuration, daemon, HTTP, command line and the client that it uses.
//!
//! [`run`] is the whole program. It looks at its arguments: `worker` makes the process a worker of a running daemon,
//! `serve` a daemon, and everything else is a command of somebody at a terminal.

mod cli;
pub mod client;
pub mod config;
pub mod daemon;
mod demo;
mod http;
pub mod options;
#[cfg(feature = "filecoin")]
mod pinned;
mod render;
mod tokens;

use std::process::ExitCode;

pub use options::Options;

/// Runs the program with the arguments and the environment of this process.
#[must_use]
pub fn run(options: Options) -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "worker") {
        let arguments: Vec<String> = arguments
            .iter()
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect();
        let code = proofkeep_engine::worker::main(&arguments, options.kinds);
        return u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from);
    }
    cli::run(options)
}
