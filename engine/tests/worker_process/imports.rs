//! Circuits that are imported, and those that are refused.

use proofkeep_engine::kinds::Kind;
use proofkeep_engine::kinds::groth16::Groth16;
use proofkeep_engine::protocol::{CircuitFiles, FromWorker, ToWorker, WireFacts, WireFailure};
use proofkeep_formats::json::VkJson;
use proofkeep_formats::zkey::Zkey;
use proofkeep_groth16::check::point_count;
use proofkeep_store::ids::Digest;
use serde_json::{Value, json};

use crate::circuits::{circom, fixture, large};
use crate::daemon::Daemon;
use crate::proofs::work;

crate::tests![
    an_imported_circuit_has_its_counts_its_setup_and_snarkjs_key,
    a_locally_made_key_is_insecure,
    a_bad_point_is_named_and_found_only_by_who_looks_there,
    files_of_different_circuits_are_told_apart,
    a_key_without_its_constraints_is_imported,
    broken_files_are_refused_for_good,
    a_key_that_is_to_be_made_is_made_anew_each_time_and_proves,
    making_a_key_stops_when_it_is_asked_to_and_leaves_nothing,
    an_unfinished_setup_that_is_allowed_is_marked_and_proves,
];

/// What an import comes to: what is known of the circuit, and its files with what was made.
pub fn import_whole(
    daemon: &mut Daemon,
    files: &CircuitFiles,
    done: u64,
) -> Result<(WireFacts, CircuitFiles), WireFailure> {
    let asked = daemon.token();
    daemon.say(&ToWorker::Import {
        token: asked,
        files: files.clone(),
        done,
    });
    loop {
        match daemon.hear() {
            FromWorker::Imported { token, .. } if token == asked => {}
            FromWorker::ImportDone {
                token,
                facts,
                zkey,
                vk,
                matrices,
            } if token == asked => {
                let files = CircuitFiles {
                    zkey: zkey.or(files.zkey),
                    vk: Some(vk),
                    matrices: Some(matrices),
                    ..files.clone()
                };
                return Ok((facts, files));
            }
            FromWorker::Failed { token, failure, .. } if token == asked => return Err(failure),
            other => panic!("expected the end of an import, heard {other:?}"),
        }
    }
}

/// What an import of a circuit with a key comes to: facts, verification key, matrices.
pub fn import(
    daemon: &mut Daemon,
    files: &CircuitFiles,
    done: u64,
) -> Result<(WireFacts, [u8; 32], [u8; 32]), WireFailure> {
    let (facts, made) = import_whole(daemon, files, done)?;
    assert_eq!(made.zkey, files.zkey, "no key was to be made");
    Ok((facts, made.vk.unwrap(), made.matrices.unwrap()))
}

/// The circuit's files with what its import made.
pub fn imported(daemon: &mut Daemon, files: &CircuitFiles) -> CircuitFiles {
    import_whole(daemon, files, 0).unwrap().1
}

fn an_imported_circuit_has_its_counts_its_setup_and_snarkjs_key() {
    let mut daemon = Daemon::new();
    for circuit in ["multiplier", "poseidon2", "filled", "arrays"] {
        let files = circom(&daemon, circuit);
        let (facts, vk, matrices) = import(&mut daemon, &files, 0).unwrap();
        let key = fixture(circuit, "circuit.zkey");
        let zkey = Zkey::parse(&key).unwrap();
        assert_eq!(
            (facts.wires, facts.public),
            (zkey.header.wires.into(), zkey.header.public)
        );
        assert!(facts.constraints > 0 && facts.key_bytes > 0);
        let setup: Value = serde_json::from_str(&facts.setup).unwrap();
        assert_eq!(setup["kind"], "phase2", "{circuit}: {setup}");
        assert!(!facts.insecure && setup["contributions"].as_u64() > Some(0));
        let ours = std::fs::read(daemon.object(Digest(vk))).unwrap();
        let theirs = VkJson::from_json(&fixture(circuit, "vkey.json")).unwrap();
        assert_eq!(VkJson::from_json(&ours).unwrap(), theirs);
        assert!(daemon.object(Digest(matrices)).exists());
    }
    assert_eq!(std::fs::read_dir(daemon.data.join("tmp")).unwrap().count(), 0);
}

fn a_locally_made_key_is_insecure() {
    let mut daemon = Daemon::new();
    let files = large().files(&daemon);
    let (facts, ..) = import(&mut daemon, &files, 0).unwrap();
    assert!(facts.insecure);
    assert!(facts.setup.contains("insecure-local"), "{}", facts.setup);
}

fn a_bad_point_is_named_and_found_only_by_who_looks_there() {
    let mut daemon = Daemon::new();
    let mut key = fixture("poseidon2", "circuit.zkey");
    let zkey = Zkey::parse(&key).unwrap();
    let total = point_count(&zkey);
    // The first point of A: its last coordinate changes and stays below the field's order.
    let place = zkey.a.as_ptr() as usize - key.as_ptr() as usize;
    let first = (0..zkey.a.len() / 96)
        .find(|point| zkey.a[96 * point..96 * (point + 1)].iter().any(|byte| *byte != 0));
    let first = first.unwrap();
    key[place + 96 * first] ^= 1;
    let mut files = circom(&daemon, "poseidon2");
    files.zkey = Some(daemon.put(&key).0);
    let failure = import(&mut daemon, &files, 0).unwrap_err();
    assert_eq!(
        (failure.class.as_str(), failure.code.as_str()),
        ("circuit_failed", "point-off-curve")
    );
    assert!(
        failure.detail.contains(&format!("point {first} ")),
        "{}",
        failure.detail
    );
    // A restart goes on where the last one was and looks at nothing twice.
    assert!(import(&mut daemon, &files, first as u64 + 1).is_ok());
    assert!(import(&mut daemon, &files, total + 10).is_ok());
}

fn files_of_different_circuits_are_told_apart() {
    let mut daemon = Daemon::new();
    let (one, other) = (circom(&daemon, "multiplier"), circom(&daemon, "poseidon2"));
    for files in [
        CircuitFiles {
            r1cs: other.r1cs,
            ..one.clone()
        },
        CircuitFiles {
            wasm: other.wasm,
            ..one.clone()
        },
    ] {
        let failure = import(&mut daemon, &files, 0).unwrap_err();
        assert_eq!(
            (failure.class.as_str(), failure.code.as_str()),
            ("circuit_failed", "circuit-mismatch")
        );
    }
}

fn a_key_without_its_constraints_is_imported() {
    let mut daemon = Daemon::new();
    let files = CircuitFiles {
        r1cs: None,
        wasm: None,
        sym: None,
        ..circom(&daemon, "multiplier")
    };
    let (facts, ..) = import(&mut daemon, &files, 0).unwrap();
    assert_eq!(facts.constraints, 0, "not known");
}

fn broken_files_are_refused_for_good() {
    let mut daemon = Daemon::new();
    let files = circom(&daemon, "multiplier");
    let key = fixture("multiplier", "circuit.zkey");
    let cut = Some(daemon.put(&key[..key.len() - 1]).0);
    let text = Some(daemon.put(b"1,2\n").0);
    let zkey = Zkey::parse(&key).unwrap();
    let (place, gamma) = (
        zkey.delta2.as_ptr() as usize - key.as_ptr() as usize,
        *zkey.gamma2,
    );
    let mut unfinished = key.clone();
    unfinished[place..place + gamma.len()].copy_from_slice(&gamma);
    let unfinished = Some(daemon.put(&unfinished).0);
    for (files, code) in [
        (
            CircuitFiles {
                zkey: unfinished,
                ..files.clone()
            },
            "setup-unfinished",
        ),
        (
            CircuitFiles {
                zkey: cut,
                ..files.clone()
            },
            "truncated",
        ),
        (
            CircuitFiles {
                r1cs: text,
                ..files.clone()
            },
            "bad-magic",
        ),
        (
            CircuitFiles {
                wasm: text,
                ..files.clone()
            },
            "not-circom-wasm",
        ),
        (
            CircuitFiles {
                sym: text,
                ..files.clone()
            },
            "malformed-sym",
        ),
    ] {
        let failure = import(&mut daemon, &files, 0).unwrap_err();
        assert_eq!(
            (failure.class.as_str(), failure.code.as_str()),
            ("circuit_failed", code)
        );
    }
    let failure = import(&mut daemon, &CircuitFiles { zkey: None, ..files }, 0).unwrap_err();
    assert_eq!(failure.code, "zkey-missing");
}

/// A fixture without its key.
fn keyless(daemon: &Daemon, circuit: &str) -> CircuitFiles {
    CircuitFiles {
        zkey: None,
        local_setup: true,
        ..circom(daemon, circuit)
    }
}

fn a_key_that_is_to_be_made_is_made_anew_each_time_and_proves() {
    let mut daemon = Daemon::new();
    let files = keyless(&daemon, "poseidon2");
    // What an earlier try did is of no use: its key is another one.
    let [(facts, made), (_, again)] = [0, 1000].map(|done| import_whole(&mut daemon, &files, done).unwrap());
    assert!(
        facts.insecure && facts.setup.contains("insecure-local"),
        "{}",
        facts.setup
    );
    assert!(made.zkey.is_some());
    assert_ne!(made.zkey, again.zkey);
    let zkey = std::fs::read(daemon.object(Digest(made.zkey.unwrap()))).unwrap();
    assert_eq!(Digest::of(&zkey).0, made.zkey.unwrap());
    // Both at once, as circuits of their own: nobody takes the one for the other.
    let input = json!({"witness": daemon.put(&fixture("poseidon2", "witness.wtns")).to_string()});
    let both = [
        made,
        CircuitFiles {
            circuit: [7; 32],
            ..again
        },
    ];
    let proofs: Vec<_> = (1..)
        .zip(&both)
        .map(|(number, files)| {
            let ready = daemon.synth(work(number), files, input.clone()).unwrap();
            let proof = daemon.prove(work(number), &ready, Vec::new()).proof.unwrap();
            (ready.public, proof)
        })
        .collect();
    for (place, files) in both.iter().enumerate() {
        let vk = std::fs::read(daemon.object(Digest(files.vk.unwrap()))).unwrap();
        for (other, (public, proof)) in proofs.iter().enumerate() {
            let verified = Groth16::new().verify(Some(&vk), public, proof);
            assert_eq!(verified.is_ok(), place == other, "{verified:?}");
        }
    }
    assert_eq!(std::fs::read_dir(daemon.data.join("tmp")).unwrap().count(), 0);
}

fn making_a_key_stops_when_it_is_asked_to_and_leaves_nothing() {
    let mut daemon = Daemon::new();
    let files = CircuitFiles {
        zkey: None,
        local_setup: true,
        ..large().files(&daemon)
    };
    let count = |daemon: &Daemon| -> usize {
        let directories = std::fs::read_dir(daemon.data.join("objects")).unwrap();
        directories
            .map(|directory| std::fs::read_dir(directory.unwrap().path()).unwrap().count())
            .sum()
    };
    let before = count(&daemon);
    let token = daemon.token();
    daemon.say(&ToWorker::Import {
        token,
        files,
        done: 0,
    });
    daemon.say(&ToWorker::Stop {
        token,
        class: "shutdown".to_owned(),
    });
    match daemon.hear() {
        FromWorker::Failed { failure, .. } => assert_eq!(failure.class, "shutdown"),
        other => panic!("expected the end of an import, heard {other:?}"),
    }
    assert_eq!(count(&daemon), before);
    assert_eq!(std::fs::read_dir(daemon.data.join("tmp")).unwrap().count(), 0);
}

fn an_unfinished_setup_that_is_allowed_is_marked_and_proves() {
    let mut daemon = Daemon::new();
    let zkey: &[u8] = include_bytes!("../../groth16/tests/fixtures/multiplier_0000.zkey");
    let refused = CircuitFiles {
        zkey: Some(daemon.put(zkey).0),
        ..circom(&daemon, "multiplier")
    };
    let failure = import(&mut daemon, &refused, 0).unwrap_err();
    assert_eq!(
        (failure.class.as_str(), failure.code.as_str()),
        ("circuit_failed", "setup-unfinished")
    );
    let input = json!({"witness": daemon.put(&fixture("multiplier", "witness.wtns")).to_string()});
    let failure = daemon.synth(work(1), &refused, input.clone()).unwrap_err();
    assert_eq!(failure.code, "setup-unfinished");

    let allowed = CircuitFiles {
        circuit: [7; 32],
        allow_unfinished: true,
        ..refused
    };
    let (facts, vk, matrices) = import(&mut daemon, &allowed, 0).unwrap();
    let setup: Value = serde_json::from_str(&facts.setup).unwrap();
    assert!(
        facts.insecure && setup["kind"] == "unfinished" && setup["contributions"] == 0,
        "{setup}"
    );
    assert_eq!(setup["circuit_hash"].as_str().map(str::len), Some(128));
    let files = CircuitFiles {
        vk: Some(vk),
        matrices: Some(matrices),
        ..allowed
    };
    let ready = daemon.synth(work(2), &files, input).unwrap();
    let proof = daemon.prove(work(2), &ready, Vec::new()).proof.unwrap();
    let vk = std::fs::read(daemon.object(Digest(vk))).unwrap();
    Groth16::new().verify(Some(&vk), &ready.public, &proof).unwrap();
}
