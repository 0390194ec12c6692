//! Parameters made here are, byte for byte, those that bellperson's generator makes of the same randomness.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::io::Write;
use std::ops::ControlFlow;

use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
use bellperson::groth16::generate_random_parameters;
use blstrs::{Bls12, Scalar};
use common::*;
use ff::Field;
use proofkeep_groth16::matrices::Matrices;
use proofkeep_groth16::setup::{
    ParametersError, ToxicWaste, ToxicWasteError, generate_parameters, parameter_points,
};
use proofkeep_groth16::synthesis::Constraints;
use rand::{Rng, RngCore};

fn compiled(circuit: impl Circuit<Scalar>) -> Matrices {
    Matrices::from_constraints(&Constraints::of(circuit).unwrap()).unwrap()
}

/// Seeds rotate: a failure names its own.
fn seed() -> u64 {
    let seed = rand::thread_rng().next_u64();
    eprintln!("seed {seed}");
    seed
}

fn theirs(circuit: impl Circuit<Scalar>, seed: u64) -> Result<Vec<u8>, SynthesisError> {
    let parameters = generate_random_parameters::<Bls12, _, _>(circuit, &mut rng(seed))?;
    let mut bytes = Vec::new();
    parameters.write(&mut bytes).unwrap();
    Ok(bytes)
}

/// Random rows over some inputs and private wires: terms that cancel, wires in one matrix only, coefficients of every
/// kind.
#[derive(Clone)]
struct Rows {
    inputs: usize,
    private: usize,
    rows: usize,
    /// Whether the last private wire stays out of every row.
    unused: bool,
    seed: u64,
}

impl Circuit<Scalar> for Rows {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let missing = || Err(SynthesisError::AssignmentMissing);
        let mut wires = vec![CS::one()];
        for input in 0..self.inputs {
            wires.push(cs.alloc_input(|| format!("input {input}"), missing)?);
        }
        for private in 0..self.private {
            wires.push(cs.alloc(|| format!("private {private}"), missing)?);
        }
        if self.unused {
            wires.pop();
        }
        let mut rng = rng(self.seed);
        let count = wires.len();
        for row in 0..self.rows {
            let mut combination = |wire: Option<usize>| {
                let terms = rng.gen_range(0..4);
                let mut terms: Vec<(usize, Scalar)> = (0..terms)
                    .map(|_| {
                        let coefficient = match rng.gen_range(0..4) {
                            0 => Scalar::ONE,
                            1 => -Scalar::ONE,
                            2 => Scalar::from(rng.gen_range(0u64..5)),
                            _ => Scalar::random(&mut rng),
                        };
                        (rng.gen_range(0..count), coefficient)
                    })
                    .collect();
                terms.extend(wire.map(|wire| (wire, Scalar::from(7u64))));
                if rng.gen_range(0..4) == 0 {
                    // Both cancel: the wire may be in no other row of this matrix.
                    let wire = rng.gen_range(0..count);
                    terms.extend([(wire, Scalar::from(3u64)), (wire, -Scalar::from(3u64))]);
                }
                terms
            };
            // Every wire is in some row, in one matrix for certain.
            let this = Some(row % count);
            let which = row % 3;
            let [a, b, c] = [0, 1, 2].map(|matrix| combination(this.filter(|_| matrix == which)));
            let sum = |terms: &[(usize, Scalar)], lc| {
                terms.iter().fold(
                    lc,
                    |lc: bellpepper_core::LinearCombination<Scalar>, (wire, coefficient)| {
                        lc + (*coefficient, wires[*wire])
                    },
                )
            };
            cs.enforce(
                || format!("row {row}"),
                |lc| sum(&a, lc),
                |lc| sum(&b, lc),
                |lc| sum(&c, lc),
            );
        }
        Ok(())
    }
}

#[test]
fn parameters_are_byte_for_byte_bellpersons() {
    // The second fills its domain: 254 rows, one for the constant, one for the input. So does the last but one.
    for rounds in [1, 127, 150, 700] {
        let chain = Chain {
            idle: rounds % 2 == 0,
            ..Chain::new(rounds)
        };
        agrees(chain.blank());
    }
    for (inputs, private, rows) in [(0, 1, 3), (5, 40, 58), (3, 300, 400)] {
        agrees(Rows {
            inputs,
            private,
            rows: rows.max(1 + inputs + private),
            unused: false,
            seed: seed(),
        });
    }
}

fn agrees(circuit: impl Circuit<Scalar> + Clone) {
    let seed = seed();
    let expected = theirs(circuit.clone(), seed).unwrap();
    let matrices = compiled(circuit);
    let waste = ToxicWaste::random(&mut rng(seed)).unwrap();
    for backend in every_backend(2) {
        let mut last = 0;
        let mut watch = |done: u64, total: u64| {
            assert!(done > last && done <= total);
            assert_eq!(total, parameter_points(&matrices));
            last = done;
            ControlFlow::Continue(())
        };
        let ours = generate_parameters(&matrices, &waste, Vec::new(), &backend, &mut watch).unwrap();
        assert_eq!(last, parameter_points(&matrices));
        assert!(
            ours == expected,
            "{backend:?}: {} and {} bytes",
            ours.len(),
            expected.len()
        );
    }
}

#[test]
fn an_unused_private_wire_is_refused_by_name_as_bellperson_refuses_it() {
    let circuit = Rows {
        inputs: 2,
        private: 9,
        rows: 40,
        unused: true,
        seed: seed(),
    };
    let error = theirs(circuit.clone(), 1).unwrap_err();
    assert!(matches!(error, SynthesisError::UnconstrainedVariable), "{error}");
    let waste = ToxicWaste::random(&mut rng(1)).unwrap();
    let out = Refuse { after: 0 };
    let error = generate_parameters(&compiled(circuit), &waste, out, &backend(1), &mut go_on)
        .err()
        .expect("nothing is written");
    assert!(
        matches!(error, ParametersError::Unconstrained { wire: 11 }),
        "{error}"
    );
    assert!(error.to_string().starts_with("private wire 11 "), "{error}");
}

/// Takes so many bytes and no more.
struct Refuse {
    after: usize,
}

impl Write for Refuse {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if bytes.len() > self.after {
            return Err(std::io::Error::other("the disk is full"));
        }
        self.after -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_stops_a_setup_is_said() {
    let matrices = compiled(Chain::new(30).blank());
    let waste = ToxicWaste::random(&mut rng(2)).unwrap();
    let run = |out: Refuse, watch: &mut dyn FnMut(u64, u64) -> ControlFlow<()>| {
        generate_parameters(&matrices, &waste, out, &backend(1), watch).err()
    };
    let plenty = 1 << 30;
    let stopped = run(Refuse { after: plenty }, &mut |_, _| ControlFlow::Break(()));
    assert!(matches!(stopped, Some(ParametersError::Stopped(_))));
    let full = run(Refuse { after: 3000 }, &mut go_on).unwrap();
    assert!(matches!(full, ParametersError::Io(_)));
    assert!(full.to_string().contains("the disk is full"), "{full}");
    let last = |done: u64, total: u64| match done == total {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    assert!(
        run(Refuse { after: plenty }, &mut { last }).is_none(),
        "with the last points nothing is left to stop"
    );

    let (r1cs, _) = mixed_r1cs(10);
    let zkey = setup(&r1cs, b"seed");
    let of_a_key = Matrices::from_zkey(&proofkeep_formats::zkey::Zkey::parse(&zkey).unwrap()).unwrap();
    let error = generate_parameters(&of_a_key, &waste, Vec::new(), &backend(1), &mut go_on).unwrap_err();
    assert!(matches!(error, ParametersError::NoConstraints), "{error}");
}

#[test]
fn bad_randomness_is_refused_and_none_is_shown() {
    use blstrs::{G1Affine, G2Affine};
    use group::prime::PrimeCurveAffine;
    let (g1, g2) = (G1Affine::generator(), G2Affine::generator());
    let good = [2u64, 3, 4, 5, 6].map(Scalar::from);
    let waste = ToxicWaste::new(&g1, &g2, good).unwrap();
    assert_eq!(format!("{waste:?}"), "ToxicWaste { .. }");
    for index in 0..5 {
        let mut bad = good;
        bad[index] = Scalar::ZERO;
        assert_eq!(ToxicWaste::new(&g1, &g2, bad).unwrap_err(), ToxicWasteError::Zero);
    }
    let none = (G1Affine::identity(), G2Affine::identity());
    for (g1, g2) in [(&none.0, &g2), (&g1, &none.1)] {
        assert_eq!(
            ToxicWaste::new(g1, g2, good).unwrap_err(),
            ToxicWasteError::Generator
        );
    }
    // 7^t is a point of every domain of 2^32 and its squares of the smaller ones; −1 of all.
    let mut in_domain = good;
    in_domain[4] = -Scalar::ONE;
    let waste = ToxicWaste::new(&g1, &g2, in_domain).unwrap();
    let matrices = compiled(Chain::new(3).blank());
    let error = generate_parameters(&matrices, &waste, Vec::new(), &backend(1), &mut go_on).unwrap_err();
    assert!(matches!(error, ParametersError::Tau), "{error}");
}
