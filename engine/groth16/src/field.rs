//! Scalars of BLS12-381 and their three byte forms.
//!
//! blst keeps a scalar `v` as `v·R mod r` with `R = 2^256` (Montgomery form). Witness files keep `v` itself,
//! and a `.zkey` keeps its coefficients as `v·R²`. Since a Montgomery product of `x` and `y` is `x·y/R`, a
//! coefficient `v·R²` times a plain witness value `w` is `v·w·R`: the product in Montgomery form, with no
//! conversion of the witness at all. The functions here move limbs between these forms and say which is which.

use blst::blst_fr;
use blstrs::Scalar;
use ff::Field;
use zeroize::Zeroize;

/// A canonical scalar: 32 bytes, little-endian, less than `r`.
pub type ScalarBytes = [u8; 32];

/// The largest `log2` of a domain: its odd coset needs a root of unity of twice the order, and `r − 1` holds 2^32.
pub const MAX_LOG2: u32 = 31;

/// Takes the bytes as limbs, whatever form they are in. They must be less than `r`.
#[inline]
pub(crate) fn from_limbs(bytes: &ScalarBytes) -> Scalar {
    let mut fr = blst_fr::default();
    for (limb, chunk) in fr.l.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *limb = u64::from_le_bytes(*chunk);
    }
    Scalar::from(fr)
}

/// The limbs as bytes, in the form in which they are.
pub(crate) fn limbs(value: &Scalar) -> ScalarBytes {
    let fr = blst_fr::from(*value);
    let mut bytes = [0; 32];
    for (chunk, limb) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(fr.l) {
        *chunk = limb.to_le_bytes();
    }
    bytes
}

/// `v·R → v·R²`.
pub(crate) fn to_double_montgomery(value: &Scalar) -> Scalar {
    let mut out = blst_fr::default();
    // SAFETY: both pointers are to values that live through the call.
    unsafe { blst::blst_fr_to(&mut out, &blst_fr::from(*value)) };
    Scalar::from(out)
}

/// `v·R → v`, as limbs. Also undoes one step of [`to_double_montgomery`].
pub(crate) fn from_montgomery(value: &Scalar) -> Scalar {
    let mut out = blst_fr::default();
    // SAFETY: both pointers are to values that live through the call.
    unsafe { blst::blst_fr_from(&mut out, &blst_fr::from(*value)) };
    Scalar::from(out)
}

/// Reads a canonical scalar; `None` if it is not less than `r`.
pub fn scalar_from_bytes(bytes: &ScalarBytes) -> Option<Scalar> {
    Option::from(Scalar::from_bytes_le(bytes))
}

/// A scalar as canonical little-endian bytes.
pub fn scalar_to_bytes(value: &Scalar) -> ScalarBytes {
    value.to_bytes_le()
}

/// Which element generates the 2^32-th roots of unity that a key was made with.
///
/// snarkjs takes the powers of `5^t`, bellperson and arkworks those of `7^t` (`r − 1 = 2^32·t`). Over BN254 the
/// two agree, here they don't, and up to a domain of 2^2 the difference doesn't show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Root {
    /// `5^t`: keys by snarkjs.
    Snarkjs,
    /// `7^t`: keys by bellperson, bellman and arkworks.
    Bellperson,
}

impl Root {
    /// A primitive root of unity of order `2^log2`; `log2` is at most 32.
    pub fn of_order(self, log2: u32) -> Scalar {
        let generator: u64 = match self {
            Root::Snarkjs => 5,
            Root::Bellperson => 7,
        };
        // t = (r − 1) / 2^32.
        let t = [
            0xfffe_5bfe_ffff_ffff,
            0x09a1_d805_53bd_a402,
            0x299d_7d48_3339_d808,
            0x0000_0000_73ed_a753,
        ];
        let mut root = Scalar::from(generator).pow_vartime(t);
        for _ in log2..32 {
            root = root.square();
        }
        root
    }
}

/// Sees a slice of scalars as their limbs in bytes.
pub(crate) fn as_bytes(values: &[Scalar]) -> &[ScalarBytes] {
    const { assert!(size_of::<Scalar>() == 32 && cfg!(target_endian = "little")) };
    // SAFETY: a scalar is four u64 limbs without padding (checked above), any byte pattern is a valid array of
    // bytes, and the alignment of bytes is one.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
}

/// Sees a slice of scalars as their limbs.
#[cfg(target_arch = "x86_64")]
pub(crate) fn as_words(values: &[Scalar]) -> &[[u64; 4]] {
    const { assert!(size_of::<Scalar>() == 32 && align_of::<Scalar>() == 8) };
    // SAFETY: a scalar is four u64 limbs without padding.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
}

/// A list of scalars as one of their limbs, in the same memory.
#[cfg(target_arch = "x86_64")]
pub(crate) fn into_words(values: Vec<Scalar>) -> Vec<[u64; 4]> {
    const { assert!(size_of::<Scalar>() == 32 && align_of::<Scalar>() == align_of::<[u64; 4]>()) };
    let mut values = std::mem::ManuallyDrop::new(values);
    // SAFETY: the memory is the list's, which gives it up; a scalar is four u64 limbs without padding, of that alignment.
    unsafe { Vec::from_raw_parts(values.as_mut_ptr().cast(), values.len(), values.capacity()) }
}

/// The same back. The limbs are less than `r`.
#[cfg(target_arch = "x86_64")]
pub(crate) fn from_words(words: Vec<[u64; 4]>) -> Vec<Scalar> {
    const { assert!(size_of::<Scalar>() == 32 && align_of::<Scalar>() == align_of::<[u64; 4]>()) };
    let mut words = std::mem::ManuallyDrop::new(words);
    // SAFETY: as above, and any limbs are a valid value of the type.
    unsafe { Vec::from_raw_parts(words.as_mut_ptr().cast(), words.len(), words.capacity()) }
}

/// Overwrites values that tell about a witness.
pub(crate) fn wipe(scalars: &mut [Scalar]) {
    // SAFETY: a scalar is four u64 limbs, and zero limbs are a valid scalar.
    let limbs =
        unsafe { std::slice::from_raw_parts_mut(scalars.as_mut_ptr().cast::<u64>(), 4 * scalars.len()) };
    limbs.zeroize();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_have_the_order_they_claim() {
        for root in [Root::Snarkjs, Root::Bellperson] {
            let last = root.of_order(32);
            assert_eq!(last.pow_vartime([1u64 << 32]), Scalar::ONE);
            assert_eq!(last.pow_vartime([1u64 << 31]), -Scalar::ONE);
            assert_eq!(root.of_order(1), -Scalar::ONE);
            assert_eq!(root.of_order(0), Scalar::ONE);
        }
        assert_eq!(Root::Snarkjs.of_order(2), Root::Bellperson.of_order(2));
        assert_eq!(
            Root::Snarkjs.of_order(32),
            Root::Bellperson.of_order(32).pow_vartime([3_797_895_509u64]),
            "5^t = (7^t)^k"
        );
    }

    #[test]
    fn forms_convert() {
        let v = Scalar::from(123_456_789u64).square();
        assert_eq!(from_montgomery(&to_double_montgomery(&v)), v);
        assert_eq!(limbs(&from_montgomery(&v)), scalar_to_bytes(&v));
        let plain = from_limbs(&scalar_to_bytes(&v));
        assert_eq!(
            to_double_montgomery(&Scalar::from(5u64)) * plain,
            Scalar::from(5u64) * v
        );
    }
}
