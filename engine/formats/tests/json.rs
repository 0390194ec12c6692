//! snarkjs's JSON: read, written again byte for byte, and refused where it isn't strict.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{WITH_KEY, fixture};
use proofkeep_formats::FormatError;
use proofkeep_formats::field::{Q_LE, R_LE, r_from_decimal, to_decimal};
use proofkeep_formats::json::{ProofJson, VkJson, public_from_json, public_to_json};
use serde_json::{Value, json};

fn code<T>(result: Result<T, FormatError>) -> &'static str {
    result.map_or_else(|error| error.code(), |_| "accepted")
}

/// The fixture's proof, changed.
fn proof_with(change: impl FnOnce(&mut Value)) -> Result<ProofJson, FormatError> {
    let mut proof: Value = serde_json::from_slice(&fixture("multiplier", "proof.json")).unwrap();
    change(&mut proof);
    ProofJson::from_json(proof.to_string().as_bytes())
}

fn vkey_with(change: impl FnOnce(&mut Value)) -> Result<VkJson, FormatError> {
    let mut vkey: Value = serde_json::from_slice(&fixture("multiplier", "vkey.json")).unwrap();
    change(&mut vkey);
    VkJson::from_json(vkey.to_string().as_bytes())
}

#[test]
fn proofs_and_public_signals_come_out_byte_for_byte() {
    for name in WITH_KEY {
        let proof = fixture(name, "proof.json");
        let read = ProofJson::from_json(&proof).unwrap();
        assert_eq!(read.to_json().unwrap().as_bytes(), proof, "{name}");
        let public = fixture(name, "public.json");
        let read = public_from_json(&public).unwrap();
        assert_eq!(public_to_json(&read).unwrap().as_bytes(), public, "{name}");
    }
}

#[test]
fn verification_keys_come_out_but_for_the_pairing() {
    for name in WITH_KEY {
        let vkey = fixture(name, "vkey.json");
        let read = VkJson::from_json(&vkey).unwrap();
        assert_eq!(read.ic.len(), read.n_public as usize + 1);
        let mut expected: Value = serde_json::from_slice(&vkey).unwrap();
        expected
            .as_object_mut()
            .unwrap()
            .remove("vk_alphabeta_12")
            .unwrap();
        let written = read.to_json().unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&written).unwrap(),
            expected,
            "{name}"
        );
        assert_eq!(VkJson::from_json(written.as_bytes()).unwrap(), read);
    }
}

#[test]
fn points_are_in_zcash_order() {
    let raw: Value = serde_json::from_slice(&fixture("multiplier", "proof.json")).unwrap();
    let proof = ProofJson::from_json(&fixture("multiplier", "proof.json")).unwrap();
    let decimal = |big_endian: &[u8]| {
        let mut bytes = big_endian.to_vec();
        bytes.reverse();
        to_decimal(&bytes)
    };
    assert_eq!(raw["pi_a"][0], decimal(&proof.a[..48]));
    assert_eq!(raw["pi_a"][1], decimal(&proof.a[48..]));
    assert_eq!(raw["pi_b"][0][1], decimal(&proof.b[..48]), "x1 first");
    assert_eq!(raw["pi_b"][0][0], decimal(&proof.b[48..96]));
    assert_eq!(raw["pi_b"][1][1], decimal(&proof.b[96..144]));
    assert_eq!(raw["pi_b"][1][0], decimal(&proof.b[144..]));
}

#[test]
fn the_identity_is_read_and_written() {
    let proof = proof_with(|proof| {
        proof["pi_a"] = json!(["0", "1", "0"]);
        proof["pi_b"] = json!([["0", "0"], ["1", "0"], ["0", "0"]]);
    })
    .unwrap();
    assert_eq!((proof.a[0], proof.b[0]), (0x40, 0x40));
    assert!(proof.a[1..].iter().chain(&proof.b[1..]).all(|byte| *byte == 0));
    assert_eq!(
        ProofJson::from_json(proof.to_json().unwrap().as_bytes()).unwrap(),
        proof
    );
}

#[test]
fn other_curves_and_proof_systems_are_named() {
    let error = proof_with(|proof| proof["curve"] = json!("bn128")).unwrap_err();
    assert_eq!(error.code(), "wrong-prime");
    let text = error.to_string();
    assert!(text.contains("BN254") && text.contains("BLS12-381"), "{text}");
    assert_eq!(
        code(vkey_with(|vkey| vkey["curve"] = json!("bls12377"))),
        "wrong-prime"
    );

    // A PLONK proof has other fields, and is still called what it is.
    let plonk = br#"{"A": ["1", "2", "1"], "protocol": "plonk", "curve": "bn128"}"#;
    let error = ProofJson::from_json(plonk).unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().contains("plonk")),
        ("not-groth16", true)
    );
    for field in ["protocol", "curve"] {
        let without = |proof: &mut Value| drop(proof.as_object_mut().unwrap().remove(field));
        assert_eq!(code(proof_with(without)), "malformed-json", "{field}");
    }
}

#[test]
fn coordinates_are_strict() {
    let q = to_decimal(&Q_LE);
    let mut last = Q_LE;
    last[0] -= 1;
    for (text, expected) in [
        (to_decimal(&last).as_str(), "accepted"),
        (&q, "non-canonical"),
        (&"9".repeat(5000), "non-canonical"),
        ("", "malformed-json"),
        ("-1", "malformed-json"),
        ("+1", "malformed-json"),
        ("0x12", "malformed-json"),
        ("012", "malformed-json"),
        (" 12", "malformed-json"),
    ] {
        assert_eq!(
            code(proof_with(|proof| proof["pi_a"][1] = json!(text))),
            expected,
            "{text:?}"
        );
        assert_eq!(
            code(proof_with(|proof| proof["pi_b"][1][0] = json!(text))),
            expected,
            "{text:?}"
        );
    }
    for z in [json!("0"), json!("2"), json!(1), json!("01")] {
        assert_eq!(
            code(proof_with(|proof| proof["pi_c"][2] = z.clone())),
            "malformed-json",
            "{z}"
        );
    }
    assert_eq!(
        code(proof_with(|proof| proof["pi_b"][2] = json!(["1", "1"]))),
        "malformed-json"
    );
    assert_eq!(
        code(proof_with(|proof| proof["pi_b"][2] = json!(["0", "1"]))),
        "malformed-json"
    );
}

#[test]
fn shapes_are_strict() {
    assert_eq!(
        code(proof_with(|proof| proof["extra"] = json!(1))),
        "malformed-json"
    );
    assert_eq!(
        code(proof_with(|proof| drop(
            proof.as_object_mut().unwrap().remove("pi_c")
        ))),
        "malformed-json"
    );
    assert_eq!(
        code(proof_with(|proof| proof["pi_a"] = json!(["1", "2"]))),
        "malformed-json"
    );
    assert_eq!(
        code(proof_with(|proof| proof["pi_a"] = json!(["1", "2", "1", "1"]))),
        "malformed-json"
    );

    let proof = String::from_utf8(fixture("multiplier", "proof.json")).unwrap();
    let twice = proof.replacen('{', r#"{"pi_a": ["1", "2", "1"],"#, 1);
    assert_eq!(code(ProofJson::from_json(twice.as_bytes())), "malformed-json");
    assert_eq!(
        code(ProofJson::from_json(format!("{proof} x").as_bytes())),
        "malformed-json"
    );
    for length in 0..proof.len() {
        assert_eq!(
            code(ProofJson::from_json(&proof.as_bytes()[..length])),
            "malformed-json",
            "cut at {length}"
        );
    }
    let deep = "[".repeat(100_000);
    assert_eq!(code(ProofJson::from_json(deep.as_bytes())), "malformed-json");
}

#[test]
fn a_verification_key_has_a_point_for_each_signal_and_one_more() {
    assert_eq!(code(vkey_with(|vkey| vkey["nPublic"] = json!(3))), "bad-count");
    assert_eq!(
        code(vkey_with(|vkey| vkey["nPublic"] = json!(u32::MAX))),
        "bad-count"
    );
    assert_eq!(
        code(vkey_with(|vkey| vkey["nPublic"] = json!(-1))),
        "malformed-json"
    );
    assert_eq!(code(vkey_with(|vkey| vkey["IC"] = json!([]))), "bad-count");
}

#[test]
fn public_signals_are_strict() {
    let r = to_decimal(&R_LE);
    assert_eq!(public_from_json(b"[]").unwrap(), Vec::<[u8; 32]>::new());
    assert_eq!(
        public_from_json(br#"["33", "3"]"#).unwrap()[0],
        r_from_decimal("33").unwrap()
    );
    for (text, expected) in [
        (json!([r]).to_string(), "non-canonical"),
        (json!([1]).to_string(), "malformed-json"),
        (json!(["01"]).to_string(), "malformed-json"),
        (json!({"a": "1"}).to_string(), "malformed-json"),
        ("[\"1\"".to_owned(), "malformed-json"),
    ] {
        assert_eq!(code(public_from_json(text.as_bytes())), expected, "{text}");
    }
    assert_eq!(code(public_to_json(&[R_LE])), "non-canonical");
}

#[test]
fn only_uncompressed_points_are_written() {
    let proof = ProofJson::from_json(&fixture("multiplier", "proof.json")).unwrap();
    for flag in [0x80, 0x40, 0x20, 0xc0] {
        let mut broken = proof.clone();
        broken.a[0] |= flag;
        assert_eq!(code(broken.to_json()), "non-canonical", "{flag:#x}");
    }
}

#[test]
fn messages_stay_short() {
    let proof = proof_with(|proof| proof["protocol"] = json!("x".repeat(10_000)));
    assert!(proof.unwrap_err().to_string().len() < 400);
    let proof = proof_with(|proof| proof[&"y".repeat(10_000)] = json!(1));
    assert!(proof.unwrap_err().to_string().len() < 800);
}
