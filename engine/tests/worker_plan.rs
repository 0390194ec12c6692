//! What the daemon makes of requests and descriptions before any worker sees them.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofkeep_engine::circuits::plan_circuit;
use proofkeep_engine::kinds::groth16::Groth16;
use proofkeep_engine::kinds::{Desk, Kind as _, Plan};
use proofkeep_engine::problem::Problem;
use proofkeep_formats::field::R_LE;
use proofkeep_formats::zkey::Zkey;
use proofkeep_groth16::check::point_count;
use proofkeep_groth16::memory::ticket_bytes;
use proofkeep_store::ids::{Digest, Millis};
use proofkeep_store::records::{Circuit, CircuitFacts, CircuitState, Failure, FailureClass, ImportState};
use serde_json::{Value, json};

const WASM_MEMORY: u64 = 300 << 20;

/// A desk over objects in memory.
#[derive(Default)]
struct Shelf {
    objects: RefCell<HashMap<Digest, Vec<u8>>>,
    circuits: HashMap<String, Circuit>,
}

impl Shelf {
    fn put(&self, bytes: &[u8]) -> String {
        let digest = Digest::of(bytes);
        self.objects.borrow_mut().insert(digest, bytes.to_vec());
        digest.to_string()
    }

    /// Registers a fixture.
    fn circom(&mut self, name: &str) -> Circuit {
        let spec = json!({
            "r1cs": self.put(&fixture(name, "circuit.r1cs")),
            "zkey": self.put(&fixture(name, "circuit.zkey")),
            "wasm": self.put(&fixture(name, "circuit.wasm")),
            "sym": self.put(&fixture(name, "circuit.sym")),
        });
        let add = plan_circuit(self, name, &spec, false, "tester").unwrap();
        let circuit = Circuit {
            digest: add.circuit,
            name: add.name,
            files: add.files,
            allow_unfinished: add.allow_unfinished,
            local_setup: add.local_setup,
            facts: add.facts,
            state: CircuitState::Importing(ImportState {
                done: 0,
                total: add.total,
                token: None,
                deaths: 0,
            }),
            vk: None,
            matrices: None,
            actor: add.actor,
            added_at: Millis(0),
            ready_at: None,
        };
        self.circuits.insert(name.to_owned(), circuit.clone());
        circuit
    }
}

impl Desk for Shelf {
    fn circuit(&self, name: &str) -> Result<Circuit, Problem> {
        self.circuits
            .get(name)
            .cloned()
            .ok_or_else(|| Problem::new(404, "unknown-circuit", "", name))
    }

    fn keep(&self, bytes: &[u8]) -> Result<Digest, Problem> {
        Ok(Digest::parse(&self.put(bytes)).unwrap())
    }

    fn size(&self, object: Digest) -> Option<u64> {
        self.objects.borrow().get(&object).map(|bytes| bytes.len() as u64)
    }

    fn open(&self, object: Digest) -> Result<File, Problem> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&self.objects.borrow()[&object]).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        Ok(file)
    }

    fn threads(&self) -> u32 {
        2
    }

    fn wasm_memory_bytes(&self) -> u64 {
        WASM_MEMORY
    }
}

fn fixture(circuit: &str, file: &str) -> Vec<u8> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/circom");
    std::fs::read(root.join(circuit).join(file)).unwrap()
}

fn plan(desk: &Shelf, fields: Value) -> Result<Plan, Problem> {
    let Value::Object(fields) = fields else {
        panic!("fields are an object")
    };
    Groth16::new().plan(fields, desk)
}

fn refused<T: std::fmt::Debug>(result: Result<T, Problem>) -> (u16, String) {
    let problem = result.unwrap_err();
    assert!(!problem.detail.is_empty());
    (problem.status, problem.code)
}

#[test]
fn every_form_of_an_input_becomes_a_digest() {
    let mut desk = Shelf::default();
    let circuit = desk.circom("multiplier");
    let witness = fixture("multiplier", "witness.wtns");
    let blob = desk.put(&witness);
    let input: Value = serde_json::from_slice(&fixture("multiplier", "input.json")).unwrap();
    let upload = desk.put(&fixture("multiplier", "input.json"));
    let planned = plan(
        &desk,
        json!({"circuit": "multiplier", "inputs": [
            {"witness": blob},
            {"witness_base64": STANDARD.encode(&witness)},
            {"input": input},
            {"input_blob": upload},
        ]}),
    )
    .unwrap();
    let kept = Digest::of(input.to_string().as_bytes()).to_string();
    let canonical = json!({
        "circuit": circuit.digest.to_string(),
        "inputs": [{"witness": blob}, {"witness": blob}, {"input_blob": kept}, {"input_blob": upload}],
    });
    assert_eq!(Value::Object(planned.fields), canonical);
    assert_eq!((planned.circuit, planned.partitions), (Some(circuit.digest), 4));
    for object in &planned.objects {
        assert!(
            desk.size(*object).is_some(),
            "{object} is there when the job is submitted"
        );
    }
    let proving = ticket_bytes(1 << circuit.facts.domain_log2, circuit.facts.wires, 2);
    assert!(planned.ticket_bytes > proving + WASM_MEMORY);
    let lighter = plan(
        &desk,
        json!({"circuit": "multiplier", "inputs": [{"witness": blob}]}),
    )
    .unwrap();
    assert_eq!(lighter.ticket_bytes, proving + witness.len() as u64);
}

#[test]
fn an_inline_integer_of_any_size_keeps_its_digits() {
    let mut desk = Shelf::default();
    desk.circom("multiplier");
    let text = r#"{"circuit":"multiplier","inputs":[{"input":{"a":123456789012345678901234567890123456789012345678901,"b":[0]}}]}"#;
    let planned = plan(&desk, serde_json::from_str(text).unwrap()).unwrap();
    let kept = desk.objects.borrow()[&planned.objects[0]].clone();
    assert_eq!(
        kept,
        br#"{"a":123456789012345678901234567890123456789012345678901,"b":[0]}"#
    );
}

#[test]
fn what_is_wrong_with_a_request_is_said_before_it_is_taken() {
    let mut desk = Shelf::default();
    desk.circom("multiplier");
    let witness = fixture("multiplier", "witness.wtns");
    let good = desk.put(&witness);
    let other = desk.put(&fixture("poseidon2", "witness.wtns"));
    let cut = desk.put(&witness[..witness.len() - 1]);
    let gone = Digest::of(b"never uploaded").to_string();
    let mut bn254 = witness.clone();
    let prime = bn254.windows(32).position(|bytes| bytes == R_LE).unwrap();
    bn254[prime + 4] ^= 1;
    let inputs = |inputs: Value| json!({"circuit": "multiplier", "inputs": inputs});
    for (fields, status, code) in [
        (
            json!({"circuit": "multiplier", "inputs": [{"witness": good}], "extra": 1}),
            422,
            "unknown-field",
        ),
        (json!({"inputs": [{"witness": good}]}), 422, "bad-field"),
        (
            json!({"circuit": "nothing", "inputs": [{"witness": good}]}),
            404,
            "unknown-circuit",
        ),
        (json!({"circuit": "multiplier"}), 422, "bad-field"),
        (inputs(json!([])), 422, "inputs-count"),
        (
            inputs(json!(vec![json!({"witness": good}); 1025])),
            422,
            "inputs-count",
        ),
        (inputs(json!(["text"])), 422, "bad-field"),
        (inputs(json!([{}])), 422, "bad-field"),
        (inputs(json!([{"witness": good, "input": {}}])), 422, "bad-field"),
        (inputs(json!([{"what": good}])), 422, "unknown-field"),
        (inputs(json!([{"witness": "sha256:12"}])), 422, "bad-field"),
        (inputs(json!([{"witness": gone}])), 422, "blob-missing"),
        (inputs(json!([{"witness": other}])), 422, "witness-length"),
        (inputs(json!([{"witness": cut}])), 422, "truncated"),
        (
            inputs(json!([{"witness_base64": STANDARD.encode(&bn254)}])),
            422,
            "wrong-prime",
        ),
        (
            inputs(json!([{"witness_base64": "not base64!"}])),
            422,
            "bad-base64",
        ),
        (
            inputs(json!([{"witness_base64": "A".repeat(1_400_004)}])),
            413,
            "too-large",
        ),
        (inputs(json!([{"input": [1, 2]}])), 422, "bad-field"),
        (inputs(json!([{"input_blob": gone}])), 422, "blob-missing"),
    ] {
        assert_eq!(
            refused(plan(&desk, fields.clone())),
            (status, code.to_owned()),
            "{fields}"
        );
    }
    let circuit = desk.circuits.get_mut("multiplier").unwrap();
    circuit.files.wasm = None;
    assert_eq!(
        refused(plan(&desk, inputs(json!([{"input": {}}])))).1,
        "wasm-missing"
    );
    let circuit = desk.circuits.get_mut("multiplier").unwrap();
    circuit.state = CircuitState::Failed(Failure::coded(
        FailureClass::CircuitFailed,
        "point-off-curve",
        "no",
    ));
    assert_eq!(
        refused(plan(&desk, inputs(json!([{"witness": good}])))).1,
        "point-off-curve"
    );
}

#[test]
fn a_circuits_headers_give_its_counts_and_its_digest() {
    let mut desk = Shelf::default();
    for name in ["multiplier", "poseidon2", "filled", "arrays"] {
        let circuit = desk.circom(name);
        let key = fixture(name, "circuit.zkey");
        let zkey = Zkey::parse(&key).unwrap();
        let CircuitState::Importing(import) = circuit.state else {
            panic!("it is importing")
        };
        assert_eq!(import.total, point_count(&zkey), "{name}");
        assert_eq!(circuit.facts.wires, u64::from(zkey.header.wires));
        assert_eq!(circuit.facts.domain_log2, zkey.header.log2);
        assert!(circuit.facts.constraints > 0);
        let again = desk.circom(name);
        assert_eq!(
            again.digest, circuit.digest,
            "the same files are the same circuit"
        );
    }
}

#[test]
fn what_is_wrong_with_a_circuit_is_said_before_it_is_taken() {
    let desk = Shelf::default();
    let key = fixture("multiplier", "circuit.zkey");
    let zkey = desk.put(&key);
    let r1cs = desk.put(&fixture("multiplier", "circuit.r1cs"));
    let gone = Digest::of(b"never uploaded").to_string();
    let unfinished = desk.put(&unfinished(&key));
    let cut = desk.put(&key[..key.len() - 1]);
    for (spec, code) in [
        (json!([]), "bad-field"),
        (json!({}), "bad-field"),
        (json!({"zkey": zkey, "what": 1}), "unknown-field"),
        (json!({"setup": "insecure-local"}), "bad-field"),
        (
            json!({"setup": "insecure-local", "zkey": zkey, "r1cs": r1cs}),
            "bad-field",
        ),
        (
            json!({"setup": "insecure-local", "r1cs": r1cs, "allow_unfinished_setup": true}),
            "bad-field",
        ),
        (json!({"setup": "secure", "r1cs": r1cs}), "unknown-setup"),
        (json!({"setup": true, "r1cs": r1cs}), "bad-field"),
        (json!({"r1cs": r1cs}), "bad-field"),
        (json!({"setup": "insecure-local", "r1cs": gone}), "blob-missing"),
        (json!({"setup": "insecure-local", "r1cs": zkey}), "bad-magic"),
        (json!({"zkey": 7}), "bad-field"),
        (json!({"zkey": gone, "r1cs": r1cs}), "blob-missing"),
        (json!({"zkey": cut}), "truncated"),
        (json!({"zkey": r1cs}), "bad-magic"),
        (json!({"zkey": unfinished}), "setup-unfinished"),
        (
            json!({"zkey": unfinished, "allow_unfinished_setup": false}),
            "setup-unfinished",
        ),
        (
            json!({"zkey": zkey, "r1cs": desk.put(&fixture("poseidon2", "circuit.r1cs"))}),
            "circuit-mismatch",
        ),
        (json!({"zkey": zkey, "wasm": r1cs}), "not-circom-wasm"),
        (json!({"zkey": zkey, "allow_unfinished_setup": 1}), "bad-field"),
    ] {
        let result = plan_circuit(&desk, "name", &spec, false, "tester");
        assert_eq!(refused(result), (422, code.to_owned()), "{spec}");
    }
    for name in ["", "-x", "a b", "ä", &"x".repeat(65)] {
        let result = plan_circuit(&desk, name, &json!({"zkey": zkey}), false, "tester");
        assert_eq!(refused(result).1, "bad-name", "{name}");
    }
}

#[test]
fn a_circuit_whose_key_is_to_be_made_is_known_from_its_constraints_and_insecure_from_the_start() {
    let desk = Shelf::default();
    for circuit in ["multiplier", "poseidon2", "filled", "arrays"] {
        let zkey = fixture(circuit, "circuit.zkey");
        let r1cs = desk.put(&fixture(circuit, "circuit.r1cs"));
        let plan = |spec| plan_circuit(&desk, circuit, &spec, false, "tester").unwrap();
        let given = plan(json!({"r1cs": r1cs, "zkey": desk.put(&zkey)}));
        let [made, again] = [(); 2].map(|()| plan(json!({"r1cs": r1cs, "setup": "insecure-local"})));
        assert!(made.local_setup && !given.local_setup && made.files.zkey.is_none());
        assert_ne!(made.circuit, again.circuit, "the key would be another one");
        assert!(made.facts.insecure);
        let setup = json!({"kind": "insecure-local", "contributions": 0});
        assert_eq!(serde_json::from_str::<Value>(&made.facts.setup).unwrap(), setup);
        let known = CircuitFacts {
            insecure: false,
            setup: given.facts.setup.clone(),
            ..made.facts.clone()
        };
        // Terms of A and B are counted by the key, here those of C with them.
        assert!(known.key_bytes >= given.facts.key_bytes, "{circuit}");
        let key_bytes = given.facts.key_bytes;
        assert_eq!(CircuitFacts { key_bytes, ..known }, given.facts, "{circuit}");
        let header = Zkey::parse(&zkey).unwrap().header;
        let points = 4 * u64::from(header.wires) + u64::from(header.domain);
        assert_eq!(made.total, given.total + points, "{circuit}");
        assert_eq!(
            given.total,
            point_count(&Zkey::parse(&zkey).unwrap()),
            "{circuit}"
        );
    }
}

/// The key with γ₂ in δ₂'s place, as before any contribution.
#[test]
fn an_unfinished_setup_is_taken_where_it_is_allowed_and_marked_at_once() {
    let desk = Shelf::default();
    let zkey = desk.put(&unfinished(&fixture("multiplier", "circuit.zkey")));
    let plan = |spec| plan_circuit(&desk, "name", &spec, false, "tester").unwrap();
    let add = plan(json!({"zkey": zkey, "allow_unfinished_setup": true}));
    assert!(add.allow_unfinished && add.facts.insecure);
    assert_eq!(add.facts.setup, json!({"kind": "unfinished"}).to_string());
    // The flag alone makes no key insecure, but it is another circuit than the one without it.
    let zkey = desk.put(&fixture("multiplier", "circuit.zkey"));
    let [with, without] =
        [true, false].map(|allow| plan(json!({"zkey": zkey, "allow_unfinished_setup": allow})));
    assert!(!with.facts.insecure);
    assert_ne!(with.circuit, without.circuit);
}

fn unfinished(key: &[u8]) -> Vec<u8> {
    let zkey = Zkey::parse(key).unwrap();
    let place = zkey.delta2.as_ptr() as usize - key.as_ptr() as usize;
    let gamma = *zkey.gamma2;
    let mut key = key.to_vec();
    key[place..place + gamma.len()].copy_from_slice(&gamma);
    key
}

#[test]
fn a_proof_without_a_daemon_verifies() {
    use proofkeep_engine::standalone::Local;
    use proofkeep_groth16::control::Unwatched;
    use proofkeep_groth16::vk::UnfinishedSetup;
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/circom/poseidon2");
    let (zkey, r1cs) = (root.join("circuit.zkey"), root.join("circuit.r1cs"));
    let refuse = UnfinishedSetup::Refuse;
    let local = Local::open(&zkey, Some(&r1cs), 2, refuse).unwrap();
    let witness = fixture("poseidon2", "witness.wtns");
    let proved = local.prove(&witness, &Unwatched).unwrap();
    let bytes = proved.proof.to_bytes(proofkeep_groth16::vk::Encoding::Compressed);
    let vk = fixture("poseidon2", "vkey.json");
    Groth16::new()
        .verify(Some(&vk), proved.public.as_flattened(), &bytes)
        .unwrap();
    let mut bad = witness;
    let last = bad.len();
    bad[last - 32] ^= 1;
    assert_eq!(
        local.prove(&bad, &Unwatched).unwrap_err().class,
        FailureClass::Unsatisfied
    );
    let other = root.join("../multiplier/circuit.r1cs");
    assert_eq!(
        Local::open(&zkey, Some(&other), 1, refuse).unwrap_err().code,
        "circuit-mismatch"
    );
}

#[test]
fn a_proof_is_refused_for_what_is_wrong_with_it() {
    let kind = Groth16::new();
    let vk = fixture("multiplier", "vkey.json");
    let public = [0; 64];
    for (vk, public, proof, code) in [
        (None, &public[..], vec![0; 192], "vk-missing"),
        (Some(&vk[..]), &public[..63], vec![0; 192], "public-length"),
        (Some(&b"{}"[..]), &public[..], vec![0; 192], "malformed-json"),
    ] {
        let failure = kind.verify(vk, public, &proof).unwrap_err();
        assert_eq!(
            (failure.class, failure.code.as_str()),
            (FailureClass::InvalidProof, code)
        );
    }
    for length in [0, 191, 192, 193] {
        assert!(kind.verify(Some(&vk), &public, &vec![0; length]).is_err());
    }
}

/// Every source file below `src` that holds `text`.
fn naming(text: &str) -> Vec<String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut found, mut directories) = (Vec::new(), vec![root.clone()]);
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if std::fs::read_to_string(&path).unwrap().contains(text) {
                found.push(path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_lease_is_made_from_a_prove_word_or_without_a_daemon_and_nowhere_else() {
    assert_eq!(naming("Lease::new("), ["standalone.rs", "worker/prove.rs"]);
    assert_eq!(
        naming("prove::Order {"),
        ["worker/shared.rs"],
        "only hearing Prove starts a device stage"
    );
    for file in naming("standalone::").iter().chain(&naming("mod standalone")) {
        assert!(
            !file.starts_with("worker"),
            "{file} must not name the way without a daemon"
        );
    }
}
