//! One proof through the daemon, by the same prover called directly, and by bellperson, in one run on one circuit; the
//! status meanwhile, and the most memory that it took.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use bellperson::groth16::{create_random_proof, generate_random_parameters};
use blstrs::Bls12;
use proofkeep_engine::standalone::Local;
use proofkeep_groth16::control::Unwatched;
use proofkeep_groth16::vk::UnfinishedSetup;
use proofkeep_tests::harness::{Daemon, Http, proofkeep};
use rand::SeedableRng as _;
use rand_chacha::ChaCha20Rng;
use serde_json::{Value, json};

use crate::chain::Chain;
use crate::latency::statuses;
use crate::times::Rounds;

/// Measures it.
pub fn run(log2: usize, rounds: usize) {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let chain = Chain::filling(log2);
    let witness = make_key(chain, directory.path());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "proof: 2^{log2} constraints but two, dense wires, {threads} threads, medians of {rounds} interleaved rounds"
    );
    let local = Local::open(
        &path("circuit.zkey"),
        Some(&path("circuit.r1cs")),
        u32::try_from(threads).unwrap(),
        UnfinishedSetup::Refuse,
    )
    .unwrap();
    let (daemon, submit) = daemon(directory.path(), &witness);
    let processes: Vec<u32> = daemon.workers().into_iter().chain([daemon.pid()]).collect();
    // The same circuit on bellperson's own parameters.
    let mut random = ChaCha20Rng::seed_from_u64(1);
    let parameters = generate_random_parameters::<Bls12, _, _>(chain.blank(), &mut random).unwrap();

    let here = [std::process::id()];
    let (mut direct, mut through, mut bellperson) = (Rounds::default(), Rounds::default(), Rounds::default());
    let mut last = Value::Null;
    for _ in 0..rounds {
        direct.round(&here, || local.prove(&witness, &Unwatched).unwrap());
        last = through.round(&processes, || prove(&daemon, &submit));
        bellperson.round(&here, || {
            create_random_proof(chain, &parameters, &mut random).unwrap()
        });
    }
    let memory = asked_meanwhile(&daemon, &submit, &last);
    let attempt = &last["partitions"][0]["attempts"][0];
    let stages = format!(
        "witness checked in {} ms, device held for {} ms",
        attempt["synth_ms"], attempt["gpu_ms"]
    );
    let (wall, processor) = direct.median().seconds();
    println!("  the prover called directly   {wall:.3} s, processor {processor:.3} s");
    for (name, rounds, more) in [
        ("through the daemon        ", through, &*stages),
        (
            "bellperson, peer          ",
            bellperson,
            "its witness is made within the call",
        ),
    ] {
        let (its_wall, its_processor) = rounds.median().seconds();
        let (ratio, processor_ratio) = (
            (its_wall / wall - 1.0) * 100.0,
            (its_processor / processor - 1.0) * 100.0,
        );
        println!(
            "  {name}   {its_wall:.3} s ({ratio:+.1} %), processor {its_processor:.3} s ({processor_ratio:+.1} %); {more}"
        );
    }
    println!("  memory: {memory}");
}

/// Writes the circuit and a key of it; returns the witness.
pub fn make_key(chain: Chain, directory: &Path) -> Vec<u8> {
    let path = |name: &str| directory.join(name);
    let (circuit, witness) = chain.files();
    fs::write(path("circuit.r1cs"), &circuit).unwrap();
    let words = ["groth16", "setup", "--insecure", "--seed", "bench"].map(Path::new);
    let _ = proofkeep(
        words
            .into_iter()
            .chain([&*path("circuit.r1cs"), &*path("circuit.zkey")]),
    )
    .expect(0);
    witness
}

fn daemon(directory: &Path, witness: &[u8]) -> (Daemon, Value) {
    let daemon = Daemon::start(&directory.join("data"), &["--cpu-devices", "1"]);
    let read = |name: &str| fs::read(directory.join(name)).unwrap();
    daemon.register(
        "chain",
        &[("zkey", &read("circuit.zkey")), ("r1cs", &read("circuit.r1cs"))],
    );
    let witness = daemon.upload(witness);
    let submit = json!({ "kind": "groth16", "circuit": "chain", "inputs": [{ "witness": witness }] });
    // The first proof loads the key; the direct prover has it loaded too.
    prove(&daemon, &submit);
    (daemon, submit)
}

/// From the submit to the end of the job, as one client sees it.
pub fn prove(http: &Http, body: &Value) -> Value {
    let headers = [("content-type", "application/json"), ("prefer", "wait=300")];
    let job = http
        .send("POST", "/v1/jobs", &headers, Some(body.to_string().as_bytes()))
        .expect(201)
        .json();
    assert_eq!(job["state"], "succeeded", "{job}");
    job
}

/// One more proof, with somebody who asks for the status all the time; its time doesn't count. Returns what is known of
/// memory after it.
fn asked_meanwhile(daemon: &Daemon, submit: &Value, last: &Value) -> String {
    let over = AtomicBool::new(false);
    let asked = std::thread::scope(|scope| {
        let asker = scope.spawn(|| statuses(daemon, |_| over.load(Ordering::Relaxed)));
        prove(daemon, submit);
        over.store(true, Ordering::Relaxed);
        asker.join().unwrap()
    });
    println!("status while proving: {asked}");
    let status = daemon.get("/v1/status").expect(200).json();
    let megabytes = |value: &Value| value.as_u64().unwrap_or(0) / (1 << 20);
    let peaks: Vec<String> = daemon
        .workers()
        .iter()
        .map(|worker| format!("{} MiB", peak(*worker)))
        .collect();
    format!(
        "worker process at most {}, daemon at most {} MiB; granted at most {} MiB (ticket {} MiB, key {} MiB)",
        peaks.join(", "),
        peak(daemon.pid()),
        megabytes(&status["memory"]["peak_reserved_bytes"]),
        megabytes(&last["ticket_bytes"]),
        megabytes(&status["memory"]["keys"][0]["bytes"]),
    )
}

/// The most memory that a process had, in MiB, mapped files included.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .unwrap_or(0)
        / 1024
}
