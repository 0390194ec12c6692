#![allow(clippy::unwrap_used, clippy::expect_used)]

use blstrs::Scalar;
use ff::Field;
use proofkeep_formats::r1cs::{R1cs, R1csBuilder};

use super::*;
use crate::field::{ScalarBytes, scalar_to_bytes};

fn value(v: u64) -> ScalarBytes {
    scalar_to_bytes(&Scalar::from(v))
}

fn minus_one() -> ScalarBytes {
    scalar_to_bytes(&-Scalar::ONE)
}

/// `out = x·y` and `(3x − y + x)·1 = z`, where the coefficients of `x` stand twice and unsorted.
fn sample() -> Vec<u8> {
    let mut builder = R1csBuilder::new(5, 1, 0, 3);
    builder.constraint(&[(2, value(1))], &[(3, value(1))], &[(1, value(1))]);
    builder.constraint(
        &[(3, minus_one()), (2, value(3)), (4, value(0)), (2, value(1))],
        &[(0, value(1))],
        &[(4, value(1))],
    );
    builder.build()
}

fn compiled() -> Matrices {
    Matrices::from_r1cs(&R1cs::parse(&sample()).unwrap()).unwrap()
}

#[test]
fn rows_are_sorted_merged_and_followed_by_the_inputs() {
    let matrices = compiled();
    assert_eq!((matrices.wires(), matrices.public(), matrices.log2()), (5, 1, 2));
    assert_eq!(matrices.constraints(), Some(2));
    assert_eq!(matrices.a().rows(), 4);
    let row: Vec<u32> = matrices.a().row(1).map(|(wire, _)| wire).collect();
    assert_eq!(row, [2, 3], "the zero is gone, both terms of wire 2 are one");
    assert_eq!(matrices.a().row(2).map(|(wire, _)| wire).collect::<Vec<_>>(), [0]);
    assert_eq!(matrices.a().row(3).map(|(wire, _)| wire).collect::<Vec<_>>(), [1]);
    assert_eq!(matrices.b().rows(), 2);
}

#[test]
fn the_first_broken_constraint_is_named() {
    let matrices = compiled();
    let good = [value(1), value(35), value(5), value(7), value(13)];
    assert_eq!(matrices.first_unsatisfied(&Witness::new(&good).unwrap()), None);
    let times = matrices.a().times(&good, 4);
    assert_eq!(times, [5u64, 13, 1, 35].map(Scalar::from));
    let mut bad = good;
    bad[4] = value(14);
    assert_eq!(matrices.first_unsatisfied(&Witness::new(&bad).unwrap()), Some(1));
    bad[1] = value(36);
    assert_eq!(matrices.first_unsatisfied(&Witness::new(&bad).unwrap()), Some(0));
}

/// More rows than a task takes, and the last task's are fewer.
#[test]
fn products_are_what_the_matrices_give_and_name_the_first_broken_constraint() {
    let constraints = 2500;
    let mut builder = R1csBuilder::new(constraints + 2, 0, 0, constraints + 1);
    for row in 0..constraints {
        let (x, next) = (row + 1, row + 2);
        builder.constraint(
            &[(x, value(3)), (0, value(row.into()))],
            &[(x, minus_one())],
            &[(next, value(1))],
        );
    }
    let matrices = Matrices::from_r1cs(&R1cs::parse(&builder.build()).unwrap()).unwrap();
    let mut wires = vec![Scalar::ONE, Scalar::from(7)];
    for row in 0..constraints {
        let x = wires[row as usize + 1];
        wires.push((x * Scalar::from(3) + Scalar::from(u64::from(row))) * -x);
    }
    let good: Vec<ScalarBytes> = wires.iter().map(scalar_to_bytes).collect();
    let witness = Witness::new(&good).unwrap();
    let mut products = matrices.products(&witness).unwrap();
    assert_eq!(products.domain(), 4096);
    let (a, b) = products.take();
    assert!(a == matrices.a().times(&good, 4096) && b == matrices.b().times(&good, 4096));
    assert_eq!(products.domain(), 0);
    for wire in [2, 700, 1025, 1026, 2500] {
        let mut bad = good.clone();
        bad[wire] = value(5);
        let witness = Witness::new(&bad).unwrap();
        // It is the result of the row two before, and a factor of the next.
        assert_eq!(matrices.products(&witness).unwrap_err(), wire - 2);
        assert_eq!(matrices.first_unsatisfied(&witness), Some(wire - 2));
        let without = Matrices {
            c: None,
            ..matrices.clone()
        };
        assert!(
            without.products(&witness).is_ok(),
            "nothing is known to be broken"
        );
    }
}

#[test]
fn files_come_back_as_they_were() {
    let matrices = compiled();
    let mut bytes = Vec::new();
    matrices.write(&mut bytes).unwrap();
    assert_eq!(Matrices::read(&bytes).unwrap(), matrices);
}

#[test]
fn damaged_files_are_refused() {
    let mut bytes = Vec::new();
    compiled().write(&mut bytes).unwrap();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(Matrices::read(&damaged).is_err(), "byte {at}");
        assert!(Matrices::read(&bytes[..at]).is_err(), "cut at {at}");
    }
    bytes.push(0);
    assert!(matches!(
        Matrices::read(&bytes),
        Err(MatrixFileError::BadLength { .. })
    ));
    bytes[8] = 2;
    assert_eq!(
        Matrices::read(&bytes),
        Err(MatrixFileError::BadVersion { found: 2 })
    );
}

#[test]
fn another_circuit_is_named_by_its_row() {
    let ours = compiled();
    let mut builder = R1csBuilder::new(5, 1, 0, 3);
    builder.constraint(&[(2, value(1))], &[(3, value(1))], &[(1, value(1))]);
    builder.constraint(
        &[(3, minus_one()), (2, value(5))],
        &[(0, value(1))],
        &[(4, value(1))],
    );
    let other = Matrices::from_r1cs(&R1cs::parse(&builder.build()).unwrap()).unwrap();
    assert_eq!(ours.belongs(&ours), Ok(()));
    assert_eq!(
        ours.belongs(&other),
        Err(Mismatch::Row {
            matrix: 'A',
            row: 1,
            constraints: 2
        })
    );
    let mut builder = R1csBuilder::new(6, 1, 0, 4);
    builder.constraint(&[], &[], &[]);
    let other = Matrices::from_r1cs(&R1cs::parse(&builder.build()).unwrap()).unwrap();
    assert!(matches!(
        ours.belongs(&other),
        Err(Mismatch::Count {
            what: "wires",
            expected: 5,
            found: 6
        })
    ));
}
