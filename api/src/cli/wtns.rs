//! `wtns calculate` and `wtns check`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use proofkeep_formats::count;
use proofkeep_formats::r1cs::R1cs;
use proofkeep_formats::sym::Sym;
use proofkeep_formats::wtns;
use proofkeep_groth16::matrices::Matrices;
use proofkeep_groth16::witness::Witness;
use proofkeep_witness::{Calculator, Limits};
use serde_json::json;

use super::arguments;
use super::exit::{CliError, Exit};
use super::files::{self, Audience};
use super::out::Out;

/// snarkjs's `wtns`.
#[derive(Debug, Subcommand)]
pub enum Wtns {
    /// Make the witness of an input.json
    Calculate(Calculate),
    /// Check a witness against its circuit, and name the first constraint that it breaks
    Check(Check),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example: proofkeep wtns calculate circuit.wasm input.json witness.wtns --sym circuit.sym"
)]
pub struct Calculate {
    /// The witness calculator that circom --wasm wrote
    #[arg(value_name = "circuit.wasm")]
    wasm: PathBuf,
    /// The circuit's inputs, as snarkjs takes them
    #[arg(value_name = "input.json")]
    input: PathBuf,
    /// Where the witness goes; only you may read it
    #[arg(value_name = "witness.wtns", default_value = "witness.wtns")]
    witness: PathBuf,
    #[command(flatten)]
    how: Calculation,
}

/// How a calculator runs.
#[derive(Debug, Args)]
pub struct Calculation {
    /// The circuit's signal names; with it errors tell which inputs there are
    #[arg(long, value_name = "circuit.sym")]
    sym: Option<PathBuf>,
    /// The most memory that the calculator may use
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = arguments::size)]
    wasm_memory: u64,
    /// The most instructions, about, that it may run
    #[arg(long, value_name = "N", default_value_t = Limits::default().fuel)]
    wasm_fuel: u64,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: proofkeep wtns check circuit.r1cs witness.wtns --sym circuit.sym")]
pub struct Check {
    /// The circuit
    #[arg(value_name = "circuit.r1cs")]
    r1cs: PathBuf,
    /// The witness
    #[arg(value_name = "witness.wtns")]
    witness: PathBuf,
    /// The circuit's signal names; with it the signals of a broken constraint are named
    #[arg(long, value_name = "circuit.sym")]
    sym: Option<PathBuf>,
}

pub fn run(command: Wtns, out: &Out) -> Result<Exit, CliError> {
    match command {
        Wtns::Calculate(command) => {
            files::expect_places(&[&command.witness])?;
            let witness = calculate(&command.wasm, &command.input, &command.how)?;
            files::write(&command.witness, Audience::Owner, &witness)?;
            let wires = wtns::Witness::parse(&witness)?.len();
            let value = json!({ "witness": command.witness, "wires": wires });
            out.data(&value, || {
                format!("{}: {}", command.witness.display(), count(wires, "wire"))
            });
            Ok(Exit::Done)
        }
        Wtns::Check(command) => check(&command, out),
    }
}

/// The bytes of a `.wtns`, calculated from inputs.
pub fn calculate(wasm: &Path, input: &Path, how: &Calculation) -> Result<Vec<u8>, CliError> {
    let limits = Limits {
        fuel: how.wasm_fuel,
        memory_bytes: usize::try_from(how.wasm_memory).unwrap_or(usize::MAX),
    };
    let named = |path: &Path| {
        let path = path.display().to_string();
        move |error: proofkeep_witness::WitnessError| CliError::from(error).about(path)
    };
    let mut calculator = Calculator::new(&files::read(wasm)?, limits).map_err(named(wasm))?;
    if let Some(sym) = &how.sym {
        let bytes = files::read(sym)?;
        Sym::parse(&bytes).map_err(|error| CliError::from(error).about(sym.display()))?;
        calculator = calculator.with_sym(&bytes).map_err(named(sym))?;
    }
    let values = calculator.calculate(&files::read(input)?).map_err(named(input))?;
    Ok(wtns::write(&values))
}

fn check(command: &Check, out: &Out) -> Result<Exit, CliError> {
    let (r1cs, witness) = (files::map(&command.r1cs)?, files::map(&command.witness)?);
    let circuit = R1cs::parse(&r1cs).map_err(|error| CliError::from(error).about(command.r1cs.display()))?;
    let witness = wtns::Witness::parse(&witness)
        .map_err(|error| CliError::from(error).about(command.witness.display()))?;
    let (expected, found) = (circuit.header().wires as usize, witness.len());
    if expected != found {
        let detail = format!(
            "the witness has {}, the circuit has {expected}: it was made for another circuit",
            count(found, "wire")
        );
        return Err(CliError::failed("witness-length", detail).about(command.witness.display()));
    }
    let matrices =
        Matrices::from_r1cs(&circuit).map_err(|error| CliError::failed(error.code(), error.to_string()))?;
    let Some(constraint) = matrices.first_unsatisfied(&Witness::from(witness)) else {
        let constraints = circuit.header().constraints;
        let value = json!({ "satisfied": true, "constraints": constraints });
        out.data(&value, || {
            format!(
                "the witness satisfies the circuit ({})",
                count(constraints, "constraint")
            )
        });
        return Ok(Exit::Done);
    };
    let signals = match &command.sym {
        Some(sym) => {
            signals(&circuit, constraint, &files::read(sym)?).map_err(|error| error.about(sym.display()))?
        }
        None => Vec::new(),
    };
    let value = json!({ "satisfied": false, "constraint": constraint, "signals": signals });
    out.data(&value, || {
        let of = if signals.is_empty() {
            String::new()
        } else {
            format!(", of {}", signals.join(", "))
        };
        format!("the witness breaks constraint {constraint} (counted from 0){of}")
    });
    Ok(Exit::Failed)
}

/// The names of the signals in a constraint.
fn signals(circuit: &R1cs<'_>, constraint: usize, sym: &[u8]) -> Result<Vec<String>, CliError> {
    let sym = Sym::parse(sym)?;
    let mut names = Vec::new();
    if let Some(combinations) = circuit.constraints().nth(constraint).transpose()? {
        for term in combinations.iter().flat_map(|combination| combination.iter()) {
            for name in sym.names(term.0) {
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
        }
    }
    Ok(names)
}
