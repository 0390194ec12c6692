//! What is malformed is 422 with its field over HTTP, for each kind in many ways; nothing of it becomes a job.

mod porep;
mod update;
mod window;
mod winning;

use std::collections::BTreeSet;

use proofkeep_tests::harness::Launch;
use serde_json::{Map, Value, json};

use super::support::{json_fixture, porep_request, post_request, update_request};

/// A request without its vanilla proofs, and those as JSON.
pub struct Input {
    pub fields: Map<String, Value>,
    pub proofs: Value,
}

/// One way to spoil an input: its name, what is done to it, and the code and the field that must come out.
pub struct Case {
    pub name: &'static str,
    pub spoil: fn(&mut Input),
    pub code: &'static str,
    pub field: &'static str,
}

fn list(value: &mut Value) -> &mut Vec<Value> {
    value.as_array_mut().unwrap()
}

/// The path of one inclusion proof.
fn path(input: &mut Input, sector: usize, proof: usize) -> &mut Value {
    &mut input.proofs[sector]["vanilla_proof"]["sectors"][0]["inclusion_proofs"][proof]["data"]["Single"]["path"]
        ["path"]
}

/// Spoils a fresh input in each way and compares what the daemon answers.
fn refused(fresh: impl Fn() -> Input, proofs: &str, cases: &[Case]) {
    let empty = tempfile::tempdir().unwrap();
    let data = tempfile::tempdir().unwrap();
    // Without parameters: nothing here may come so far that they are looked for.
    let daemon = Launch::new(data.path())
        .env("PROOFKEEP_PARAM_DIR", empty.path())
        .args(["--cpu-devices", "2", "--memory", "8GiB"])
        .start();
    let submit = |input: Input| {
        let mut request = input.fields;
        let digest = daemon.upload(input.proofs.to_string().as_bytes());
        request.insert(proofs.to_owned(), digest.into());
        daemon
            .post("/v1/jobs", &Value::Object(request))
            .expect(422)
            .json()
    };
    let whole = submit(fresh());
    assert_eq!(
        whole["code"], "params-missing",
        "the input as it is lacks nothing else: {whole}"
    );
    assert!(cases.len() >= 10, "at least ten malformed inputs of each kind");
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), cases.len());
    for case in cases {
        let mut input = fresh();
        (case.spoil)(&mut input);
        let problem = submit(input);
        assert_eq!(
            (problem["code"].as_str(), problem["field"].as_str()),
            (Some(case.code), Some(case.field)),
            "{}: {problem}",
            case.name
        );
        for said in ["expected", "found"] {
            // An unknown field's text says which there are.
            assert!(
                case.code == "unknown-field" || problem[said].as_str().is_some_and(|text| !text.is_empty()),
                "{}: {problem}",
                case.name
            );
        }
    }
    let jobs = daemon.get("/v1/jobs").expect(200).json();
    assert_eq!(jobs["jobs"], json!([]), "no job was made: {jobs}");
    let stderr = daemon.kill();
    assert!(!stderr.contains("panicked"), "{stderr}");
    // What a sender did wrong is told to the sender.
    assert!(!stderr.contains("ERROR"), "{stderr}");
}

#[test]
fn malformed_window_posts_are_refused_with_their_field() {
    let directory = "window-2k-3sectors";
    let fresh = || Input {
        fields: post_request(directory),
        proofs: json_fixture(&format!("{directory}/vanilla.json")),
    };
    refused(fresh, "vanilla_proofs", window::CASES);
}

#[test]
fn malformed_winning_posts_are_refused_with_their_field() {
    let fresh = || Input {
        fields: post_request("winning-2k"),
        proofs: json_fixture("winning-2k/vanilla.json"),
    };
    refused(fresh, "vanilla_proofs", winning::CASES);
}

#[test]
fn malformed_outputs_of_c1_are_refused_with_their_field() {
    let fresh = || Input {
        fields: porep_request(),
        proofs: json_fixture("porep-2k-p2/c1.json"),
    };
    refused(fresh, "vanilla_proof", porep::CASES);
}

#[test]
fn malformed_updates_are_refused_with_their_field() {
    let fresh = || Input {
        fields: update_request(),
        proofs: json_fixture("snap-2k/vanilla.json"),
    };
    refused(fresh, "vanilla_proofs", update::CASES);
}
