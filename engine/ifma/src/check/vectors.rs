//! The vector instructions against the same code on plain integers, and both against blst.

use blst::{blst_fp, blst_fp_mul, blst_fr, blst_fr_mul};
use rand::Rng;

use super::fields::{inputs, rng};
use crate::word::{Word, from_lanes, lanes};
use crate::{fp, fr, modulus};

/// Says why a test has nothing to do on this machine.
pub(crate) fn not_here(test: &str) -> bool {
    let missing = crate::Ifma::detect().is_none();
    if missing {
        eprintln!("{test}: not run, this processor has no AVX-512 IFMA");
    }
    missing
}

/// Eight elements as a vector element, and back.
fn gather<const N: usize>(elements: &[[u64; N]; 8]) -> [Word; N] {
    std::array::from_fn(|j| from_lanes(std::array::from_fn(|lane| elements[lane][j])))
}

fn scatter<const N: usize>(element: &[Word; N]) -> [[u64; N]; 8] {
    std::array::from_fn(|lane| std::array::from_fn(|j| lanes(element[j])[lane]))
}

macro_rules! vectors_agree {
    ($name:ident, $field:ident, $n:literal, $top:expr) => {
        #[test]
        fn $name() {
            use crate::$field::{PRIME, plain, vector};
            if not_here(stringify!($name)) {
                return;
            }
            let mut rng = rng();
            let all = inputs(&mut rng, &PRIME, $top, 64);
            for round in 0..2000 {
                let mut pick = || -> [[u64; $n]; 8] {
                    std::array::from_fn(|lane| {
                        all[if round < 64 { (round + lane) % all.len() } else { rng.gen_range(0..all.len()) }]
                    })
                };
                let (a, b) = (pick(), pick());
                let mut out = [crate::word::ZERO; $n];
                let mut expected = [0; $n];
                let signed = |limbs: &[u64; $n]| limbs.map(|limb| limb as i64);
                macro_rules! same {
                    ($operation:ident $arguments:tt $plain:tt) => {
                        // SAFETY: the test has asked for the instructions.
                        unsafe { vector::$operation $arguments };
                        for (lane, got) in scatter(&out).iter().enumerate() {
                            let (a, b) = (signed(&a[lane]), signed(&b[lane]));
                            let _ = (&a, &b);
                            same!(@plain expected a b $operation $plain);
                            assert_eq!(signed(got), expected, "{} lane {lane}", stringify!($operation));
                        }
                    };
                    (@plain $expected:ident $a:ident $b:ident $operation:ident one) => {
                        plain::$operation(&mut $expected, &$a)
                    };
                    (@plain $expected:ident $a:ident $b:ident $operation:ident two) => {
                        plain::$operation(&mut $expected, &$a, &$b)
                    };
                }
                same!(mul (&mut out, &gather(&a), &gather(&b)) two);
                same!(square (&mut out, &gather(&a)) one);
                same!(sum_of_squares (&mut out, &gather(&a), &gather(&b)) two);
                // SAFETY: as above.
                let shrunk = unsafe { vector::shrink(&gather(&a)) };
                for (lane, got) in scatter(&shrunk).iter().enumerate() {
                    assert_eq!(signed(got), plain::shrink(&signed(&a[lane])));
                }
            }
        }
    };
}

vectors_agree!(base_field_vectors_agree_with_plain_integers, fp, 8, (1 << 26) - 1);
vectors_agree!(
    scalar_field_vectors_agree_with_plain_integers,
    fr,
    5,
    (1 << 50) - 1
);

#[test]
fn complex_vectors_agree_with_plain_integers() {
    use crate::fp::{PRIME, plain, vector};
    if not_here("complex_vectors_agree_with_plain_integers") {
        return;
    }
    let mut rng = rng();
    let all = inputs(&mut rng, &PRIME, (1 << 26) - 1, 64);
    for _ in 0..2000 {
        let mut pick = || -> [[u64; 8]; 8] { std::array::from_fn(|_| all[rng.gen_range(0..all.len())]) };
        let (a, b) = ([pick(), pick()], [pick(), pick()]);
        let mut out = [[crate::word::ZERO; 8]; 2];
        // SAFETY: the test has asked for the instructions.
        unsafe {
            vector::mul_complex(
                &mut out,
                &[gather(&a[0]), gather(&a[1])],
                &[gather(&b[0]), gather(&b[1])],
            );
        }
        let out = [scatter(&out[0]), scatter(&out[1])];
        for lane in 0..8 {
            let mut expected = [[0; 8]; 2];
            let part = |x: &[[[u64; 8]; 8]; 2]| [x[0][lane], x[1][lane]].map(|x| x.map(|limb| limb as i64));
            plain::mul_complex(&mut expected, &part(&a), &part(&b));
            assert_eq!(part(&out), expected);
        }
    }
}

/// `a·b·2^-384` by blst is `mul(a, b)·2^32` here.
#[test]
fn plain_products_agree_with_blst() {
    let mut rng = rng();
    for _ in 0..2000 {
        let mut random = |last: u64| {
            let mut words: [u64; 6] = rng.r#gen();
            words[5] = rng.gen_range(0..last);
            words
        };
        let (a, b) = (random(modulus::P[5]), random(modulus::P[5]));
        let mut expected = blst_fp::default();
        // SAFETY: the pointers are to values that live through the call.
        unsafe { blst_fp_mul(&mut expected, &blst_fp { l: a }, &blst_fp { l: b }) };
        let plain = |words: &[u64; 6]| modulus::to_limbs::<8>(words).map(|limb| limb as i64);
        let mut out = [0; 8];
        fp::plain::mul(&mut out, &plain(&a), &plain(&b));
        let shift = modulus::power_of_two(&fp::PRIME, 448).map(|limb| limb as i64);
        let once = out;
        fp::plain::mul(&mut out, &once, &shift);
        assert!(same_residue(
            &out.map(|limb| limb as u64),
            &modulus::to_limbs::<8>(&expected.l),
            &modulus::P
        ));

        let (mut a, mut b): ([u64; 4], [u64; 4]) = (rng.r#gen(), rng.r#gen());
        a[3] %= modulus::R[3];
        b[3] %= modulus::R[3];
        let mut expected = blst_fr::default();
        // SAFETY: as above.
        unsafe { blst_fr_mul(&mut expected, &blst_fr { l: a }, &blst_fr { l: b }) };
        let plain = |words: &[u64; 4]| modulus::to_limbs::<5>(words).map(|limb| limb as i64);
        let mut out = [0; 5];
        fr::plain::mul(&mut out, &plain(&a), &plain(&b));
        let shift = modulus::power_of_two(&fr::PRIME, 264).map(|limb| limb as i64);
        let once = out;
        fr::plain::mul(&mut out, &once, &shift);
        assert!(same_residue(
            &out.map(|limb| limb as u64),
            &modulus::to_limbs::<5>(&expected.l),
            &modulus::R
        ));
    }
}

fn same_residue(a: &[u64], b: &[u64], p: &[u64]) -> bool {
    use super::fields::{integer, prime};
    integer(a) % prime(p) == integer(b) % prime(p)
}
