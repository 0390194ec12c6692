//! `params`: the parameter directory of the Filecoin kinds.

use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use proofkeep_filecoin::checked::Checked;
use proofkeep_filecoin::circuit::{Circuit, KINDS};
use proofkeep_filecoin::directory::{Content, Directory};
use proofkeep_filecoin::generate::{GenerateError, generate};
use proofkeep_filecoin::sector::size_of;
use proofkeep_groth16::backend::CpuBackend;
use serde_json::json;

use super::arguments;
use super::exit::{CliError, Exit};
use super::out::Out;

/// What such parameters are, for whoever makes them.
const WARNING: &str = "warning: these parameters are for tests only. Whoever made them can forge proofs under them. The \
                       chain takes proofs under the published ones alone.";

/// What to do with parameters.
#[derive(Debug, Subcommand)]
pub enum Params {
    /// Make parameters for tests
    Generate(Generate),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example: proofkeep params generate --kind winning-post --sector-size 2KiB\n\n\
                  Writes the circuit's parameters, verifying key and compiled matrices under the names of the published\n\
                  ones. A file that is there is replaced when the new one is whole."
)]
pub struct Generate {
    /// Which circuit
    #[arg(long, value_parser = KINDS)]
    kind: String,
    /// The size of a sector
    #[arg(long, value_name = "SIZE")]
    sector_size: String,
    /// Partitions of a PoRep, if not as many as the chain wants; only for porep-c2
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    partitions: Option<u8>,
    /// The parameter directory
    #[arg(long, value_name = "DIR", env = "PROOFKEEP_PARAM_DIR")]
    param_dir: Option<PathBuf>,
    /// Threads of the processor; all of them if not given
    #[arg(long, value_name = "N", value_parser = arguments::threads())]
    threads: Option<u32>,
}

pub fn run(command: &Params, out: &Out) -> Result<Exit, CliError> {
    let Params::Generate(command) = command;
    let size = size_of(&command.sector_size)
        .ok_or_else(|| CliError::usage("--sector-size: expected a sector size, as in 2KiB"))?;
    if command.partitions.is_some() && command.kind != "porep-c2" {
        return Err(CliError::usage("--partitions is for --kind porep-c2"));
    }
    let circuit = Circuit::named(&command.kind, size, command.partitions)
        .map_err(|invalid| CliError::usage(invalid.to_string()))?;
    let directory = command
        .param_dir
        .as_ref()
        .map_or_else(Directory::of_environment, Directory::new);
    out.note(WARNING);
    let threads = super::groth16::threads(command.threads);
    let backend = CpuBackend::new(threads as usize)
        .map_err(|error| CliError::failed("device-unavailable", error.to_string()))?;
    let mut show = |done: u64, total: u64| {
        out.progress(&format!("making the parameters: {done} of {total} points"));
        ControlFlow::Continue(())
    };
    let header = generate(&circuit, &directory, &backend, &mut show).map_err(failed)?;
    out.progress_done();
    let identifier = circuit.identifier().map_err(|invalid| failed(invalid.into()))?;
    let file = directory.file(&identifier, Content::Params);
    let value = json!({
        "file": file,
        "bytes": header.bytes,
        "wires": header.wires,
        "domain": header.domain,
        "setup": Checked::LOCAL,
        "insecure": true,
    });
    out.data(&value, || {
        format!(
            "{}: insecure parameters of {} bytes",
            file.display(),
            header.bytes
        )
    });
    Ok(Exit::Done)
}

fn failed(error: GenerateError) -> CliError {
    let code = match &error {
        GenerateError::Circuit(invalid) => invalid.code,
        GenerateError::Matrices(error) => error.code(),
        GenerateError::Io(_) => "unwritable",
        GenerateError::Header(error) => error.code(),
        GenerateError::Parameters(_) | GenerateError::Randomness(_) => "parameters",
    };
    CliError::failed(code, error.to_string())
}
