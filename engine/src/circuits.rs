//! Registering a circuit, daemon side: what its files' headers say decides whether it is taken.
//!
//! Points and constraints are checked afterwards by the import, in a worker process. With `"setup"` there is no key
//! yet: its import makes one, which anybody can forge under who saw how, so the circuit is `insecure` from the start.

use std::io::Read as _;

use proofkeep_groth16::memory::{KeyCounts, key_bytes};
use proofkeep_groth16::setup::made_points;
use proofkeep_store::ids::Digest;
use proofkeep_store::machine::CircuitAdd;
use proofkeep_store::records::{CircuitFacts, SourceFiles};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::kinds::Desk;
use crate::kinds::groth16::INSECURE_LOCAL;
use crate::kinds::groth16::headers::{self, R1cs};
use crate::kinds::groth16::key_file::of_params;
use crate::kinds::groth16::plan::{digest, header_problem};
use crate::problem::Problem;

/// The most public signals: those of one partition travel in one frame, and are hashed, stored and shown whole.
const MOST_PUBLIC: u32 = 1 << 18;
/// The members of a description.
const FIELDS: [&str; 7] = [
    "r1cs",
    "zkey",
    "params",
    "wasm",
    "sym",
    "setup",
    "allow_unfinished_setup",
];
/// What `"setup"` may be.
const SETUPS: [&str; 1] = [INSECURE_LOCAL];

/// Reads a description `{"r1cs"?, "zkey" | "params" | "setup", "wasm"?, "sym"?, "allow_unfinished_setup"?}`, each file a
/// digest, and the headers of the files.
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
        return Err(field(
            "the body: expected an object with the digests of the circuit's files",
        ));
    };
    check_fields(spec)?;
    let allow_unfinished = match spec.get("allow_unfinished_setup") {
        None => false,
        Some(Value::Bool(allow)) => *allow,
        Some(_) => return Err(field("allow_unfinished_setup: expected true or false")),
    };
    let file = |field: &str| spec.get(field).map(|value| digest(field, value)).transpose();
    let (zkey, params) = (file("zkey")?, file("params")?);
    let files = SourceFiles {
        r1cs: file("r1cs")?,
        // One place for the key of either format; the file says which it is.
        zkey: zkey.or(params),
        wasm: file("wasm")?,
        sym: file("sym")?,
    };
    let format = match (zkey, params) {
        (Some(_), Some(_)) => {
            return Err(field(
                "params: a circuit has one key, and here are two; leave out \"zkey\" or \"params\"",
            ));
        }
        (None, Some(_)) => Format::Params,
        _ => Format::Zkey,
    };
    let local_setup = local_setup(spec, &files, allow_unfinished)?;
    if format == Format::Params && files.r1cs.is_none() {
        return Err(field(
            "r1cs: expected the digest of the circuit's constraints (circom's .r1cs), since parameters don't hold them; \
             found nothing",
        ));
    }
    check_there(desk, &files)?;
    let key = match files.zkey {
        Some(key) => Some(key_header(desk, key, format)?),
        None => None,
    };
    if let Some(key) = &key {
        check_finished(key, allow_unfinished)?;
        check_public(format.field(), key.public)?;
    }
    let r1cs = match files.r1cs {
        Some(r1cs) => {
            let header = headers::r1cs(&mut desk.open(r1cs)?);
            Some(header.map_err(|error| header_problem("r1cs", &error))?)
        }
        None => None,
    };
    if let Some(r1cs) = &r1cs {
        check_public("r1cs", r1cs.counts.public())?;
    }
    let known = match (&key, &r1cs) {
        (Some(key), Some(r1cs)) => {
            check_same(r1cs, key)?;
            Known::of_key(key, Some(r1cs))
        }
        (Some(key), None) => Known::of_key(key, None),
        (None, Some(r1cs)) => Known::of_constraints(r1cs),
        (None, None) => return Err(no_key()),
    };
    if let Some(wasm) = files.wasm {
        check_wasm(desk, wasm)?;
    }
    Ok(CircuitAdd {
        name: name.to_owned(),
        circuit: description_digest(&files, format, allow_unfinished, local_setup),
        files,
        allow_unfinished,
        local_setup,
        replace,
        total: known.points,
        facts: known.facts(),
        actor: actor.to_owned(),
    })
}

fn field(detail: impl Into<String>) -> Problem {
    Problem::input("bad-field", detail)
}

fn no_key() -> Problem {
    field(
        "zkey: expected the digest of the circuit's proving key (snarkjs's .zkey), or \"params\" with that of bellperson's \
         parameters and a .r1cs, or, for trials, \"setup\": \"insecure-local\" and a .r1cs to make one from; found none \
         of them",
    )
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
    Ok(())
}

/// Whether the key is to be made here.
fn local_setup(
    spec: &Map<String, Value>,
    files: &SourceFiles,
    allow_unfinished: bool,
) -> Result<bool, Problem> {
    let names = SETUPS.map(|name| format!("{name:?}")).join(", ");
    match spec.get("setup") {
        None if files.zkey.is_none() => return Err(no_key()),
        None => return Ok(false),
        Some(Value::String(name)) if SETUPS.contains(&name.as_str()) => {}
        Some(Value::String(name)) => {
            let name: String = name.chars().take(80).collect();
            let detail = format!("setup: there is no setup {name:?}; there are {names}");
            return Err(Problem::input("unknown-setup", detail));
        }
        Some(_) => return Err(field(format!("setup: expected the name of a setup ({names})"))),
    }
    if files.zkey.is_some() {
        return Err(field(
            "setup: the key is made or it is given, and here are both; leave out \"setup\" to use the one that is given, or \
             \"zkey\" and \"params\" to make one",
        ));
    }
    if files.r1cs.is_none() {
        return Err(field(
            "r1cs: expected the digest of the circuit's constraints (circom's .r1cs), which the key is made from; found \
             nothing",
        ));
    }
    if allow_unfinished {
        return Err(field(
            "allow_unfinished_setup: it is about a key that is given, and with \"setup\" there is none; leave it out",
        ));
    }
    Ok(true)
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

/// What a circuit's key is written in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    /// snarkjs's `.zkey`.
    Zkey,
    /// bellperson's parameters.
    Params,
}

impl Format {
    /// The member of a description that names such a key.
    fn field(self) -> &'static str {
        match self {
            Self::Zkey => "zkey",
            Self::Params => "params",
        }
    }

    /// What such a key is called.
    fn name(self) -> &'static str {
        match self {
            Self::Zkey => "the .zkey",
            Self::Params => "the parameters",
        }
    }
}

/// What the head of a key says.
struct Key {
    format: Format,
    wires: u64,
    public: u32,
    domain_log2: u32,
    /// Terms of A and B; parameters don't hold them.
    terms: u64,
    points: u64,
    unfinished: bool,
}

fn key_header(desk: &dyn Desk, key: Digest, format: Format) -> Result<Key, Problem> {
    let mut file = desk.open(key)?;
    let refused = |error: headers::HeaderError| header_problem(format.field(), &error);
    match format {
        Format::Zkey => {
            let found = headers::zkey(&mut file).map_err(refused)?;
            let (wires, public) = (u64::from(found.counts.wires), found.counts.public);
            Ok(Key {
                format,
                wires,
                public,
                domain_log2: found.counts.log2,
                terms: found.terms,
                // A, B in G1, B in G2; C without the public wires; H.
                points: 4 * wires - (u64::from(public) + 1).min(wires) + u64::from(found.counts.domain),
                unfinished: found.unfinished,
            })
        }
        Format::Params => {
            let found = headers::params(&mut file).map_err(refused)?;
            let counts = found.counts;
            Ok(Key {
                format,
                wires: counts.wires(),
                public: u32::try_from(counts.public()).unwrap_or(u32::MAX),
                domain_log2: counts.domain().trailing_zeros(),
                terms: 0,
                points: counts.h + counts.l + counts.a + counts.b1 + counts.b2,
                unfinished: found.unfinished,
            })
        }
    }
}

fn check_finished(key: &Key, allow_unfinished: bool) -> Result<(), Problem> {
    if !key.unfinished || allow_unfinished {
        return Ok(());
    }
    let advice = match key.format {
        Format::Zkey => "contribute to it (snarkjs zkey contribute) and register the result",
        Format::Params => "get the parameters of a finished setup",
    };
    let detail = format!(
        "{}: the setup of this key is unfinished (γ₂ = δ₂), so anyone can forge proofs under it; {advice}, or, for \
         trials, say \"allow_unfinished_setup\": true",
        key.format.field()
    );
    Err(Problem::input("setup-unfinished", detail))
}

fn check_public(file: &str, public: u32) -> Result<(), Problem> {
    if public <= MOST_PUBLIC {
        return Ok(());
    }
    let detail =
        format!("{file}: the circuit has {public} public signals, at most {MOST_PUBLIC} are supported");
    Err(Problem::input("too-many-public", detail))
}

fn check_same(r1cs: &R1cs, key: &Key) -> Result<(), Problem> {
    let name = key.format.name();
    let verb = match key.format {
        Format::Zkey => "is",
        Format::Params => "are",
    };
    let mismatch = |says: String| {
        let detail = format!("{name} {verb} of another circuit: {says}; use the key made from this .r1cs");
        Err(Problem::input("circuit-mismatch", detail))
    };
    for (what, circuit, key) in [
        ("wires", u64::from(r1cs.counts.wires), key.wires),
        (
            "public signals",
            r1cs.counts.public().into(),
            u64::from(key.public),
        ),
    ] {
        if circuit != key {
            return mismatch(format!("the key has {key} {what}, the .r1cs has {circuit}"));
        }
    }
    let (least, domain) = (r1cs.counts.domain_log2(), key.domain_log2);
    if least == domain {
        return Ok(());
    }
    mismatch(format!(
        "the key's domain is 2^{domain}, the .r1cs asks for 2^{least}"
    ))
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

/// What the headers say of a circuit.
struct Known {
    constraints: u64,
    wires: u64,
    public: u32,
    domain_log2: u32,
    terms: u64,
    /// Points that the import checks, and makes before if there is no key.
    points: u64,
    insecure: bool,
    setup: Value,
}

impl Known {
    fn of_key(key: &Key, r1cs: Option<&R1cs>) -> Self {
        let inputs = u64::from(key.public) + 1;
        let (setup, insecure) = match key.format {
            Format::Params => (of_params(key.unfinished), true),
            // Of any other key nobody knows before the import has read the contributions.
            Format::Zkey => (
                json!({"kind": if key.unfinished { "unfinished" } else { "unchecked" }}),
                key.unfinished,
            ),
        };
        Self {
            constraints: r1cs.map_or(0, |r1cs| r1cs.counts.constraints.into()),
            wires: key.wires,
            public: key.public,
            domain_log2: key.domain_log2,
            terms: r1cs.map_or(key.terms, |r1cs| key.terms.max(r1cs.terms + inputs)),
            points: key.points,
            insecure,
            setup,
        }
    }

    fn of_constraints(r1cs: &R1cs) -> Self {
        let (wires, public) = (u64::from(r1cs.counts.wires), r1cs.counts.public());
        let domain_log2 = r1cs.counts.domain_log2();
        let domain = 1 << domain_log2.min(63);
        // As of a .zkey that is given.
        let checked = 4 * wires - (u64::from(public) + 1).min(wires) + domain;
        Self {
            constraints: r1cs.counts.constraints.into(),
            wires,
            public,
            domain_log2,
            points: made_points(wires, domain) + checked,
            terms: r1cs.terms + u64::from(public) + 1,
            insecure: true,
            setup: json!({"kind": INSECURE_LOCAL, "contributions": 0}),
        }
    }

    fn facts(self) -> CircuitFacts {
        let counts = KeyCounts {
            wires: self.wires,
            public: self.public.into(),
            domain: 1 << self.domain_log2.min(63),
            terms: self.terms,
        };
        CircuitFacts {
            constraints: self.constraints,
            wires: self.wires,
            public: self.public,
            domain_log2: self.domain_log2,
            key_bytes: key_bytes(counts),
            insecure: self.insecure,
            setup: self.setup.to_string(),
        }
    }
}

/// The digest of the canonical description: what names the circuit, whatever it is called. A key that is made here isn't
/// in the description and is another one each time, so something random stands for it: what was proved under the key of
/// a circuit that was removed must not count for another of the same files. (The store takes one that is there already.)
fn description_digest(
    files: &SourceFiles,
    format: Format,
    allow_unfinished: bool,
    local_setup: bool,
) -> Digest {
    let file = |digest: Option<Digest>| digest.map(|digest| digest.to_string());
    let mut description = json!({
        "allow_unfinished_setup": allow_unfinished,
        "kind": "groth16",
        "r1cs": file(files.r1cs),
        "sym": file(files.sym),
        "wasm": file(files.wasm),
        "zkey": file(files.zkey.filter(|_| format == Format::Zkey)),
    });
    if format == Format::Params {
        description["params"] = json!(file(files.zkey));
    }
    if local_setup {
        description["setup"] = json!({ INSECURE_LOCAL: Uuid::new_v4().to_string() });
    }
    Digest::of(description.to_string().as_bytes())
}
