//! What a queue, more threads and a cold start cost: a job of many partitions against as many calls of bellperson one
//! after another, the prover on one thread and on more, and the first proof of a daemon against its second.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use bellperson::groth16::{
    create_random_proof, generate_random_parameters, prepare_verifying_key, verify_proof,
};
use blstrs::Bls12;
use proofkeep_engine::standalone::Local;
use proofkeep_groth16::control::Unwatched;
use proofkeep_groth16::vk::UnfinishedSetup;
use proofkeep_tests::harness::Daemon;
use rand::SeedableRng as _;
use rand_chacha::ChaCha20Rng;
use serde_json::{Value, json};

use crate::chain::Chain;
use crate::proof::{make_key, prove};
use crate::times::{Cost, Rounds};

/// Measures it. `queue` partitions are in the job.
pub fn run(log2: usize, rounds: usize, queue: usize) {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let chain = Chain::filling(log2);
    let witness = make_key(chain, directory);
    threads(directory, &witness, log2, rounds);
    let data = directory.join("data");
    let arguments = ["--cpu-devices", "1"];
    let read = |name: &str| fs::read(directory.join(name)).unwrap();
    let daemon = Daemon::start(&data, &arguments);
    daemon.register(
        "chain",
        &[("zkey", &read("circuit.zkey")), ("r1cs", &read("circuit.r1cs"))],
    );
    let input = json!({ "witness": daemon.upload(&witness) });
    let one = json!({ "kind": "groth16", "circuit": "chain", "inputs": [input] });
    prove(&daemon, &one);
    assert!(daemon.terminate().success());
    cold(&data, &arguments, &one, rounds);
    queued(chain, &Daemon::start(&data, &arguments), &input, queue);
}

/// The first proof of a daemon against its second: it loads the key, and nothing else should make a difference.
fn cold(data: &Path, arguments: &[&str], one: &Value, rounds: usize) {
    let (mut first, mut second) = (Rounds::default(), Rounds::default());
    let mut ready = Vec::new();
    for _ in 0..rounds {
        let start = Instant::now();
        let daemon = Daemon::start(data, arguments).ready();
        ready.push(start.elapsed());
        let processes = processes(&daemon);
        first.round(&processes, || prove(&daemon, one));
        second.round(&processes, || prove(&daemon, one));
        assert!(daemon.terminate().success());
    }
    ready.sort_unstable();
    let median: Duration = ready[ready.len() / 2];
    println!(
        "start: a daemon is ready after {:.3} s; its first proof {}, its second {}",
        median.as_secs_f64(),
        said(first.median()),
        said(second.median())
    );
}

/// One job against the same number of calls, each after the other.
fn queued(chain: Chain, daemon: &Daemon, input: &Value, queue: usize) {
    let inputs = vec![input.clone(); queue];
    let job = json!({ "kind": "groth16", "circuit": "chain", "inputs": inputs });
    let (mut ours, mut theirs) = (Rounds::default(), Rounds::default());
    let processes = processes(daemon);
    ours.round(&processes, || prove(daemon, &job));
    let mut random = ChaCha20Rng::seed_from_u64(1);
    let parameters = generate_random_parameters::<Bls12, _, _>(chain.blank(), &mut random).unwrap();
    let key = prepare_verifying_key(&parameters.vk);
    let public = [chain.end()];
    theirs.round(&[std::process::id()], || {
        for _ in 0..queue {
            // The daemon verifies each of its proofs, so these are verified too.
            let proof = create_random_proof(chain, &parameters, &mut random).unwrap();
            assert!(verify_proof(&key, &proof, &public).unwrap());
        }
    });
    let (ours, theirs) = (ours.median(), theirs.median());
    println!("queue of {queue}: a job of the daemon {}", said(ours));
    println!(
        "  as many calls of bellperson in turn {}: {:.2} times as long by the clock, {:.2} by the processor",
        said(theirs),
        theirs.wall.as_secs_f64() / ours.wall.as_secs_f64(),
        theirs.processor.as_secs_f64() / ours.processor.as_secs_f64()
    );
}

/// The prover called directly, on one thread and on twice as many each time.
fn threads(directory: &Path, witness: &[u8], log2: usize, rounds: usize) {
    let most = std::thread::available_parallelism().map_or(1, usize::from);
    let counts: Vec<usize> = std::iter::successors(Some(1), |count| Some(count * 2))
        .take_while(|count| *count < most)
        .chain([most])
        .collect();
    let mut provers: Vec<_> = counts
        .iter()
        .map(|count| {
            let local = Local::open(
                &directory.join("circuit.zkey"),
                Some(&directory.join("circuit.r1cs")),
                u32::try_from(*count).unwrap(),
                UnfinishedSetup::Refuse,
            );
            (*count, local.unwrap(), Rounds::default())
        })
        .collect();
    for round in 0..=rounds {
        for (_, local, costs) in &mut provers {
            let mut first = Rounds::default();
            // The first round makes what is made once for a key.
            let costs = if round == 0 { &mut first } else { costs };
            costs.round(&[std::process::id()], || {
                local.prove(witness, &Unwatched).unwrap()
            });
        }
    }
    println!(
        "threads: 2^{log2} constraints but two, dense wires, the prover called directly, medians of {rounds}"
    );
    let alone = provers[0].2.median().wall.as_secs_f64();
    for (count, _, costs) in &provers {
        let cost = costs.median();
        let speedup = alone / cost.wall.as_secs_f64();
        println!(
            "  {count}: {}; {speedup:.2} times as fast as one, {:.0} % of the ideal",
            said(cost),
            100.0 * speedup / *count as f64
        );
    }
}

fn processes(daemon: &Daemon) -> Vec<u32> {
    daemon.workers().into_iter().chain([daemon.pid()]).collect()
}

fn said(cost: Cost) -> String {
    let (wall, processor) = cost.seconds();
    format!("{wall:.3} s, processor {processor:.3} s")
}
