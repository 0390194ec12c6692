//! `r1cs info`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use proofkeep_formats::r1cs::R1cs as File;
use serde_json::json;

use super::exit::{CliError, Exit};
use super::files;
use super::out::Out;

/// snarkjs's `r1cs`.
#[derive(Debug, Subcommand)]
pub enum R1cs {
    /// Count a circuit's wires and constraints
    Info(Info),
}

#[derive(Debug, Args)]
#[command(after_help = "Example: proofkeep r1cs info circuit.r1cs")]
pub struct Info {
    /// The circuit
    #[arg(value_name = "circuit.r1cs")]
    r1cs: PathBuf,
}

pub fn run(command: R1cs, out: &Out) -> Result<Exit, CliError> {
    let R1cs::Info(Info { r1cs: path }) = command;
    let bytes = files::map(&path)?;
    let named = |error: proofkeep_formats::FormatError| CliError::from(error).about(path.display());
    let circuit = File::parse(&bytes).map_err(named)?;
    let terms: u64 = circuit.check().map_err(named)?.iter().sum();
    let header = circuit.header();
    let value = json!({
        "curve": "bls12381", "wires": header.wires, "constraints": header.constraints,
        "private_inputs": header.private_inputs, "public_inputs": header.public_inputs, "outputs": header.outputs,
        "labels": header.labels, "terms": terms, "domain_log2": header.domain_log2(),
    });
    out.data(&value, || {
        format!(
            "curve           BLS12-381\nwires           {}\nconstraints     {}\nprivate inputs  {}\n\
             public inputs   {}\noutputs         {}\nlabels          {}\nterms           {terms}\n\
             domain          2^{}",
            header.wires,
            header.constraints,
            header.private_inputs,
            header.public_inputs,
            header.outputs,
            header.labels,
            header.domain_log2()
        )
    });
    Ok(Exit::Done)
}
