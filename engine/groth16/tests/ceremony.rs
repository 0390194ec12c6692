//! The first key of a ceremony, as far as it can be told without snarkjs: what goes in comes out, and it can be stopped.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::PathBuf;

use proofkeep_formats::ptau::{Basis, Ptau};
use proofkeep_formats::r1cs::R1cs;
use proofkeep_formats::zkey::Zkey;
use proofkeep_groth16::backend::BlstBackend;
use proofkeep_groth16::check::{check_circuit, check_points, check_vk};
use proofkeep_groth16::matrices::Matrices;
use proofkeep_groth16::setup::{CeremonyError, ceremony_setup};

fn fixture(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/circom");
    std::fs::read(folder.join(name)).unwrap()
}

/// The key of `multiplier`, and how often it told how far it was; stopped at that call if there are so many.
fn key(stop_at: usize) -> (Result<Vec<u8>, CeremonyError>, usize) {
    let (r1cs, ptau) = (fixture("multiplier/circuit.r1cs"), fixture("powers/pot.ptau"));
    let (r1cs, ptau) = (R1cs::parse(&r1cs).unwrap(), Ptau::parse(&ptau).unwrap());
    let backend = BlstBackend::new(2).unwrap();
    let (mut calls, mut last) = (0, 0);
    let mut progress = |done: u64, total: u64| {
        assert!(last < done && done <= total, "{last}, then {done} of {total}");
        (last, calls) = (done, calls + 1);
        if calls == stop_at {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let made = ceremony_setup(&r1cs, &ptau, Cursor::new(Vec::new()), &backend, &mut progress);
    (made.map(|key| key.out.into_inner()), calls)
}

#[test]
fn a_first_key_is_whole_in_all_but_the_contribution() {
    let (made, _) = key(usize::MAX);
    let made = made.unwrap();
    let key = Zkey::parse(&made).unwrap();
    let (r1cs, ptau) = (fixture("multiplier/circuit.r1cs"), fixture("powers/pot.ptau"));
    let (r1cs, ptau) = (R1cs::parse(&r1cs).unwrap(), Ptau::parse(&ptau).unwrap());
    check_circuit(&key, &Matrices::from_r1cs(&r1cs).unwrap()).unwrap();
    check_points(&key, 0, &BlstBackend::new(2).unwrap(), &mut |_, _| {
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(check_vk(&key).unwrap_err().code(), "setup-unfinished");
    assert_eq!(
        (key.alpha1[..].into(), key.beta2),
        (ptau.alpha_tau_g1[..96].to_vec(), ptau.beta_g2)
    );
    let odd: Vec<u8> = ptau
        .lagrange(Basis::TauG1, key.log2 + 1)
        .unwrap()
        .chunks(96)
        .skip(1)
        .step_by(2)
        .flatten()
        .copied()
        .collect();
    assert_eq!(key.h, odd);
    let ceremony = key.contributions.unwrap();
    assert!(ceremony.list.is_empty());
    assert_ne!(ceremony.circuit_hash, &[0; 64]);
}

#[test]
fn a_setup_can_be_stopped_wherever_it_says_how_far_it_is() {
    let (made, calls) = key(usize::MAX);
    let made = made.unwrap();
    assert!(calls > 5, "{calls}");
    for stop_at in 1..calls {
        let (stopped, told) = key(stop_at);
        assert!(
            matches!(stopped, Err(CeremonyError::Stopped(_))),
            "at {stop_at}: {stopped:?}"
        );
        assert_eq!(told, stop_at);
    }
    // Nothing is left to be stopped.
    assert_eq!(key(calls).0.unwrap(), made);
}
