//! Circuits: registered, imported, shown, removed.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http_support;

use http_support::{JSON, Server, problem, products};
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{run_in, sha256_name, until_some};
use serde_json::{Value, json};

#[test]
fn a_circuit_is_registered_imported_and_shown() {
    let server = Server::start(&[]);
    let zkey = server.upload(&fixtures::read("poseidon2", "circuit.zkey"));
    let r1cs = server.upload(&fixtures::read("poseidon2", "circuit.r1cs"));
    let body = json!({ "zkey": zkey, "r1cs": r1cs }).to_string();
    let wait = [JSON, ("prefer", "wait=100")];
    let answer = server
        .send("PUT", "/v1/circuits/hash", &wait, Some(body.as_bytes()))
        .expect(201);
    assert_eq!(answer.header("preference-applied"), Some("wait=100"));
    assert_eq!(answer.header("location"), Some("/v1/circuits/hash"));
    let circuit = answer.json();
    assert_eq!(
        (&circuit["state"], &circuit["name"]),
        (&json!("ready"), &json!("hash"))
    );
    assert_eq!(
        (
            &circuit["constraints"],
            &circuit["public"],
            &circuit["domain_log2"]
        ),
        (&json!(517), &json!(1), &json!(10))
    );
    assert_eq!(circuit["files"], json!({ "zkey": zkey, "r1cs": r1cs }));
    assert_eq!(circuit["insecure"], false);
    assert!(
        circuit["setup"].is_object() && circuit["progress"].is_null(),
        "{circuit}"
    );
    // The same again is the same circuit, by name or by digest.
    assert_eq!(
        server
            .send("PUT", "/v1/circuits/hash", &[JSON], Some(body.as_bytes()))
            .status,
        200
    );
    let digest = circuit["digest"].as_str().unwrap();
    assert_eq!(
        server.get(&format!("/v1/circuits/{digest}")).expect(200).json()["name"],
        "hash"
    );
    let vk: Value = server.get("/v1/circuits/hash/vk").expect(200).json();
    let mut made: Value = serde_json::from_slice(&fixtures::read("poseidon2", "vkey.json")).unwrap();
    // snarkjs writes the pairing of α and β as well, which follows from the rest.
    made.as_object_mut().unwrap().remove("vk_alphabeta_12");
    assert_eq!(vk, made);
    problem(
        &server.get("/v1/circuits/hash/vk?format=solidity"),
        400,
        "malformed-query",
    );
}

#[test]
fn circuits_are_listed_by_page() {
    let server = Server::with_multiplier(&[]);
    server.register_fixture("arrays");
    let first = server.get("/v1/circuits?limit=1").expect(200);
    assert_eq!(first.json()["circuits"][0]["name"], "arrays");
    assert_eq!(
        first.header("link"),
        Some("</v1/circuits?limit=1&after=arrays>; rel=\"next\"")
    );
    let next = first.json()["next"].as_str().unwrap().to_owned();
    let second = server
        .get(&format!("/v1/circuits?limit=1&after={next}"))
        .expect(200)
        .json();
    assert_eq!(second["circuits"][0]["name"], "multiplier");
}

#[test]
fn a_name_moves_only_when_asked() {
    let server = Server::with_multiplier(&[]);
    let zkey = server.upload(&fixtures::read("filled", "circuit.zkey"));
    let body = json!({ "zkey": zkey });
    let answer = server.put("/v1/circuits/multiplier", &body);
    assert!(problem(&answer, 409, "name-taken").contains("replace"));
    let moved = server.put("/v1/circuits/multiplier?replace=true", &body);
    assert!(matches!(moved.status, 201 | 202), "{}", moved.text());
    assert_eq!(
        server.get("/v1/circuits/multiplier").json()["files"]["zkey"],
        zkey
    );
}

#[test]
fn a_circuit_goes_when_nobody_needs_it() {
    let server = Server::with_multiplier(&[]);
    let job = server.finish(&products(&[(3, 11)]));
    assert_eq!(job["state"], "succeeded", "{job}");
    assert_eq!(
        server.send("DELETE", "/v1/circuits/multiplier", &[], None).status,
        204
    );
    problem(&server.get("/v1/circuits/multiplier"), 404, "unknown-circuit");
    problem(
        &server.send("DELETE", "/v1/circuits/multiplier", &[], None),
        404,
        "unknown-circuit",
    );
    problem(&server.get("/v1/circuits/multiplier/vk"), 404, "unknown-circuit");
    // What it proved stays.
    let id = job["id"].as_str().unwrap();
    assert_eq!(
        server.get(&format!("/v1/jobs/{id}")).expect(200).json()["circuit"],
        Value::Null
    );
    assert_eq!(server.get(&format!("/v1/jobs/{id}/proof")).status, 200);
}

#[test]
fn a_description_that_does_not_do_is_422_and_says_why() {
    let server = Server::start(&[]);
    let put = |body: Value| server.put("/v1/circuits/c", &body);
    let missing = sha256_name(b"nothing");
    let answer = put(json!({ "zkey": missing }));
    problem(&answer, 422, "blob-missing");
    assert_eq!(answer.json()["missing"], json!([missing]));
    let detail = problem(
        &put(json!({ "zkey": missing, "ptau": missing })),
        422,
        "unknown-field",
    );
    assert!(
        detail.contains("ptau") && detail.contains("zkey, params, wasm"),
        "{detail}"
    );
    problem(&put(json!({})), 422, "bad-field");
    let text = server.upload(b"this is no key at all, but it is long enough to look at");
    problem(&put(json!({ "zkey": text })), 422, "bad-magic");
    let name = server.put("/v1/circuits/a%20name", &json!({ "zkey": text }));
    problem(&name, 422, "bad-name");
    // The key of one circuit with the constraints of another.
    let zkey = server.upload(&fixtures::read("multiplier", "circuit.zkey"));
    let r1cs = server.upload(&fixtures::read("arrays", "circuit.r1cs"));
    assert_eq!(put(json!({ "zkey": zkey, "r1cs": r1cs })).status, 422);
}

#[test]
fn a_key_that_anyone_can_forge_under_is_refused() {
    let server = Server::start(&[]);
    let zkey = unfinished(fixtures::read("multiplier", "circuit.zkey"));
    let digest = server.upload(&zkey);
    let answer = server.put("/v1/circuits/forgeable", &json!({ "zkey": digest }));
    assert!(problem(&answer, 422, "setup-unfinished").contains("contribute"));
}

/// snarkjs's key of the multiplier, before anybody contributed.
const UNFINISHED: &[u8] = include_bytes!("../../engine/groth16/tests/fixtures/multiplier_0000.zkey");

#[test]
fn what_an_unfinished_setup_proved_is_verified_under_its_circuit_only() {
    let server = Server::start(&[]);
    let (zkey, r1cs) = (
        server.upload(UNFINISHED),
        server.upload(&fixtures::read("multiplier", "circuit.r1cs")),
    );
    let wasm = server.upload(&fixtures::read("multiplier", "circuit.wasm"));
    let description = json!({ "zkey": zkey, "r1cs": r1cs, "wasm": wasm, "allow_unfinished_setup": true });
    let answer = server.put("/v1/circuits/multiplier", &description);
    assert!(matches!(answer.status, 201 | 202), "{}", answer.text());
    let job = server.finish(&products(&[(3, 11)]));
    assert_eq!(job["state"], "succeeded", "{job}");
    let id = job["id"].as_str().unwrap();
    let proof = server
        .get(&format!("/v1/jobs/{id}/partitions/0/proof?format=snarkjs"))
        .expect(200)
        .json();
    let public = server
        .get(&format!("/v1/jobs/{id}/partitions/0/public"))
        .expect(200)
        .json();
    let vk = server.get("/v1/circuits/multiplier/vk").expect(200).json();
    let mut question = json!({ "circuit": "multiplier", "proof": proof, "public": public });
    let answer = server.post("/v1/verify", &question).expect(200).json();
    assert_eq!(answer, json!({ "valid": true }));
    question.as_object_mut().unwrap().remove("circuit");
    question["vk"] = vk;
    problem(&server.post("/v1/verify", &question), 422, "setup-unfinished");
}

#[test]
fn an_insecure_key_is_refused_when_its_import_finds_it_out() {
    let server = Server::start(&["--allow-insecure-setup", "false"]);
    let files = tempfile::tempdir().unwrap();
    let (r1cs, _) = fixtures::squares(4);
    std::fs::write(files.path().join("c.r1cs"), &r1cs).unwrap();
    run_in(
        files.path(),
        ["groth16", "setup", "c.r1cs", "c.zkey", "--insecure"],
    )
    .expect(0);
    let zkey = server.upload(&std::fs::read(files.path().join("c.zkey")).unwrap());
    let answer = server.put("/v1/circuits/squares", &json!({ "zkey": zkey }));
    assert!(matches!(answer.status, 201 | 202), "{}", answer.text());
    let circuit = until_some("the import ends", || {
        let circuit = server.get("/v1/circuits/squares").expect(200).json();
        (circuit["state"] != "importing").then_some(circuit)
    });
    assert_eq!(circuit["state"], "failed", "{circuit}");
    assert_eq!(circuit["error"]["code"], "insecure-setup", "{circuit}");
    let witness = server.upload(&fixtures::read("multiplier", "witness.wtns"));
    let job = json!({ "kind": "groth16", "circuit": "squares", "inputs": [{ "witness": witness }] });
    let detail = problem(&server.post("/v1/jobs", &job), 422, "insecure-setup");
    assert!(detail.contains("allow_insecure_setup"), "{detail}");
    // A key that says so itself is refused at once.
    let unfinished = json!({ "zkey": server.upload(UNFINISHED), "allow_unfinished_setup": true });
    problem(
        &server.put("/v1/circuits/multiplier", &unfinished),
        422,
        "insecure-setup",
    );
}

#[test]
fn a_circuit_that_is_needed_stays() {
    let server = Server::with_multiplier(&[]);
    // Far more than can be proved before the next request.
    let many: Vec<(u32, u32)> = (0..200).map(|number| (number + 2, 3)).collect();
    let job = server.post("/v1/jobs", &products(&many)).expect(202).json();
    let answer = server.send("DELETE", "/v1/circuits/multiplier", &[], None);
    problem(&answer, 409, "circuit-in-use");
    assert_eq!(answer.json()["jobs"], 1);
    let id = job["id"].as_str().unwrap();
    assert_eq!(
        server
            .send("POST", &format!("/v1/jobs/{id}/cancel"), &[], None)
            .status,
        202
    );
}

/// The same key with δ₂ set to γ₂, as a setup leaves it that nobody contributed to.
fn unfinished(mut zkey: Vec<u8>) -> Vec<u8> {
    let number = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let mut at = 12;
    loop {
        let (section, length) = (
            u32::from_le_bytes(zkey[at..at + 4].try_into().unwrap()),
            number(&zkey, at + 4),
        );
        let start = at + 12;
        if section == 2 {
            // Section 2 ends with α₁ β₁ β₂ γ₂ δ₁ δ₂.
            let delta2 = start + length - 192;
            let gamma2 = delta2 - 96 - 192;
            let copy = zkey[gamma2..gamma2 + 192].to_vec();
            zkey[delta2..delta2 + 192].copy_from_slice(&copy);
            return zkey;
        }
        at = start + length;
    }
}
