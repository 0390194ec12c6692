//! Registering a circuit, daemon side: what its files' headers say decides whether it is taken.
//!
//! Points and constraints are checked afterwards by the import, in a worker process. Keys are made by the CLI
//! (`groth16 setup`, or `circuit setup --insecure` for trials), not over HTTP: making one takes minutes and a file of
//! gigabytes, and one that the daemon made itself would be one that anybody can forge under.

use std::io::Read as _;

use proofkeep_groth16::memory::{KeyCounts, key_bytes};
use proofkeep_store::ids::Digest;
use proofkeep_store::machine::CircuitAdd;
use proofkeep_store::records::{CircuitFacts, SourceFiles};
use serde_json::{Map, Value, json};

use crate::kinds::Desk;
use crate::kinds::groth16::headers::{self, R1cs, Zkey};
use crate::kinds::groth16::plan::{digest, header_problem};
use crate::problem::Problem;

/// The most public signals: those of one partition travel in one frame, and are hashed, stored and shown whole.
const MOST_PUBLIC: u32 = 1 << 18;
/// The members of a description.
const FIELDS: [&str; 6] = ["r1cs", "zkey", "wasm", "sym", "setup", "allow_unfinished_setup"];

/// Reads a description `{"r1cs"?, "zkey", "wasm"?, "sym"?, "allow_unfinished_setup"?}`, each file a digest, and the
/// headers of the files.
///
/// # Errors
/// 422 with the field, what was expected and what was found; `blob-missing` with every missing digest.
pub fn plan_circuit(
    desk: &dyn Desk,
    name: &str,
    spec: &Value,
    replace: bool,
    actor: &str,
) -> Result<CircuitAdd, Problem> {
    check_name(name)?;
    let Value::Object(spec) = spec else {
        return Err(Problem::input(
            "bad-field",
            "the body: expected an object with the digests of the circuit's files",
        ));
    };
    check_fields(spec)?;
    let allow_unfinished = match spec.get("allow_unfinished_setup") {
        None => false,
        Some(Value::Bool(allow)) => *allow,
        Some(_) => {
            return Err(Problem::input(
                "bad-field",
                "allow_unfinished_setup: expected true or false",
            ));
        }
    };
    let file = |field: &str| spec.get(field).map(|value| digest(field, value)).transpose();
    let files = SourceFiles {
        r1cs: file("r1cs")?,
        zkey: file("zkey")?,
        wasm: file("wasm")?,
        sym: file("sym")?,
    };
    let Some(zkey) = files.zkey else {
        let detail =
            "zkey: expected the digest of the circuit's proving key (snarkjs's .zkey); found nothing";
        return Err(Problem::input("bad-field", detail));
    };
    check_there(desk, &files)?;
    let key = headers::zkey(&mut desk.open(zkey)?).map_err(|error| header_problem("zkey", &error))?;
    if key.unfinished && !allow_unfinished {
        let detail = "zkey: the setup of this key is unfinished (γ₂ = δ₂), so anyone can forge proofs under it; \
                      contribute to it (snarkjs zkey contribute) and register the result, or, for trials, say \
                      \"allow_unfinished_setup\": true";
        return Err(Problem::input("setup-unfinished", detail));
    }
    if key.counts.public > MOST_PUBLIC {
        let detail = format!(
            "zkey: the circuit has {} public signals, at most {MOST_PUBLIC} are supported",
            key.counts.public
        );
        return Err(Problem::input("too-many-public", detail));
    }
    let r1cs = match files.r1cs {
        Some(r1cs) => {
            let header = headers::r1cs(&mut desk.open(r1cs)?);
            Some(header.map_err(|error| header_problem("r1cs", &error))?)
        }
        None => None,
    };
    if let Some(r1cs) = &r1cs {
        check_same(r1cs, &key)?;
    }
    if let Some(wasm) = files.wasm {
        check_wasm(desk, wasm)?;
    }
    let (wires, public, domain) = (
        u64::from(key.counts.wires),
        u64::from(key.counts.public),
        u64::from(key.counts.domain),
    );
    Ok(CircuitAdd {
        name: name.to_owned(),
        circuit: description_digest(&files, allow_unfinished),
        files,
        allow_unfinished,
        replace,
        facts: facts(&key, r1cs.as_ref()),
        // A, B in G1, B in G2; C without the public wires; H.
        total: 3 * wires + (wires - public - 1) + domain,
        actor: actor.to_owned(),
    })
}

fn check_name(name: &str) -> Result<(), Problem> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let starts = name.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    if starts && name.len() <= 64 && name.chars().all(allowed) {
        return Ok(());
    }
    let detail = "the circuit's name: expected 1 to 64 of a-z A-Z 0-9 - _ . and a letter or digit in front";
    Err(Problem::input("bad-name", detail))
}

fn check_fields(spec: &Map<String, Value>) -> Result<(), Problem> {
    if let Some(field) = spec.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        let detail = format!(
            "{field:?} is no member of a circuit; there are {}",
            FIELDS.join(", ")
        );
        return Err(Problem::input("unknown-field", detail));
    }
    if spec.contains_key("setup") {
        let detail = "setup: a key is made with the command line (`proofkeep circuit setup --insecure`, for trials \
                      only), not over HTTP; upload its .zkey and name its digest as \"zkey\"";
        return Err(Problem::input("setup-not-here", detail));
    }
    Ok(())
}

fn check_there(desk: &dyn Desk, files: &SourceFiles) -> Result<(), Problem> {
    let named = [files.r1cs, files.zkey, files.wasm, files.sym];
    let missing: Vec<String> = named
        .into_iter()
        .flatten()
        .filter(|digest| desk.size(*digest).is_none())
        .map(|digest| digest.to_string())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let detail = format!(
        "there is no object {}; upload what is missing first",
        missing.join(", ")
    );
    Err(Problem::input("blob-missing", detail).with("missing", json!(missing)))
}

fn check_same(r1cs: &R1cs, key: &Zkey) -> Result<(), Problem> {
    for (what, circuit, key) in [
        ("wires", r1cs.counts.wires, key.counts.wires),
        ("public signals", r1cs.counts.public(), key.counts.public),
    ] {
        if circuit != key {
            let detail = format!(
                "the .zkey is of another circuit: it has {key} {what}, the .r1cs has {circuit}; use the key made from this .r1cs"
            );
            return Err(Problem::input("circuit-mismatch", detail));
        }
    }
    let (least, domain) = (r1cs.counts.domain_log2(), key.counts.log2);
    if least == domain {
        return Ok(());
    }
    let detail = format!(
        "the .zkey is of another circuit: its domain is 2^{domain}, the .r1cs asks for 2^{least}; use the key made from this .r1cs"
    );
    Err(Problem::input("circuit-mismatch", detail))
}

fn check_wasm(desk: &dyn Desk, wasm: Digest) -> Result<(), Problem> {
    let mut start = [0; 4];
    let read = desk.open(wasm)?.read_exact(&mut start);
    if read.is_ok() && start == *b"\0asm" {
        return Ok(());
    }
    let detail = "wasm: this is no WebAssembly; send the circuit.wasm that `circom --wasm` wrote";
    Err(Problem::input("not-circom-wasm", detail))
}

fn facts(key: &Zkey, r1cs: Option<&R1cs>) -> CircuitFacts {
    let (wires, public, domain) = (
        u64::from(key.counts.wires),
        u64::from(key.counts.public),
        u64::from(key.counts.domain),
    );
    let inputs = public + 1;
    let terms = r1cs.map_or(key.terms, |r1cs| key.terms.max(r1cs.terms + inputs));
    CircuitFacts {
        constraints: r1cs.map_or(0, |r1cs| r1cs.counts.constraints.into()),
        wires,
        public: key.counts.public,
        domain_log2: key.counts.log2,
        key_bytes: key_bytes(KeyCounts {
            wires,
            public,
            domain,
            terms,
        }),
        // Of any other key nobody knows before the import has read the contributions.
        insecure: key.unfinished,
        setup: json!({"kind": if key.unfinished { "unfinished" } else { "unchecked" }}).to_string(),
    }
}

/// The digest of the canonical description: what names the circuit, whatever it is called.
fn description_digest(files: &SourceFiles, allow_unfinished: bool) -> Digest {
    let file = |digest: Option<Digest>| digest.map(|digest| digest.to_string());
    let description = json!({
        "allow_unfinished_setup": allow_unfinished,
        "kind": "groth16",
        "r1cs": file(files.r1cs),
        "sym": file(files.sym),
        "wasm": file(files.wasm),
        "zkey": file(files.zkey),
    });
    Digest::of(description.to_string().as_bytes())
}
