//! A parameter directory that all tests share, daemons on it, and requests.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use proofkeep_tests::harness::{Daemon, Launch, is_alive, proofkeep};
use serde_json::{Map, Value, json};

/// A file of `tests/fixtures/filecoin`.
pub fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/filecoin")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A fixture that is JSON.
pub fn json_fixture(name: &str) -> Value {
    serde_json::from_slice(&fixture(name)).unwrap()
}

/// A directory with parameters of the kinds, made once by the command line.
pub fn parameters() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let directory = place();
        for kind in ["window-post", "winning-post", "snap-update"] {
            generate(&directory, kind, &[]);
        }
        generate(&directory, "porep-c2", &["--partitions", "2"]);
        directory
    })
}

/// A new directory for a gigabyte and a half. Nothing is dropped when tests end, so what earlier processes left goes now.
fn place() -> PathBuf {
    const NAME: &str = "filecoin-params-";
    let home = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for entry in std::fs::read_dir(home).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let process = name.strip_prefix(NAME).and_then(|process| process.parse().ok());
        if process.is_some_and(|process| !is_alive(process)) {
            // Another process of these tests may remove it too.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    let directory = home.join(format!("{NAME}{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// Makes parameters, with more words for the command; answers what it says.
pub fn generate(directory: &Path, kind: &str, more: &[&str]) -> Value {
    let words = [
        "--json",
        "params",
        "generate",
        "--kind",
        kind,
        "--sector-size",
        "2KiB",
        "--param-dir",
    ];
    let mut words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
    words.push(directory.as_os_str());
    words.extend(more.iter().map(OsStr::new));
    let ran = proofkeep(words);
    assert_eq!(ran.code, 0, "{kind}: {}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

/// A daemon on a new data directory and these parameters.
pub fn daemon(data: &Path, parameters: &Path) -> Daemon {
    launch(data, parameters).start()
}

/// The same before it is started.
pub fn launch(data: &Path, parameters: &Path) -> Launch {
    Launch::new(data).env("PROOFKEEP_PARAM_DIR", parameters).args([
        "--cpu-devices",
        "1",
        "--checkpoint-after",
        "0ms",
    ])
}

/// A request for a PoSt of a fixture, its vanilla proofs left out.
pub fn post_request(directory: &str) -> Map<String, Value> {
    let meta = json_fixture(&format!("{directory}/post-meta.json"));
    let winning = meta["typ"] == "winning";
    let request = json!({
        "kind": if winning { "winning-post" } else { "window-post" },
        "registered_proof": if winning { "StackedDrgWinning2KiBV1" } else { "StackedDrgWindow2KiBV1" },
        "prover_id": meta["prover_id"],
        "randomness": meta["randomness"],
    });
    match request {
        Value::Object(request) => request,
        _ => Map::new(),
    }
}

/// A request for the PoRep of the fixtures, its vanilla proofs left out. One attempt for each partition, so that whatever counts against one fails the job.
pub fn porep_request() -> Map<String, Value> {
    let meta = json_fixture("porep-2k-p2/meta.json");
    object(json!({
        "kind": "porep-c2",
        "registered_proof": meta["registered_seal_proof"],
        "partitions": meta["porep_partitions"],
        "prover_id": meta["prover_id"],
        "sector_number": meta["sector_id"],
        "max_attempts": 1,
    }))
}

/// A request for the update of the fixtures, its vanilla proofs left out.
pub fn update_request() -> Map<String, Value> {
    let meta = json_fixture("snap-2k/snap-meta.json");
    object(json!({
        "kind": "snap-update",
        "sector_size": "2KiB",
        "comm_r_old": meta["comm_r_old"],
        "comm_r_new": meta["comm_r_new"],
        "comm_d_new": meta["comm_d_new"],
    }))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Submits a request with these vanilla proofs; answers the job's id.
pub fn submit(daemon: &Daemon, mut request: Map<String, Value>, field: &str, proofs: &str) -> String {
    request.insert(field.to_owned(), daemon.upload(&fixture(proofs)).into());
    let answer = daemon.post("/v1/jobs", &Value::Object(request)).expect(202);
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// Waits for a job's end, which is that it succeeded; answers the job.
pub fn succeeded(daemon: &Daemon, job: &str) -> Value {
    // A PoRep may take longer than the harness waits for one step.
    loop {
        let answer = daemon.send("GET", &format!("/v1/jobs/{job}"), &[("Prefer", "wait=60")], None);
        let job = answer.expect(200).json();
        match job["state"].as_str() {
            Some("succeeded") => return job,
            Some("failed" | "cancelled" | "expired") => panic!("{job}"),
            _ => {}
        }
    }
}

/// What `filecoin sample` makes: a request without its vanilla proofs, and those.
pub fn sample(kind: &str, size: &str, more: &[&str]) -> (Map<String, Value>, Vec<u8>) {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("sample");
    let words = [
        "--json",
        "filecoin",
        "sample",
        "--kind",
        kind,
        "--sector-size",
        size,
        "--out",
    ];
    let mut words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
    words.push(out.as_os_str());
    words.extend(more.iter().map(OsStr::new));
    let ran = proofkeep(words);
    assert_eq!(ran.code, 0, "{kind}: {}", ran.stderr);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    let mut request = object(told["fields"].clone());
    let written = std::fs::read(out.join("request.json")).unwrap();
    assert_eq!(
        request,
        serde_json::from_slice::<Map<String, Value>>(&written).unwrap()
    );
    request.insert("kind".to_owned(), kind.into());
    let left = std::fs::read_dir(&out).unwrap().count();
    assert_eq!(left, 2, "the sealed sectors are removed");
    (request, std::fs::read(out.join("vanilla.bincode")).unwrap())
}
