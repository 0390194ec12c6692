//! `groth16 setup`: the first key of a ceremony from powers of tau; with `--insecure`, a key from a seed.

use std::io::{BufWriter, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::Args;
use proofkeep_formats::r1cs::R1cs;
use proofkeep_groth16::backend::BlstBackend;
use proofkeep_groth16::setup::{SetupError, insecure_setup};
use serde_json::json;
use uuid::Uuid;

use super::super::arguments;
use super::super::exit::{CliError, Exit};
use super::super::files::{self, Audience};
use super::super::out::Out;
use super::ceremony;

/// What such a key is, for whoever makes one.
pub const WARNING: &str = "warning: this key is for tests only. Whoever knows its seed can forge proofs under it, and \
                           nobody else can know that it was thrown away. Use a key from a ceremony \
                           (proofkeep groth16 setup circuit.r1cs pot.ptau, then snarkjs zkey contribute) for anything \
                           that matters.";

/// What snarkjs calls the first key if nobody names it.
const FIRST_KEY: &str = "circuit_0000.zkey";

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n\nA key from a ceremony's powers of tau, the same file byte for byte as snarkjs makes:\n  \
                  proofkeep groth16 setup circuit.r1cs pot_final.ptau circuit_0000.zkey\n  \
                  snarkjs zkey contribute circuit_0000.zkey circuit.zkey\n\n\
                  A key for tests. Its one secret, the seed, is known to whoever ran this command, so its proofs\n\
                  convince nobody else:\n  \
                  proofkeep groth16 setup circuit.r1cs circuit.zkey --insecure"
)]
pub struct Setup {
    /// The circuit, the powers of tau (not with --insecure), and where the key goes
    #[arg(value_names = ["circuit.r1cs", "pot.ptau", "circuit_0000.zkey"], num_args = 2..=3, required = true)]
    files: Vec<PathBuf>,
    /// Say that you know what this makes without powers of tau: a key for tests, whose proofs convince nobody
    #[arg(long)]
    insecure: bool,
    /// Make the same key each time from this text; random if not given. Only with --insecure
    #[arg(long)]
    seed: Option<String>,
    /// Threads of the processor; all of them if not given
    #[arg(long, value_name = "N", value_parser = arguments::threads())]
    threads: Option<u32>,
}

pub fn run(command: &Setup, out: &Out) -> Result<Exit, CliError> {
    let is_ptau = |path: &PathBuf| path.extension().is_some_and(|end| end == "ptau");
    let threads = super::threads(command.threads);
    match &command.files[..] {
        files if command.insecure && files.iter().any(is_ptau) => Err(CliError::usage(
            "--insecure makes a key from a seed, without powers of tau: leave out one or the other",
        )),
        files if command.seed.is_some() && !command.insecure => Err(CliError::usage(format!(
            "--seed is for --insecure; a key from {} needs none",
            files
                .get(1)
                .map_or_else(|| "a .ptau file".into(), |file| file.display().to_string())
        ))),
        [r1cs, zkey] if command.insecure => insecure(command, r1cs, zkey, threads, out),
        [r1cs, ptau] if is_ptau(ptau) => ceremony::run(r1cs, ptau, Path::new(FIRST_KEY), threads, out),
        [r1cs, ptau, zkey] if !command.insecure => ceremony::run(r1cs, ptau, zkey, threads, out),
        [_, _] => Err(CliError::usage(
            "a key is made from powers of tau: proofkeep groth16 setup circuit.r1cs pot.ptau circuit_0000.zkey. \
             Without them it is for tests only, since whoever knows its seed can forge proofs: add --insecure if that \
             is what you want",
        )),
        _ => Err(CliError::usage(
            "--insecure takes two files: proofkeep groth16 setup circuit.r1cs circuit.zkey --insecure",
        )),
    }
}

fn insecure(command: &Setup, r1cs: &Path, zkey: &Path, threads: u32, out: &Out) -> Result<Exit, CliError> {
    out.note(WARNING);
    files::expect_places(&[zkey])?;
    let bytes = files::map(r1cs)?;
    let seed = match &command.seed {
        Some(seed) => seed.as_bytes().to_vec(),
        // 244 random bits of the system.
        None => [Uuid::new_v4(), Uuid::new_v4()]
            .iter()
            .flat_map(|id| id.into_bytes())
            .collect(),
    };
    let made = make(&bytes, &seed, zkey, threads, out).map_err(|error| {
        if error.code == "unwritable" {
            error
        } else {
            error.about(r1cs.display())
        }
    })?;
    let value = json!({ "zkey": zkey, "bytes": made, "insecure": true });
    out.data(&value, || {
        format!("{}: an insecure key of {made} bytes", zkey.display())
    });
    Ok(Exit::Done)
}

/// Makes the key of a circuit, given as the bytes of its `.r1cs`; answers how many bytes it has.
pub fn make(r1cs: &[u8], seed: &[u8], zkey: &Path, threads: u32, out: &Out) -> Result<u64, CliError> {
    let circuit = R1cs::parse(r1cs)?;
    let backend = BlstBackend::new(threads as usize)
        .map_err(|error| CliError::failed("device-unavailable", error.to_string()))?;
    let mut length = 0;
    files::replace(zkey, Audience::Anyone, |file| {
        let mut show = |done: u64, total: u64| {
            out.progress(&format!("making the key: {} of {total} points", done));
            ControlFlow::Continue(())
        };
        let mut writer =
            insecure_setup(&circuit, seed, BufWriter::new(file), &backend, &mut show).map_err(failed)?;
        writer.flush().map_err(|error| failed(error.into()))?;
        out.progress_done();
        length = writer
            .get_ref()
            .metadata()
            .map_err(|error| failed(error.into()))?
            .len();
        Ok(())
    })?;
    Ok(length)
}

fn failed(error: SetupError) -> CliError {
    let code = match &error {
        SetupError::Matrices(error) => error.code(),
        SetupError::Io(_) => "unwritable",
        SetupError::Stopped(_) => "stopped",
    };
    CliError::failed(code, error.to_string())
}
