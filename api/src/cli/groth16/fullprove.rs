//! `groth16 fullprove`.

use std::path::PathBuf;

use clap::Args;

use super::super::exit::{CliError, Exit};
use super::super::out::Out;
use super::super::wtns::{Calculation, calculate};
use super::{Files, How};

#[derive(Debug, Args)]
#[command(
    after_help = "Example: proofkeep groth16 fullprove input.json circuit.wasm circuit.zkey proof.json public.json"
)]
pub struct FullProve {
    /// The circuit's inputs, as snarkjs takes them
    #[arg(value_name = "input.json")]
    input: PathBuf,
    /// The witness calculator that circom --wasm wrote
    #[arg(value_name = "circuit.wasm")]
    wasm: PathBuf,
    /// The proving key
    #[arg(value_name = "circuit.zkey")]
    zkey: PathBuf,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    calculation: Calculation,
}

pub fn run(command: &FullProve, out: &Out) -> Result<Exit, CliError> {
    let witness = || calculate(&command.wasm, &command.input, &command.calculation);
    super::prove(
        &command.zkey,
        (&command.input, witness),
        &command.how,
        &command.files,
        out,
    )
}
