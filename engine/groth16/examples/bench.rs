//! One proof by bellperson and by this prover, on the same parameters and witness, in one run.
//!
//! `cargo run --release -p proofkeep-groth16 --example bench -- [log2 of the domain, 14] [threads, all] [rounds, 3]`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
use bellperson::gadgets::boolean::{AllocatedBit, Boolean};
use bellperson::gadgets::multipack::pack_into_inputs;
use bellperson::gadgets::sha256::sha256;
use bellperson::groth16::{create_random_proof, generate_random_parameters};
use blstrs::{Bls12, Scalar};
use common::{Chain, backend, mixed_r1cs, rng, setup};
use proofkeep_formats::r1cs::R1cs;
use proofkeep_groth16::control::Unwatched;
use proofkeep_groth16::key::ProvingKey;
use proofkeep_groth16::matrices::Matrices;
use proofkeep_groth16::stages::Prover;
use proofkeep_groth16::synthesis::{Assignment, Constraints};
use proofkeep_groth16::verify::verify;
use proofkeep_groth16::witness::Witness;

/// Processor time of this process, all threads.
fn processor_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a value that lives through the call.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The best of some rounds: wall and processor time.
fn best(rounds: usize, mut work: impl FnMut()) -> (Duration, Duration) {
    (0..rounds)
        .map(|_| {
            let (wall, processor) = (Instant::now(), processor_time());
            work();
            (wall.elapsed(), processor_time() - processor)
        })
        .reduce(|a, b| (a.0.min(b.0), a.1.min(b.1)))
        .unwrap()
}

fn prove(key: &ProvingKey, witness: &Witness<'_>, threads: usize, rounds: usize) -> (Duration, Duration) {
    let prover = Prover::new(key, backend(threads));
    let mut pieces = String::new();
    let times = best(rounds, || {
        pieces.clear();
        let all = prover
            .prove_pieces(
                witness,
                &[],
                &mut |piece, time| {
                    pieces += &format!(" {} {:.0} ms", piece.piece(), time.as_secs_f64() * 1e3);
                    ControlFlow::Continue(())
                },
                &Unwatched,
            )
            .unwrap();
        let proof = prover.assemble_random(&all).unwrap();
        verify(key.vk(), witness.public(key.vk().public()), &proof).unwrap();
    });
    println!("  pieces of the last round:{pieces}");
    times
}

/// SHA-256 of a message whose length fills a domain of that size: nearly all wires are bits.
#[derive(Clone)]
struct Hash {
    bytes: usize,
    message: Option<u8>,
}

impl Circuit<Scalar> for Hash {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let bits: Vec<Boolean> = (0..8 * self.bytes)
            .map(|index| {
                let value = self
                    .message
                    .map(|seed| (index as u64 * 0x9e37_79b9) >> (seed % 16) & 1 == 1);
                Ok(AllocatedBit::alloc(cs.namespace(|| format!("bit {index}")), value)?.into())
            })
            .collect::<Result<_, SynthesisError>>()?;
        let hash = sha256(cs.namespace(|| "hash"), &bits)?;
        pack_into_inputs(cs.namespace(|| "digest"), &hash)
    }
}

/// Both provers on one circuit, and the ratio of their times.
fn compare<C: Circuit<Scalar> + Clone + Send>(blank: C, circuit: C, threads: usize, rounds: usize) {
    let parameters = generate_random_parameters::<Bls12, _, _>(blank.clone(), &mut rng(1)).unwrap();
    let matrices = Matrices::from_constraints(&Constraints::of(blank).unwrap()).unwrap();
    println!(
        "  {} constraints, domain 2^{}",
        matrices.constraints().unwrap(),
        matrices.log2()
    );
    let key = ProvingKey::from_bellperson(&parameters, Arc::new(matrices)).unwrap();
    let theirs = best(rounds, || {
        create_random_proof(circuit.clone(), &parameters, &mut rng(2)).unwrap();
    });
    println!(
        "  bellperson {:.3} s / {:.3} s",
        theirs.0.as_secs_f64(),
        theirs.1.as_secs_f64()
    );
    let start = processor_time();
    let assignment = Assignment::of(circuit).unwrap();
    let synthesis = processor_time() - start;
    let ours = prove(&key, &assignment.witness().unwrap(), threads, rounds);
    println!(
        "  proofkeep  {:.3} s / {:.3} s with check and verification (and {:.3} s for the witness)",
        ours.0.as_secs_f64(),
        ours.1.as_secs_f64(),
        synthesis.as_secs_f64()
    );
    println!(
        "  ratio      {:.2}   / {:.2}",
        theirs.0.as_secs_f64() / (ours.0 + synthesis).as_secs_f64(),
        theirs.1.as_secs_f64() / (ours.1 + synthesis).as_secs_f64()
    );
}

/// bellperson takes its threads from the environment, once.
#[expect(clippy::disallowed_methods, reason = "no other thread runs yet")]
fn limit_bellperson(threads: usize) {
    // SAFETY: no other thread runs yet.
    unsafe {
        std::env::set_var("RAYON_NUM_THREADS", threads.to_string());
        std::env::set_var("EC_GPU_NUM_THREADS", threads.to_string());
    }
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|argument| argument.parse::<usize>().unwrap());
    let log2 = arguments.next().unwrap_or(14);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.next().unwrap_or(cores);
    let rounds = arguments.next().unwrap_or(3);
    limit_bellperson(threads);
    println!("domain 2^{log2}, {threads} threads of {cores} cores, best of {rounds}; wall / processor time");

    println!("MiMC chain, all wires dense");
    let chain = Chain::new((1 << (log2 - 1)) - 1);
    compare(chain.blank(), chain, threads, rounds);

    // A block of 64 bytes is about 26,500 constraints, nine bytes of the last are padding.
    let blocks = ((1usize << log2) / 26_500).max(1);
    println!("SHA-256 of {} bytes, nearly all wires bits", 64 * blocks - 9);
    let hash = Hash {
        bytes: 64 * blocks - 9,
        message: Some(3),
    };
    compare(
        Hash {
            message: None,
            ..hash.clone()
        },
        hash,
        threads,
        rounds,
    );

    println!("mixed .r1cs, a setup and a proof on its .zkey");
    let (r1cs, values) = mixed_r1cs((1 << log2) - 3);
    let start = (Instant::now(), processor_time());
    let file = setup(&r1cs, b"bench");
    println!(
        "  setup      {:.3} s / {:.3} s, {} bytes",
        start.0.elapsed().as_secs_f64(),
        (processor_time() - start.1).as_secs_f64(),
        file.len()
    );
    let matrices = Matrices::from_r1cs(&R1cs::parse(&r1cs).unwrap()).unwrap();
    let key = ProvingKey::from_zkey(common::key_bytes(file), Some(Arc::new(matrices))).unwrap();
    let ours = prove(&key, &Witness::new(&values).unwrap(), threads, rounds);
    println!(
        "  proofkeep  {:.3} s / {:.3} s",
        ours.0.as_secs_f64(),
        ours.1.as_secs_f64()
    );
}
