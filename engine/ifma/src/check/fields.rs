//! The arithmetic against integers of any size, limbs at their extremes.

use num_bigint::BigUint;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use crate::modulus::{self, MASK};

/// Seeds rotate: a failure names its own.
pub(crate) fn rng() -> ChaCha20Rng {
    let seed = std::time::UNIX_EPOCH
        .elapsed()
        .map_or(0, |time| time.as_nanos() as u64);
    eprintln!("seed {seed}");
    ChaCha20Rng::seed_from_u64(seed)
}

pub(crate) fn integer(limbs: &[u64]) -> BigUint {
    limbs
        .iter()
        .rev()
        .fold(BigUint::ZERO, |sum, limb| (sum << 52u32) + *limb)
}

pub(crate) fn prime(words: &[u64]) -> BigUint {
    words
        .iter()
        .rev()
        .fold(BigUint::ZERO, |sum, word| (sum << 64u32) + *word)
}

/// Limbs that are random, zero, full, or off by one from those; the top limb up to `top`.
pub(crate) fn adversarial<const N: usize>(rng: &mut ChaCha20Rng, top: u64) -> [u64; N] {
    let mut limb = |most: u64| match rng.gen_range(0..8) {
        0 | 1 => 0,
        2 | 3 => most,
        4 => 1.min(most),
        5 => most.saturating_sub(1),
        _ => rng.gen_range(0..=most),
    };
    let mut limbs = [0; N];
    for limb_out in &mut limbs[..N - 1] {
        *limb_out = limb(MASK);
    }
    limbs[N - 1] = limb(top);
    limbs
}

/// `0, 1, p − 1, p, p + 1, 2p − 1`, then adversarial limbs.
pub(crate) fn inputs<const N: usize>(
    rng: &mut ChaCha20Rng,
    p: &[u64; N],
    top: u64,
    count: usize,
) -> Vec<[u64; N]> {
    let mut one = [0; N];
    one[0] = 1;
    let mut minus_one = *p;
    minus_one[0] -= 1;
    let mut twice = modulus::multiple(p, 2);
    twice[0] -= 1;
    let mut all = vec![[0; N], one, minus_one, *p, twice];
    all.resize_with(count, || adversarial(rng, top));
    all
}

macro_rules! agrees_with_integers {
    ($name:ident, $field:ident, $n:literal, $words:expr, $top:expr) => {
        mod $name {
            use super::*;
            use crate::$field::{self as field, plain};

            fn signed(limbs: &[u64; $n]) -> [i64; $n] {
                limbs.map(|limb| limb as i64)
            }

            fn unsigned(limbs: &[i64; $n]) -> [u64; $n] {
                limbs.map(|limb| limb.try_into().unwrap())
            }

            #[test]
            fn on_one_lane() {
                let mut rng = rng();
                let p = prime(&$words);
                let r = BigUint::from(1u8) << (52u32 * $n);
                let all = inputs(&mut rng, &field::PRIME, $top, 40);
                let mut out = [0; $n];
                for a in &all {
                    let x = integer(a);
                    plain::square(&mut out, &signed(a));
                    assert_eq!(integer(&unsigned(&out)) * &r % &p, &x * &x % &p);
                    let shrunk = integer(&unsigned(&plain::shrink(&signed(a))));
                    assert_eq!(&shrunk % &p, &x % &p);
                    let little = (BigUint::from(2u8) << (52u32 * ($n - 1))) + (&p * a[$n - 1] >> 52u32);
                    assert!(shrunk < &p + little);
                    for b in &all {
                        let y = integer(b);
                        plain::mul(&mut out, &signed(a), &signed(b));
                        assert_eq!(integer(&unsigned(&out)) * &r % &p, &x * &y % &p);
                        plain::sum_of_squares(&mut out, &signed(a), &signed(b));
                        assert_eq!(integer(&unsigned(&out)) * &r % &p, (&x * &x + &y * &y) % &p);
                        assert_eq!(
                            integer(&unsigned(&plain::sum(&signed(a), &signed(b)))),
                            &x + &y
                        );
                        let offset = modulus::multiple(&field::PRIME, 16);
                        if y <= integer(&offset) {
                            let difference = unsigned(&plain::difference(&signed(a), &signed(b), &offset));
                            assert_eq!(integer(&difference) + &y, &x + integer(&offset));
                        }
                    }
                }
            }

            #[test]
            fn constants_are_what_they_say() {
                let p = prime(&$words);
                assert_eq!(integer(&field::PRIME), p);
                assert_eq!(
                    integer(&field::ONE),
                    (BigUint::from(1u8) << (52u32 * $n)) % &p
                );
                assert_eq!(
                    modulus::to_words::<{ ($n * 52 - 1) / 64 }>(&field::PRIME).as_slice(),
                    $words
                );
            }
        }
    };
}

agrees_with_integers!(base, fp, 8, modulus::P, (1 << 26) - 1);
agrees_with_integers!(scalar, fr, 5, modulus::R, (1 << 50) - 1);

#[test]
fn complex_products_agree_with_integers() {
    use crate::fp::{PRIME, plain};
    let mut rng = rng();
    let p = prime(&modulus::P);
    let r = BigUint::from(1u8) << 416u32;
    let all = inputs(&mut rng, &PRIME, (1 << 26) - 1, 24);
    let mut out = [[0; 8]; 2];
    let value = |limbs: &[i64; 8]| integer(&limbs.map(|limb| u64::try_from(limb).unwrap()));
    for k in 0..2000 {
        let mut pick = || {
            all[if k < 100 {
                k % all.len()
            } else {
                rng.gen_range(0..all.len())
            }]
        };
        let a = [pick(), pick()].map(|limbs| limbs.map(|limb| limb as i64));
        let b = [pick(), pick()].map(|limbs| limbs.map(|limb| limb as i64));
        plain::mul_complex(&mut out, &a, &b);
        let ([a0, a1], [b0, b1]) = ([value(&a[0]), value(&a[1])], [value(&b[0]), value(&b[1])]);
        let minus = |x: BigUint| &p - x % &p;
        assert_eq!(value(&out[0]) * &r % &p, (&a0 * &b0 + minus(&a1 * &b1)) % &p);
        assert_eq!(value(&out[1]) * &r % &p, (&a0 * &b1 + &a1 * &b0) % &p);
    }
}
