//! A daemon with circuits and jobs, and the files that it keeps.

use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use proofkeep_formats::json::VkJson;
use proofkeep_formats::wtns::Witness;
use proofkeep_groth16::proof::Proof;
use proofkeep_groth16::verify::verify;
use proofkeep_groth16::vk::VerifyingKey;
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{Daemon, Launch, sha256_name};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The tests of this file run beside each other under `cargo test`, and a process that one starts would hold the locks of
/// a store that another one has open.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The random choices of a test, from the seed that is printed.
pub fn rng(test: &str) -> ChaCha8Rng {
    let seed = proofkeep_tests::setting::seed();
    eprintln!("{test}: PROOFKEEP_SEED={seed}");
    ChaCha8Rng::seed_from_u64(seed)
}

pub struct Scene {
    _root: TempDir,
    pub data: PathBuf,
}

/// A file of the small circuit.
pub fn file(name: &str) -> &'static [u8] {
    static FILES: LazyLock<[(&str, Vec<u8>); 6]> = LazyLock::new(|| {
        [
            "circuit.zkey",
            "circuit.r1cs",
            "circuit.wasm",
            "circuit.sym",
            "witness.wtns",
            "input.json",
        ]
        .map(|name| (name, fixtures::read("poseidon2", name)))
    });
    let found = FILES.iter().find(|(found, _)| *found == name);
    &found.unwrap().1
}

impl Scene {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        Self { _root: root, data }
    }

    /// A copy of it.
    pub fn fork(&self) -> Self {
        let fork = Self::new();
        proofkeep_tests::kill::copy(&self.data, &fork.data).unwrap();
        fork
    }

    pub fn launch(&self) -> Launch {
        Launch::new(&self.data)
            .args(["--cpu-devices", "1", "--threads", "1", "--memory", "4GiB"])
            .args(["--checkpoint-after", "0ms", "--grace", "5s"])
    }

    pub fn start(&self) -> Daemon {
        self.launch().start()
    }

    /// Where an object lies.
    pub fn object(&self, name: &str) -> PathBuf {
        let hex = name.trim_start_matches("sha256:");
        self.data.join("objects").join(&hex[..2]).join(hex)
    }

    pub fn quarantined(&self) -> usize {
        std::fs::read_dir(self.data.join("quarantine")).unwrap().count()
    }
}

/// What `PUT /v1/circuits/…` is told of the circuit with all its files.
pub fn description() -> Value {
    let name = |file_name| sha256_name(file(file_name));
    json!({
        "zkey": name("circuit.zkey"), "r1cs": name("circuit.r1cs"), "wasm": name("circuit.wasm"), "sym": name("circuit.sym"),
    })
}

/// Uploads everything and registers `poseidon2`.
pub fn register(daemon: &Daemon) -> Value {
    upload_all(daemon);
    daemon.register(
        "poseidon2",
        &[
            ("zkey", file("circuit.zkey")),
            ("r1cs", file("circuit.r1cs")),
            ("wasm", file("circuit.wasm")),
            ("sym", file("circuit.sym")),
        ],
    )
}

pub fn upload_all(daemon: &Daemon) {
    for name in [
        "circuit.zkey",
        "circuit.r1cs",
        "circuit.wasm",
        "circuit.sym",
        "witness.wtns",
    ] {
        let _ = daemon.upload(file(name));
    }
}

/// A job of these inputs.
pub fn job(inputs: &[Value]) -> Value {
    json!({ "kind": "groth16", "circuit": "poseidon2", "inputs": inputs })
}

pub fn witness() -> Value {
    json!({ "witness": sha256_name(file("witness.wtns")) })
}

/// An input that the circuit's calculator makes the same witness of.
pub fn input() -> Value {
    let input: Value = serde_json::from_slice(file("input.json")).unwrap();
    json!({ "input": input })
}

pub fn submit(daemon: &Daemon, body: &Value) -> String {
    let answer = daemon.post("/v1/jobs", body).expect(202).json();
    answer["id"].as_str().unwrap().to_owned()
}

/// Retries a job, which then succeeds with proofs that are right.
pub fn retried(daemon: &Daemon, id: &str) {
    let answer = daemon.send("POST", &format!("/v1/jobs/{id}/retry"), &[], None);
    assert_eq!(answer.status, 202, "{}", answer.text());
    succeeds(daemon, id);
}

/// A job ends well, and every proof of it verifies against the key of the ceremony, by a verifier that asks no daemon.
pub fn succeeds(daemon: &Daemon, id: &str) {
    let job = daemon.wait_for_end(id);
    assert_eq!(job["state"], "succeeded", "{job}");
    for partition in job["partitions"].as_array().unwrap() {
        right(daemon, id, partition["index"].as_u64().unwrap());
    }
}

/// A stored proof is one of the circuit with the public signals of the fixture.
pub fn right(daemon: &Daemon, id: &str, partition: u64) {
    let path = format!("/v1/jobs/{id}/partitions/{partition}");
    let proof = daemon.get(&format!("{path}/proof?format=bytes")).expect(200).body;
    let public = daemon
        .get(&format!("{path}/public?format=bytes-le"))
        .expect(200)
        .body;
    static VK: LazyLock<VerifyingKey> = LazyLock::new(|| {
        let json = VkJson::from_json(&fixtures::read("poseidon2", "vkey.json")).unwrap();
        VerifyingKey::from_json(&json).unwrap()
    });
    let signals = public.as_chunks::<32>().0;
    verify(&VK, signals, &Proof::from_bytes(&proof).unwrap()).unwrap();
    let witness = Witness::parse(file("witness.wtns")).unwrap();
    assert_eq!(signals, &witness.values()[1..=signals.len()]);
    assert!(!signals.is_empty());
}

/// The `(class, code, detail)` of a partition that failed.
pub fn failure(daemon: &Daemon, id: &str, partition: usize) -> (String, String, String) {
    let shown = daemon
        .get(&format!("/v1/jobs/{id}/partitions/{partition}"))
        .expect(200)
        .json();
    let text = |name: &str| shown["error"][name].as_str().unwrap_or_default().to_owned();
    assert_eq!(shown["state"], "failed", "{shown}");
    (text("class"), text("code"), text("detail"))
}

/// `fsck` finds nothing.
pub fn is_clean(data: &Path) {
    let _ = proofkeep_tests::harness::proofkeep([Path::new("fsck"), Path::new("--data-dir"), data]).expect(0);
}
