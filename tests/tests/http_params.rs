//! `"params"`: bellperson's parameters as the key of a circuit, over HTTP and from the command line.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http_support;

use std::ops::ControlFlow;

use bellperson::groth16::Parameters;
use blstrs::{Bls12, Scalar};
use ff::Field as _;
use http_support::{JSON, Server, problem};
use proofkeep_formats::params::Params;
use proofkeep_formats::r1cs::{R1cs, R1csBuilder};
use proofkeep_formats::wtns;
use proofkeep_groth16::backend::CpuBackend;
use proofkeep_groth16::curve::{Curve, G1, G2};
use proofkeep_groth16::matrices::Matrices;
use proofkeep_groth16::setup::{ToxicWaste, generate_parameters};
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::run_in;
use serde_json::{Value, json};

const BYTES: (&str, &str) = ("content-type", "application/octet-stream");

/// Parameters of a circuit, byte for byte bellperson's (`engine/groth16/tests/parameters.rs` shows that), from fresh
/// randomness. bellperson's own reader takes them.
fn parameters(r1cs: &[u8]) -> Vec<u8> {
    let matrices = Matrices::from_r1cs(&R1cs::parse(r1cs).unwrap()).unwrap();
    let waste = ToxicWaste::random(&mut rand::rngs::OsRng).unwrap();
    let mut go_on = |_, _| ControlFlow::Continue(());
    let backend = CpuBackend::new(2).unwrap();
    let file = generate_parameters(&matrices, &waste, Vec::new(), &backend, &mut go_on).unwrap();
    Parameters::<Bls12>::read(&file[..], true).expect("bellperson reads its parameters");
    file
}

/// `x·x = y` and `y·x = z` with `y` and `z` public, so that the order of these two counts, and a witness.
fn cube() -> (Vec<u8>, Vec<u8>) {
    let one = Scalar::ONE.to_bytes_le();
    let mut circuit = R1csBuilder::new(4, 2, 0, 1);
    circuit.constraint(&[(3, one)], &[(3, one)], &[(1, one)]);
    circuit.constraint(&[(1, one)], &[(3, one)], &[(2, one)]);
    let values = [1u64, 25, 125, 5].map(|value| Scalar::from(value).to_bytes_le());
    (circuit.build(), wtns::write(&values))
}

fn register(server: &Server, name: &str, body: &Value) -> Value {
    let (path, wait) = (format!("/v1/circuits/{name}"), [JSON, ("prefer", "wait=200")]);
    server
        .send("PUT", &path, &wait, Some(body.to_string().as_bytes()))
        .expect(201)
        .json()
}

/// Proves a witness in one call; the proof verifies.
fn prove(server: &Server, circuit: &str, witness: &[u8]) {
    let path = format!("/v1/circuits/{circuit}/prove");
    let headers = [BYTES, ("prefer", "wait=200")];
    let proved = server
        .send("POST", &path, &headers, Some(witness))
        .expect(201)
        .json();
    let question = json!({ "circuit": circuit, "proof": proved["proof"], "public": proved["publicSignals"] });
    let verdict = server.post("/v1/verify", &question).expect(200).json();
    assert_eq!(verdict, json!({ "valid": true }));
}

#[test]
fn a_circom_circuit_with_parameters_proves_what_its_zkey_proves_and_says_where_its_key_comes_from() {
    let mut server = Server::start(&[]);
    let (r1cs, witness) = (
        fixtures::read("poseidon2", "circuit.r1cs"),
        fixtures::read("poseidon2", "witness.wtns"),
    );
    let file = parameters(&r1cs);
    let (r1cs, params) = (server.upload(&r1cs), server.upload(&file));
    let [wasm, sym] =
        ["wasm", "sym"].map(|end| server.upload(&fixtures::read("poseidon2", &format!("circuit.{end}"))));
    let body = json!({ "r1cs": r1cs, "params": params, "wasm": wasm, "sym": sym });
    let circuit = register(&server, "hash", &body);
    assert_eq!(circuit["state"], "ready", "{circuit}");
    assert_eq!(circuit["files"], body, "{circuit}");
    assert_eq!(
        circuit["setup"],
        json!({ "kind": "unknown", "format": "bellperson" }),
        "{circuit}"
    );
    // A parameter file doesn't say who made it.
    assert_eq!(circuit["insecure"], true, "{circuit}");
    assert_eq!(circuit["constraints"], 517, "{circuit}");
    prove(&server, "hash", &witness);
    let input: Value = serde_json::from_slice(&fixtures::read("poseidon2", "input.json")).unwrap();
    let job = json!({ "kind": "groth16", "circuit": "hash", "inputs": [{ "input": input }] });
    let job = server.finish(&job);
    assert_eq!(job["state"], "succeeded", "{job}");
    // The same statement under snarkjs's key: other points, since snarkjs takes other roots of unity; the same signals.
    server.register_fixture("poseidon2");
    prove(&server, "poseidon2", &witness);
    // The same again is the same circuit.
    assert_eq!(server.put("/v1/circuits/hash", &body).status, 200);

    // After a restart the key is loaded from the file again, and a verification key that is gone is made again.
    let vk = circuit["vk"]
        .as_str()
        .unwrap()
        .strip_prefix("sha256:")
        .unwrap()
        .to_owned();
    let shown = server.get("/v1/circuits/hash/vk").expect(200).body;
    assert!(server.take().terminate().success());
    let objects = server.directory.path().join("data/objects");
    let gone = [objects.join(&vk), objects.join(&vk[..2]).join(&vk)]
        .into_iter()
        .find(|path| path.is_file())
        .expect("the object of the verification key");
    std::fs::remove_file(gone).unwrap();
    server.restart(&[]);
    prove(&server, "hash", &witness);
    assert_eq!(server.get("/v1/circuits/hash/vk").expect(200).body, shown);
}

#[test]
fn what_is_no_key_of_this_circuit_is_refused_with_what_to_do() {
    let server = Server::start(&[]);
    let (r1cs, _) = cube();
    let file = parameters(&r1cs);
    let other = fixtures::read("multiplier", "circuit.r1cs");
    let zkey = server.upload(&fixtures::read("multiplier", "circuit.zkey"));
    let (r1cs, params) = (server.upload(&r1cs), server.upload(&file));
    let put = |body: Value| server.put("/v1/circuits/c", &body);
    assert!(problem(&put(json!({ "params": params })), 422, "bad-field").contains(".r1cs"));
    let both = put(json!({ "r1cs": r1cs, "params": params, "zkey": zkey }));
    assert!(problem(&both, 422, "bad-field").contains("leave out"));
    let made = put(json!({ "r1cs": r1cs, "params": params, "setup": "insecure-local" }));
    assert!(problem(&made, 422, "bad-field").contains("leave out"));
    // Each format under the other's name.
    let swapped = put(json!({ "r1cs": r1cs, "params": zkey }));
    assert!(problem(&swapped, 422, "bad-magic").contains("zkey"));
    problem(&put(json!({ "r1cs": r1cs, "zkey": params })), 422, "bad-magic");
    // Of another circuit.
    let mismatch = put(json!({ "r1cs": r1cs, "params": server.upload(&parameters(&other)) }));
    let detail = problem(&mismatch, 422, "circuit-mismatch");
    assert!(detail.contains("the key made from this .r1cs"), "{detail}");
    // Cut off anywhere, or longer than it says.
    let ends = (0..file.len()).step_by(97).chain([file.len() - 1]);
    for end in ends {
        let answer = put(json!({ "r1cs": r1cs, "params": server.upload(&file[..end]) }));
        problem(&answer, 422, "truncated");
    }
    let longer = [&file[..], &[0]].concat();
    problem(
        &put(json!({ "r1cs": r1cs, "params": server.upload(&longer) })),
        422,
        "bad-count",
    );
    // γ₂ = δ₂: anyone can forge.
    let mut unfinished = file.clone();
    let (gamma2, delta2) = (2 * 96 + 192, 3 * 96 + 2 * 192);
    unfinished.copy_within(delta2..delta2 + 192, gamma2);
    let answer = put(json!({ "r1cs": r1cs, "params": server.upload(&unfinished) }));
    problem(&answer, 422, "setup-unfinished");
    problem(&server.get("/v1/circuits/c"), 404, "unknown-circuit");
    let strict = Server::start(&["--allow-insecure-setup", "false"]);
    let body = json!({ "r1cs": strict.upload(&cube().0), "params": strict.upload(&file) });
    problem(&strict.put("/v1/circuits/c", &body), 422, "insecure-setup");
}

/// A point on the curve but not of order r, uncompressed.
fn outside_subgroup<C: Curve>() -> Vec<u8> {
    let compressed = |x: u8| {
        let mut encoded = vec![0; C::AFFINE_BYTES / 2];
        encoded[0] = 0x80;
        encoded[C::AFFINE_BYTES / 2 - 1] = x;
        C::decode(&encoded).filter(|point| !C::in_subgroup(point))
    };
    C::serialize(&(1..=255u8).find_map(compressed).unwrap())
}

#[test]
fn a_bad_point_in_any_list_is_refused_by_the_import_and_named() {
    let server = Server::start(&[]);
    let (r1cs, _) = cube();
    let file = parameters(&r1cs);
    let r1cs = server.upload(&r1cs);
    let params = Params::parse(&file).unwrap();
    let place = |list: &[u8]| list.as_ptr() as usize - file.as_ptr() as usize;
    let lists = [
        ("list H", params.h, 96),
        ("list L", params.l, 96),
        ("list A", params.a, 96),
        ("list B in G1", params.b1, 96),
        ("list B in G2", params.b2, 192),
    ];
    let mut names = 0..;
    let mut refused = |bad: &[u8], code: &str| -> String {
        let name = format!("c{}", names.next().unwrap());
        let circuit = register(
            &server,
            &name,
            &json!({ "r1cs": r1cs, "params": server.upload(bad) }),
        );
        assert_eq!(circuit["state"], "failed", "{circuit}");
        assert_eq!(circuit["error"]["code"], code, "{circuit}");
        circuit["error"]["detail"].as_str().unwrap().to_owned()
    };
    for (name, list, size) in lists {
        let last = place(list) + list.len() - size;
        let mut off_curve = file.clone();
        off_curve[last + size - 1] ^= 1;
        let detail = refused(&off_curve, "point-off-curve");
        assert!(detail.contains(name), "{detail}");
        let mut outside = file.clone();
        let point = match size {
            96 => outside_subgroup::<G1>(),
            _ => outside_subgroup::<G2>(),
        };
        outside[last..last + size].copy_from_slice(&point);
        let detail = refused(&outside, "point-outside-subgroup");
        assert!(detail.contains(name), "{detail}");
    }
}

#[test]
fn parameters_with_their_signals_in_another_order_prove_nothing_and_the_job_says_why() {
    let server = Server::start(&[]);
    let (r1cs, witness) = cube();
    let file = parameters(&r1cs);
    let ic = Params::parse(&file).unwrap().ic.as_ptr() as usize - file.as_ptr() as usize;
    let mut swapped = file.clone();
    let (first, second) = (ic + 96, ic + 192);
    swapped.copy_within(second..second + 96, first);
    swapped[second..second + 96].copy_from_slice(&file[first..first + 96]);
    let body = json!({ "r1cs": server.upload(&r1cs), "params": server.upload(&swapped) });
    // All its points are points, and it has as many as it should.
    assert_eq!(register(&server, "swapped", &body)["state"], "ready");
    let inputs = json!([{ "witness": server.upload(&witness) }]);
    let job = server.finish(&json!({ "kind": "groth16", "circuit": "swapped", "inputs": inputs }));
    assert_eq!(job["state"], "failed", "{job}");
    let text = job.to_string();
    assert!(text.contains("public signals in another order"), "{text}");
    let good = json!({ "r1cs": body["r1cs"], "params": server.upload(&file) });
    assert_eq!(register(&server, "good", &good)["state"], "ready");
    prove(&server, "good", &witness);
}

#[test]
fn the_command_line_registers_parameters() {
    let server = Server::start(&[]);
    let files = tempfile::tempdir().unwrap();
    let (r1cs, witness) = fixtures::squares(4);
    std::fs::write(files.path().join("c.params"), parameters(&r1cs)).unwrap();
    std::fs::write(files.path().join("c.r1cs"), &r1cs).unwrap();
    let add = |words: &[&str]| {
        let line = ["circuit", "add", "squares", "--server", server.url()];
        run_in(files.path(), line.iter().chain(words))
    };
    let added = add(&["--params", "c.params", "--r1cs", "c.r1cs", "--json"]).expect(0);
    assert_eq!(added.json()["state"], "ready");
    assert!(added.stderr.contains("nothing is known"), "{}", added.stderr);
    prove(&server, "squares", &witness);
    add(&["--params", "c.params"]).expect(2);
    add(&["--params", "c.params", "--r1cs", "c.r1cs", "--zkey", "c.zkey"]).expect(2);
}
