//! `"setup": "insecure-local"`: the daemon makes the key. And keys that came from no ceremony where they aren't allowed.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http_support;

use std::path::Path;

use http_support::{JSON, Server, id, problem};
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{kill_process, run_in, until, until_some};
use serde_json::{Value, json};

const BYTES: (&str, &str) = ("content-type", "application/octet-stream");
const NOT_ALLOWED: [&str; 2] = ["--allow-insecure-setup", "false"];

/// The description of a circuit whose key is to be made.
fn described(server: &Server, r1cs: &[u8]) -> Value {
    json!({ "r1cs": server.upload(r1cs), "setup": "insecure-local" })
}

/// The circuit once its import has ended.
fn imported(server: &Server, name: &str) -> Value {
    until_some("the import ends", || {
        let circuit = server.get(&format!("/v1/circuits/{name}")).expect(200).json();
        (circuit["state"] != "importing").then_some(circuit)
    })
}

/// A job of so many partitions of one witness.
fn submit(server: &Server, circuit: &str, witness: &[u8], partitions: usize) -> Value {
    let inputs = vec![json!({ "witness": server.upload(witness) }); partitions];
    let body = json!({ "kind": "groth16", "circuit": circuit, "inputs": inputs });
    server.post("/v1/jobs", &body).expect(202).json()
}

/// Proves a witness, verifies the proof with the daemon and with the command line.
fn proves(server: &Server, circuit: &str, witness: &[u8]) {
    let path = format!("/v1/circuits/{circuit}/prove");
    let headers = [BYTES, ("prefer", "wait=100")];
    let proved = server
        .send("POST", &path, &headers, Some(witness))
        .expect(201)
        .json();
    let (proof, public) = (&proved["proof"], &proved["publicSignals"]);
    let question = json!({ "circuit": circuit, "proof": proof, "public": public });
    let verdict = server.post("/v1/verify", &question).expect(200).json();
    assert_eq!(verdict, json!({ "valid": true }));
    let vk = server.get(&format!("/v1/circuits/{circuit}/vk")).expect(200);
    assert_eq!(vk.header("proofkeep-insecure"), Some("true"));
    let files = tempfile::tempdir().unwrap();
    std::fs::write(files.path().join("vk.json"), &vk.body).unwrap();
    for (name, value) in [("public.json", public), ("proof.json", proof)] {
        std::fs::write(files.path().join(name), value.to_string()).unwrap();
    }
    let words = ["groth16", "verify", "vk.json", "public.json", "proof.json"];
    run_in(files.path(), words).expect(0);
}

/// How often each event is in the journal of a data directory whose daemon has ended.
fn count(data: &Path, event: &str) -> usize {
    let words = ["history", "--events", "--json", "--data-dir"].map(Path::new);
    let history = run_in(data, words.iter().chain([&data])).expect(0);
    let events = history
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|line| line["event"]["event"] == event).count()
}

#[test]
fn a_key_is_made_and_what_it_proves_verifies_here_and_on_the_command_line() {
    let server = Server::start(&[]);
    let (r1cs, witness) = (
        fixtures::read("poseidon2", "circuit.r1cs"),
        fixtures::read("poseidon2", "witness.wtns"),
    );
    let body = described(&server, &r1cs);
    let circuit = server.put("/v1/circuits/hash", &body).expect(202).json();
    // From the first answer on.
    assert_eq!(circuit["insecure"], true, "{circuit}");
    assert_eq!(circuit["setup"]["kind"], "insecure-local", "{circuit}");
    let counts = ["constraints", "public", "domain_log2"].map(|count| &circuit[count]);
    assert_eq!(counts, [&json!(517), &json!(1), &json!(10)]);
    assert_eq!(circuit["files"], json!({ "r1cs": body["r1cs"] }));
    // Jobs needn't wait for the key.
    let early = submit(&server, "hash", &witness, 2);
    assert_eq!(early["insecure"], true, "{early}");
    let ready = imported(&server, "hash");
    assert_eq!(ready["state"], "ready", "{ready}");
    assert_eq!(ready["insecure"], true, "{ready}");
    assert_eq!(
        ready["setup"],
        json!({ "kind": "insecure-local", "contributions": 0 })
    );
    assert!(ready["refused"].is_null(), "{ready}");
    let zkey = ready["files"]["zkey"].as_str().unwrap().to_owned();
    assert_eq!(
        server
            .send("HEAD", &format!("/v1/blobs/{zkey}"), &[], None)
            .status,
        200
    );
    let job = server.wait_for_end(id(&early));
    assert_eq!(job["state"], "succeeded", "{job}");
    assert_eq!(job["insecure"], true, "{job}");
    proves(&server, "hash", &witness);

    // The same again is the same circuit with the same key, under another name too.
    let again = server.put("/v1/circuits/hash", &body).expect(200).json();
    assert_eq!(
        (&again["digest"], &again["files"]),
        (&ready["digest"], &ready["files"])
    );
    let other = server.put("/v1/circuits/other", &body);
    assert!(matches!(other.status, 201 | 202), "{}", other.text());
    assert_eq!(other.json()["digest"], ready["digest"]);
    // Status says it of a job, and how long the key has been idle.
    let status = server.get("/v1/status").expect(200).json();
    let shown = status["recent"].as_array().unwrap().iter();
    let shown = shown.chain(status["jobs"].as_array().unwrap());
    assert!(shown.into_iter().all(|job| job["insecure"] == true), "{status}");
    until("an idle key says for how long it has been idle", || {
        let keys = server.get("/v1/status").expect(200).json()["memory"]["keys"].clone();
        let cuzk = server.get("/status").expect(200).json();
        let allocation = cuzk["allocations"]["srs"][0]["last_used_secs_ago"].as_u64();
        let idle = keys[0]["idle_ms"].as_u64().unwrap();
        idle > 1000 && allocation.is_none_or(|seconds| seconds > 0)
    });
}

#[test]
fn a_removed_key_does_not_come_back_under_its_old_name() {
    let server = Server::start(&[]);
    let (r1cs, witness) = fixtures::squares(4);
    let body = described(&server, &r1cs);
    let [first, second] = [(); 2].map(|()| {
        let _ = server.put("/v1/circuits/squares", &body);
        let circuit = imported(&server, "squares");
        // Its key is resident in the worker process, which must not use it for the next circuit of these files.
        proves(&server, "squares", &witness);
        // One that is cancelled and can't be retried once the circuit is gone, not even under the next one.
        let cancelled = id(&submit(&server, "squares", &witness, 40)).to_owned();
        let cancel = format!("/v1/jobs/{cancelled}/cancel");
        assert_eq!(server.send("POST", &cancel, &[], None).status, 202);
        let _ = server.wait_for_end(&cancelled);
        let gone = server.send("DELETE", "/v1/circuits/squares", &[], None);
        assert_eq!(gone.status, 204, "{}", gone.text());
        let retry = format!("/v1/jobs/{cancelled}/retry");
        problem(
            &server.send("POST", &retry, &[JSON], Some(b"{}")),
            404,
            "unknown-circuit",
        );
        circuit
    });
    assert_ne!(first["digest"], second["digest"]);
    assert_ne!(first["files"]["zkey"], second["files"]["zkey"]);
}

#[test]
fn a_description_that_does_not_do_is_refused_with_what_to_do() {
    let server = Server::start(&[]);
    let r1cs = server.upload(&fixtures::read("multiplier", "circuit.r1cs"));
    let zkey = server.upload(&fixtures::read("multiplier", "circuit.zkey"));
    let wasm = server.upload(&fixtures::read("multiplier", "circuit.wasm"));
    let put = |body: Value| server.put("/v1/circuits/c", &body);
    let both = json!({ "r1cs": r1cs, "zkey": zkey, "setup": "insecure-local" });
    assert!(problem(&put(both), 422, "bad-field").contains("leave out"));
    let no_constraints = put(json!({ "setup": "insecure-local" }));
    assert!(problem(&no_constraints, 422, "bad-field").contains(".r1cs"));
    let unknown = put(json!({ "r1cs": r1cs, "setup": "secure" }));
    let detail = problem(&unknown, 422, "unknown-setup");
    assert!(
        detail.contains("secure") && detail.contains("insecure-local"),
        "{detail}"
    );
    assert!(problem(&put(json!({ "r1cs": r1cs })), 422, "bad-field").contains("insecure-local"));
    problem(
        &put(json!({ "r1cs": zkey, "setup": "insecure-local" })),
        422,
        "bad-magic",
    );
    // The name is taken by the description without the calculator.
    let body = json!({ "r1cs": r1cs, "setup": "insecure-local" });
    let answer = put(body.clone());
    assert!(matches!(answer.status, 201 | 202), "{}", answer.text());
    let other = json!({ "r1cs": r1cs, "wasm": wasm, "setup": "insecure-local" });
    let detail = problem(&put(other.clone()), 409, "name-taken");
    assert!(detail.contains("replace"), "{detail}");
    let moved = server.put("/v1/circuits/c?replace=true", &other);
    assert!(matches!(moved.status, 201 | 202), "{}", moved.text());
    assert_ne!(moved.json()["digest"], answer.json()["digest"]);
    assert_eq!(imported(&server, "c")["files"]["wasm"], wasm);
}

#[test]
fn a_setup_that_never_fits_is_refused_at_once() {
    let server = Server::start(&["--memory", "40MiB"]);
    let (r1cs, _) = fixtures::squares(12);
    let answer = server.put("/v1/circuits/squares", &described(&server, &r1cs));
    let detail = problem(&answer, 422, "needs-memory");
    assert!(
        detail.contains("making the key") && detail.contains("41943040"),
        "{detail}"
    );
}

#[test]
fn a_setup_that_is_not_allowed_is_refused_at_once() {
    let server = Server::start(&NOT_ALLOWED);
    let (r1cs, _) = fixtures::squares(4);
    let answer = server.put("/v1/circuits/squares", &described(&server, &r1cs));
    let detail = problem(&answer, 422, "insecure-setup");
    assert!(detail.contains("allow_insecure_setup"), "{detail}");
    problem(&server.get("/v1/circuits/squares"), 404, "unknown-circuit");
}

#[test]
fn a_kill_while_the_key_is_made_costs_time_and_the_proof_verifies() {
    let mut server = Server::start(&[]);
    let (r1cs, witness) = fixtures::squares(13);
    let body = described(&server, &r1cs);
    let circuit = server.put("/v1/circuits/squares", &body).expect(202).json();
    let running = |server: &Server| {
        until("the import runs", || {
            let circuit = server.get("/v1/circuits/squares").expect(200).json();
            assert_eq!(circuit["state"], "importing", "{circuit}");
            circuit["progress"]["running"] == true
        });
    };
    running(&server);
    // While somebody works on it it can't be removed, and the answer says what to do.
    let refused = server.send("DELETE", "/v1/circuits/squares", &[], None);
    let detail = problem(&refused, 409, "circuit-importing");
    assert!(detail.contains("Prefer: wait"), "{detail}");
    let total = &refused.json()["progress"]["total"];
    assert_eq!(total, &circuit["progress"]["total"]);
    // The same again while it is imported is the same circuit.
    let again = server.put("/v1/circuits/squares", &body).expect(200).json();
    assert_eq!(again["digest"], circuit["digest"]);

    let workers = server.workers();
    workers.iter().for_each(|pid| kill_process(*pid));
    // A new process is started when the end of the old one is stored.
    until("there is a new worker process", || {
        server.workers().iter().any(|pid| !workers.contains(pid))
    });
    running(&server);
    let data = server.directory.path().join("data");
    let _ = server.take().kill();
    let seen = ["import_started", "import_interrupted", "import_ended"].map(|event| count(&data, event));
    assert_eq!(seen, [2, 1, 0], "both were killed while the key was made");
    server.restart(&[]);
    let ready = imported(&server, "squares");
    assert_eq!(ready["state"], "ready", "{ready}");
    assert_eq!(ready["digest"], circuit["digest"]);
    assert_eq!(ready["insecure"], true);
    proves(&server, "squares", &witness);
    assert!(server.take().terminate().success());
    let seen = ["import_started", "import_ended"].map(|event| count(&data, event));
    assert_eq!(seen, [3, 1]);
    let words = ["fsck", "--data-dir"].map(Path::new);
    run_in(&data, words.iter().chain([&data.as_path()])).expect(0);
}

#[test]
fn after_a_restart_that_forbids_them_such_circuits_get_no_new_work_and_accepted_jobs_go_on() {
    let mut server = Server::start(&[]);
    let (r1cs, witness) = fixtures::squares(10);
    let _ = server.put("/v1/circuits/squares", &described(&server, &r1cs));
    assert_eq!(imported(&server, "squares")["state"], "ready");
    let job = submit(&server, "squares", &witness, 40);
    let cancelled = submit(&server, "squares", &witness, 1);
    let cancel = format!("/v1/jobs/{}/cancel", id(&cancelled));
    assert_eq!(server.send("POST", &cancel, &[], None).status, 202);
    let _ = server.take().kill();
    server.restart(&NOT_ALLOWED);

    let circuit = server.get("/v1/circuits/squares").expect(200).json();
    assert_eq!(circuit["state"], "ready", "{circuit}");
    assert_eq!(circuit["refused"]["code"], "insecure-setup", "{circuit}");
    let listed = server.get("/v1/circuits").expect(200).json();
    assert_eq!(listed["circuits"][0]["refused"], circuit["refused"]);
    let inputs = json!([{ "witness": server.upload(&witness) }]);
    let body = json!({ "kind": "groth16", "circuit": "squares", "inputs": inputs });
    let detail = problem(&server.post("/v1/jobs", &body), 422, "insecure-setup");
    assert!(
        detail.contains("allow_insecure_setup") && detail.contains("squares"),
        "{detail}"
    );
    let prove = server.send("POST", "/v1/circuits/squares/prove", &[BYTES], Some(&witness));
    problem(&prove, 422, "insecure-setup");
    let retry = format!("/v1/jobs/{}/retry", id(&cancelled));
    problem(
        &server.send("POST", &retry, &[JSON], Some(b"{}")),
        422,
        "insecure-setup",
    );
    // What was accepted was promised.
    let ended = server.wait_for_end(id(&job));
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(ended["insecure"], true);
    // Allowed again, it is used again.
    assert!(server.take().terminate().success());
    server.restart(&[]);
    assert!(server.get("/v1/circuits/squares").json()["refused"].is_null());
    proves(&server, "squares", &witness);
}

#[test]
fn a_key_that_is_not_made_yet_when_such_keys_are_forbidden_is_never_made() {
    let mut server = Server::start(&[]);
    let (r1cs, witness) = fixtures::squares(13);
    let body = described(&server, &r1cs);
    let circuit = server.put("/v1/circuits/squares", &body).expect(202).json();
    let job = submit(&server, "squares", &witness, 1);
    let _ = server.take().kill();
    server.restart(&NOT_ALLOWED);
    let failed = imported(&server, "squares");
    assert_eq!(failed["state"], "failed", "{failed}");
    assert_eq!(failed["error"]["code"], "insecure-setup", "{failed}");
    let job = server.wait_for_end(id(&job));
    assert_eq!(job["state"], "failed", "{job}");
    assert_eq!(job["error"]["code"], "insecure-setup", "{job}");
    // Asked for again where they are allowed it gets its key.
    assert!(server.take().terminate().success());
    server.restart(&[]);
    let again = server.put("/v1/circuits/squares", &body);
    assert!(matches!(again.status, 201 | 202), "{}", again.text());
    let ready = imported(&server, "squares");
    assert_eq!(
        (&ready["state"], &ready["digest"]),
        (&json!("ready"), &circuit["digest"])
    );
    proves(&server, "squares", &witness);
}

#[test]
fn the_command_line_asks_for_it_too() {
    let server = Server::start(&[]);
    let files = tempfile::tempdir().unwrap();
    let (r1cs, witness) = fixtures::squares(4);
    std::fs::write(files.path().join("c.r1cs"), &r1cs).unwrap();
    let add = |words: &[&str]| {
        let line = ["circuit", "add", "squares", "--server", server.url()];
        run_in(files.path(), line.iter().chain(words))
    };
    let added = add(&["--r1cs", "c.r1cs", "--setup", "insecure-local", "--json"]).expect(0);
    let circuit = added.json();
    assert_eq!(
        (&circuit["state"], &circuit["insecure"]),
        (&json!("ready"), &json!(true))
    );
    assert!(added.stderr.contains("forge"), "{}", added.stderr);
    proves(&server, "squares", &witness);
    let unknown = add(&["--r1cs", "c.r1cs", "--setup", "secure"]).expect(1);
    assert!(unknown.stderr.contains("insecure-local"), "{}", unknown.stderr);
    add(&["--setup", "insecure-local"]).expect(2);
    add(&[
        "--r1cs",
        "c.r1cs",
        "--zkey",
        "c.zkey",
        "--setup",
        "insecure-local",
    ])
    .expect(2);
    add(&["--r1cs", "c.r1cs"]).expect(2);
}
