//! `prove`: one proof by the daemon, from a file to two files.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::arguments;
use super::exit::{CliError, Exit};
use super::files;
use super::out::Out;
use super::proof::results;
use super::server::{exit_of, text};
use super::show;
use super::submit::{How, submit};
use super::wait::until_ended;

#[derive(Debug, Args)]
#[command(after_help = "Example: proofkeep prove sha256 input.json\n\n\
                  Uploads the input, submits a job, waits for it and writes the proof as snarkjs reads it:\n  \
                  snarkjs groth16 verify verification_key.json public.json proof.json")]
pub struct Prove {
    /// The circuit: a name or sha256:…
    #[arg(value_parser = arguments::name())]
    circuit: String,
    /// circom's input.json, or a witness
    #[arg(value_name = "input.json|witness.wtns")]
    input: PathBuf,
    /// Where the proof goes
    #[arg(long, value_name = "FILE", default_value = "proof.json")]
    proof: PathBuf,
    /// Where the public signals go
    #[arg(long, value_name = "FILE", default_value = "public.json")]
    public: PathBuf,
    #[command(flatten)]
    how: How,
    #[cfg(feature = "filecoin")]
    #[command(flatten)]
    fields: super::filecoin::Fields,
}

pub fn run(command: &Prove, out: &Out) -> Result<Exit, CliError> {
    #[cfg(feature = "filecoin")]
    if super::filecoin::is_kind(&command.circuit) {
        let Prove { fields, how, .. } = command;
        return super::filecoin::prove(&command.circuit, fields, &command.input, &command.proof, how, out);
    }
    files::expect_places(&[&command.proof, &command.public])?;
    let client = command.how.server.client()?;
    let job = submit(
        &client,
        &command.circuit,
        std::slice::from_ref(&command.input),
        &command.how,
    )?;
    let id = text(&job["id"]);
    out.note(&format!("job {id}"));
    let ended = until_ended(&client, &id, command.how.patience.timeout, out)?;
    if exit_of(&ended) != Exit::Done {
        out.data(&ended, || show::text(&ended));
        return Ok(exit_of(&ended));
    }
    for result in results(&client, &id)? {
        result.write(&command.proof, &command.public).map_err(|error| {
            let detail = format!(
                "{}; the proof is kept, `proofkeep proof {id}` gives it again",
                error.detail
            );
            CliError { detail, ..error }
        })?;
    }
    let value = json!({ "job": id, "proof": command.proof, "public": command.public });
    out.data(&value, || {
        format!(
            "{} and {}: proved by job {id}",
            command.proof.display(),
            command.public.display()
        )
    });
    Ok(Exit::Done)
}
