//! Records inside sled: what the envelope's checksum says of them.

use std::path::Path;

use proofkeep_store::keys::{self, Family};
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::Daemon;
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use super::damage::Damage;
use super::scene::{Scene, alone, is_clean, job, register, retried, rng, submit, succeeds, witness};

/// Damages every record of a family in a store that nobody has open; answers how many there were.
fn damage_records(data: &Path, family: Family, damage: Damage, rng: &mut ChaCha8Rng) -> usize {
    let db = sled::Config::new()
        .path(data.join("store.1"))
        .segment_size(usize::try_from(proofkeep_store::format::SEGMENT_SIZE).unwrap())
        .flush_every_ms(None)
        .use_compression(false)
        .mode(sled::Mode::HighThroughput)
        .open()
        .unwrap();
    let records: Vec<_> = db.scan_prefix(keys::family(family)).map(Result::unwrap).collect();
    for (key, value) in &records {
        let mut value = value.to_vec();
        let last = value.len() - 1;
        let at = match damage {
            Damage::FlipFirst => 0,
            Damage::FlipLast => last,
            Damage::FlipAny => rng.gen_range(0..=last),
            Damage::Cut | Damage::Empty => {
                value.truncate(if damage == Damage::Cut { last / 2 } else { 0 });
                db.insert(key, value).unwrap();
                continue;
            }
            Damage::Delete => {
                db.remove(key).unwrap();
                continue;
            }
        };
        value[at] ^= 1 << rng.gen_range(0..8);
        db.insert(key, value).unwrap();
    }
    db.flush().unwrap();
    records.len()
}

/// A proof that can't be read is said to be damaged wherever it is asked for, and a retry makes it again.
#[test]
fn a_damaged_proof_of_a_job_that_succeeded_is_said_to_be_one_and_made_again() {
    let _alone = alone();
    let mut rng = rng("proofs");
    let template = Scene::new();
    let daemon = template.start();
    register(&daemon);
    let id = submit(&daemon, &job(&[witness(), witness()]));
    succeeds(&daemon, &id);
    assert!(daemon.terminate().success());
    for damage in Damage::ALL {
        let scene = template.fork();
        assert_eq!(damage_records(&scene.data, Family::Proof, damage, &mut rng), 2);
        let daemon = scene.start();
        for path in ["/proof", "/public", "/partitions/0/proof", "/partitions/1/public"] {
            is_damaged(&daemon, &format!("/v1/jobs/{id}{path}"), damage);
        }
        if damage != Damage::Delete {
            is_damaged(&daemon, &format!("/v1/jobs/{id}"), damage);
        }
        // A stream that can't be whole is cut off.
        let results = daemon.try_send("GET", &format!("/v1/jobs/{id}/results"), &[], None);
        assert!(
            results.is_none() || damage == Damage::Delete,
            "{damage:?}: {results:?}"
        );
        retried(&daemon, &id);
        assert!(daemon.terminate().success());
        is_clean(&scene.data);
    }
}

fn is_damaged(daemon: &Daemon, path: &str, damage: Damage) {
    let answer = daemon.get(path);
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (500, "proof-damaged"),
        "{damage:?} {path}: {}",
        answer.text()
    );
    assert!(answer.text().contains("retry the job"), "{}", answer.text());
}

/// What is kept of an unfinished proof is only that: damaged, it is worth nothing, and the partition starts again.
#[test]
fn a_damaged_checkpoint_is_dropped_and_its_partition_starts_again() {
    let _alone = alone();
    let mut rng = rng("checkpoints");
    let (r1cs, witness) = fixtures::squares(13);
    let key = key(&r1cs);
    let scene = Scene::new();
    let daemon = scene.start();
    daemon.register("squares", &[("zkey", &key), ("r1cs", &r1cs)]);
    let witness = daemon.upload(&witness);
    assert!(daemon.terminate().success());
    for damage in [
        Damage::FlipFirst,
        Damage::FlipAny,
        Damage::FlipLast,
        Damage::Cut,
        Damage::Empty,
    ] {
        let (scene, mut hit) = (scene.fork(), None);
        // The kill comes a moment after the look: by then the proof itself may be there.
        for _ in 0..50 {
            let daemon = scene.start();
            let id = killed_between_pieces(daemon, &witness);
            if damage_records(&scene.data, Family::Checkpoint, damage, &mut rng) > 0 {
                hit = Some(id);
                break;
            }
        }
        let id = hit.expect("a proof that was killed between two pieces");
        let daemon = scene.start();
        let ended = daemon.wait_for_end(&id);
        assert_eq!(ended["state"], "succeeded", "{damage:?}: {ended}");
        let attempts = ended["partitions"][0]["attempts"].as_array().unwrap();
        let reused = attempts.iter().filter(|attempt| attempt["reused"] != json!([]));
        assert_eq!(reused.count(), 0, "{ended}");
        assert!(daemon.terminate().success());
        is_clean(&scene.data);
    }
}

fn key(r1cs: &[u8]) -> Vec<u8> {
    let parsed = proofkeep_formats::r1cs::R1cs::parse(r1cs).unwrap();
    let mut go_on = |_, _| std::ops::ControlFlow::Continue(());
    let backend = proofkeep_groth16::backend::BlstBackend::new(2).unwrap();
    let out = std::io::Cursor::new(Vec::new());
    proofkeep_groth16::setup::insecure_setup(&parsed, b"damage", out, &backend, &mut go_on)
        .unwrap()
        .into_inner()
}

/// Submits a proof and kills the daemon once a piece of it is durable; answers the job.
fn killed_between_pieces(daemon: Daemon, witness: &str) -> String {
    let body = json!({ "kind": "groth16", "circuit": "squares", "inputs": [{ "witness": witness }] });
    let id = submit(&daemon, &body);
    loop {
        let job = daemon.get(&format!("/v1/jobs/{id}")).expect(200).json();
        let partition = &job["partitions"][0];
        if partition["state"] == "proved"
            || partition["checkpoint"]
                .as_array()
                .is_some_and(|made| !made.is_empty())
        {
            daemon.kill();
            return id;
        }
    }
}
