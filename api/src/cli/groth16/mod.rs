//! `groth16`: snarkjs's commands in this process, without a daemon. Nothing of them survives a kill; that is what the
//! daemon is for.

mod fullprove;
mod prove;
mod setup;
mod verify;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use proofkeep_engine::standalone::{Local, Proved};
use proofkeep_formats::json::public_to_json;
use proofkeep_groth16::vk::UnfinishedSetup;
use serde_json::json;

pub use setup::{Setup, make, run as setup};
pub use verify::verify_files;

use super::exit::{CliError, Exit};
use super::files::{self, Audience};
use super::out::Out;

/// snarkjs's `groth16`.
#[derive(Debug, Subcommand)]
pub enum Groth16 {
    /// Make a key that proves nothing to anybody, for tests: anyone who knows its seed can forge proofs
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
    #[arg(long)]
    threads: Option<u32>,
    #[command(flatten)]
    setups: Setups,
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

fn threads(asked: Option<u32>) -> u32 {
    let all = || std::thread::available_parallelism().map_or(1, |threads| threads.get());
    asked.unwrap_or_else(|| u32::try_from(all()).unwrap_or(1)).max(1)
}

/// Proves a witness and writes both files.
fn prove(
    zkey: &Path,
    witness: &[u8],
    how: &How,
    (proof, public): (&Path, &Path),
    out: &Out,
) -> Result<Exit, CliError> {
    let start = Instant::now();
    let unfinished = how.setups.unfinished();
    let local = Local::open(zkey, how.r1cs.as_deref(), threads(how.threads), unfinished)?;
    let loaded = start.elapsed();
    let proved = local
        .prove(witness, &proofkeep_groth16::control::Unwatched)
        .map_err(|failure| {
            let error = CliError::from(failure);
            // Without the constraints a witness that breaks one is only found at the end, by verifying.
            if error.code == "invalid-proof" && how.r1cs.is_none() {
                let hint = "most likely the witness does not satisfy the circuit: \
                        give --r1cs circuit.r1cs to learn which constraint it breaks";
                return CliError {
                    detail: format!("{}; {hint}", error.detail),
                    ..error
                };
            }
            error
        })?;
    write(&proved, proof, public)?;
    report(&proved, proof, public, (loaded, start.elapsed()), out);
    Ok(Exit::Done)
}

fn write(proved: &Proved, proof: &Path, public: &Path) -> Result<(), CliError> {
    files::write(
        proof,
        Audience::Anyone,
        proved.proof.to_json().to_json()?.as_bytes(),
    )?;
    files::write(
        public,
        Audience::Anyone,
        public_to_json(&proved.public)?.as_bytes(),
    )
}

fn report(proved: &Proved, proof: &Path, public: &Path, (loaded, all): (Duration, Duration), out: &Out) {
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
