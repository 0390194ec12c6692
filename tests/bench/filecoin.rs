//! Each Filecoin kind at 2 KiB, through the daemon and by the published API's own call, in turn, on the same vanilla
//! proofs, parameters and number of threads. By hand:
//!
//! ```text
//! cargo build --release --locked -p proofkeep -p proofkeep-filecoin -p proofkeep-tests \
//!   --features proofkeep-tests/filecoin --bin proofkeep --example filecoin-bench
//! target/release/examples/filecoin-bench
//! ```
//!
//! A process of its own for each side and round, so that the peak of memory is that side's alone: it proves twice, since
//! the first proof loads the key. `PROOFKEEP_BENCH_ROUNDS` (3) says how often, `PROOFKEEP_BENCH_KIND` which kind alone.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

mod published;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use proofkeep_filecoin::circuit::KINDS;
use proofkeep_tests::harness::{Daemon, Launch, proofkeep, until};
use proofkeep_tests::machine;
use serde_json::{Map, Value, json};

/// Threads of each side.
const THREADS: &str = "2";

/// What the same work took, round after round: seconds by the clock, and of the processor.
#[derive(Default)]
struct Rounds(Vec<(f64, f64)>);

impl Rounds {
    /// One round of work that these processes do.
    fn round<T>(&mut self, processes: &[u32], work: impl FnOnce() -> T) -> T {
        let all = || {
            processes
                .iter()
                .map(|process| processor_seconds(*process))
                .sum::<f64>()
        };
        let (clock, processor) = (Instant::now(), all());
        let value = work();
        self.0.push((clock.elapsed().as_secs_f64(), all() - processor));
        value
    }

    /// The median of each.
    fn median(&self) -> (f64, f64) {
        let middle = |of: fn(&(f64, f64)) -> f64| {
            let mut all: Vec<f64> = self.0.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        (middle(|cost| cost.0), middle(|cost| cost.1))
    }
}

/// What one side took for a kind.
#[derive(Default)]
struct Side {
    first: Rounds,
    second: Rounds,
    peak_kib: u64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, word, kind] = &arguments[..]
        && word == "published"
    {
        published::run(kind);
        return;
    }
    println!("{}", machine::description());
    println!("load before: {}", machine::load());
    let parameters = tempfile::tempdir().unwrap();
    let rounds = setting("PROOFKEEP_BENCH_ROUNDS").map_or(3, |text| text.parse().unwrap());
    let only = setting("PROOFKEEP_BENCH_KIND");
    println!(
        "| kind | proof | ours: clock, processor | published: clock, processor | times | peak: ours, published |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    for kind in KINDS {
        if only.as_deref().is_some_and(|only| only != kind) {
            continue;
        }
        generate(parameters.path(), kind);
        let (mut ours, mut theirs) = (Side::default(), Side::default());
        for _ in 0..rounds {
            through_the_daemon(&mut ours, parameters.path(), kind);
            by_the_published_call(&mut theirs, parameters.path(), kind);
        }
        for (name, ours_of, theirs_of) in [
            ("first", &ours.first, &theirs.first),
            ("second", &ours.second, &theirs.second),
        ] {
            let (our_clock, our_processor) = ours_of.median();
            let (their_clock, their_processor) = theirs_of.median();
            println!(
                "| {kind} | {name} | {our_clock:.2} s, {our_processor:.2} s | {their_clock:.2} s, {their_processor:.2} s \
                 | {:.2} | {} MiB, {} MiB |",
                their_processor / our_processor,
                ours.peak_kib >> 10,
                theirs.peak_kib >> 10,
            );
        }
    }
    println!("load after: {}", machine::load());
}

fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn generate(parameters: &Path, kind: &str) {
    let directory = parameters.display().to_string();
    let mut words = vec![
        "params",
        "generate",
        "--kind",
        kind,
        "--sector-size",
        "2KiB",
        "--param-dir",
        &directory,
    ];
    if kind == "porep-c2" {
        words.extend(["--partitions", "2"]);
    }
    let ran = proofkeep(words);
    assert_eq!(ran.code, 0, "{kind}: {}", ran.stderr);
}

/// A file of `tests/fixtures/filecoin`.
fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/filecoin")
        .join(name);
    std::fs::read(path).unwrap()
}

fn meta(name: &str) -> Value {
    serde_json::from_slice(&fixture(name)).unwrap()
}

/// The fields of a request, the name of the one with the vanilla proofs, and those.
fn request(kind: &str) -> (Map<String, Value>, &'static str, Vec<u8>) {
    let (fields, field, file) = match kind {
        "porep-c2" => {
            let meta = meta("porep-2k-p2/meta.json");
            let fields = json!({
                "registered_proof": meta["registered_seal_proof"],
                "partitions": meta["porep_partitions"],
                "prover_id": meta["prover_id"],
                "sector_number": meta["sector_id"],
            });
            (fields, "vanilla_proof", "porep-2k-p2/c1.bincode")
        }
        "snap-update" => {
            let meta = meta("snap-2k/snap-meta.json");
            let fields = json!({
                "sector_size": "2KiB",
                "comm_r_old": meta["comm_r_old"],
                "comm_r_new": meta["comm_r_new"],
                "comm_d_new": meta["comm_d_new"],
            });
            (fields, "vanilla_proofs", "snap-2k/vanilla.bincode")
        }
        _ => {
            let (directory, proof) = match kind {
                "winning-post" => ("winning-2k", "StackedDrgWinning2KiBV1"),
                _ => ("window-2k-3sectors", "StackedDrgWindow2KiBV1"),
            };
            let meta = meta(&format!("{directory}/post-meta.json"));
            let fields = json!({
                "registered_proof": proof,
                "prover_id": meta["prover_id"],
                "randomness": meta["randomness"],
            });
            let file = match kind {
                "winning-post" => "winning-2k/vanilla.bincode",
                _ => "window-2k-3sectors/vanilla.bincode",
            };
            (fields, "vanilla_proofs", file)
        }
    };
    (fields.as_object().unwrap().clone(), field, fixture(file))
}

/// A job as a client sends it, from the upload until its joined proof was verified.
fn through_the_daemon(side: &mut Side, parameters: &Path, kind: &str) {
    let data = tempfile::tempdir().unwrap();
    let daemon = Launch::new(data.path())
        .env("PROOFKEEP_PARAM_DIR", parameters)
        .args(["--cpu-devices", THREADS])
        .start();
    let (mut fields, field, proofs) = request(kind);
    fields.insert("kind".to_owned(), kind.into());
    until("there is a worker process", || !daemon.workers().is_empty());
    let mut processes = daemon.workers();
    processes.push(daemon.pid());
    for rounds in [&mut side.first, &mut side.second] {
        rounds.round(&processes, || {
            let mut request = fields.clone();
            request.insert(field.to_owned(), daemon.upload(&proofs).into());
            prove(&daemon, request);
        });
    }
    let peak: u64 = processes.iter().map(|process| peak_kib(*process)).sum();
    side.peak_kib = side.peak_kib.max(peak);
    assert!(daemon.terminate().success());
}

fn prove(daemon: &Daemon, request: Map<String, Value>) {
    let answer = daemon
        .post("/v1/jobs", &Value::Object(request))
        .expect(202)
        .json();
    let path = format!("/v1/jobs/{}", answer["id"].as_str().unwrap());
    loop {
        let job = daemon
            .send("GET", &path, &[("Prefer", "wait=60")], None)
            .expect(200)
            .json();
        match job["state"].as_str() {
            Some("succeeded") => return,
            Some("failed" | "cancelled" | "expired") => panic!("{job}"),
            _ => {}
        }
    }
}

/// The published call, in a process of its own.
fn by_the_published_call(side: &mut Side, parameters: &Path, kind: &str) {
    let ran = Command::new(std::env::current_exe().unwrap())
        .args(["published", kind])
        .env("FIL_PROOFS_PARAMETER_CACHE", parameters)
        .env("RAYON_NUM_THREADS", THREADS)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let line = String::from_utf8(ran.stdout).unwrap();
    let told: Value = serde_json::from_str(line.lines().last().unwrap()).unwrap();
    let seconds = |value: &Value| value.as_f64().unwrap();
    for (rounds, of) in [
        (&mut side.first, &told["first"]),
        (&mut side.second, &told["second"]),
    ] {
        rounds.0.push((seconds(&of[0]), seconds(&of[1])));
    }
    side.peak_kib = side.peak_kib.max(told["peak_kib"].as_u64().unwrap());
}

/// The most memory that a process ever had.
fn peak_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// User and system time of a process so far, in ticks of 10 ms; none of a process that is gone.
fn processor_seconds(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name in parentheses may hold anything, so the fields are counted from its end.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}
