//! The difference that snarkjs hashes past the end of the powers of tau.
//!
//! For the largest domain that a file serves, from 2^15 points on, snarkjs subtracts one point more than there are: what
//! follows in the file, the head of the next section, taken for a point. It is none, and a coordinate may exceed q, where
//! snarkjs's arithmetic isn't that of the field any more. To have its hash, this module computes as it does: numbers of
//! 384 bits that wrap, with q taken away or added once. Used for one point of a key.

use num_bigint::BigUint;
use proofkeep_formats::field::Q_LE;

/// Numbers below 2^384 that stand for v·2^384 mod q if they are below q.
struct Words {
    q: BigUint,
    /// 2^384.
    wrap: BigUint,
    /// −1/q mod 2^384.
    minus_inverse: BigUint,
}

impl Words {
    fn new() -> Self {
        let q = BigUint::from_bytes_le(&Q_LE);
        let wrap = BigUint::from(1u32) << 384;
        let inverse = q.modinv(&wrap).unwrap_or_default();
        let minus_inverse = &wrap - inverse;
        Words {
            q,
            wrap,
            minus_inverse,
        }
    }

    /// `a − b`, wrapping.
    fn wrapping_sub(&self, a: &BigUint, b: &BigUint) -> BigUint {
        (a + &self.wrap - b) % &self.wrap
    }

    /// Takes q away from a sum below 2^385, if it is q or more, once; what is above 384 bits falls off.
    fn once(&self, sum: BigUint) -> BigUint {
        if sum >= self.q {
            (sum - &self.q) % &self.wrap
        } else {
            sum
        }
    }

    fn add(&self, a: &BigUint, b: &BigUint) -> BigUint {
        self.once(a + b)
    }

    fn sub(&self, a: &BigUint, b: &BigUint) -> BigUint {
        let difference = self.wrapping_sub(a, b);
        if a < b {
            (difference + &self.q) % &self.wrap
        } else {
            difference
        }
    }

    /// Montgomery's product.
    fn mul(&self, a: &BigUint, b: &BigUint) -> BigUint {
        let product = a * b;
        let m = (&product % &self.wrap) * &self.minus_inverse % &self.wrap;
        self.once((product + m * &self.q) >> 384)
    }

    fn double(&self, a: &BigUint) -> BigUint {
        self.add(a, a)
    }

    /// v·2^384 → 2^384/v.
    fn invert(&self, a: &BigUint) -> BigUint {
        let plain = self.mul(a, &BigUint::from(1u32));
        let inverse = plain.modinv(&self.q).unwrap_or_default();
        (inverse << 384) % &self.q
    }

    /// v·2^384 → v, as 48 bytes, big-endian.
    fn bytes(&self, a: &BigUint) -> [u8; 48] {
        let mut out = [0; 48];
        let bytes = self.mul(a, &BigUint::from(1u32)).to_bytes_le();
        for (to, from) in out.iter_mut().rev().zip(bytes) {
            *to = from;
        }
        out
    }
}

/// `left − right` as snarkjs has it, uncompressed. Both are the bytes of affine points; `right` is one.
pub(super) fn difference(left: &[u8; 96], right: &[u8; 96]) -> [u8; 96] {
    let words = Words::new();
    let split = |bytes: &[u8; 96]| {
        let (x, y) = bytes.split_at(48);
        (BigUint::from_bytes_le(x), BigUint::from_bytes_le(y))
    };
    let ((x1, y1), (x2, y2)) = (split(left), split(right));
    let y2 = words.sub(&BigUint::ZERO, &y2);

    // The chord through both, into Jacobian coordinates: "madd-2007-bl" without its shortcut for z.
    let h = words.sub(&x2, &x1);
    let i = words.double(&words.double(&words.mul(&h, &h)));
    let j = words.mul(&h, &i);
    let r = words.double(&words.sub(&y2, &y1));
    let v = words.mul(&x1, &i);
    let x3 = words.sub(&words.sub(&words.mul(&r, &r), &j), &words.double(&v));
    let y3 = words.sub(
        &words.mul(&words.sub(&v, &x3), &r),
        &words.double(&words.mul(&y1, &j)),
    );
    let z3 = words.double(&h);

    let inverse = words.invert(&z3);
    let square = words.mul(&inverse, &inverse);
    let x = words.mul(&x3, &square);
    let y = words.mul(&y3, &words.mul(&square, &inverse));
    let mut out = [0; 96];
    out[..48].copy_from_slice(&words.bytes(&x));
    out[48..].copy_from_slice(&words.bytes(&y));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::{Curve, G1};
    use crate::setup::point_array;

    #[test]
    fn real_points_are_subtracted_as_everywhere() {
        let one = G1::generator();
        let multiple = |times: u32| {
            let sum = (1..times).fold(G1::to_point(&one), |sum, _| G1::add_affine(&sum, &one));
            G1::to_affine(&sum)
        };
        for (left, right) in [(5, 2), (2, 5), (7, 1)] {
            let sum = G1::add(
                &G1::to_point(&multiple(left)),
                &G1::neg(&G1::to_point(&multiple(right))),
            );
            let expected = G1::serialize(&G1::to_affine(&sum));
            let found = difference(
                &point_array::<G1, 96>(&multiple(left)),
                &point_array::<G1, 96>(&multiple(right)),
            );
            assert_eq!(found[..], expected, "{left} − {right}");
        }
    }
}
