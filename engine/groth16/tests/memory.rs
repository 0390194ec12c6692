//! Proving takes no more memory than it says beforehand. A binary of its own, since it counts every allocation.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Seek, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::*;
use proofkeep_formats::r1cs::R1cs;
use proofkeep_groth16::backend::Backend;
use proofkeep_groth16::key::ProvingKey;
use proofkeep_groth16::matrices::Matrices;
use proofkeep_groth16::memory::{
    KeyCounts, SLACK, key_bytes as key_bound, parameters_bytes, setup_bytes, working_set,
};
use proofkeep_groth16::setup::{ToxicWaste, generate_parameters, insecure_setup};
use proofkeep_groth16::stages::Prover;
use proofkeep_groth16::synthesis::Constraints;
use proofkeep_groth16::witness::Witness;

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator; counting changes nothing about it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::SeqCst) + layout.size();
        PEAK.fetch_max(now, Ordering::SeqCst);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::SeqCst);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Room for what does not grow with the circuit: thread pools, tasks, their results.
const SMALL: usize = 1 << 20;

/// Takes what is written and keeps nothing.
struct Nowhere(u64);

impl Write for Nowhere {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Seek for Nowhere {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        match to {
            SeekFrom::Start(place) => self.0 = place,
            SeekFrom::Current(0) => {}
            other => panic!("a key's writer goes nowhere else: {other:?}"),
        }
        Ok(self.0)
    }
}

/// One test, since the counts are those of the whole process.
#[test]
fn nothing_takes_more_memory_than_it_says() {
    proving_and_the_key_stay_below_their_estimates();
    making_parameters_stays_below_its_estimate();
}

fn proving_and_the_key_stay_below_their_estimates() {
    for (log2, threads) in [(10u32, 1), (13, 1), (13, 2), (14, 4)] {
        let domain = 1usize << log2;
        let (r1cs, values) = mixed_r1cs(domain - 3);
        let file = setup(&r1cs, b"memory");
        let matrices = Matrices::from_r1cs(&R1cs::parse(&r1cs).unwrap()).unwrap();
        let terms = matrices.a().terms() + matrices.b().terms() + matrices.c().unwrap().terms();
        let wires = matrices.wires() as u64;
        let key = ProvingKey::from_zkey(key_bytes(file), Some(Arc::new(matrices))).unwrap();
        let counts = KeyCounts {
            wires,
            public: 2,
            domain: domain as u64,
            terms: terms as u64,
        };
        assert!(key.owned_bytes() <= key_bound(counts));

        let before = NOW.load(Ordering::SeqCst);
        PEAK.store(before, Ordering::SeqCst);
        let parsed = R1cs::parse(&r1cs).unwrap();
        insecure_setup(&parsed, b"memory", Nowhere(0), &backend(threads), &mut go_on).unwrap();
        let peak = PEAK.load(Ordering::SeqCst) - before;
        let estimate = (setup_bytes(counts) - SLACK) as usize;
        assert!(
            peak <= estimate + SMALL,
            "setup, 2^{log2}: {peak} bytes, estimated {estimate}"
        );

        let witness = Witness::new(&values).unwrap();
        for backend in every_backend(threads) {
            let name = backend.name();
            let prover = Prover::new(&key, backend);
            let before = NOW.load(Ordering::SeqCst);
            PEAK.store(before, Ordering::SeqCst);
            let pieces = prover
                .prove_pieces(
                    &witness,
                    &[],
                    &mut |_, _| std::ops::ControlFlow::Continue(()),
                    &go_on,
                )
                .unwrap();
            let peak = PEAK.load(Ordering::SeqCst) - before;
            drop(pieces);
            let estimate = working_set(domain as u64, wires, threads) as usize;
            assert!(
                peak <= estimate + SMALL,
                "2^{log2}, {threads} threads, {name}: {peak} bytes, estimated {estimate}"
            );
            assert!(peak >= 80 * domain, "three vectors over the domain are counted");
        }
    }
}

fn making_parameters_stays_below_its_estimate() {
    for (log2, threads) in [(10u32, 1), (13, 2), (15, 4)] {
        let circuit = Chain::new((1 << log2) / 2 - 1).blank();
        let matrices = Matrices::from_constraints(&Constraints::of(circuit).unwrap()).unwrap();
        let waste = ToxicWaste::random(&mut rng(1)).unwrap();
        let (domain, wires) = (1u64 << log2, u64::from(matrices.wires()));
        for backend in every_backend(threads) {
            let before = NOW.load(Ordering::SeqCst);
            PEAK.store(before, Ordering::SeqCst);
            generate_parameters(&matrices, &waste, Nowhere(0), &backend, &mut go_on).unwrap();
            let peak = PEAK.load(Ordering::SeqCst) - before;
            let estimate = (parameters_bytes(domain, wires, threads) - SLACK) as usize;
            assert!(
                peak <= estimate + SMALL,
                "2^{log2}, {threads} threads, {backend:?}: {peak} bytes, estimated {estimate}"
            );
            assert!(peak >= 96 * wires as usize, "three columns are counted");
        }
    }
}
