//! `verify`: a proof against a key in a file, or against a circuit of the daemon.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::exit::{CliError, Exit};
use super::files;
use super::groth16::{Setups, verify_files};
use super::out::Out;
use super::server::{Server, text};

#[derive(Debug, Args)]
#[command(
    override_usage = "proofkeep verify [OPTIONS] <verification_key.json> <public.json> <proof.json>\n       \
                      proofkeep verify [OPTIONS] --circuit <CIRCUIT> <public.json> <proof.json>",
    after_help = "Example: proofkeep verify verification_key.json public.json proof.json\n\
                  Example: proofkeep verify --circuit sha256 public.json proof.json\n\n\
                  Reads snarkjs's files, in snarkjs's order. With a key in a file no daemon is asked. Exits with 0 if\n\
                  the proof is valid, with 1 if it isn't."
)]
pub struct Verify {
    /// The verification key (unless --circuit is given), the public signals, the proof
    #[arg(value_names = ["verification_key.json", "public.json", "proof.json"], num_args = 2..=3, required = true)]
    files: Vec<PathBuf>,
    /// The daemon's circuit whose key verifies: a name or sha256:…
    #[arg(long, conflicts_with = "allow_unfinished_setup")]
    circuit: Option<String>,
    #[command(flatten)]
    setups: Setups,
    #[command(flatten)]
    server: Server,
}

pub fn run(command: &Verify, out: &Out) -> Result<Exit, CliError> {
    match (&command.circuit, &command.files[..]) {
        (None, [key, public, proof]) => verify_files(key, public, proof, command.setups.unfinished(), out),
        (Some(circuit), [public, proof]) => {
            let read = |path: &PathBuf| -> Result<Value, CliError> {
                serde_json::from_slice(&files::read(path)?).map_err(|error| {
                    let detail = format!("this is no JSON, as snarkjs writes it: {error}");
                    CliError::failed("malformed-json", detail).about(path.display())
                })
            };
            let body = json!({ "circuit": circuit, "proof": read(proof)?, "public": read(public)? });
            let answer = command.server.client()?.post("/v1/verify", &[], &body)?.body;
            let valid = answer["valid"] == Value::Bool(true);
            out.data(&answer, || {
                if valid {
                    "valid".to_owned()
                } else {
                    format!("invalid: {}", text(&answer["reason"]))
                }
            });
            Ok(if valid { Exit::Done } else { Exit::Failed })
        }
        (None, _) => Err(CliError::usage(
            "expected verification_key.json public.json proof.json, or --circuit NAME",
        )),
        (Some(_), _) => Err(CliError::usage(
            "with --circuit expected public.json proof.json and no key",
        )),
    }
}
