//! `groth16 verify`.

use std::path::{Path, PathBuf};

use clap::Args;
use proofkeep_formats::json::{ProofJson, VkJson, public_from_json};
use proofkeep_groth16::proof::Proof;
use proofkeep_groth16::verify::verify;
use proofkeep_groth16::vk::{UnfinishedSetup, VerifyingKey};
use serde_json::json;

use super::super::exit::{CliError, Exit};
use super::super::files;
use super::super::out::Out;
use super::Setups;

#[derive(Debug, Args)]
#[command(after_help = "Example: proofkeep groth16 verify verification_key.json public.json proof.json")]
pub struct Verify {
    /// The verification key
    #[arg(value_name = "verification_key.json")]
    key: PathBuf,
    /// The public signals
    #[arg(value_name = "public.json")]
    public: PathBuf,
    /// The proof
    #[arg(value_name = "proof.json")]
    proof: PathBuf,
    #[command(flatten)]
    setups: Setups,
}

pub fn run(command: &Verify, out: &Out) -> Result<Exit, CliError> {
    verify_files(
        &command.key,
        &command.public,
        &command.proof,
        command.setups.unfinished(),
        out,
    )
}

/// Verifies what lies in three files, as snarkjs writes them.
pub fn verify_files(
    key: &Path,
    public: &Path,
    proof: &Path,
    unfinished: UnfinishedSetup,
    out: &Out,
) -> Result<Exit, CliError> {
    let key = key_from_json(&files::read(key)?, unfinished).map_err(|error| error.about(key.display()))?;
    let signals = public_from_json(&files::read(public)?)
        .map_err(|error| CliError::from(error).about(public.display()))?;
    let json = ProofJson::from_json(&files::read(proof)?)
        .map_err(|error| CliError::from(error).about(proof.display()))?;
    let refused = match Proof::from_json(&json) {
        Ok(proof) => verify(&key, &signals, &proof)
            .err()
            .map(|error| (error.code(), error.to_string())),
        Err(error) => Some((error.code(), error.to_string())),
    };
    let Some((code, reason)) = refused else {
        out.data(&json!({ "valid": true }), || "valid".to_owned());
        return Ok(Exit::Done);
    };
    out.data(&json!({ "valid": false, "code": code, "reason": reason }), || {
        format!("invalid: {reason}")
    });
    Ok(Exit::Failed)
}

/// Reads `verification_key.json` and checks its points.
pub fn key_from_json(bytes: &[u8], unfinished: UnfinishedSetup) -> Result<VerifyingKey, CliError> {
    let json = VkJson::from_json(bytes)?;
    VerifyingKey::from_json_with(&json, unfinished)
        .map_err(|error| CliError::failed(error.code(), error.to_string()))
}
