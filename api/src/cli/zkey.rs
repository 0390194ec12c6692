//! `zkey export verificationkey`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use proofkeep_formats::count;
use proofkeep_formats::zkey::Zkey as File;
use proofkeep_groth16::check::check_vk_with;
use serde_json::json;

use super::exit::{CliError, Exit};
use super::files::{self, Audience};
use super::groth16::Setups;
use super::out::Out;

/// snarkjs's `zkey`.
#[derive(Debug, Subcommand)]
pub enum Zkey {
    /// Write something that follows from a proving key
    #[command(subcommand)]
    Export(Export),
}

/// What is written.
#[derive(Debug, Subcommand)]
pub enum Export {
    /// The key that verifies proofs under this one
    Verificationkey(VerificationKey),
}

#[derive(Debug, Args)]
#[command(after_help = "Example: proofkeep zkey export verificationkey circuit.zkey verification_key.json")]
pub struct VerificationKey {
    /// The proving key
    #[arg(value_name = "circuit.zkey")]
    zkey: PathBuf,
    /// Where the verification key goes
    #[arg(value_name = "verification_key.json", default_value = "verification_key.json")]
    key: PathBuf,
    #[command(flatten)]
    setups: Setups,
}

pub fn run(command: Zkey, out: &Out) -> Result<Exit, CliError> {
    let Zkey::Export(Export::Verificationkey(command)) = command;
    files::expect_places(&[&command.key])?;
    let bytes = files::map(&command.zkey)?;
    let named = |error: CliError| error.about(command.zkey.display());
    let zkey = File::parse(&bytes).map_err(|error| named(error.into()))?;
    let key = check_vk_with(&zkey, command.setups.unfinished())
        .map_err(|error| named(CliError::failed(error.code(), error.to_string())))?;
    files::write(
        &command.key,
        Audience::Anyone,
        key.to_json().to_json()?.as_bytes(),
    )?;
    let value = json!({ "verification_key": command.key, "public_signals": key.public() });
    out.data(&value, || {
        format!(
            "{}: for {}",
            command.key.display(),
            count(key.public(), "public signal")
        )
    });
    Ok(Exit::Done)
}
