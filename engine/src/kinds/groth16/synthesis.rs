//! The witness of one partition: read or calculated, then checked against the circuit.

use std::ops::ControlFlow;

use proofkeep_formats::count;
use proofkeep_formats::r1cs::R1cs;
use proofkeep_formats::sym::Sym;
use proofkeep_formats::wtns;
use proofkeep_groth16::field::{ScalarBytes, scalar_from_bytes};
use proofkeep_groth16::key::ProvingKey;
use proofkeep_groth16::matrices::Products;
use proofkeep_groth16::witness::{Witness, WitnessError};
use proofkeep_store::ids::Digest;
use proofkeep_store::records::{Failure, FailureClass};
use proofkeep_witness::{Calculator, Limits};
use zeroize::Zeroizing;

use super::input::Input;
use super::prepared::{Check, Ready};
use super::{failure, key};
use crate::kinds::{SynthTask, Watch};
use crate::protocol::CircuitFiles;
use crate::shelf::Shelf;

/// Names of an unsatisfied constraint's signals that are shown.
const NAMES_SHOWN: usize = 12;

pub(super) fn synthesize(task: &SynthTask<'_>, watch: &dyn Watch) -> Result<Ready, Failure> {
    let files = task.circuit.ok_or_else(|| {
        Failure::coded(
            FailureClass::ParamsMismatch,
            "circuit-missing",
            "a groth16 job names a circuit, this one has none",
        )
    })?;
    let input = Input::of_request(task.request, task.partition)?;
    let key = key::pin(files, task.shelf, task.keys, watch)?;
    go_on(watch, 100)?;
    let values = match input {
        Input::Witness(digest) => from_wtns(digest, task.shelf, watch)?,
        Input::Json(digest) => calculate(digest, files, task, watch)?,
    };
    go_on(watch, 700)?;
    if task.recheck {
        let found = key::check_file(files, key.digest, task.shelf, watch);
        if found.is_err() {
            // The resident one was made from that file; whoever uploads it again must not meet it.
            task.keys.evict(files.digest());
        }
        found?;
    }
    let products = check(&values, &key.key, files, task, watch)?;
    let vk_public = key.key.vk().public();
    let public = values.get(1..=vk_public).unwrap_or(&[]).as_flattened().to_vec();
    let digest = match input {
        // Its bytes were held against its digest, so that names the values as well.
        Input::Witness(file) => file,
        Input::Json(_) => Digest::of(values.as_flattened()),
    };
    go_on(watch, 1000)?;
    let check = match (key.key.matrices().c().is_some(), task.recheck) {
        // A recheck without compiled constraints has walked those of the `.r1cs`, if there is one.
        (true, _) => Check::Done,
        (false, true) if files.r1cs.is_some() => Check::Done,
        (false, false) => Check::Impossible,
        (false, true) => Check::ByProvingTwice,
    };
    let ready = Ready::new(values, digest, public, key, task.threads.clone(), check);
    Ok(match products {
        // After an invalid proof nothing is taken over from the check: it is part of what may have gone wrong.
        Some(products) if !task.recheck => ready.with_products(products),
        _ => ready,
    })
}

fn go_on(watch: &dyn Watch, permille: u16) -> Result<(), Failure> {
    watch.progress(permille);
    watch.stopped().map_or(Ok(()), Err)
}

fn from_wtns(
    digest: Digest,
    shelf: &Shelf,
    watch: &dyn Watch,
) -> Result<Zeroizing<Vec<ScalarBytes>>, Failure> {
    // A damaged witness may satisfy the circuit and prove something else.
    let map = shelf.map_verified(digest, "witness", &mut || go_on(watch, 100))?;
    let witness = wtns::Witness::parse(&map).map_err(|error| failure::input(&error))?;
    Ok(Zeroizing::new(witness.values().to_vec()))
}

fn calculate(
    digest: Digest,
    files: &CircuitFiles,
    task: &SynthTask<'_>,
    watch: &dyn Watch,
) -> Result<Zeroizing<Vec<ScalarBytes>>, Failure> {
    let wasm = files.wasm.map(Digest).ok_or_else(|| {
        Failure::coded(
            FailureClass::InputInvalid,
            "wasm-missing",
            "the circuit has no .wasm, so no witness can be made from an input; register it with one, or send a witness",
        )
    })?;
    let (memory_bytes, fuel) = task.wasm;
    let limits = Limits {
        fuel,
        memory_bytes: usize::try_from(memory_bytes).unwrap_or(usize::MAX),
    };
    let mut alive = || go_on(watch, 100);
    let wasm = task.shelf.map_verified(wasm, ".wasm", &mut alive)?;
    let input = task.shelf.map_verified(digest, "input", &mut alive)?;
    let mut calculator =
        Calculator::new(&wasm, limits).map_err(|error| failure::calculator(&error, watch))?;
    if let Some(sym) = files.sym.map(Digest) {
        let sym = task.shelf.map_verified(sym, ".sym", &mut || go_on(watch, 100))?;
        calculator = calculator
            .with_sym_watched(&sym, &mut || still_wanted(watch))
            .map_err(|error| failure::calculator(&error, watch))?;
    }
    go_on(watch, 200)?;
    calculator
        .calculate_watched(&input, &mut || still_wanted(watch))
        .map(Zeroizing::new)
        .map_err(|error| failure::calculator(&error, watch))
}

/// Between two slices of a calculation: it goes on, unless it was stopped.
fn still_wanted(watch: &dyn Watch) -> ControlFlow<()> {
    watch.progress(200);
    if watch.stopped().is_some() {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

/// Length, range and constraints; on another path when the last proof was invalid. Returns what the prover needs of what
/// was computed.
fn check(
    values: &[ScalarBytes],
    key: &ProvingKey,
    files: &CircuitFiles,
    task: &SynthTask<'_>,
    watch: &dyn Watch,
) -> Result<Option<Products>, Failure> {
    let wires = key.matrices().wires() as usize;
    if values.len() != wires {
        let detail = format!(
            "the witness has {}, the circuit has {}: it was made for another circuit",
            count(values.len(), "value"),
            count(wires, "wire")
        );
        return Err(Failure::coded(
            FailureClass::InputInvalid,
            "witness-length",
            detail,
        ));
    }
    let witness = Witness::new(values).map_err(|error| {
        let code = match error {
            WitnessError::NoConstant => "bad-witness",
            WitnessError::NonCanonical { .. } => "non-canonical",
        };
        Failure::coded(FailureClass::InputInvalid, code, error.to_string())
    })?;
    let products = task.threads.run(|| key.matrices().products(&witness)).transpose();
    go_on(watch, 900)?;
    let broken = match (&products, files.r1cs, task.recheck) {
        (Ok(_), Some(r1cs), true) => slowly(values, Digest(r1cs), task.shelf, watch)?,
        (Ok(_), ..) => None,
        (Err(constraint), ..) => Some(*constraint),
    };
    match (products, broken) {
        (Ok(products), None) => Ok(products),
        (_, Some(constraint)) | (Err(constraint), None) => Err(unsatisfied(constraint, files, task.shelf)),
    }
}

/// Every constraint again, one after another, straight from the `.r1cs`: shares nothing with the compiled matrices.
fn slowly(
    values: &[ScalarBytes],
    r1cs: Digest,
    shelf: &Shelf,
    watch: &dyn Watch,
) -> Result<Option<usize>, Failure> {
    let map = shelf.map_verified(r1cs, ".r1cs", &mut || go_on(watch, 900))?;
    let r1cs = R1cs::parse(&map).map_err(|error| failure::input(&error))?;
    for (number, constraint) in r1cs.constraints().enumerate() {
        let [a, b, c] = constraint
            .map_err(|error| failure::input(&error))?
            .map(|combination| {
                combination
                    .iter()
                    .try_fold(blstrs::Scalar::from(0u64), |sum, (wire, coefficient)| {
                        let value = values.get(wire as usize).and_then(scalar_from_bytes)?;
                        Some(sum + scalar_from_bytes(coefficient)? * value)
                    })
            });
        match (a, b, c) {
            (Some(a), Some(b), Some(c)) if a * b == c => {}
            _ => return Ok(Some(number)),
        }
        if number % 4096 == 0 {
            go_on(watch, 950)?;
        }
    }
    Ok(None)
}

/// Names the constraint and, where the circuit's files tell, its signals. Never their values.
fn unsatisfied(constraint: usize, files: &CircuitFiles, shelf: &Shelf) -> Failure {
    let names = signal_names(constraint, files, shelf).unwrap_or_default();
    let signals = match names.len() {
        0 => String::new(),
        count if count > NAMES_SHOWN => {
            format!(
                "; its signals: {} and {} more",
                names[..NAMES_SHOWN].join(", "),
                count - NAMES_SHOWN
            )
        }
        _ => format!("; its signals: {}", names.join(", ")),
    };
    Failure::new(
        FailureClass::Unsatisfied,
        format!(
            "the witness does not satisfy constraint {constraint} of the circuit (counted from 0){signals}"
        ),
    )
}

fn signal_names(constraint: usize, files: &CircuitFiles, shelf: &Shelf) -> Option<Vec<String>> {
    let r1cs = shelf.map(Digest(files.r1cs?), ".r1cs").ok()?;
    let sym = shelf.map(Digest(files.sym?), ".sym").ok()?;
    let (r1cs, sym) = (R1cs::parse(&r1cs).ok()?, Sym::parse(&sym).ok()?);
    let combinations = r1cs.constraints().nth(constraint)?.ok()?;
    let mut wires: Vec<u32> = combinations
        .iter()
        .flat_map(|combination| combination.iter().map(|(wire, _)| wire))
        .collect();
    wires.sort_unstable();
    wires.dedup();
    Some(
        wires
            .iter()
            .filter_map(|wire| sym.names(*wire).next())
            .map(str::to_owned)
            .collect(),
    )
}
