//! `params`: the parameter directory of the Filecoin kinds.

use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use proofkeep_filecoin::checked::Checked;
use proofkeep_filecoin::circuit::{Circuit, KINDS};
use proofkeep_filecoin::directory::{Content, Directory};
use proofkeep_filecoin::generate::{GenerateError, generate};
use proofkeep_filecoin::params::{self, Entry, Verdict};
use proofkeep_filecoin::sector::size_of;
use proofkeep_groth16::backend::CpuBackend;
use serde_json::json;

use super::arguments;
use super::exit::{CliError, Exit};
use super::keys::{self, Named};
use super::out::Out;

/// What such parameters are, for whoever makes them.
const WARNING: &str = "warning: these parameters are for tests only. Whoever made them can forge proofs under them. The \
                       chain takes proofs under the published ones alone.";

/// What to do with parameters.
#[derive(Debug, Subcommand)]
pub enum Params {
    /// Make parameters for tests
    Generate(Generate),
    /// List the parameter files that are there
    #[command(after_help = "Example: proofkeep params ls\n\nWith --json each line is one file.")]
    Ls(Place),
    /// Read parameter files whole and hold their digests against the published ones
    #[command(after_help = "Example: proofkeep params verify\n\n\
                      What comes out is noted beside each file, and the daemon goes by that at submit. Exits 1 if one has the\n\
                      name of a published file and another digest, or is damaged.")]
    Verify {
        /// Their names, without .params; all that are there if none is given
        #[arg(value_name = "ID")]
        ids: Vec<String>,
        #[command(flatten)]
        place: Place,
    },
    /// Load keys into the daemon's memory before anybody needs them
    #[command(
        after_help = "Example: proofkeep params preload v28-proof-of-spacetime-fallback-…\n\n\
                      Waits until they are there. They go again when a job needs the room, unless they are pinned."
    )]
    Preload(Named),
    /// Let keys go from the daemon's memory, as soon as nobody uses them
    #[command(after_help = "Example: proofkeep params evict winning-post")]
    Evict(Named),
    /// Keep keys in the daemon's memory, whatever else needs room, until it ends; for longer: pinned_params
    #[command(after_help = "Example: proofkeep params pin winning-post")]
    Pin(Named),
    /// Let keys go again when something else needs room
    #[command(after_help = "Example: proofkeep params unpin winning-post")]
    Unpin(Named),
}

#[derive(Debug, Args)]
pub struct Place {
    /// The parameter directory
    #[arg(long, value_name = "DIR", env = "PROOFKEEP_PARAM_DIR")]
    param_dir: Option<PathBuf>,
}

impl Place {
    fn directory(&self) -> Directory {
        self.param_dir
            .as_ref()
            .map_or_else(Directory::of_environment, Directory::new)
    }
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
    #[command(flatten)]
    place: Place,
    /// Threads of the processor; all of them if not given
    #[arg(long, value_name = "N", value_parser = arguments::threads())]
    threads: Option<u32>,
}

pub fn run(command: &Params, out: &Out) -> Result<Exit, CliError> {
    match command {
        Params::Generate(command) => make(command, out),
        Params::Ls(place) => {
            for entry in list(&place.directory())? {
                show(&entry, out);
            }
            Ok(Exit::Done)
        }
        Params::Verify { ids, place } => verify(ids, &place.directory(), out),
        Params::Preload(named) => keys::run("preload", named, out),
        Params::Evict(named) => keys::run("evict", named, out),
        Params::Pin(named) => keys::run("pin", named, out),
        Params::Unpin(named) => keys::run("unpin", named, out),
    }
}

fn list(directory: &Directory) -> Result<Vec<Entry>, CliError> {
    params::list(directory).map_err(|error| unreadable(&directory.path().display(), &error))
}

fn unreadable(what: &dyn std::fmt::Display, error: &std::io::Error) -> CliError {
    CliError::failed("io", format!("{what}: {error}"))
}

fn show(entry: &Entry, out: &Out) {
    let value = serde_json::to_value(entry).unwrap_or_default();
    out.data(&value, || {
        let verdict = value["verdict"].as_str().unwrap_or_default();
        let mut line = format!("{}  {verdict}  {} bytes", entry.id, entry.bytes);
        if entry.verdict == Verdict::Differs {
            let (expected, found) = (entry.expected.unwrap_or_default(), entry.found.as_deref());
            let found = found.unwrap_or_default();
            line.push_str(&format!(
                "  BLAKE2b expected {expected}, found {found}; get the published file"
            ));
        }
        if let Some(detail) = &entry.detail {
            line.push_str(&format!("  {detail}"));
        }
        line
    });
}

fn verify(ids: &[String], directory: &Directory, out: &Out) -> Result<Exit, CliError> {
    if let Some(bad) = ids.iter().find(|id| !params::is_id(id)) {
        let detail = format!("{bad:?} is no name of a parameter file; params ls lists those there are");
        return Err(CliError::usage(detail));
    }
    let ids = match ids {
        [] => list(directory)?.into_iter().map(|entry| entry.id).collect(),
        named => named.to_vec(),
    };
    let mut exit = Exit::Done;
    for id in &ids {
        let mut alive = |bytes| {
            out.progress(&format!("{id}: {bytes} bytes"));
            Ok(())
        };
        let entry = params::verify(directory, id, &mut alive).map_err(|error| unreadable(id, &error))?;
        out.progress_done();
        show(&entry, out);
        if matches!(
            entry.verdict,
            Verdict::Differs | Verdict::Damaged | Verdict::Missing
        ) {
            exit = Exit::Failed;
        }
    }
    Ok(exit)
}

fn make(command: &Generate, out: &Out) -> Result<Exit, CliError> {
    let size = size_of(&command.sector_size)
        .ok_or_else(|| CliError::usage("--sector-size: expected a sector size, as in 2KiB"))?;
    if command.partitions.is_some() && command.kind != "porep-c2" {
        return Err(CliError::usage("--partitions is for --kind porep-c2"));
    }
    let circuit = Circuit::named(&command.kind, size, command.partitions)
        .map_err(|invalid| CliError::usage(invalid.to_string()))?;
    let directory = command.place.directory();
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
