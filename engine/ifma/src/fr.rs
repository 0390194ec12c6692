//! The scalar field of BLS12-381, eight elements at once: `R = 2^260`, five limbs.

use crate::modulus::{self, to_limbs};

pub(crate) const PRIME: [u64; 5] = to_limbs(&modulus::R);
/// `2^-52 mod p`.
const FOLD: [u64; 5] = modulus::power_of_two(&PRIME, -52);
const NEGATIVE_INVERSE: u64 = modulus::negative_inverse(PRIME[0]);
const COMPLEMENT: [u64; 5] = modulus::complement(&PRIME);
const RECIPROCAL: u64 = modulus::reciprocal(&PRIME);
const FOUR_TIMES: [u64; 5] = modulus::multiple(&PRIME, 4);
/// For differences: more than what is subtracted.
pub(crate) const THREE_TIMES: [u64; 5] = modulus::multiple(&PRIME, 3);
pub(crate) const SIX_TIMES: [u64; 5] = modulus::multiple(&PRIME, 6);
/// One in Montgomery form.
#[cfg(test)]
pub(crate) const ONE: [u64; 5] = modulus::power_of_two(&PRIME, 260);

/// The arithmetic on vectors.
#[cfg(target_arch = "x86_64")]
pub(crate) mod vector {
    use super::*;
    use crate::word::*;
    scalar_field!({
        #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma,avx512vbmi2,bmi2")]
    });
}

/// The same code on one lane of plain integers.
#[cfg(test)]
pub(crate) mod plain {
    use super::*;
    use crate::check::plain::*;
    scalar_field!({});
}

/// The same code on intervals.
#[cfg(test)]
pub(crate) mod interval {
    use super::*;
    use crate::check::interval::*;
    scalar_field!({});
}
