//! `circuit`: what the daemon proves, and keys for tests.

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, Subcommand};
use serde_json::{Map, Value};

use super::arguments;
use super::exit::{CliError, Exit};
use super::groth16::{self, Setup};
use super::out::Out;
use super::server::{Server, counted, text};
use super::show::failure;
use super::wait::Patience;
use crate::client::{Client, escape};

/// What is done with circuits.
#[derive(Debug, Subcommand)]
pub enum Circuit {
    /// Register a circuit under a name and wait until its key is checked
    Add(Add),
    /// List circuits
    #[command(after_help = "Example: proofkeep circuit ls\n\nWith --json each line is one circuit.")]
    Ls {
        #[command(flatten)]
        server: Server,
    },
    /// Show one circuit
    #[command(after_help = "Example: proofkeep circuit show sha256")]
    Show(Named),
    /// Forget a circuit that no job needs any more
    #[command(after_help = "Example: proofkeep circuit rm sha256")]
    Rm(Named),
    /// Make a key that proves nothing to anybody, for tests: anyone who knows its seed can forge proofs
    #[command(
        after_help = "Example: proofkeep circuit setup circuit.r1cs circuit.zkey --insecure\n\n\
                      The same as groth16 setup --insecure; circuit add takes the key that comes out."
    )]
    Setup(Setup),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example: proofkeep circuit add sha256 --zkey circuit.zkey --r1cs circuit.r1cs --wasm circuit.wasm --sym circuit.sym\n\n\
                  With the .r1cs a bad witness is named before it is proved; with the .wasm, inputs can be input.json;\n\
                  with the .sym, errors name signals. Jobs may be submitted while the key is still being checked.\n\n\
                  A key for tests, made by the daemon: proofkeep circuit add sha256 --r1cs circuit.r1cs --setup insecure-local"
)]
pub struct Add {
    /// Its name
    #[arg(value_parser = arguments::name())]
    name: String,
    /// The proving key
    #[arg(
        long,
        value_name = "circuit.zkey",
        required_unless_present_any = ["params", "setup"]
    )]
    zkey: Option<PathBuf>,
    /// The proving key as bellperson writes it, instead of a .zkey; it goes with the .r1cs
    #[arg(
        long,
        value_name = "circuit.params",
        conflicts_with_all = ["zkey", "setup"],
        requires = "r1cs"
    )]
    params: Option<PathBuf>,
    /// The constraints
    #[arg(long, value_name = "circuit.r1cs")]
    r1cs: Option<PathBuf>,
    /// The witness calculator that circom --wasm wrote
    #[arg(long, value_name = "circuit.wasm")]
    wasm: Option<PathBuf>,
    /// The names of the signals
    #[arg(long, value_name = "circuit.sym")]
    sym: Option<PathBuf>,
    /// Let the daemon make a key from the constraints: insecure-local, for tests only, whose proofs convince nobody
    #[arg(
        long,
        value_name = "insecure-local",
        conflicts_with = "zkey",
        requires = "r1cs"
    )]
    setup: Option<String>,
    /// Point the name to this circuit even if it points to another one
    #[arg(long)]
    replace: bool,
    /// Take a key that nobody contributed to (γ₂ = δ₂), under which anyone can forge proofs
    #[arg(long)]
    allow_unfinished_setup: bool,
    /// Don't wait until the key is checked
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    patience: Patience,
    #[command(flatten)]
    server: Server,
}

/// One of them.
#[derive(Debug, Args)]
pub struct Named {
    /// Its name, or sha256:…
    #[arg(value_parser = arguments::name())]
    name: String,
    #[command(flatten)]
    server: Server,
}

pub fn run(command: Circuit, out: &Out) -> Result<Exit, CliError> {
    match command {
        Circuit::Add(command) => add(&command, out),
        Circuit::Ls { server } => ls(&server.client()?, out),
        Circuit::Show(Named { name, server }) => {
            let circuit = server.client()?.get(&path(&name), &[])?.body;
            out.data(&circuit, || whole(&circuit));
            Ok(Exit::Done)
        }
        Circuit::Rm(Named { name, server }) => {
            server.client()?.delete(&path(&name))?;
            out.note(&format!("circuit {name} is forgotten"));
            Ok(Exit::Done)
        }
        Circuit::Setup(command) => groth16::setup(&command, out),
    }
}

fn path(name: &str) -> String {
    format!("/v1/circuits/{}", escape(name))
}

fn add(command: &Add, out: &Out) -> Result<Exit, CliError> {
    let client = command.server.client()?;
    let mut body = Map::new();
    let files = [
        ("zkey", command.zkey.as_ref()),
        ("params", command.params.as_ref()),
        ("r1cs", command.r1cs.as_ref()),
        ("wasm", command.wasm.as_ref()),
        ("sym", command.sym.as_ref()),
    ];
    for (name, file) in files {
        if let Some(file) = file {
            out.progress(&format!("uploading {}", file.display()));
            body.insert(name.to_owned(), client.upload_file(file)?.into());
        }
    }
    out.progress_done();
    if let Some(setup) = &command.setup {
        body.insert("setup".to_owned(), setup.as_str().into());
    }
    if command.allow_unfinished_setup {
        body.insert("allow_unfinished_setup".to_owned(), true.into());
    }
    let replace = if command.replace { "?replace=true" } else { "" };
    let mut circuit = client
        .put(
            &format!("{}{replace}", path(&command.name)),
            &[],
            &Value::Object(body),
        )?
        .body;
    let start = Instant::now();
    while !command.no_wait && circuit["state"] == "importing" {
        if command
            .patience
            .timeout
            .is_some_and(|timeout| start.elapsed() >= timeout)
        {
            let detail = format!("circuit {} is still being imported; that goes on", command.name);
            return Err(CliError {
                exit: Exit::TimedOut,
                code: "timed-out".to_owned(),
                detail,
            });
        }
        out.progress(&head(&circuit));
        circuit = client.get(&path(&command.name), &[("Prefer", "wait=1")])?.body;
    }
    out.progress_done();
    if circuit["insecure"] == Value::Bool(true) {
        out.note(
            match circuit["setup"]["kind"] == "unknown" {
                true => "warning: nothing is known of this key's setup; whoever knows what it was made from can forge proofs.",
                false => "warning: this key came from no ceremony; whoever knows what it was made from can forge proofs. For tests only.",
            },
        );
    }
    out.data(&circuit, || head(&circuit));
    Ok(if circuit["state"] == "failed" {
        Exit::Failed
    } else {
        Exit::Done
    })
}

fn ls(client: &Client, out: &Out) -> Result<Exit, CliError> {
    let mut next = String::new();
    loop {
        let page = client.get(&format!("/v1/circuits?limit=200{next}"), &[])?.body;
        for circuit in page["circuits"].as_array().into_iter().flatten() {
            out.data(circuit, || head(circuit));
        }
        match page["next"].as_str() {
            Some(after) => next = format!("&after={}", escape(after)),
            None => return Ok(Exit::Done),
        }
    }
}

/// One line: name, state, size.
fn head(circuit: &Value) -> String {
    let mut line = format!("{}  {}", text(&circuit["name"]), text(&circuit["state"]));
    let progress = &circuit["progress"];
    if let (Some(done), Some(total)) = (progress["done"].as_u64(), progress["total"].as_u64()) {
        line.push_str(&format!(" ({done} of {total})"));
    }
    line.push_str(&format!(
        "  {}, {}",
        counted(&circuit["wires"], "wire"),
        counted(&circuit["public"], "public signal")
    ));
    if circuit["insecure"] == Value::Bool(true) {
        line.push_str("  INSECURE key");
    }
    if circuit["refused"].is_object() {
        line.push_str(", refused for new jobs");
    }
    let error = failure(&circuit["error"]);
    if !error.is_empty() {
        line.push_str(&format!(": {error}"));
    }
    line
}

/// Everything about a circuit.
fn whole(circuit: &Value) -> String {
    let mut lines = vec![head(circuit)];
    for (name, value) in circuit.as_object().into_iter().flatten() {
        if !value.is_null() && !matches!(name.as_str(), "name" | "state" | "error" | "progress") {
            lines.push(format!("  {name:<23} {}", text(value)));
        }
    }
    lines.join("\n")
}
