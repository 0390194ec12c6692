#![allow(clippy::unwrap_used, clippy::expect_used)]

use rand::Rng;
use rand_chacha::ChaCha20Rng;

use super::slow::Slow;
use super::*;
use crate::check::fields::rng;
use crate::check::vectors::not_here;
use crate::group::{G1, G2};

const ZERO: [u8; 32] = [0; 32];
const ONE: [u8; 32] = small(1);

const fn small(value: u64) -> [u8; 32] {
    let mut out = [0; 32];
    let bytes = value.to_le_bytes();
    let mut k = 0;
    while k < 8 {
        out[k] = bytes[k];
        k += 1;
    }
    out
}

fn bytes(words: [u64; 4]) -> [u8; 32] {
    let mut out = [0; 32];
    for (chunk, word) in out.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *chunk = word.to_le_bytes();
    }
    out
}

/// `r − v`.
fn minus(value: u64) -> [u8; 32] {
    let mut words = crate::modulus::R;
    let (low, borrow) = words[0].overflowing_sub(value);
    words[0] = low;
    words[1] -= u64::from(borrow);
    bytes(words)
}

/// `(r − 1)/2` and one more: the largest magnitudes.
fn halves() -> [[u8; 32]; 2] {
    let r = crate::modulus::R;
    let half: [u64; 4] = std::array::from_fn(|k| r[k] >> 1 | if k < 3 { r[k + 1] << 63 } else { 0 });
    let mut more = half;
    more[0] += 1;
    [bytes(half), bytes(more)]
}

fn dense(rng: &mut ChaCha20Rng) -> [u8; 32] {
    let mut words: [u64; 4] = rng.r#gen();
    words[3] %= crate::modulus::R[3];
    bytes(words)
}

/// Scalars of one kind each: dense; bits; small and minus small; the edges; all equal; one window's digit alone.
fn scalars(kind: usize, count: usize, rng: &mut ChaCha20Rng) -> Vec<[u8; 32]> {
    let equal = dense(rng);
    (0..count)
        .map(|_| match kind {
            0 => dense(rng),
            1 => [ZERO, ONE, minus(1)][rng.gen_range(0..3)],
            2 => [
                small(rng.r#gen::<u64>() >> rng.gen_range(0..63)),
                minus(rng.gen_range(1..1 << 20)),
            ][rng.gen_range(0..2)],
            3 => {
                let [half, more] = halves();
                [
                    half,
                    more,
                    minus(1),
                    minus(2),
                    small(2),
                    small(u64::MAX),
                    ONE,
                    ZERO,
                ][rng.gen_range(0..8)]
            }
            4 => equal,
            5 => {
                let mut words = [0; 4];
                words[rng.gen_range(0..4)] = 1 << rng.gen_range(0..62);
                bytes(words)
            }
            _ => match rng.gen_range(0..4) {
                0 => ZERO,
                1 => ONE,
                2 => small(rng.r#gen::<u16>().into()),
                _ => dense(rng),
            },
        })
        .collect()
}

/// Points of one kind each: all different; all equal; a few and their negatives; with identities between.
fn points<G: Slow>(kind: usize, count: usize, rng: &mut ChaCha20Rng) -> Vec<G::Affine> {
    let base: Vec<_> = (0..count.clamp(1, 40))
        .map(|_| G::multiple(&dense(rng)))
        .collect();
    let mut last = G::Point::default();
    (0..count)
        .map(|k| match kind {
            0 => {
                last = G::add_affine(&last, &base[k % base.len()]);
                G::affine(&last)
            }
            1 => base[0],
            2 => {
                let point = base[rng.gen_range(0..base.len().min(3))];
                if rng.r#gen() { point } else { G::neg(&point) }
            }
            _ if k % 3 == 1 => G::Affine::default(),
            _ => base[k % base.len()],
        })
        .collect()
}

fn naive<G: Slow>(points: &[G::Affine], scalars: &[[u8; 32]]) -> G::Affine {
    let sum = points
        .iter()
        .zip(scalars)
        .fold(G::Point::default(), |sum, (point, scalar)| {
            G::add(&sum, &G::times(point, scalar))
        });
    G::affine(&sum)
}

fn agrees<G: Slow>(test: &str) {
    if not_here(test) {
        return;
    }
    let ifma = Ifma::detect().unwrap();
    let mut rng = rng();
    let pools = [1, 3].map(|threads| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap()
    });
    for count in [0, 1, 2, 3, 8, 9, 65, 300] {
        for kind in 0..4 {
            let points = points::<G>(kind, count, &mut rng);
            for scalar_kind in 0..7 {
                let scalars = scalars(scalar_kind, count, &mut rng);
                let expected = naive::<G>(&points, &scalars);
                let pool = &pools[(kind + scalar_kind + count) % 2];
                let go_on = |_: u64, _: u64| ControlFlow::Continue(());
                let got = msm::<G>(ifma, Some(pool), &points, &scalars.as_slice(), &go_on).unwrap();
                assert_eq!(
                    G::affine(&got),
                    expected,
                    "{count} points of kind {kind}, scalars of kind {scalar_kind}"
                );
            }
        }
    }
}

#[test]
fn g1_agrees_with_one_multiplication_at_a_time() {
    agrees::<G1>("g1_agrees_with_one_multiplication_at_a_time");
}

#[test]
fn g2_agrees_with_one_multiplication_at_a_time() {
    agrees::<G2>("g2_agrees_with_one_multiplication_at_a_time");
}
