//! `demo`: everything at once, on a temporary directory.

use std::path::PathBuf;

use clap::Args;

use super::exit::{CliError, Exit};
use super::out::Out;
use crate::demo;

#[derive(Debug, Args)]
#[command(after_help = "Example: proofkeep demo\n\n\
                  Makes the key of a SHA-256 circuit that is built in, starts a daemon, submits a job of four\n\
                  partitions, kills the daemon with SIGKILL once part of a proof is on disk, starts it again, and\n\
                  verifies the proofs. Takes under two minutes on two cores.")]
pub struct Demo {
    /// Where the proofs go
    #[arg(long, value_name = "DIR", default_value = "proofkeep-demo")]
    out: PathBuf,
    /// Keep the temporary directory with the daemon's data, the circuit and the key
    #[arg(long)]
    keep: bool,
}

pub fn run(command: &Demo, out: &Out) -> Result<Exit, CliError> {
    demo::run(&command.out, command.keep, out)?;
    Ok(Exit::Done)
}
