//! The base field of BLS12-381, eight elements at once: `R = 2^416`, eight limbs.

use crate::modulus::{self, to_limbs};

pub(crate) const PRIME: [u64; 8] = to_limbs(&modulus::P);
/// `2^-52 mod p`.
const FOLD: [u64; 8] = modulus::power_of_two(&PRIME, -52);
pub(crate) const NEGATIVE_INVERSE: u64 = modulus::negative_inverse(PRIME[0]);
const COMPLEMENT: [u64; 8] = modulus::complement(&PRIME);
const RECIPROCAL: u64 = modulus::reciprocal(&PRIME);
pub(crate) const FOUR_TIMES: [u64; 8] = modulus::multiple(&PRIME, 4);
/// One in Montgomery form.
pub(crate) const ONE: [u64; 8] = modulus::power_of_two(&PRIME, 416);

/// The arithmetic on vectors.
#[cfg(target_arch = "x86_64")]
pub(crate) mod vector {
    use super::*;
    use crate::word::*;
    base_field!({
        #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma,avx512vbmi2,bmi2")]
    });
}

/// The same code on one lane of plain integers.
#[cfg(test)]
pub(crate) mod plain {
    use super::*;
    use crate::check::plain::*;
    base_field!({});
}

/// The same code on intervals.
#[cfg(test)]
pub(crate) mod interval {
    use super::*;
    use crate::check::interval::*;
    base_field!({});
}
