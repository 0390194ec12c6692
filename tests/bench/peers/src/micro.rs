//! What a proof is made of, alone: multi-scalar multiplications and the quotient, each against blst and ark.

use ark_bls12_381::{Fr, G1Projective, G2Projective};
use ark_ec::VariableBaseMSM;
use ark_ff::PrimeField;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use blst::{blst_p1, blst_p1_affine, blst_p2, blst_p2_affine};
use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;
use group::{Curve as _, Group as _};
use proofkeep_groth16::backend::{Backend, CpuBackend};
use proofkeep_groth16::bases::BaseSet;
use proofkeep_groth16::control::Unwatched;
use proofkeep_groth16::curve::{Curve, G1, G2};
use proofkeep_groth16::domain::Domain;
use proofkeep_groth16::field::{Root, ScalarBytes, scalar_to_bytes};
use proofkeep_groth16::quotient::HBasis;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::ark;
use crate::cost::{Rounds, round};

/// Prints a table: microseconds of the processor, and how many times as long as the fastest of ours the others take.
pub fn run(sizes: std::ops::RangeInclusive<u32>, rounds: usize, threads: usize) {
    println!(
        "\n| piece | size | prover | processor, ms (least–most) | times as long |\n| --- | --- | --- | ---: | ---: |"
    );
    for log2 in sizes {
        msm_g1(log2, rounds, threads);
        msm_g2(log2, rounds, threads);
        quotient(log2, rounds, threads);
    }
}

type Work<'a> = (String, Box<dyn FnMut() -> Vec<u8> + 'a>);

/// Runs them in turn, looks that they agree, prints them.
fn compare(piece: &str, log2: u32, rounds: usize, mut entrants: Vec<Work<'_>>) {
    // Short ones many times within a round, for the clock's sake.
    let times = 1 << 12u32.saturating_sub(log2);
    let mut costs = vec![Rounds::default(); entrants.len()];
    for _ in 0..rounds {
        let mut results = Vec::new();
        for ((_, work), costs) in entrants.iter_mut().zip(&mut costs) {
            let (cost, result) = round(|| (1..times).fold(work(), |_, _| work()));
            costs.0.push(cost);
            results.push(result);
        }
        results.retain(|result| !result.is_empty());
        assert!(
            results.windows(2).all(|pair| pair[0] == pair[1]),
            "{piece}, 2^{log2}: they differ"
        );
    }
    let base = costs[0].of(|cost| cost.processor)[1];
    for ((name, _), costs) in entrants.iter().zip(&costs) {
        let [least, median, most] = costs.of(|cost| cost.processor);
        let each = 1e3 / f64::from(times);
        println!(
            "| {piece} | 2^{log2} | {name} | {:.3} ({:.3}–{:.3}) | {:.2} |",
            median * each,
            least * each,
            most * each,
            median / base
        );
    }
}

fn scalars(count: usize) -> (Vec<Scalar>, Vec<ScalarBytes>) {
    let mut random = ChaCha20Rng::seed_from_u64(count as u64);
    let scalars: Vec<Scalar> = (0..count).map(|_| Scalar::random(&mut random)).collect();
    let bytes = scalars.iter().map(scalar_to_bytes).collect();
    (scalars, bytes)
}

fn backends(threads: usize) -> Vec<CpuBackend> {
    let names = CpuBackend::possible().into_iter().rev();
    names
        .map(|name| CpuBackend::named(name, threads).unwrap())
        .collect()
}

macro_rules! msm {
    ($name:ident, $piece:literal, $group:ident, $projective:ident, $affine:ident, $blst_affine:ident, $blst_point:ident,
     $msm:ident, $pippenger:ident, $scratch:ident, $ark:ident, $to_ark:ident) => {
        fn $name(log2: u32, rounds: usize, threads: usize) {
            let count = 1usize << log2;
            let (values, bytes) = scalars(count);
            let step = blstrs::$projective::generator() * values[0];
            let points: Vec<blstrs::$projective> =
                std::iter::successors(Some(step), |point| Some(point.double() + step))
                    .take(count)
                    .collect();
            let mut affine = vec![$affine::default(); count];
            blstrs::$projective::batch_normalize(&points, &mut affine);
            let plain: Vec<$blst_affine> = affine.iter().map(|point| *point.as_ref()).collect();
            let bases = BaseSet::<$group>::full(plain.clone());
            let arks: Vec<_> = affine.iter().map(ark::$to_ark).collect();
            let numbers: Vec<_> = values
                .iter()
                .map(|value| ark::scalar(value).into_bigint())
                .collect();
            let mut entrants: Vec<Work<'_>> = Vec::new();
            for backend in backends(threads) {
                let (bases, bytes) = (&bases, &bytes);
                entrants.push((
                    format!("proofkeep ({})", backend.name()),
                    Box::new(move || {
                        let sum = backend.$msm(bases, bytes, &Unwatched).unwrap();
                        $group::compress(&$group::to_affine(&sum))
                    }),
                ));
            }
            if threads == 1 {
                entrants.push((
                    "blst, one thread".to_owned(),
                    Box::new(|| {
                        let mut sum = $blst_point::default();
                        let (list, numbers) = (
                            [plain.as_ptr(), std::ptr::null()],
                            [bytes.as_ptr().cast::<u8>(), std::ptr::null()],
                        );
                        // SAFETY: both lists begin with a pointer to `count` elements in a row and end with null, as blst
                        // wants it; the scratch has the size that it asks for.
                        unsafe {
                            let mut scratch = vec![0u64; blst::$scratch(count).div_ceil(8)];
                            blst::$pippenger(
                                &raw mut sum,
                                list.as_ptr(),
                                count,
                                numbers.as_ptr(),
                                255,
                                scratch.as_mut_ptr(),
                            );
                        }
                        $group::compress(&$group::to_affine(&sum))
                    }),
                ));
            }
            // Its result is in other types; the proofs show that it is right.
            entrants.push((
                "ark-ec 0.5".to_owned(),
                Box::new(|| {
                    let _ = std::hint::black_box($ark::msm_bigint(&arks, &numbers));
                    Vec::new()
                }),
            ));
            compare($piece, log2, rounds, entrants);
        }
    };
}

msm!(
    msm_g1,
    "MSM in G1",
    G1,
    G1Projective,
    G1Affine,
    blst_p1_affine,
    blst_p1,
    msm_g1,
    blst_p1s_mult_pippenger,
    blst_p1s_mult_pippenger_scratch_sizeof,
    G1Projective,
    g1
);
msm!(
    msm_g2,
    "MSM in G2",
    G2,
    G2Projective,
    G2Affine,
    blst_p2_affine,
    blst_p2,
    msm_g2,
    blst_p2s_mult_pippenger,
    blst_p2s_mult_pippenger_scratch_sizeof,
    G2Projective,
    g2
);

/// Six transforms for all, and the products between them.
fn quotient(log2: u32, rounds: usize, threads: usize) {
    let (a, _) = scalars(1 << log2);
    let b: Vec<Scalar> = a.iter().map(Scalar::square).collect();
    let domain = Domain::new(log2, Root::Bellperson).unwrap();
    let (in_ark_a, in_ark_b): (Vec<Fr>, Vec<Fr>) = (
        a.iter().map(ark::scalar).collect(),
        b.iter().map(ark::scalar).collect(),
    );
    let in_ark = Radix2EvaluationDomain::<Fr>::new(1 << log2).unwrap();
    let coset = in_ark.get_coset(<Fr as ark_ff::FftField>::GENERATOR).unwrap();
    let mut entrants: Vec<Work<'_>> = Vec::new();
    for backend in backends(threads) {
        let (a, b, domain) = (&a, &b, &domain);
        entrants.push((
            format!("proofkeep ({})", backend.name()),
            Box::new(move || {
                let scalars = backend
                    .quotient(domain, a.clone(), b.clone(), HBasis::OddCoset, &Unwatched)
                    .unwrap();
                scalars.iter().take(64).flat_map(Scalar::to_bytes_le).collect()
            }),
        ));
    }
    entrants.push((
        "ark-poly 0.5".to_owned(),
        Box::new(|| {
            let mut c: Vec<Fr> = in_ark_a.iter().zip(&in_ark_b).map(|(a, b)| *a * b).collect();
            let (mut a, mut b) = (in_ark_a.clone(), in_ark_b.clone());
            for values in [&mut a, &mut b, &mut c] {
                in_ark.ifft_in_place(values);
                coset.fft_in_place(values);
            }
            for ((a, b), c) in a.iter_mut().zip(&b).zip(&c) {
                *a = *a * b - c;
            }
            std::hint::black_box(a);
            Vec::new()
        }),
    ));
    compare("quotient", log2, rounds, entrants);
}
