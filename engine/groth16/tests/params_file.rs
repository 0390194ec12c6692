//! bellperson's parameter files as proving keys: the same proofs, and nothing bad in them gets through.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;

use bellperson::groth16::Parameters;
use blstrs::{Bls12, G1Affine, G2Affine, Scalar};
use common::*;
use group::prime::PrimeCurveAffine;
use proofkeep_formats::params::Params;
use proofkeep_formats::r1cs::{R1cs, R1csBuilder};
use proofkeep_groth16::backend::Backend;
use proofkeep_groth16::check::{
    CheckError, PointFault, check_params_points, check_params_vk, params_point_count,
};
use proofkeep_groth16::curve::{Curve, G1, G2};
use proofkeep_groth16::field::scalar_to_bytes;
use proofkeep_groth16::key::{KeyError, ProvingKey, ReadParamsError};
use proofkeep_groth16::matrices::Matrices;
use proofkeep_groth16::setup::{ToxicWaste, generate_parameters};
use proofkeep_groth16::synthesis::{Assignment, Constraints};
use proofkeep_groth16::verify::verify;
use proofkeep_groth16::vk::UnfinishedSetup;
use rand::{Rng, RngCore};

fn compiled(chain: &Chain) -> Matrices {
    Matrices::from_constraints(&Constraints::of(chain.blank()).unwrap()).unwrap()
}

fn made(matrices: &Matrices) -> Vec<u8> {
    let waste = ToxicWaste::random(&mut rng(5)).unwrap();
    generate_parameters(matrices, &waste, Vec::new(), &backend(2), &mut go_on).unwrap()
}

#[test]
fn a_parameter_file_proves_as_the_parameters_in_memory() {
    let chain = Chain {
        idle: true,
        ..Chain::new(200)
    };
    let matrices = Arc::new(compiled(&chain));
    let file = made(&matrices);
    let params = Params::parse(&file).unwrap();
    let vk = check_params_vk(&params, UnfinishedSetup::Refuse).unwrap();
    check_params_points(&params, 0, &backend(2), &mut go_on).unwrap();
    let key = ProvingKey::from_params(&file, matrices.clone(), UnfinishedSetup::Refuse).unwrap();
    assert!(*key.vk() == vk);
    // bellperson reads it, with all its own checks.
    let theirs = Parameters::<Bls12>::read(&file[..], true).unwrap();
    let in_memory = ProvingKey::from_bellperson(&theirs, matrices).unwrap();
    let assignment = Assignment::of(chain).unwrap();
    let witness = assignment.witness().unwrap();
    let pieces = all_pieces(&key, &witness);
    assert!(pieces == all_pieces(&in_memory, &witness));
    let proof = proofkeep_groth16::stages::Prover::new(&key, backend(1))
        .assemble_random(&pieces)
        .unwrap();
    verify(key.vk(), witness.public(2), &proof).unwrap();
}

/// A point on the curve but not of order r, uncompressed.
fn outside_subgroup<C: Curve>() -> Vec<u8> {
    (1..=255u8)
        .find_map(|x| {
            let mut encoded = vec![0; C::AFFINE_BYTES / 2];
            encoded[0] = 0x80;
            encoded[C::AFFINE_BYTES / 2 - 1] = x;
            C::decode(&encoded).filter(|point| !C::in_subgroup(point))
        })
        .map(|point| C::serialize(&point))
        .expect("some x below 256 is on the curve and outside the subgroup")
}

#[test]
fn every_kind_of_bad_point_is_found_in_every_list_and_named() {
    let seed = rand::thread_rng().next_u64();
    eprintln!("seed {seed}");
    let mut random = rng(seed);
    let matrices = Arc::new(compiled(&Chain::new(300)));
    let file = made(&matrices);
    let params = Params::parse(&file).unwrap();
    let place = |list: &[u8]| list.as_ptr() as usize - file.as_ptr() as usize;
    let total = params_point_count(&params);
    for (name, list, size) in [
        ("list H", params.h, 96),
        ("list L", params.l, 96),
        ("list A", params.a, 96),
        ("list B in G1", params.b1, 96),
        ("list B in G2", params.b2, 192),
    ] {
        for expected in [
            PointFault::NonCanonical,
            PointFault::OffCurve,
            PointFault::OutsideSubgroup,
            PointFault::Identity,
            PointFault::Encoding,
        ] {
            let index = random.gen_range(0..list.len() / size);
            let mut bad = file.clone();
            let spoil = |point: &mut [u8], fault| match fault {
                // The last coordinate, all of it.
                PointFault::NonCanonical => point[size - 48..].fill(0xff),
                PointFault::OffCurve => point[size - 1] ^= 1,
                PointFault::OutsideSubgroup if size == 96 => {
                    point.copy_from_slice(&outside_subgroup::<G1>());
                }
                PointFault::OutsideSubgroup => point.copy_from_slice(&outside_subgroup::<G2>()),
                PointFault::Identity => {
                    point.fill(0);
                    point[0] = 0x40;
                }
                PointFault::Encoding => point[0] |= [0x80, 0x20, 0xa0][index % 3],
            };
            let at = place(list) + index * size;
            spoil(&mut bad[at..at + size], expected);
            // Whatever comes later doesn't count.
            let last = file.len() - 192;
            if at + size <= last {
                spoil(&mut bad[last + 192 - size..], PointFault::Encoding);
            }
            let params = Params::parse(&bad).unwrap();
            for backend in every_backend(2) {
                match check_params_points(&params, 0, &backend, &mut go_on) {
                    Err(CheckError::Point {
                        section,
                        index: found,
                        fault,
                    }) => {
                        assert_eq!((section, found, fault), (name, index as u64, expected));
                    }
                    other => panic!("{name}, {expected:?}: {other:?}"),
                }
            }
            // Checked while it is read, it is found at the same place.
            match read(&bad, &matrices, true, &mut |_| ControlFlow::Continue(())) {
                Err(ReadParamsError::Key(KeyError::Check(error))) => {
                    let CheckError::Point {
                        section,
                        index: found,
                        fault,
                    } = *error
                    else {
                        panic!("{name}, {expected:?}: {error:?}");
                    };
                    assert_eq!((section, found, fault), (name, index as u64, expected));
                }
                other => panic!("{name}, {expected:?}: {other:?}"),
            }
            let key = ProvingKey::from_params(&bad, matrices.clone(), UnfinishedSetup::Refuse);
            let read = matches!(expected, PointFault::OffCurve | PointFault::OutsideSubgroup);
            if !read || at + size <= last {
                assert!(
                    matches!(key, Err(KeyError::Check(_))),
                    "{name}, {expected:?}: {key:?}"
                );
            }
        }
    }
    let mut at = 0;
    while at < total {
        let stopped = check_params_points(&params, at, &backend(1), &mut |done, of| {
            assert!(done > at && of == total);
            at = done;
            ControlFlow::Break(())
        });
        assert_eq!(stopped.is_ok(), at == total);
    }
}

fn read(
    mut file: &[u8],
    matrices: &Arc<Matrices>,
    check: bool,
    on: &mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
) -> Result<ProvingKey, ReadParamsError> {
    let backend = backend(2);
    let check = check.then_some(&backend as &dyn Backend);
    ProvingKey::read_params(&mut file, matrices.clone(), UnfinishedSetup::Refuse, check, on)
}

#[test]
fn reading_can_be_stopped_after_each_slice_and_ends_where_the_file_does() {
    let matrices = Arc::new(compiled(&Chain::new(300)));
    let file = made(&matrices);
    let mut slices = Vec::new();
    let mut note = |done| {
        slices.push(done);
        ControlFlow::Continue(())
    };
    assert!(read(&file, &matrices, true, &mut note).is_ok());
    let total = params_point_count(&Params::parse(&file).unwrap());
    assert_eq!(slices.last(), Some(&total));
    assert!(slices.is_sorted_by(|a, b| a < b), "{slices:?}");
    for stop in slices {
        let mut until = |done| match done == stop {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let stopped = read(&file, &matrices, false, &mut until);
        assert!(
            matches!(stopped, Err(ReadParamsError::Stopped(_))),
            "{stop}: {stopped:?}"
        );
    }
    let mut on = |_| ControlFlow::Continue(());
    for end in [0, 863, 867, 5000, file.len() - 1] {
        let cut = read(&file[..end], &matrices, false, &mut on);
        assert!(matches!(cut, Err(ReadParamsError::Io(_))), "{end}: {cut:?}");
    }
    let more = read(&[&file[..], &[0]].concat(), &matrices, false, &mut on);
    assert!(
        matches!(more, Err(ReadParamsError::Key(KeyError::Format(_)))),
        "{more:?}"
    );
}

#[test]
fn keys_that_anyone_can_forge_under_or_of_another_circuit_are_refused() {
    let chain = Chain::new(20);
    let matrices = Arc::new(compiled(&chain));
    let scalars = [2u64, 3, 4, 4, 6].map(Scalar::from);
    let waste = ToxicWaste::new(&G1Affine::generator(), &G2Affine::generator(), scalars).unwrap();
    let file = generate_parameters(&matrices, &waste, Vec::new(), &backend(1), &mut go_on).unwrap();
    let key = |file: &[u8], unfinished| {
        ProvingKey::from_params(file, matrices.clone(), unfinished).map_err(|error| error.code())
    };
    assert_eq!(
        key(&file, UnfinishedSetup::Refuse).err(),
        Some("setup-unfinished")
    );
    assert!(key(&file, UnfinishedSetup::Accept).is_ok());

    let good = made(&matrices);
    assert!(key(&good, UnfinishedSetup::Refuse).is_ok());
    // β, then δ in G1 replaced by α.
    for at in [96, 2 * 96 + 2 * 192] {
        let mut bad = good.clone();
        bad.copy_within(0..96, at);
        let error = check_params_vk(&Params::parse(&bad).unwrap(), UnfinishedSetup::Refuse).unwrap_err();
        assert!(
            error.to_string().starts_with("the ratio of β to δ of the key"),
            "{error}"
        );
        assert_eq!(key(&bad, UnfinishedSetup::Refuse).err(), Some("key-inconsistent"));
    }
    // γ as the identity.
    let mut bad = good.clone();
    bad[2 * 96 + 192..2 * 96 + 2 * 192].fill(0);
    bad[2 * 96 + 192] = 0x40;
    assert_eq!(
        key(&bad, UnfinishedSetup::Accept).err(),
        Some("point-at-infinity")
    );

    let other = Arc::new(compiled(&Chain::new(21)));
    let error = ProvingKey::from_params(&good, other, UnfinishedSetup::Refuse).unwrap_err();
    assert_eq!(error.code(), "circuit-mismatch");
    assert!(ProvingKey::from_params(&good[..5000], matrices.clone(), UnfinishedSetup::Refuse).is_err());
}

/// The fuzzer's seed is a real file of a real circuit: what it mutates gets past the first checks.
#[test]
fn the_seed_of_the_fuzzer_is_made_from_its_circuit() {
    let one = scalar_to_bytes(&Scalar::from(1u64));
    let two = scalar_to_bytes(&Scalar::from(2u64));
    let mut builder = R1csBuilder::new(6, 1, 1, 3);
    builder.constraint(&[(3, one)], &[(3, one)], &[(4, one)]);
    builder.constraint(&[(4, one)], &[(3, one)], &[(5, one)]);
    builder.constraint(&[(5, one), (2, two)], &[(0, one)], &[(1, one)]);
    let matrices = Matrices::from_r1cs(&R1cs::parse(&builder.build()).unwrap()).unwrap();
    let seed = include_bytes!("../../../tests/fuzz/corpus/params/cube.params");
    assert!(made(&matrices) == seed);
}
