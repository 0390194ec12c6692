//! `groth16 setup` from powers of tau makes the file that snarkjs makes, byte for byte, and a ceremony goes on from it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cli_support;
mod interop_support;

use cli_support::Desk;
use interop_support::{bellperson_accepts, ptau, snarkjs, snarkjs_accepts};
use proofkeep_formats::r1cs::R1csBuilder;
use proofkeep_formats::zkey::Zkey;
use proofkeep_tests::fixtures;

/// Makes the first key of `circuit.r1cs` with both programs and holds them against each other.
fn both_make_the_same(desk: &Desk, powers: &str, what: &str) {
    snarkjs(
        desk.path(),
        &format!("groth16 setup circuit.r1cs {powers} theirs_0000.zkey"),
    )
    .expect(0);
    let ran = desk
        .run(&format!("groth16 setup circuit.r1cs {powers} circuit_0000.zkey"))
        .expect(0);
    let (ours, theirs) = (desk.read("circuit_0000.zkey"), desk.read("theirs_0000.zkey"));
    assert_eq!(ours.len(), theirs.len(), "{what}");
    let different = ours.iter().zip(&theirs).position(|(our, their)| our != their);
    assert_eq!(different, None, "{what}: the first byte that differs");

    let key = Zkey::parse(&ours).unwrap();
    let hash = hex::encode(key.contributions.as_ref().unwrap().circuit_hash);
    assert!(ran.stdout.contains(&hash), "{what}: {}", ran.stdout);
    assert!(key.is_unfinished(), "{what}");
    for word in ["unfinished", "forge", "snarkjs zkey contribute circuit_0000.zkey"] {
        assert!(ran.stderr.contains(word), "{what}: {}", ran.stderr);
    }
}

/// Nobody proves with the first key; with the one after a contribution both do.
fn a_ceremony_goes_on(desk: &Desk, powers: &str, what: &str) {
    let refused = desk.run("groth16 prove circuit_0000.zkey witness.wtns");
    assert!(
        refused.code != 0 && refused.stderr.contains("contribute"),
        "{what}: {refused:?}"
    );
    snarkjs(
        desk.path(),
        "zkey contribute circuit_0000.zkey circuit.zkey --name=test -e=test",
    )
    .expect(0);
    let verified = snarkjs(
        desk.path(),
        &format!("zkey verify circuit.r1cs {powers} circuit.zkey"),
    )
    .expect(0);
    assert!(
        verified.stdout.contains("ZKey Ok!"),
        "{what}: {}",
        verified.stdout
    );
    desk.run("groth16 prove circuit.zkey witness.wtns --r1cs circuit.r1cs")
        .expect(0);
    snarkjs(desk.path(), "zkey export verificationkey circuit.zkey vkey.json").expect(0);
    assert!(
        snarkjs_accepts(desk.path(), "vkey.json public.json proof.json"),
        "{what}"
    );
    assert!(
        bellperson_accepts(desk.path(), "vkey.json", "public.json", "proof.json"),
        "{what}"
    );
    desk.run("groth16 verify vkey.json public.json proof.json")
        .expect(0);
}

#[test]
fn keys_from_a_ceremony_of_snarkjs_are_snarkjs_s_own_and_can_be_contributed_to() {
    let desk = Desk::new();
    for line in [
        "powersoftau new bls12-381 8 pot0.ptau",
        "powersoftau contribute pot0.ptau pot1.ptau --name=test -e=test",
        "powersoftau prepare phase2 pot1.ptau pot.ptau",
    ] {
        snarkjs(desk.path(), line).expect(0);
    }
    // `filled` fills its domain exactly, the largest that these powers serve; `arrays` has inputs and outputs that are
    // public; `multiplier` has a domain far below.
    for fixture in ["multiplier", "arrays", "filled"] {
        desk.take(fixture, &["circuit.r1cs", "witness.wtns"]);
        both_make_the_same(&desk, "pot.ptau", fixture);
        if fixture != "multiplier" {
            a_ceremony_goes_on(&desk, "pot.ptau", fixture);
        }
    }
    // A file cut from a larger ceremony says so in its header.
    snarkjs(desk.path(), "powersoftau truncate pot.ptau").expect(0);
    desk.take("arrays", &["circuit.r1cs"]);
    both_make_the_same(&desk, "pot_04.ptau", "arrays, truncated powers");
    desk.write("circuit.r1cs", &every_kind_of_coefficient());
    both_make_the_same(&desk, "pot.ptau", "every kind of coefficient");
}

/// A circuit that no compiler would write: coefficients of all sizes and both signs, zeros, one wire twice in a sum, a
/// wire that occurs everywhere and one that occurs nowhere, empty sums.
fn every_kind_of_coefficient() -> Vec<u8> {
    let number = |value: u64| {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    let minus = |value: u64| {
        let mut bytes = proofkeep_formats::field::R_LE;
        // r ends in 2^32 + 1 more than these take.
        let low = u64::from_le_bytes(bytes[..8].try_into().unwrap()) - value;
        bytes[..8].copy_from_slice(&low.to_le_bytes());
        bytes
    };
    let mut large = [0x5a; 32];
    large[31] = 0x11;
    let mut medium = [0; 32];
    medium[15] = 0x83;
    let mut circuit = R1csBuilder::new(12, 2, 3, 1);
    for row in 0..200_u32 {
        let wire = 1 + row % 10;
        let value = u64::from(row) * 0x0123_4567_89ab;
        circuit.constraint(
            &[
                (0, number(1)),
                (wire, minus(1)),
                (10, number(value)),
                (wire, number(2)),
            ],
            &[(10, large), (wire, minus(5)), (0, number(0))],
            &[(0, medium), (10, minus(value % 1000 + 1)), (wire, number(7))],
        );
    }
    circuit.constraint(&[], &[(3, number(1))], &[]);
    circuit.constraint(&[(4, minus(1))], &[], &[(0, number(0))]);
    circuit.build()
}

/// snarkjs reads powers of tau in pieces of 2^14 points and the last piece past its end: from 2^15 points on this tells
/// in the hash of the circuit, and for the largest domain of a file it reads what isn't a point.
#[test]
fn the_hash_of_a_circuit_is_snarkjs_s_own_where_snarkjs_reads_past_the_powers_of_tau() {
    let desk = Desk::new();
    let mut circuit = R1csBuilder::new(3, 1, 0, 1);
    let mut one = [0; 32];
    one[0] = 1;
    circuit.constraint(&[(2, one)], &[(2, one)], &[(1, one)]);
    for _ in 1..(1 << 15) - 2 {
        circuit.constraint(&[], &[], &[]);
    }
    desk.write("circuit.r1cs", &circuit.build());
    desk.write("pot.ptau", &ptau::made_up(15));
    both_make_the_same(&desk, "pot.ptau", "2^15 of 2^15");
}

#[test]
fn a_key_is_made_of_the_fixture_and_named_as_snarkjs_names_it() {
    let desk = Desk::new();
    desk.take("multiplier", &["circuit.r1cs"]);
    desk.take("powers", &["pot.ptau"]);
    let answer = desk
        .run("groth16 setup circuit.r1cs pot.ptau --json")
        .expect(0)
        .json();
    assert_eq!(answer["zkey"], "circuit_0000.zkey");
    assert_eq!(answer["unfinished"], true);
    assert_eq!(
        (&answer["ptau_power"], &answer["ptau_contributions"]),
        (&2.into(), &2.into())
    );
    snarkjs(desk.path(), "groth16 setup circuit.r1cs pot.ptau theirs.zkey").expect(0);
    assert_eq!(desk.read("circuit_0000.zkey"), desk.read("theirs.zkey"));
    assert_eq!(
        fixtures::read("multiplier", "circuit.r1cs"),
        desk.read("circuit.r1cs"),
        "inputs are left as they are"
    );
}
