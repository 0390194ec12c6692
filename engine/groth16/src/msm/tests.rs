#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use blstrs::Scalar;
use ff::Field;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::*;
use crate::control::Unwatched;
use crate::curve::{G1, G2};
use crate::field::scalar_to_bytes;

fn pool(threads: usize) -> ThreadPool {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap()
}

fn multiples<C: Curve>(count: usize) -> Vec<C::Affine> {
    let mut point = C::to_point(&C::generator());
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        all.push(point);
        point = C::add_affine(&C::double(&point), &C::generator());
    }
    C::batch_to_affine(&all)
}

fn naive<C: Curve>(points: &[C::Affine], scalars: &[ScalarBytes]) -> C::Affine {
    let sum = points
        .iter()
        .zip(scalars)
        .fold(C::Point::default(), |sum, (point, scalar)| {
            C::add(&sum, &C::mul(&C::to_point(point), scalar))
        });
    C::to_affine(&sum)
}

fn mixed(rng: &mut ChaCha20Rng, count: usize) -> Vec<ScalarBytes> {
    (0..count)
        .map(|_| {
            scalar_to_bytes(&match rng.gen_range(0..5) {
                0 => Scalar::ZERO,
                1 => Scalar::ONE,
                2 => Scalar::from(u64::from(rng.r#gen::<u16>())),
                3 => -Scalar::from(u64::from(rng.r#gen::<u16>())),
                _ => Scalar::random(&mut *rng),
            })
        })
        .collect()
}

fn agrees<C: Curve>() {
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    for count in [0, 1, 2, 3, 5, 64, 65, 333, 1500] {
        let points = multiples::<C>(count);
        for kind in 0..4 {
            let scalars = match kind {
                0 => mixed(&mut rng, count),
                1 => (0..count)
                    .map(|_| scalar_to_bytes(&Scalar::random(&mut rng)))
                    .collect(),
                2 => vec![scalar_to_bytes(&Scalar::ONE); count],
                _ => vec![scalar_to_bytes(&-Scalar::ONE); count],
            };
            let expected = naive::<C>(&points, &scalars);
            for threads in [1, 3] {
                let got = msm(
                    &pool(threads),
                    &BaseSet::<C>::full(points.clone()),
                    &scalars,
                    &Unwatched,
                )
                .unwrap();
                assert_eq!(
                    C::to_affine(&got),
                    expected,
                    "{count} points, kind {kind}, {threads} threads"
                );
            }
        }
    }
}

#[test]
fn g1_agrees_with_one_multiplication_at_a_time() {
    agrees::<G1>();
}

#[test]
fn g2_agrees_with_one_multiplication_at_a_time() {
    agrees::<G2>();
}

#[test]
fn equal_and_opposite_points_are_added_rightly() {
    let g = G1::to_point(&G1::generator());
    let points = G1::batch_to_affine(&[g, g, G1::neg(&g), g, G1::neg(&g), G1::neg(&g), g]);
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    for scalars in [
        vec![scalar_to_bytes(&Scalar::ONE); 7],
        vec![scalar_to_bytes(&Scalar::random(&mut rng)); 7],
    ] {
        let got = msm(
            &pool(2),
            &BaseSet::<G1>::full(points.clone()),
            &scalars,
            &Unwatched,
        )
        .unwrap();
        assert_eq!(G1::to_affine(&got), naive::<G1>(&points, &scalars));
    }
}

#[test]
fn a_wire_list_picks_the_scalars() {
    let points = multiples::<G1>(4);
    let scalars: Vec<_> = (10..20u64).map(|v| scalar_to_bytes(&Scalar::from(v))).collect();
    let bases = BaseSet::<G1>::with_wires(points.clone(), vec![9, 0, 3, 3]);
    assert_eq!(bases.scalars_needed(), 10);
    let picked = [scalars[9], scalars[0], scalars[3], scalars[3]];
    let got = msm(&pool(1), &bases, &scalars, &Unwatched).unwrap();
    assert_eq!(G1::to_affine(&got), naive::<G1>(&points, &picked));
}

#[test]
fn the_caller_can_stop_between_tiles() {
    let points = multiples::<G1>(3000);
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let scalars: Vec<_> = (0..3000)
        .map(|_| scalar_to_bytes(&Scalar::random(&mut rng)))
        .collect();
    let asked = AtomicU64::new(0);
    let stop = |_done: u64, _total: u64| {
        if asked.fetch_add(1, Ordering::SeqCst) == 2 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    assert_eq!(
        msm(&pool(1), &BaseSet::<G1>::full(points), &scalars, &stop).err(),
        Some(Stopped)
    );
    assert_eq!(asked.load(Ordering::SeqCst), 3, "nothing ran after the stop");
}

/// Points and scalars that make every bucket's additions special: all equal, opposite, in two kinds, and mixed with others.
fn adversarial<C: Curve>(count: usize) {
    let g = C::to_point(&C::generator());
    let double = C::double(&g);
    let some = multiples::<C>(count);
    let pick = |kind: usize, at: usize| match (kind, at % 4) {
        (0, _) => C::to_affine(&g),
        (1, even) if even % 2 == 0 => C::to_affine(&g),
        (1, _) => C::to_affine(&C::neg(&g)),
        (2, 0) => C::to_affine(&double),
        (2, 1) => C::to_affine(&C::neg(&g)),
        (2, 2) => C::to_affine(&g),
        _ => some[at],
    };
    let mut rng = ChaCha20Rng::seed_from_u64(count as u64);
    let one = Scalar::random(&mut rng);
    // r − 1, 2^254 and 2^k ± 1 are at the edges of windows.
    let edges: Vec<Scalar> = (1..255u64)
        .map(|bit| Scalar::from(2).pow_vartime([bit]))
        .flat_map(|power| [power, power - Scalar::ONE, power + Scalar::ONE, -power])
        .collect();
    for kind in 0..4 {
        let points: Vec<_> = (0..count).map(|at| pick(kind, at)).collect();
        for scalars in [
            vec![scalar_to_bytes(&one); count],
            vec![scalar_to_bytes(&-Scalar::ONE); count],
            (0..count)
                .map(|at| {
                    scalar_to_bytes(if at % 3 == 0 {
                        &one
                    } else {
                        &edges[at % edges.len()]
                    })
                })
                .collect(),
        ] {
            for threads in [1, 2] {
                let got = msm(
                    &pool(threads),
                    &BaseSet::<C>::full(points.clone()),
                    &scalars,
                    &Unwatched,
                )
                .unwrap();
                assert!(
                    C::to_affine(&got) == naive::<C>(&points, &scalars),
                    "{count} points of kind {kind}, {threads} threads"
                );
            }
        }
    }
}

#[test]
fn equal_and_opposite_points_are_added_rightly_in_buckets() {
    for count in [127, 128, 129, 1100] {
        adversarial::<G1>(count);
    }
    adversarial::<G2>(300);
}
