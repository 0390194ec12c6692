//! Powers of tau that no key can or may be made of: each refused with what is wrong and what to do, and no file left.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cli_support;

use cli_support::Desk;
use proofkeep_tests::fixtures;

/// The sections of a `.ptau`, to be changed.
struct File(Vec<(u32, Vec<u8>)>);

impl File {
    fn fixture() -> Self {
        let bytes = fixtures::read("powers", "pot.ptau");
        let mut sections = Vec::new();
        let mut rest = &bytes[12..];
        while !rest.is_empty() {
            let length = u64::from_le_bytes(rest[4..12].try_into().unwrap()) as usize;
            let id = u32::from_le_bytes(rest[..4].try_into().unwrap());
            sections.push((id, rest[12..12 + length].to_vec()));
            rest = &rest[12 + length..];
        }
        File(sections)
    }

    fn section(&mut self, id: u32) -> &mut Vec<u8> {
        &mut self.0.iter_mut().find(|(other, _)| *other == id).unwrap().1
    }

    fn bytes(&self) -> Vec<u8> {
        let mut file = b"ptau\x01\0\0\0".to_vec();
        file.extend((self.0.len() as u32).to_le_bytes());
        for (id, body) in &self.0 {
            file.extend(id.to_le_bytes());
            file.extend((body.len() as u64).to_le_bytes());
            file.extend(body);
        }
        file
    }
}

/// A key of a circuit is refused, with that code and all of these words.
fn refused(circuit: &str, powers: &[u8], code: &str, words: &[&str]) {
    let desk = Desk::new();
    desk.take(circuit, &["circuit.r1cs"]);
    desk.write("pot.ptau", powers);
    let ran = desk
        .run("groth16 setup circuit.r1cs pot.ptau circuit_0000.zkey")
        .expect(1);
    let code = format!("({code})");
    for word in words.iter().chain(&["pot.ptau", code.as_str()]) {
        assert!(ran.stderr.contains(word), "{word} is not in {}", ran.stderr);
    }
    let mut left: Vec<_> = std::fs::read_dir(desk.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["circuit.r1cs", "pot.ptau"], "nothing half made is left");
}

fn changed(change: impl FnOnce(&mut File)) -> Vec<u8> {
    let mut file = File::fixture();
    change(&mut file);
    file.bytes()
}

#[test]
fn powers_that_are_not_prepared_for_the_second_phase() {
    let words = ["section 12", "snarkjs powersoftau prepare phase2"];
    let powers = changed(|file| file.0.retain(|(id, _)| *id < 12));
    refused("multiplier", &powers, "ptau-not-prepared", &words);
}

#[test]
fn powers_prepared_by_an_old_snarkjs_without_the_basis_of_twice_the_domain() {
    let powers = changed(|file| file.section(12).truncate(96 * 7));
    refused(
        "multiplier",
        &powers,
        "ptau-not-prepared",
        &["snarkjs powersoftau convert"],
    );
}

#[test]
fn powers_over_another_curve() {
    let q = "30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47";
    let mut header = 32_u32.to_le_bytes().to_vec();
    header.extend(hex::decode(q).unwrap().iter().rev());
    header.extend([2, 0, 0, 0, 2, 0, 0, 0]);
    let powers = changed(|file| *file.section(1) = header);
    refused("multiplier", &powers, "wrong-prime", &["BN254", "BLS12-381"]);
}

#[test]
fn a_circuit_that_is_too_large_for_the_powers() {
    let powers = File::fixture().bytes();
    let words = ["power 8", "power 2", "253 constraints"];
    refused("filled", &powers, "ptau-too-small", &words);
}

#[test]
fn powers_that_nobody_contributed_to() {
    let powers = changed(|file| *file.section(7) = vec![0; 4]);
    refused(
        "multiplier",
        &powers,
        "ptau-unfinished",
        &["snarkjs powersoftau contribute"],
    );
}

#[test]
fn a_file_that_is_cut_short_or_has_lengths_of_another_power() {
    let powers = File::fixture().bytes();
    for length in [0, 3, 11, 40, 500, powers.len() - 1] {
        // An empty file can't be mapped on every system; either way it is refused and named.
        let desk = Desk::new();
        desk.take("multiplier", &["circuit.r1cs"]);
        desk.write("pot.ptau", &powers[..length]);
        let ran = desk.run("groth16 setup circuit.r1cs pot.ptau").expect(1);
        assert!(ran.stderr.contains("pot.ptau"), "{}", ran.stderr);
        assert!(!desk.path().join("circuit_0000.zkey").exists());
    }
    refused(
        "multiplier",
        &powers[..powers.len() - 1],
        "truncated",
        &["section 15"],
    );
    let mut huge = powers.clone();
    huge[16..24].copy_from_slice(&(5_u64 << 30).to_le_bytes());
    refused("multiplier", &huge, "truncated", &["section 1"]);
    let other = changed(|file| file.section(1)[52] = 1);
    refused("multiplier", &other, "bad-count", &["section 2", "288", "672"]);
    let many = changed(|file| file.section(7)[..4].fill(0xff));
    refused("multiplier", &many, "truncated", &["4294967295 contributions"]);
}

#[test]
fn a_section_that_is_missing_or_there_twice() {
    for (id, name) in [
        (1, "header"),
        (2, "powers of tau"),
        (4, "alpha"),
        (6, "beta"),
        (7, "contributions"),
    ] {
        let missing = changed(|file| file.0.retain(|(other, _)| *other != id));
        refused(
            "multiplier",
            &missing,
            "section-missing",
            &[&format!("section {id}"), name],
        );
    }
    for id in [1, 2, 7, 12, 15] {
        let twice = changed(|file| {
            let body = file.section(id).clone();
            file.0.push((id, body));
        });
        refused("multiplier", &twice, "section-twice", &[&format!("section {id}")]);
    }
}

#[test]
fn a_point_that_is_none() {
    // The domain of multiplier is the largest of these powers; its basis comes after those of 1 and 2 points.
    let basis = 3 * 96;
    let spoiled = |id, at: usize, value: u8| changed(|file| file.section(id)[at] ^= value);
    let words = [
        "point 4",
        "section 12",
        "not on the curve",
        "snarkjs powersoftau verify",
    ];
    refused(
        "multiplier",
        &spoiled(12, basis + 96, 1),
        "point-off-curve",
        &words,
    );
    refused(
        "multiplier",
        &spoiled(13, 2 * basis, 1),
        "point-off-curve",
        &["point 3", "section 13"],
    );
    refused(
        "multiplier",
        &spoiled(14, basis, 1),
        "point-off-curve",
        &["section 14"],
    );
    refused(
        "multiplier",
        &spoiled(15, basis, 1),
        "point-off-curve",
        &["section 15"],
    );
    // The second of the odd ones of eight.
    let odd = (7 + 3) * 96;
    refused(
        "multiplier",
        &spoiled(12, odd, 1),
        "point-off-curve",
        &["point 10"],
    );
    for id in [4, 5, 6] {
        refused(
            "multiplier",
            &spoiled(id, 0, 1),
            "point-off-curve",
            &[&format!("section {id}")],
        );
    }
    let large = changed(|file| file.section(12)[basis + 47] = 0xff);
    refused("multiplier", &large, "non-canonical", &["point 3", "section 12"]);
    let zero = changed(|file| file.section(12)[basis..basis + 96].fill(0));
    refused("multiplier", &zero, "point-identity", &["point 3", "section 12"]);
    let other_beta = changed(|file| {
        let alpha = file.section(4).clone();
        *file.section(5) = alpha;
    });
    refused("multiplier", &other_beta, "ptau-inconsistent", &["beta"]);
}

#[test]
fn something_that_is_no_ptau_at_all() {
    let zkey = fixtures::read("multiplier", "circuit.zkey");
    refused("multiplier", &zkey, "bad-magic", &["\"ptau\"", "\"zkey\""]);
}
