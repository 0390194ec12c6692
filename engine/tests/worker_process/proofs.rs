//! From an input to a proof, and inputs that are refused.

use proofkeep_engine::kinds::Kind;
use proofkeep_engine::kinds::groth16::Groth16;
use proofkeep_engine::protocol::{CircuitFiles, ToWorker, WirePiece, Work};
use proofkeep_formats::json::public_from_json;
use proofkeep_formats::wtns;
use proofkeep_store::ids::Digest;
use serde_json::{Value, json};

use crate::circuits::{circom, fixture, large};
use crate::daemon::{Daemon, Options};

crate::tests![
    every_fixture_is_proved_from_its_witness_and_accepted_by_snarkjs_key,
    an_input_gives_the_same_witness_as_snarkjs,
    pieces_of_another_attempt_are_taken_over,
    pieces_of_another_witness_or_key_are_not_taken_over,
    a_damaged_piece_is_made_again,
    a_witness_that_does_not_fit_is_refused_by_name,
    an_unsatisfied_constraint_is_named_with_its_signals_and_without_values,
    an_input_that_does_not_fit_is_refused_with_its_signal,
    a_calculator_that_does_not_end_or_wants_too_much_is_ended,
    a_missing_object_is_said_to_be_missing,
    a_recheck_walks_every_constraint_and_the_keys_bytes,
    a_bad_witness_without_constraints_is_told_from_a_bad_device,
];

pub fn work(job: u64) -> Work {
    Work {
        job,
        partition: 0,
        attempt: 1,
    }
}

fn witness(daemon: &Daemon, circuit: &str) -> Value {
    json!({"witness": daemon.put(&fixture(circuit, "witness.wtns")).to_string()})
}

fn every_fixture_is_proved_from_its_witness_and_accepted_by_snarkjs_key() {
    let mut daemon = Daemon::new();
    let kind = Groth16::new();
    for (job, circuit) in (1..).zip(["multiplier", "poseidon2", "filled", "arrays"]) {
        let files = circom(&daemon, circuit);
        let input = witness(&daemon, circuit);
        let ready = daemon.synth(work(job), &files, input).unwrap();
        assert_eq!(ready.key, files.zkey.unwrap());
        let public = public_from_json(&fixture(circuit, "public.json")).unwrap();
        assert_eq!(ready.public, public.as_flattened(), "{circuit}");
        let ended = daemon.prove(work(job), &ready, Vec::new());
        let names: Vec<&str> = ended.pieces.iter().map(|piece| piece.name.as_str()).collect();
        assert_eq!(names, ["H", "L", "A", "B1", "B2"], "{circuit}");
        assert_eq!(ended.released, Some((Vec::new(), 0)));
        let proof = ended.proof.unwrap();
        let vk = fixture(circuit, "vkey.json");
        kind.verify(Some(&vk), &ready.public, &proof).unwrap();
        let mut other = ready.public.clone();
        other[0] ^= 1;
        kind.verify(Some(&vk), &other, &proof).unwrap_err();
        assert_eq!(daemon.keys.last().unwrap().0, files.digest());
        assert!(daemon.keys.last().unwrap().1 > 0);
    }
    assert!(daemon.die().success());
}

fn an_input_gives_the_same_witness_as_snarkjs() {
    let mut daemon = Daemon::new();
    for (job, circuit) in (1..).step_by(2).zip(["multiplier", "arrays", "poseidon2"]) {
        let files = circom(&daemon, circuit);
        let input = witness(&daemon, circuit);
        let expected = daemon.synth(work(job), &files, input).unwrap();
        let expected = daemon.prove(work(job), &expected, Vec::new()).pieces;
        let input = daemon.put(&fixture(circuit, "input.json"));
        let ready = daemon
            .synth(work(job + 1), &files, json!({"input_blob": input.to_string()}))
            .unwrap();
        let ended = daemon.prove(work(job + 1), &ready, Vec::new());
        assert!(ended.proof.is_some(), "{circuit}");
        // A piece depends on nothing but key and witness.
        let bytes = |pieces: &[WirePiece]| -> Vec<_> {
            pieces
                .iter()
                .map(|piece| (piece.name.clone(), piece.bytes.clone()))
                .collect()
        };
        assert!(bytes(&ended.pieces) == bytes(&expected), "{circuit}");
    }
}

fn pieces_of_another_attempt_are_taken_over() {
    let mut daemon = Daemon::new();
    let files = circom(&daemon, "poseidon2");
    let input = witness(&daemon, "poseidon2");
    let ready = daemon.synth(work(1), &files, input.clone()).unwrap();
    let pieces = daemon.prove(work(1), &ready, Vec::new()).pieces;
    for (kept, second) in [(vec![0], 2), (vec![4, 1], 3), (vec![0, 1, 2, 3, 4], 4)] {
        let known: Vec<_> = kept.iter().map(|index: &usize| pieces[*index].clone()).collect();
        let work = Work {
            attempt: second,
            ..work(1)
        };
        let ready = daemon.synth(work, &files, input.clone()).unwrap();
        let ended = daemon.prove(work, &ready, known.clone());
        let names: Vec<String> = known.iter().map(|piece| piece.name.clone()).collect();
        let saved = known.iter().map(|piece| piece.millis).sum();
        assert_eq!(ended.released, Some((names, saved)));
        assert_eq!(ended.pieces.len(), 5 - known.len());
        for piece in &ended.pieces {
            let same = pieces.iter().find(|other| other.name == piece.name).unwrap();
            assert_eq!(
                piece.bytes, same.bytes,
                "a piece depends on nothing but key and witness"
            );
        }
        let vk = fixture("poseidon2", "vkey.json");
        Groth16::new()
            .verify(Some(&vk), &ready.public, &ended.proof.unwrap())
            .unwrap();
    }
}

fn pieces_of_another_witness_or_key_are_not_taken_over() {
    let mut daemon = Daemon::new();
    let files = circom(&daemon, "multiplier");
    let input = witness(&daemon, "multiplier");
    let ready = daemon.synth(work(1), &files, input.clone()).unwrap();
    let pieces = daemon.prove(work(1), &ready, Vec::new()).pieces;
    for change in [0, 1] {
        let mut ready = daemon.synth(work(2), &files, input.clone()).unwrap();
        if change == 0 {
            ready.witness[0] ^= 1
        } else {
            ready.key[0] ^= 1
        }
        let ended = daemon.prove(work(2), &ready, pieces.clone());
        assert_eq!(ended.released, Some((Vec::new(), 0)));
        assert_eq!(ended.pieces.len(), 5);
        assert!(ended.proof.is_some());
    }
}

fn a_damaged_piece_is_made_again() {
    let mut daemon = Daemon::new();
    let files = circom(&daemon, "multiplier");
    let input = witness(&daemon, "multiplier");
    let ready = daemon.synth(work(1), &files, input.clone()).unwrap();
    let mut pieces = daemon.prove(work(1), &ready, Vec::new()).pieces;
    pieces[1].bytes[20] ^= 4;
    pieces[2].bytes.pop();
    let ready = daemon.synth(work(2), &files, input.clone()).unwrap();
    let ended = daemon.prove(work(2), &ready, pieces.clone());
    let reused = ended.released.unwrap().0;
    assert!(
        !reused.contains(&"L".to_owned()) && !reused.contains(&"A".to_owned()),
        "{reused:?}"
    );
    assert!(ended.proof.is_some());
    // A point of the right group that is the wrong one shows only in the proof, which is never handed out.
    let wrong = WirePiece {
        name: "A".to_owned(),
        ..pieces[3].clone()
    };
    let ready = daemon.synth(work(3), &files, input).unwrap();
    let ended = daemon.prove(work(3), &ready, vec![wrong]);
    assert!(ended.proof.is_none());
    assert_eq!(ended.failure.unwrap().class, "invalid_proof");
}

fn a_witness_that_does_not_fit_is_refused_by_name() {
    let mut daemon = Daemon::new();
    let files = circom(&daemon, "multiplier");
    let whole = fixture("multiplier", "witness.wtns");
    let mut not_canonical = whole.clone();
    let last = not_canonical.len();
    not_canonical[last - 32..].fill(0xff);
    let mut not_one = whole.clone();
    let first = not_one.len() - 32 * wtns::Witness::parse(&whole).unwrap().len();
    not_one[first] = 2;
    for (job, (bytes, code)) in (1..).zip([
        (whole[..last - 1].to_vec(), "truncated"),
        (fixture("poseidon2", "witness.wtns"), "witness-length"),
        (fixture("multiplier", "circuit.r1cs"), "bad-magic"),
        (not_canonical, "non-canonical"),
        (not_one, "bad-witness"),
    ]) {
        let input = json!({"witness": daemon.put(&bytes).to_string()});
        let failure = daemon.synth(work(job), &files, input).unwrap_err();
        assert_eq!(
            (failure.class.as_str(), failure.code.as_str()),
            ("input_invalid", code),
            "{}",
            failure.detail
        );
    }
    let input = witness(&daemon, "multiplier");
    assert!(
        daemon.synth(work(9), &files, input).is_ok(),
        "the process goes on"
    );
}

/// A witness of the fixture with one value changed.
fn bad_witness(circuit: &str) -> Vec<u8> {
    let mut bytes = fixture(circuit, "witness.wtns");
    let last = bytes.len();
    bytes[last - 32] ^= 1;
    bytes
}

fn an_unsatisfied_constraint_is_named_with_its_signals_and_without_values() {
    let mut daemon = Daemon::new();
    let files = circom(&daemon, "multiplier");
    let bytes = bad_witness("multiplier");
    let input = json!({"witness": daemon.put(&bytes).to_string()});
    for recheck in [false, true] {
        let token = daemon.ask_synth(work(1), &files, input.clone(), recheck);
        // Without an import there is no C, so only the walk over the constraints finds it.
        match (daemon.hear_synth(token), recheck) {
            (Ok(ready), false) => {
                let ended = daemon.prove(work(1), &ready, Vec::new());
                assert_eq!(ended.failure.unwrap().class, "invalid_proof");
            }
            (Err(failure), true) => check_names(&failure.class, &failure.detail, &bytes),
            (other, _) => panic!("{other:?}"),
        }
    }
    // No job is proved before its circuit is imported; here one was, so its key goes first.
    daemon.say(&ToWorker::Evict {
        circuit: files.circuit,
    });
    daemon.hear_key((files.digest(), 0));
    let imported = crate::imports::imported(&mut daemon, &files);
    let failure = daemon.synth(work(2), &imported, input).unwrap_err();
    check_names(&failure.class, &failure.detail, &bytes);
}

fn check_names(class: &str, detail: &str, witness: &[u8]) {
    assert_eq!(class, "unsatisfied");
    assert!(
        detail.contains("constraint 0") && detail.contains("main."),
        "{detail}"
    );
    for value in wtns::Witness::parse(witness).unwrap().values().iter().skip(1) {
        let hex: String = value.iter().rev().map(|byte| format!("{byte:02x}")).collect();
        assert!(
            !detail.contains(hex.trim_start_matches('0')) || hex.trim_start_matches('0').len() < 3,
            "{detail}"
        );
    }
}

fn an_input_that_does_not_fit_is_refused_with_its_signal() {
    let mut daemon = Daemon::new();
    let files = circom(&daemon, "multiplier");
    let good: Value = serde_json::from_slice(&fixture("multiplier", "input.json")).unwrap();
    let name = good.as_object().unwrap().keys().next().unwrap().clone();
    let (mut unknown, mut missing, mut long) = (good.clone(), good.clone(), good);
    unknown["nothing"] = json!("1");
    missing.as_object_mut().unwrap().remove(&name);
    long[&name] = json!(["1", "2", "3"]);
    for (job, (input, code, word)) in (1..).zip([
        (unknown, "signal-unknown", "nothing"),
        (missing, "signal-missing", name.as_str()),
        (long, "signal-length", name.as_str()),
    ]) {
        let blob = daemon.put(input.to_string().as_bytes());
        let failure = daemon
            .synth(work(job), &files, json!({"input_blob": blob.to_string()}))
            .unwrap_err();
        assert_eq!(
            (failure.class.as_str(), failure.code.as_str()),
            ("input_invalid", code)
        );
        assert!(failure.detail.contains(word), "{}", failure.detail);
    }
    let blob = daemon.put(b"{}");
    let without = CircuitFiles { wasm: None, ..files };
    let failure = daemon
        .synth(work(8), &without, json!({"input_blob": blob.to_string()}))
        .unwrap_err();
    assert_eq!(failure.code, "wasm-missing");
}

fn a_calculator_that_does_not_end_or_wants_too_much_is_ended() {
    for (wasm, code) in [
        ((256 << 20, 1000), "fuel-exhausted"),
        ((64 << 10, 1_000_000_000), "memory-limit"),
    ] {
        let mut daemon = Daemon::with(Options {
            wasm,
            ..Options::default()
        });
        let files = circom(&daemon, "poseidon2");
        let blob = daemon.put(&fixture("poseidon2", "input.json"));
        let failure = daemon
            .synth(work(1), &files, json!({"input_blob": blob.to_string()}))
            .unwrap_err();
        assert_eq!(
            (failure.class.as_str(), failure.code.as_str()),
            ("input_invalid", code)
        );
        let input = witness(&daemon, "poseidon2");
        assert!(
            daemon.synth(work(2), &files, input).is_ok(),
            "the process goes on"
        );
    }
}

fn a_missing_object_is_said_to_be_missing() {
    let mut daemon = Daemon::new();
    let files = circom(&daemon, "multiplier");
    let gone = Digest::of(b"never written").to_string();
    let failure = daemon
        .synth(work(1), &files, json!({"witness": gone}))
        .unwrap_err();
    assert_eq!(
        (failure.class.as_str(), failure.code.as_str()),
        ("input_missing", "blob-missing")
    );
    let failure = daemon.synth(work(2), &files, json!({})).unwrap_err();
    assert_eq!(failure.class, "input_invalid");
}

fn a_recheck_walks_every_constraint_and_the_keys_bytes() {
    let mut daemon = Daemon::new();
    let own = large();
    let files = own.files(&daemon);
    let input = json!({"witness": daemon.put(&own.witness).to_string()});
    let token = daemon.ask_synth(work(1), &files, input.clone(), true);
    daemon.hear_synth(token).unwrap();
    // One byte of the key changes on the disk after it was imported.
    let mut zkey = own.zkey.clone();
    let last = zkey.len();
    zkey[last - 200] ^= 1;
    std::fs::write(daemon.object(Digest(files.zkey.unwrap())), &zkey).unwrap();
    let token = daemon.ask_synth(work(2), &files, input, true);
    let failure = daemon.hear_synth(token).unwrap_err();
    assert_eq!(
        (failure.class.as_str(), failure.code.as_str()),
        ("params_mismatch", "zkey-damaged")
    );
}

fn a_bad_witness_without_constraints_is_told_from_a_bad_device() {
    let mut daemon = Daemon::new();
    let files = CircuitFiles {
        r1cs: None,
        ..circom(&daemon, "poseidon2")
    };
    let files = crate::imports::imported(&mut daemon, &files);
    let good = witness(&daemon, "poseidon2");
    let bad = json!({"witness": daemon.put(&bad_witness("poseidon2")).to_string()});
    let mut prove = |attempt, input: &Value, recheck, known| {
        let work = Work { attempt, ..work(1) };
        let token = daemon.ask_synth(work, &files, input.clone(), recheck);
        let ready = daemon.hear_synth(token).unwrap();
        daemon.prove(work, &ready, known)
    };
    // The first time it may be the device, so it is tried again.
    let first = prove(1, &bad, false, Vec::new()).failure.unwrap();
    assert_eq!(first.class, "invalid_proof");
    assert!(first.detail.contains("no .r1cs"), "{}", first.detail);
    // The second time it is not.
    let second = prove(2, &bad, true, Vec::new()).failure.unwrap();
    assert_eq!(
        (second.class.as_str(), second.code.as_str()),
        ("unsatisfied", "unsatisfied")
    );
    assert!(second.detail.contains("without the .r1cs"), "{}", second.detail);
    // A good witness is proved, whatever was wrong with its last proof.
    let ended = prove(3, &good, true, Vec::new());
    assert!(ended.proof.is_some());
    // A wrong piece is the device's fault, not the witness's.
    let wrong = WirePiece {
        name: "A".to_owned(),
        ..ended.pieces[3].clone()
    };
    let failure = prove(4, &good, true, vec![wrong]).failure.unwrap();
    assert_eq!(
        (failure.class.as_str(), failure.code.as_str()),
        ("invalid_proof", "pieces-differ")
    );
    assert!(failure.detail.contains("proof's A came"), "{}", failure.detail);
}
