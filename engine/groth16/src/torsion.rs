//! Points of the two curves outside the prime-order subgroups, for tests.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use num_bigint::{BigInt, BigUint};
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;

use crate::curve::Curve;

/// `−x` of BLS12-381.
const MINUS_X: u64 = 0xd201_0000_0001_0000;

/// The number of points of the curve over its field, divided by `r`.
fn cofactor<C: Curve>() -> BigUint {
    let x = -BigInt::from(MINUS_X);
    let power = |n: u32| x.pow(n);
    let value = if C::AFFINE_BYTES == 96 {
        (power(1) - 1i32).pow(2) / 3i32
    } else {
        (power(8) - power(7) * 4i32 + power(6) * 5i32 - power(4) * 4i32 + power(3) * 6i32
            - power(2) * 4i32
            - power(1) * 4i32
            + 13i32)
            / 9i32
    };
    value.to_biguint().expect("a number of points")
}

fn order() -> BigUint {
    let x = BigInt::from(MINUS_X);
    (x.pow(4) - x.pow(2) + 1i32)
        .to_biguint()
        .expect("a number of points")
}

/// `scalar·point`, for a scalar of any size, by doubling and adding.
fn times<C: Curve>(point: &C::Affine, scalar: &BigUint) -> C::Affine {
    let sum = (0..scalar.bits()).rev().fold(C::Point::default(), |sum, bit| {
        let double = C::double(&sum);
        if scalar.bit(bit) {
            C::add_affine(&double, point)
        } else {
            double
        }
    });
    C::to_affine(&sum)
}

/// A random point of the curve.
pub(crate) fn random_point<C: Curve>(random: &mut ChaCha20Rng) -> C::Affine {
    loop {
        let mut encoded = vec![0; C::AFFINE_BYTES / 2];
        random.fill_bytes(&mut encoded);
        // Compressed, and the coordinates below the modulus.
        encoded[0] = 0x80 | encoded[0] & 0x2f;
        let half = C::AFFINE_BYTES / 4;
        encoded[half] &= if C::AFFINE_BYTES == 96 { 0xff } else { 0x0f };
        if let Some(point) = C::decode(&encoded) {
            return point;
        }
    }
}

/// For each small prime that divides the cofactor, the prime and a point of that order.
pub(crate) fn points_of_small_order<C: Curve>(seed: u64) -> Vec<(u64, C::Affine)> {
    let primes: &[u64] = if C::AFFINE_BYTES == 96 {
        &[3, 11, 10177, 859_267, 52_437_899]
    } else {
        &[13, 23, 2713, 11953, 262_069]
    };
    let mut random = ChaCha20Rng::seed_from_u64(seed);
    let all = cofactor::<C>() * order();
    primes
        .iter()
        .map(|prime| {
            let mut rest = all.clone();
            while &rest % prime == BigUint::ZERO {
                rest /= *prime;
            }
            assert!(rest != all, "{prime} divides the cofactor");
            loop {
                let mut point = times::<C>(&random_point::<C>(&mut random), &rest);
                if C::is_identity(&point) {
                    continue;
                }
                loop {
                    let next = times::<C>(&point, &BigUint::from(*prime));
                    if C::is_identity(&next) {
                        break;
                    }
                    point = next;
                }
                return (*prime, point);
            }
        })
        .collect()
}
