//! Whether many points of the curve are all in the subgroup of prime order `r`, for a fraction of what that costs point
//! by point.
//!
//! A point of the curve is `P + T`: a part of order `r`, and a part `T` whose order divides the cofactor, which has small
//! factors (3, 11 and more in G1, 13, 23 and more in G2). A random linear combination of the points, the usual way to
//! test many at once, lets a `T` of order 3 pass with a chance of a third, whatever the coefficients are. So no
//! coefficients are used here. In each **round** every point is thrown into one of `2^bits` buckets at random, and the
//! sum of each bucket is tested.
//!
//! One round lets a list with a bad point pass with a chance of at most `2^-bits`. Take a bad point, and let all others
//! lie where they lie. For the round to pass, the `T`s of each bucket must add up to zero with the point in its bucket;
//! so those of the others add up to zero in each bucket but that one, where they add up to `−T ≠ 0`. That tells which
//! bucket it is: of the `2^bits` that the point can fall into at most one lets the round pass. This holds for a `T` of
//! any order, and for any choice of all the points that is made before the buckets are drawn.
//!
//! Rounds are independent, and there are so many that all of them pass by mistake with a chance of at most
//! `2^-`[`CERTAINTY`]. The sums of all rounds are a list of points of their own, tested the same way until few are left,
//! which are tested one by one. That is done at most sixteen times, so the whole errs with a chance below **2^-128**: never
//! by refusing good points, and only against somebody who made the points. Bucket numbers come from the operating
//! system's generator, afresh for each call.

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;

use crate::backend::Backend;
use crate::quotient::on_threads;
use crate::sums::{Groups, SumsOn};

/// Each list passes by mistake with a chance of at most `2^-` this.
const CERTAINTY: u32 = 132;
/// Fewer points than this are tested one by one.
const FEW: usize = 256;
/// About how many additions it costs to test a sum, in a list of sums.
const COST_OF_SUM: u64 = 24;

/// How a list is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    bits: u32,
    rounds: u32,
}

impl Plan {
    /// The cheapest plan for a list.
    fn new(points: usize) -> Self {
        let rounds = |bits: u32| CERTAINTY.div_ceil(bits);
        let cost = |bits: &u32| u64::from(rounds(*bits)) * (points as u64 + (COST_OF_SUM << bits));
        let bits = (1..=16).min_by_key(cost).unwrap_or(8);
        Plan {
            bits,
            rounds: rounds(bits),
        }
    }

    /// How many sums come of it.
    fn sums(self) -> usize {
        (self.rounds as usize) << self.bits
    }
}

/// Whether every point is in the subgroup, up to the error above. The points are on the curve; the identity is in the
/// subgroup.
pub(crate) fn all_in_subgroup<C: SumsOn>(
    points: &[C::Affine],
    backend: &dyn Backend,
    random: &mut ChaCha20Rng,
) -> bool {
    let plan = Plan::new(points.len());
    if points.len() < FEW || plan.sums() >= points.len() {
        let mut all = false;
        on_threads(backend, || {
            all = points.par_iter().with_min_len(8).all(C::in_subgroup);
        });
        return all;
    }
    let mut sums = round_sums::<C>(points, plan, backend, random);
    sums.retain(|sum| !C::is_identity(sum));
    all_in_subgroup::<C>(&sums, backend, random)
}

/// The sums of the buckets of all rounds.
fn round_sums<C: SumsOn>(
    points: &[C::Affine],
    plan: Plan,
    backend: &dyn Backend,
    random: &mut ChaCha20Rng,
) -> Vec<C::Affine> {
    let mut seeds = vec![[0; 32]; plan.rounds as usize];
    seeds.iter_mut().for_each(|seed| random.fill_bytes(seed));
    let mut sums = Vec::with_capacity(plan.sums());
    // The rounds of one go are drawn side by side, and so many entries are held at once.
    for seeds in seeds.chunks(backend.threads().max(1)) {
        let mut drawn = Vec::new();
        on_threads(backend, || {
            drawn = seeds
                .par_iter()
                .map(|seed| draw::<C>(points, plan.bits, *seed))
                .collect();
        });
        for buckets in &drawn {
            sums.append(&mut C::sums(backend, points, buckets));
        }
    }
    sums
}

/// Throws every point but identities, which no sum may name, into a bucket.
fn draw<C: SumsOn>(points: &[C::Affine], bits: u32, seed: [u8; 32]) -> Groups {
    let mut random = ChaCha20Rng::from_seed(seed);
    let mut buckets = Vec::with_capacity(points.len());
    let (mut word, mut left) = (0u64, 0);
    for point in points {
        if left < bits {
            (word, left) = (random.next_u64(), 64);
        }
        let bucket = (word & ((1 << bits) - 1)) as u32;
        (word, left) = (word >> bits, left - bits);
        buckets.push((!C::is_identity(point)).then_some(bucket));
    }
    Groups::sorted(1 << bits, &buckets)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::backend::CpuBackend;
    use crate::curve::{Curve, G1, G2};
    use crate::torsion;
    use rand::Rng;

    #[test]
    fn every_list_is_tested_to_the_certainty_that_is_promised() {
        let mut lists = 0;
        for points in [FEW, 1000, 10_000, 1 << 17, 1 << 20, 1 << 26] {
            let mut left = points;
            for depth in 1.. {
                let plan = Plan::new(left);
                assert!(plan.bits * plan.rounds >= CERTAINTY, "{left}: {plan:?}");
                if left < FEW || plan.sums() >= left {
                    break;
                }
                left = plan.sums();
                assert!(depth <= 16, "{points}");
                lists = lists.max(depth);
            }
        }
        // Errors add up over the lists of one test.
        assert!(f64::from(lists) * 2f64.powi(-(CERTAINTY as i32)) <= 2f64.powi(-128));
    }

    /// Good points with identities and equal and opposite ones among them, on every backend; then the same with bad
    /// points of every small order.
    fn small_orders_are_found<C: SumsOn>(count: usize, seed: u64) {
        let mut random = ChaCha20Rng::seed_from_u64(seed);
        let mut good = vec![C::generator()];
        while good.len() < count {
            let last = good[good.len() - 1];
            good.push(match random.gen_range(0..20) {
                0 => C::Affine::default(),
                1 => C::neg_affine(&last),
                2 => last,
                _ => {
                    let other = good[random.gen_range(0..good.len())];
                    let sum = C::add_affine(&C::to_point(&last), &other);
                    C::to_affine(&C::add_affine(&sum, &C::generator()))
                }
            });
        }
        let backends: Vec<_> = CpuBackend::possible()
            .into_iter()
            .map(|name| CpuBackend::named(name, 2).unwrap())
            .collect();
        for backend in &backends {
            assert!(all_in_subgroup::<C>(&good, backend, &mut random), "{backend:?}");
        }
        for (order, torsion) in torsion::points_of_small_order::<C>(seed) {
            assert!(C::on_curve(&torsion) && !C::in_subgroup(&torsion));
            // Alone; with its negative; as many as its order, whose sum is none; added to a good point.
            let mixed = C::to_affine(&C::add_affine(&C::to_point(&C::generator()), &torsion));
            let many = vec![torsion; order.min(20) as usize];
            for bad in [
                vec![torsion],
                vec![torsion, C::neg_affine(&torsion)],
                many,
                vec![mixed],
            ] {
                let mut points = good.clone();
                for bad in &bad {
                    let index = random.gen_range(0..count);
                    points[index] = *bad;
                }
                for backend in &backends {
                    assert!(
                        !all_in_subgroup::<C>(&points, backend, &mut random),
                        "{backend:?}: {} of order {order}",
                        bad.len()
                    );
                }
            }
        }
    }

    #[test]
    fn points_of_every_small_order_are_found_among_many() {
        let seed = rand::thread_rng().next_u64();
        eprintln!("seed {seed}");
        small_orders_are_found::<G1>(6_000, seed);
        small_orders_are_found::<G2>(3_000, seed);
        // So few that they are tested one by one.
        small_orders_are_found::<G1>(FEW - 1, seed);
    }

    /// Shows that the test above could fail: one round alone lets a pair of opposite points pass about as often as its
    /// bound says.
    #[test]
    fn one_round_errs_as_often_as_it_may() {
        let seed = rand::thread_rng().next_u64();
        eprintln!("seed {seed}");
        let mut random = ChaCha20Rng::seed_from_u64(seed);
        let (_, torsion) = torsion::points_of_small_order::<G1>(seed)[0];
        let points = [torsion, G1::neg_affine(&torsion)];
        let backend = CpuBackend::named("blst", 1).unwrap();
        let plan = Plan { bits: 2, rounds: 1 };
        let passed = (0..2000)
            .filter(|_| {
                round_sums::<G1>(&points, plan, &backend, &mut random)
                    .iter()
                    .all(G1::in_subgroup)
            })
            .count();
        // 500 expected, with a deviation of 19.
        assert!((300..700).contains(&passed), "{passed} of 2000");
    }
}
