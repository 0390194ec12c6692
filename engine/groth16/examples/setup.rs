//! What a setup and the check of a key's points cost, against what they would cost otherwise, in one run.
//!
//! `cargo run --release -p proofkeep-groth16 --example setup -- [log2 of the domain, 14] [threads, 1] [rounds, 3] \
//! [log2 of the points, 17]`
//!
//! * Parameters of a dense circuit by bellperson's generator and by this one from the same randomness, one after the
//!   other in each round; the bytes must be the same.
//! * The check of so many points in each group, point by point and all at once, on each backend.
//!
//! bellperson takes its threads from `RAYON_NUM_THREADS` and `EC_GPU_NUM_THREADS`, which must say the same number.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;
use std::time::{Duration, Instant};

use bellperson::groth16::generate_random_parameters;
use blstrs::Bls12;
use common::{Chain, go_on, rng};
use proofkeep_groth16::backend::{Backend, CpuBackend};
use proofkeep_groth16::check::first_fault;
use proofkeep_groth16::curve::{G1, G2};
use proofkeep_groth16::matrices::Matrices;
use proofkeep_groth16::setup::{ToxicWaste, generate_parameters};
use proofkeep_groth16::sums::SumsOn;
use proofkeep_groth16::synthesis::Constraints;

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

/// Wall and processor time.
type Times = (Duration, Duration);

fn timed<T>(work: impl FnOnce() -> T) -> (T, Times) {
    let (wall, processor) = (Instant::now(), processor_time());
    let result = work();
    (result, (wall.elapsed(), processor_time() - processor))
}

fn median(mut times: Vec<Times>) -> Times {
    let middle = times.len() / 2;
    times.sort_by_key(|time| time.1);
    let processor = times[middle].1;
    times.sort();
    (times[middle].0, processor)
}

fn ratio(theirs: Duration, ours: Duration) -> f64 {
    theirs.as_secs_f64() / ours.as_secs_f64()
}

fn parameters(log2: u32, threads: usize, rounds: usize) {
    // Two constraints a round, two input rows: the domain is exactly full.
    let chain = Chain::new((1 << log2) / 2 - 1).blank();
    let matrices = Matrices::from_constraints(&Constraints::of(chain.clone()).unwrap()).unwrap();
    assert_eq!(matrices.log2(), log2);
    let backends: Vec<_> = CpuBackend::possible()
        .into_iter()
        .map(|name| CpuBackend::named(name, threads).unwrap())
        .collect();
    let mut theirs = Vec::new();
    let mut ours = vec![Vec::new(); backends.len()];
    for round in 0..rounds as u64 {
        let (bytes, times) = timed(|| {
            let parameters =
                generate_random_parameters::<Bls12, _, _>(chain.clone(), &mut rng(round)).unwrap();
            let mut bytes = Vec::new();
            parameters.write(&mut bytes).unwrap();
            bytes
        });
        theirs.push(times);
        for (backend, ours) in backends.iter().zip(&mut ours) {
            let (made, times) = timed(|| {
                let waste = ToxicWaste::random(&mut rng(round)).unwrap();
                generate_parameters(&matrices, &waste, Vec::new(), backend, &mut go_on).unwrap()
            });
            assert!(made == bytes, "other bytes than bellperson's");
            ours.push(times);
        }
    }
    let theirs = median(theirs);
    println!("parameters, dense 2^{log2}, {threads} threads, medians of {rounds}: wall, CPU");
    println!(
        "  bellperson 0.26   {:>8.3} s {:>8.3} s",
        theirs.0.as_secs_f64(),
        theirs.1.as_secs_f64()
    );
    for (backend, ours) in backends.iter().zip(ours) {
        let ours = median(ours);
        println!(
            "  proofkeep, {:<6} {:>8.3} s {:>8.3} s   {:.1}x the wall, {:.1}x the CPU; the same bytes",
            backend.name(),
            ours.0.as_secs_f64(),
            ours.1.as_secs_f64(),
            ratio(theirs.0, ours.0),
            ratio(theirs.1, ours.1)
        );
    }
}

fn checks<C: SumsOn>(group: &str, log2: u32, threads: usize, rounds: usize) {
    let count = 1usize << log2;
    let mut points = vec![C::to_point(&C::generator())];
    while points.len() < count {
        points.push(C::add_affine(&points[points.len() - 1], &C::generator()));
    }
    let points = C::batch_to_affine(&points);
    let some = &points[..count.min(1 << 13)];
    for name in CpuBackend::possible() {
        let backend = CpuBackend::named(name, threads).unwrap();
        let (mut single, mut batched) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let one_thread = || {
                some.iter()
                    .all(|point| C::on_curve(point) && C::in_subgroup(point))
            };
            single.push(timed(|| assert!(black_box(one_thread()))).1);
            batched.push(timed(|| assert_eq!(first_fault::<C>(&points, &backend), None)).1);
        }
        let (single, batched) = (median(single), median(batched));
        let a_point = |time: Duration, points: usize| time.as_secs_f64() * 1e6 / points as f64;
        let one = (a_point(single.0, some.len()), a_point(single.1, some.len()));
        let all = (a_point(batched.0, count), a_point(batched.1, count));
        println!(
            "  {group}, {name}: one by one, 1 thread {:.2} µs a point (CPU {:.2}); at once, {threads} threads {:.2} µs \
             (CPU {:.2}): {:.1}x the wall, {:.1}x the CPU",
            one.0,
            one.1,
            all.0,
            all.1,
            one.0 / all.0,
            one.1 / all.1
        );
    }
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|word| word.parse::<usize>().expect("a number"));
    let log2 = arguments.next().unwrap_or(14) as u32;
    let threads = arguments.next().unwrap_or(1);
    let rounds = arguments.next().unwrap_or(3).max(1);
    let points = arguments.next().unwrap_or(17) as u32;
    for (name, value) in [("RAYON_NUM_THREADS", threads), ("EC_GPU_NUM_THREADS", threads)] {
        assert!(
            std::env::var(name).is_ok_and(|set| set == value.to_string()),
            "set {name}={value}, so that bellperson has as many threads"
        );
    }
    println!("check of 2^{points} points, medians of {rounds}");
    checks::<G1>("G1", points, threads, rounds);
    checks::<G2>("G2", points, threads, rounds);
    parameters(log2, threads, rounds);
}
