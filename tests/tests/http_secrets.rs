//! Nothing secret comes out: witnesses and tokens with marks in them go in, and everything that leaves is searched.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http_support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use http_support::{JSON, id};
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{Answer, Daemon, Launch, proofkeep};
use serde_json::{Value, json};

/// The private input of the job that is proved, and an input that would be public if its job were.
const SECRETS: [&str; 2] = ["73911370042377", "73911370042391"];

/// The public input of the job that is proved.
const PUBLIC: u128 = 11;

/// A value that can't be one, and a value of a signal that isn't there.
const STRAY: [&str; 2] = ["73911370042403x", "73911370042417"];

/// What a request was answered with, headers and body.
fn said(answer: &Answer) -> String {
    let headers: Vec<_> = answer
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    format!("{} {}\n{}", answer.status, headers.join("\n"), answer.text())
}

/// Every form in which a number could be found: decimal, and its bytes in hexadecimal, either way round.
fn forms(decimal: &str) -> Vec<String> {
    let mut forms = vec![decimal.to_owned()];
    if let Ok(number) = decimal.parse::<u64>() {
        forms.push(format!("{number:x}"));
        let little: String = number.to_le_bytes()[..6]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        forms.push(little);
    }
    forms
}

#[test]
fn no_witness_and_no_token_is_in_anything_that_comes_out() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let launch = |level: &str| {
        let arguments = ["--require-token", "true", "--cpu-devices", "1"];
        Launch::new(&data)
            .args(arguments)
            .env("PROOFKEEP_LOG", level)
            .start()
    };
    let add = [
        "token",
        "add",
        "ops",
        "--scope",
        "admin",
        "--rate",
        "100000",
        "--data-dir",
    ];
    let made = proofkeep(add.iter().copied().chain([data.to_str().unwrap()])).expect(0);
    let token = made.stdout.trim().to_owned();
    let daemon = launch("trace");
    let wrong = format!("pk_{}", "ab".repeat(32));
    let mut out: Vec<(String, String)> = Vec::new();
    let removed = talk(&daemon, &token, &wrong, &mut out);
    assert!(daemon.stderr().contains("answered"), "nothing was logged");
    let stderr = daemon.kill();
    out.push(("stderr of the daemon and its workers".to_owned(), stderr));
    for command in ["history", "fsck"] {
        let ran = proofkeep([command, "--json", "--data-dir", data.to_str().unwrap()]);
        out.push((format!("stdout of {command}"), ran.stdout));
        out.push((format!("stderr of {command}"), ran.stderr));
    }
    // The tokens themselves are nowhere on the disk; witnesses are, since they are needed again after a kill.
    for (file, bytes) in files(&data) {
        for secret in [&token, &removed] {
            let digits = secret.trim_start_matches("pk_");
            assert!(!contains(&bytes, digits.as_bytes()), "{file} holds a token");
            assert!(
                !contains(&bytes, &hex::decode(digits).unwrap()),
                "{file} holds a token's bytes"
            );
        }
    }
    let mut marks = vec![token, removed, wrong];
    marks.extend(SECRETS.iter().chain(&STRAY).flat_map(|secret| forms(secret)));
    assert!(out.len() > 20, "{}", out.len());
    for (what, text) in &out {
        for mark in &marks {
            let mark = mark.trim_start_matches("pk_");
            assert!(!text.contains(mark), "{what} shows {mark}:\n{text}");
        }
    }
    // The search finds what is there: the product is public.
    let product = PUBLIC * SECRETS[0].parse::<u128>().unwrap();
    assert!(
        out.iter().any(|(_, text)| text.contains(&product.to_string())),
        "no public signal came out"
    );
}

/// Asks everything that could repeat what it was told, with good and bad inputs. Answers a token that was removed.
fn talk(daemon: &Daemon, token: &str, wrong: &str, out: &mut Vec<(String, String)>) -> String {
    let bearer = format!("Bearer {token}");
    let mut ask = |what: &str, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&[u8]>| {
        let all = [&[("authorization", &bearer[..])], headers].concat();
        let answer = daemon.send(method, path, &all, body);
        out.push((format!("{what}: {method} {path}"), said(&answer)));
        answer
    };
    let bytes = ("content-type", "application/octet-stream");
    let mut circuit = serde_json::Map::new();
    for member in ["r1cs", "zkey", "wasm", "sym"] {
        let file = fixtures::read("multiplier", &format!("circuit.{member}"));
        let answer = ask("upload", "POST", "/v1/blobs", &[bytes], Some(&file));
        circuit.insert(member.to_owned(), answer.json()["digest"].clone());
    }
    let circuit = Value::Object(circuit).to_string();
    let wait = ("prefer", "wait=60");
    let put = ask(
        "circuit",
        "PUT",
        "/v1/circuits/multiplier",
        &[JSON, wait],
        Some(circuit.as_bytes()),
    );
    assert_eq!(put.json()["state"], "ready", "{}", put.text());
    let [b, a] = SECRETS;
    let public = PUBLIC.to_string();
    let [stray, unknown] = STRAY;
    for (what, input) in [
        ("good", json!({ "a": public, "b": b })),
        ("no number", json!({ "a": a, "b": stray })),
        ("too few", json!({ "a": a })),
        ("too many", json!({ "a": [a, b], "b": b })),
        ("unknown signal", json!({ "a": a, "b": b, "x": unknown })),
        ("not nested so", json!({ "a": { "x": a }, "b": [[b]] })),
    ] {
        let job =
            json!({ "kind": "groth16", "circuit": "multiplier", "inputs": [{ "input": input.clone() }] });
        let job = job.to_string();
        let answer = ask(what, "POST", "/v1/jobs", &[JSON, wait], Some(job.as_bytes()));
        if let Some(job) = answer.json().get("id") {
            let job = job.as_str().unwrap().to_owned();
            for part in ["", "/events", "/partitions", "/public", "/proof"] {
                ask(what, "GET", &format!("/v1/jobs/{job}{part}"), &[], None);
            }
        }
        let input = input.to_string();
        ask(
            what,
            "POST",
            "/v1/circuits/multiplier/prove",
            &[JSON, wait],
            Some(input.as_bytes()),
        );
    }
    let cut =
        format!("{{\"kind\":\"groth16\",\"circuit\":\"multiplier\",\"inputs\":[{{\"input\":{{\"a\":\"{a}\",");
    ask("cut off", "POST", "/v1/jobs", &[JSON], Some(cut.as_bytes()));
    let base64 = json!({ "kind": "groth16", "circuit": "multiplier", "inputs": [{ "witness_base64": a }] });
    ask(
        "no witness",
        "POST",
        "/v1/jobs",
        &[JSON],
        Some(base64.to_string().as_bytes()),
    );
    let made = ask("ls", "GET", "/v1/tokens", &[], None);
    assert_eq!(made.status, 200);
    for path in [
        "/v1/status",
        "/status",
        "/v1/jobs",
        "/v1/circuits",
        "/v1/nothing",
        "/livez",
    ] {
        ask("look", "GET", path, &[], None);
    }
    let wrong_bearer = format!("Bearer {wrong}");
    for (what, value) in [("wrong", &wrong_bearer[..]), ("no scheme", wrong)] {
        let answer = daemon.send("GET", "/v1/status", &[("authorization", value)], None);
        assert_eq!(answer.status, 401);
        out.push((what.to_owned(), said(&answer)));
    }
    // The one answer that has a token is the one that made it.
    let body = json!({ "name": "gone" }).to_string();
    let authorization = ("authorization", &bearer[..]);
    let answer = daemon.send(
        "POST",
        "/v1/tokens",
        &[authorization, JSON],
        Some(body.as_bytes()),
    );
    let removed = answer.expect(201).json()["token"].as_str().unwrap().to_owned();
    let answer = daemon.send("DELETE", "/v1/tokens/gone", &[authorization], None);
    assert_eq!(answer.status, 204);
    let job = daemon
        .send("GET", "/v1/jobs?limit=1", &[authorization], None)
        .json();
    assert!(!id(&job["jobs"][0]).is_empty());
    removed
}

#[test]
fn files_and_directories_are_their_owners() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let place = ["--data-dir", data.to_str().unwrap()];
    proofkeep([&["token", "add", "ops"][..], &place].concat()).expect(0);
    let daemon = Daemon::start(&data, &[]);
    assert!(daemon.upload(b"something").starts_with("sha256:"));
    daemon.kill();
    let mut looked = 0;
    let mut left = vec![data];
    while let Some(path) = left.pop() {
        let found = fs::symlink_metadata(&path).unwrap();
        assert_eq!(found.permissions().mode() & 0o077, 0, "{}", path.display());
        looked += 1;
        // What sled makes is as the umask says, in a directory that nobody else may enter.
        if path.ends_with("store.1") {
            continue;
        }
        if found.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    assert!(looked > 200, "{looked}");
}

fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            found.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    found
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
