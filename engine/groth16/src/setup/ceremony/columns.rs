//! The columns of a circuit's matrices, and the points that they make of a Lagrange basis.

use std::ops::Range;

use blstrs::Scalar;
use proofkeep_formats::FormatError;
use proofkeep_formats::r1cs::R1cs;
use rayon::prelude::*;

use crate::backend::Backend;
use crate::bases::BaseSet;
use crate::curve::{Curve, read_point};
use crate::field::{ScalarBytes, scalar_from_bytes, scalar_to_bytes};
use crate::msm::msm_on_this_thread;
use crate::quotient::on_threads;

/// Columns with more entries than this are left to Pippenger's method.
const HEAVY: usize = 96;
/// Wires that one task takes, for one inversion.
const TASK: usize = 64;
/// Coefficients up to this many bits, or whose negative is so short, are multiplied by themselves.
const SHORT: usize = 128;

/// The number one.
pub(super) const ONE: ScalarBytes = {
    let mut one = [0; 32];
    one[0] = 1;
    one
};

/// A matrix by columns: for each wire, rows and coefficients.
pub(super) struct Columns<'a> {
    /// Where each wire's entries begin, and the end of the last one's.
    starts: Vec<usize>,
    entries: Vec<(u32, &'a ScalarBytes)>,
}

impl<'a> Columns<'a> {
    /// A, B and C of a circuit; A with the rows that tie the constant and the public signals.
    pub fn of(r1cs: &R1cs<'a>) -> Result<[Self; 3], FormatError> {
        let mut matrices = [(); 3].map(|()| Columns {
            starts: vec![0; r1cs.wires as usize + 1],
            entries: Vec::new(),
        });
        visit(r1cs, |matrix, _, wire, _| {
            matrices[matrix].starts[wire as usize + 1] += 1
        })?;
        let mut next = [(); 3].map(|()| Vec::new());
        for (matrix, next) in matrices.iter_mut().zip(&mut next) {
            let mut sum = 0;
            for start in &mut matrix.starts {
                sum += *start;
                *start = sum;
            }
            matrix.entries = vec![(0, &ONE); sum];
            next.clone_from(&matrix.starts);
        }
        visit(r1cs, |matrix, row, wire, coefficient| {
            let place = &mut next[matrix][wire as usize];
            matrices[matrix].entries[*place] = (row, coefficient);
            *place += 1;
        })?;
        Ok(matrices)
    }

    fn of_wire(&self, wire: usize) -> &[(u32, &'a ScalarBytes)] {
        &self.entries[self.starts[wire]..self.starts[wire + 1]]
    }
}

/// Calls `each` with matrix, row, wire and coefficient of every entry.
fn visit<'a>(
    r1cs: &R1cs<'a>,
    mut each: impl FnMut(usize, u32, u32, &'a ScalarBytes),
) -> Result<(), FormatError> {
    for (row, constraint) in (0..).zip(r1cs.constraints()) {
        for (matrix, combination) in constraint?.into_iter().enumerate() {
            for (wire, coefficient) in combination {
                each(matrix, row, wire, coefficient);
            }
        }
    }
    for wire in 0..=r1cs.public() {
        each(0, r1cs.constraints + wire, wire, &ONE);
    }
    Ok(())
}

/// A matrix and the basis that its rows stand for.
pub(super) struct Part<'a, C: Curve> {
    columns: &'a Columns<'a>,
    basis: &'a [u8],
    curve: std::marker::PhantomData<C>,
}

impl<'a, C: Curve> Part<'a, C> {
    /// `basis` holds a point for each row.
    pub fn new(columns: &'a Columns<'a>, basis: &'a [u8]) -> Self {
        let curve = std::marker::PhantomData;
        Part {
            columns,
            basis,
            curve,
        }
    }

    fn terms(&self, wire: usize) -> impl Iterator<Item = (C::Affine, &'a ScalarBytes)> {
        self.columns.of_wire(wire).iter().map(|(row, coefficient)| {
            let start = *row as usize * C::AFFINE_BYTES;
            (
                read_point::<C>(&self.basis[start..start + C::AFFINE_BYTES]),
                *coefficient,
            )
        })
    }
}

/// The sum over all parts, for each wire.
pub(super) fn points<C: Curve>(
    parts: &[Part<'_, C>],
    wires: Range<u32>,
    backend: &dyn Backend,
) -> Vec<C::Affine> {
    let wires: Vec<u32> = wires.collect();
    let mut out = Vec::new();
    on_threads(backend, || {
        out = wires
            .par_chunks(TASK)
            .flat_map_iter(|wires| {
                let sums: Vec<C::Point> = wires.iter().map(|wire| sum(parts, *wire as usize)).collect();
                C::batch_to_affine(&sums)
            })
            .collect();
    });
    out
}

fn sum<C: Curve>(parts: &[Part<'_, C>], wire: usize) -> C::Point {
    let count: usize = parts.iter().map(|part| part.columns.of_wire(wire).len()).sum();
    let terms = parts.iter().flat_map(|part| part.terms(wire));
    if count > HEAVY {
        let (points, scalars): (Vec<C::Affine>, Vec<ScalarBytes>) =
            terms.map(|(point, scalar)| (point, *scalar)).unzip();
        return msm_on_this_thread(&BaseSet::<C>::full(points), &scalars);
    }
    let (mut plus, mut minus) = (C::Point::default(), C::Point::default());
    for (point, scalar) in terms {
        match Coefficient::of(scalar) {
            Coefficient::Zero => {}
            Coefficient::One => plus = C::add_affine(&plus, &point),
            Coefficient::MinusOne => minus = C::add_affine(&minus, &point),
            Coefficient::Times {
                value,
                bits,
                negative,
            } => {
                let product = C::mul_short(&C::to_point(&point), &value, bits);
                let side = if negative { &mut minus } else { &mut plus };
                *side = C::add(side, &product);
            }
        }
    }
    C::add(&plus, &C::neg(&minus))
}

/// What a coefficient costs. Those of circuits are mostly small, of one sign or the other.
#[derive(Debug, PartialEq, Eq)]
enum Coefficient {
    Zero,
    One,
    MinusOne,
    Times {
        value: ScalarBytes,
        bits: usize,
        negative: bool,
    },
}

impl Coefficient {
    fn of(scalar: &ScalarBytes) -> Self {
        let times = |value, bits, negative| match bits {
            1 if negative => Coefficient::MinusOne,
            1 => Coefficient::One,
            _ => Coefficient::Times {
                value,
                bits,
                negative,
            },
        };
        let bits = bit_length(scalar);
        if bits == 0 {
            return Coefficient::Zero;
        }
        if bits > SHORT {
            // The reader of the circuit let canonical coefficients pass only.
            let minus = scalar_to_bytes(&-scalar_from_bytes(scalar).unwrap_or(Scalar::from(0)));
            let short = bit_length(&minus);
            if (1..=SHORT).contains(&short) {
                return times(minus, short, true);
            }
        }
        times(*scalar, bits, false)
    }
}

fn bit_length(scalar: &ScalarBytes) -> usize {
    scalar
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| 8 * last + scalar[last].ilog2() as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients_near_zero_of_either_sign_are_cheap() {
        let of = |scalar: Scalar| Coefficient::of(&scalar_to_bytes(&scalar));
        let number = |value: u64| Scalar::from(value);
        assert_eq!(of(number(0)), Coefficient::Zero);
        assert_eq!(of(number(1)), Coefficient::One);
        assert_eq!(of(-number(1)), Coefficient::MinusOne);
        for (scalar, negative) in [(number(6), false), (-number(6), true)] {
            let value = scalar_to_bytes(&number(6));
            assert_eq!(
                of(scalar),
                Coefficient::Times {
                    value,
                    bits: 3,
                    negative
                }
            );
        }
        let large = number(u64::MAX) * number(u64::MAX) * number(u64::MAX);
        for scalar in [large, -large] {
            let Coefficient::Times {
                value,
                negative: false,
                ..
            } = of(scalar)
            else {
                panic!("{scalar:?}")
            };
            assert_eq!(value, scalar_to_bytes(&scalar));
        }
    }
}
