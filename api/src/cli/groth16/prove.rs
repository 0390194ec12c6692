//! `groth16 prove`.

use std::path::PathBuf;

use clap::Args;

use super::super::exit::{CliError, Exit};
use super::super::files;
use super::super::out::Out;
use super::{Files, How};

#[derive(Debug, Args)]
#[command(
    after_help = "Example: proofkeep groth16 prove circuit.zkey witness.wtns proof.json public.json --r1cs circuit.r1cs"
)]
pub struct Prove {
    /// The proving key
    #[arg(value_name = "circuit.zkey")]
    zkey: PathBuf,
    /// The witness
    #[arg(value_name = "witness.wtns")]
    witness: PathBuf,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    how: How,
}

pub fn run(command: &Prove, out: &Out) -> Result<Exit, CliError> {
    super::prove(
        &command.zkey,
        (&command.witness, || files::map(&command.witness)),
        &command.how,
        &command.files,
        out,
    )
}
