//! The peak of memory of one proof: every prover in a process of its own, with its own form of the key and nothing else.
//!
//! What is counted is `VmHWM` from the moment that key and circuit are there, the key itself included; loading it may have
//! taken more. All of them give large buffers back to the system when they free them, as a worker process does.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bellperson::groth16::Parameters;
use blstrs::{Bls12, Scalar};
use ff::Field;
use proofkeep_groth16::backend::CpuBackend;
use proofkeep_groth16::control::Unwatched;
use proofkeep_groth16::field::scalar_to_bytes;
use proofkeep_groth16::key::ProvingKey;
use proofkeep_groth16::matrices::Matrices;
use proofkeep_groth16::setup::{ToxicWaste, generate_parameters};
use proofkeep_groth16::stages::Prover;
use proofkeep_groth16::vk::UnfinishedSetup;
use proofkeep_groth16::witness::Witness;
use rand::rngs::OsRng;

use crate::circuits::Chain;
use crate::cost::{Cost, resident, round};
use crate::system::System;

/// The variable by which a child learns who it is.
pub const CHILD: &str = "PROOFKEEP_PEERS_CHILD";

const BELLPERSON: &str = "bellperson 0.26";

fn chain(log2: usize) -> Arc<System> {
    System::of(Chain {
        steps: (1usize << log2) - 2,
    })
}

/// A table: the dense circuit, each prover once, in turn.
pub fn run(sizes: &[usize], threads: usize) {
    println!(
        "\n| circuit | domain | prover | peak, MiB | with the key alone, MiB |\n| --- | --- | --- | ---: | ---: |"
    );
    for log2 in sizes {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("params");
        {
            let matrices = Matrices::of_circuit(chain(*log2).replay()).unwrap();
            let waste = ToxicWaste::random(&mut OsRng).unwrap();
            let backend = CpuBackend::named("auto", threads).unwrap();
            let mut go_on = |_, _| ControlFlow::Continue(());
            let bytes = generate_parameters(&matrices, &waste, Vec::new(), &backend, &mut go_on).unwrap();
            fs::write(&file, bytes).unwrap();
        }
        for who in CpuBackend::possible().into_iter().rev().chain([BELLPERSON]) {
            let found = Command::new(std::env::current_exe().unwrap())
                .env(CHILD, who)
                .arg(log2.to_string())
                .arg(threads.to_string())
                .arg(&file)
                .output()
                .unwrap();
            assert!(
                found.status.success(),
                "{}",
                String::from_utf8_lossy(&found.stderr)
            );
            let name = if who == BELLPERSON {
                who.to_owned()
            } else {
                format!("proofkeep ({who})")
            };
            println!(
                "| dense | 2^{log2} | {name} | {} |",
                String::from_utf8(found.stdout).unwrap().trim()
            );
        }
    }
}

/// One proof in this process: prints the peak, and what was resident before.
pub fn child(who: &str) {
    let mut arguments = std::env::args().skip(1);
    let log2 = arguments.next().unwrap().parse().unwrap();
    let threads = arguments.next().unwrap().parse().unwrap();
    let file = arguments.next().unwrap();
    // SAFETY: sets a number of the allocator, under its lock.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20)
    };
    let (before, cost) = if who == BELLPERSON {
        bellperson(log2, Path::new(&file))
    } else {
        ours(who, log2, threads, Path::new(&file))
    };
    println!("{:.0} | {before:.0}", before + cost.memory);
}

fn ours(backend: &str, log2: usize, threads: usize, file: &Path) -> (f64, Cost) {
    let (matrices, values) = {
        let system = chain(log2);
        let values: Vec<_> = system.values.iter().map(scalar_to_bytes).collect();
        (Matrices::of_circuit(system.replay()).unwrap(), values)
    };
    let mut source = fs::File::open(file).unwrap();
    let mut go_on = |_| ControlFlow::Continue(());
    let key = ProvingKey::read_params(
        &mut source,
        Arc::new(matrices),
        UnfinishedSetup::Refuse,
        None,
        &mut go_on,
    )
    .unwrap();
    let prover = Prover::new(&key, CpuBackend::named(backend, threads).unwrap());
    let witness = Witness::new(&values).unwrap();
    let mut before = 0.0;
    let (cost, _) = round(|| {
        before = resident();
        let mut on_piece = |_, _| ControlFlow::Continue(());
        let pieces = prover
            .prove_pieces(&witness, &[], &mut on_piece, &Unwatched)
            .unwrap();
        prover.assemble_random(&pieces).unwrap()
    });
    (before, cost)
}

fn bellperson(log2: usize, file: &Path) -> (f64, Cost) {
    let parameters =
        Parameters::<Bls12>::read(std::io::BufReader::new(fs::File::open(file).unwrap()), false).unwrap();
    let circuit = Chain {
        steps: (1usize << log2) - 2,
    };
    let (r, s) = (Scalar::random(OsRng), Scalar::random(OsRng));
    let mut before = 0.0;
    let (cost, _) = round(|| {
        before = resident();
        bellperson::groth16::create_proof(circuit, &parameters, r, s).unwrap()
    });
    (before, cost)
}
