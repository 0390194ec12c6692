//! `groth16`: snarkjs's commands in this process, without a daemon. Nothing of them survives a kill; that is what the
//! daemon is for.

mod ceremony;
mod fullprove;
mod prove;
mod setup;
mod verify;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use proofkeep_engine::standalone::{Local, Proved};
use proofkeep_formats::json::public_to_json;
use proofkeep_groth16::vk::UnfinishedSetup;
use serde_json::json;

pub use setup::{Setup, make, run as setup};
pub use verify::verify_files;

use super::arguments;
use super::exit::{CliError, Exit};
use super::files::{self, Audience};
use super::out::Out;

/// snarkjs's `groth16`.
#[derive(Debug, Subcommand)]
pub enum Groth16 {
    /// Make the first key of a ceremony from powers of tau, or with --insecure a key for tests
    Setup(Setup),
    /// Prove a witness
    Prove(prove::Prove),
    /// Make the witness of an input.json and prove it
    Fullprove(fullprove::FullProve),
    /// Verify a proof
    Verify(verify::Verify),
}

pub fn run(command: Groth16, out: &Out) -> Result<Exit, CliError> {
    match command {
        Groth16::Setup(command) => setup::run(&command, out),
        Groth16::Prove(command) => prove::run(&command, out),
        Groth16::Fullprove(command) => fullprove::run(&command, out),
        Groth16::Verify(command) => verify::run(&command, out),
    }
}

/// How a proof is made here.
#[derive(Debug, Args)]
struct How {
    /// The circuit; with it a bad witness is found before it is proved, and the constraint that it breaks is named
    #[arg(long, value_name = "circuit.r1cs")]
    r1cs: Option<PathBuf>,
    /// Threads of the processor; all of them if not given
    #[arg(long, value_name = "N", value_parser = arguments::threads())]
    threads: Option<u32>,
    #[command(flatten)]
    setups: Setups,
}

/// What a proof becomes.
#[derive(Debug, Args)]
struct Files {
    /// Where the proof goes
    #[arg(value_name = "proof.json", default_value = "proof.json")]
    proof: PathBuf,
    /// Where the public signals go
    #[arg(value_name = "public.json", default_value = "public.json")]
    public: PathBuf,
}

/// Which keys are taken.
#[derive(Debug, Args)]
pub struct Setups {
    /// Take a key that nobody contributed to (γ₂ = δ₂), under which anyone can forge proofs
    #[arg(long)]
    allow_unfinished_setup: bool,
}

impl Setups {
    /// What the library is told about unfinished setups.
    pub fn unfinished(&self) -> UnfinishedSetup {
        UnfinishedSetup::accept_if(self.allow_unfinished_setup)
    }
}

pub(super) fn threads(asked: Option<u32>) -> u32 {
    let all = || std::thread::available_parallelism().map_or(1, |threads| threads.get());
    asked.unwrap_or_else(|| u32::try_from(all()).unwrap_or(1))
}

/// Proves a witness, given by `source` in bytes and taken from the file at `from`, and writes both files.
fn prove<W: Deref<Target = [u8]>>(
    zkey: &Path,
    (from, source): (&Path, impl FnOnce() -> Result<W, CliError>),
    how: &How,
    files: &Files,
    out: &Out,
) -> Result<Exit, CliError> {
    files::expect_places(&[&files.proof, &files.public])?;
    let witness = source()?;
    let start = Instant::now();
    let unfinished = how.setups.unfinished();
    let local = Local::open(zkey, how.r1cs.as_deref(), threads(how.threads), unfinished)?;
    let loaded = start.elapsed();
    let proved = local
        .prove(&witness, &proofkeep_groth16::control::Unwatched)
        .map_err(|failure| CliError::from(failure).about(from.display()))?;
    write(&proved, files)?;
    report(&proved, files, (loaded, start.elapsed()), out);
    Ok(Exit::Done)
}

fn write(proved: &Proved, files: &Files) -> Result<(), CliError> {
    files::write(
        &files.proof,
        Audience::Anyone,
        proved.proof.to_json().to_json()?.as_bytes(),
    )?;
    files::write(
        &files.public,
        Audience::Anyone,
        public_to_json(&proved.public)?.as_bytes(),
    )
}

fn report(proved: &Proved, files: &Files, (loaded, all): (Duration, Duration), out: &Out) {
    let Files { proof, public } = files;
    let value = json!({
        "proof": proof, "public": public, "public_signals": proved.public.len(),
        "load_ms": millis(loaded), "total_ms": millis(all), "verified": true,
    });
    out.data(&value, || {
        let seconds = all.as_secs_f64();
        format!(
            "{} and {}: proved and verified in {seconds:.2} s",
            proof.display(),
            public.display()
        )
    });
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
