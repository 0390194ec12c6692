//! `groth16 prove`.

use std::path::PathBuf;

use clap::Args;

use super::super::exit::{CliError, Exit};
use super::super::files;
use super::super::out::Out;
use super::How;

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
    /// Where the proof goes
    #[arg(value_name = "proof.json", default_value = "proof.json")]
    proof: PathBuf,
    /// Where the public signals go
    #[arg(value_name = "public.json", default_value = "public.json")]
    public: PathBuf,
    #[command(flatten)]
    how: How,
}

pub fn run(command: &Prove, out: &Out) -> Result<Exit, CliError> {
    let witness = files::map(&command.witness)?;
    super::prove(
        &command.zkey,
        &witness,
        &command.how,
        (&command.proof, &command.public),
        out,
    )
}
