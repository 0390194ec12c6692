//! Objects: what users uploaded, and what the daemon made of it.

use proofkeep_store::ids::Digest;
use proofkeep_tests::harness::{Daemon, proofkeep, sha256_name};
use rand::Rng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::damage::{Damage, write_in_place};
use super::scene::{
    Scene, alone, description, failure, file, input, is_clean, job, register, retried, right, rng, submit,
    succeeds, upload_all, witness,
};

/// The damage is done while the daemon runs, or before it starts.
const MOMENTS: [bool; 2] = [true, false];

/// A circuit that is ready, and no daemon.
fn template() -> Scene {
    let scene = Scene::new();
    let daemon = scene.start();
    register(&daemon);
    assert!(daemon.terminate().success());
    scene
}

/// Some ways to damage something: each moment, and each way at one of them.
fn ways(rng: &mut ChaCha8Rng) -> Vec<(bool, Damage)> {
    let ways = Damage::ALL.map(|damage| (MOMENTS[rng.gen_range(0..2)], damage));
    ways.into_iter().collect()
}

/// Damages an object and starts a daemon, in this or the other order.
fn damaged(scene: &Scene, object: &str, (live, damage): (bool, Damage), rng: &mut ChaCha8Rng) -> Daemon {
    eprintln!(
        "{object}: {damage:?}{}",
        if live { " under a live daemon" } else { "" }
    );
    let path = scene.object(object);
    if live {
        let daemon = scene.start();
        damage.to(&path, rng);
        daemon
    } else {
        damage.to(&path, rng);
        scene.start()
    }
}

/// What a failed partition says of the object that is to blame.
fn named(daemon: &Daemon, id: &str, partition: usize, object: &str, codes: &[&str]) {
    let (class, code, detail) = failure(daemon, id, partition);
    assert!(codes.contains(&code.as_str()), "{class} {code}: {detail}");
    assert!(detail.contains(object), "{detail}");
    assert!(detail.contains("upload it again"), "{detail}");
}

/// One input of one job is damaged: that partition fails, its neighbour and other jobs don't.
#[test]
fn a_damaged_witness_fails_its_partition_alone() {
    let _alone = alone();
    let mut rng = rng("witness");
    let template = template();
    let name = sha256_name(file("witness.wtns"));
    for way in ways(&mut rng) {
        let scene = template.fork();
        let daemon = damaged(&scene, &name, way, &mut rng);
        let input = input();
        let body = job(&[witness(), input.clone()]);
        let answer = daemon.post("/v1/jobs", &body);
        if way.1 == Damage::Delete {
            assert_eq!((answer.status, answer.code().as_str()), (422, "blob-missing"));
            let _ = daemon.upload(file("witness.wtns"));
            succeeds(&daemon, &submit(&daemon, &body));
        } else {
            let id = match answer.status {
                202 => answer.json()["id"].as_str().unwrap().to_owned(),
                // Its header is looked at when it is submitted.
                status => {
                    assert_eq!(status, 422, "{}", answer.text());
                    assert!(!answer.code().is_empty());
                    let _ = daemon.upload(file("witness.wtns"));
                    submit(&daemon, &body)
                }
            };
            if answer.status == 202 {
                let ended = daemon.wait_for_end(&id);
                assert_eq!(ended["state"], "failed", "{ended}");
                named(&daemon, &id, 0, &name, &["blob-damaged"]);
                right(&daemon, &id, 1);
                assert_eq!(scene.quarantined(), 1);
                succeeds(&daemon, &submit(&daemon, &job(&[input])));
                let _ = daemon.upload(file("witness.wtns"));
                retried(&daemon, &id);
            } else {
                succeeds(&daemon, &id);
            }
        }
        assert!(daemon.terminate().success());
        is_clean(&scene.data);
    }
}

/// A job whose file is gone when the daemon starts ends then, and the others go on.
#[test]
fn a_witness_that_is_gone_at_the_start_fails_its_job() {
    let _alone = alone();
    let template = template();
    let scene = template.fork();
    let daemon = scene.start();
    // Many, so that some are left when it is killed.
    let lost = submit(&daemon, &job(&vec![witness(); 40]));
    daemon.kill();
    Damage::Delete.to(
        &scene.object(&sha256_name(file("witness.wtns"))),
        &mut rng("gone"),
    );
    let daemon = scene.start();
    let ended = daemon.wait_for_end(&lost);
    assert_eq!(ended["state"], "failed", "{ended}");
    let text = ended.to_string();
    assert!(
        text.contains("blob-missing") && text.contains("upload it again"),
        "{text}"
    );
    let input = input();
    succeeds(&daemon, &submit(&daemon, &job(&[input])));
    let _ = daemon.upload(file("witness.wtns"));
    retried(&daemon, &lost);
    assert!(daemon.terminate().success());
    is_clean(&scene.data);
}

/// Calculator and signals: the same.
#[test]
fn a_damaged_calculator_or_list_of_signals_is_not_blamed_on_the_input() {
    let _alone = alone();
    let mut rng = rng(".wasm, .sym");
    let template = template();
    let input = input();
    for name in ["circuit.wasm", "circuit.sym"] {
        let object = sha256_name(file(name));
        let mut ways = ways(&mut rng);
        ways.shuffle(&mut rng);
        for way in ways.into_iter().take(3) {
            let scene = template.fork();
            let daemon = damaged(&scene, &object, way, &mut rng);
            let id = submit(&daemon, &job(std::slice::from_ref(&input)));
            let ended = daemon.wait_for_end(&id);
            assert_eq!(ended["state"], "failed", "{ended}");
            named(&daemon, &id, 0, &object, &["blob-damaged", "blob-missing"]);
            let _ = daemon.upload(file(name));
            retried(&daemon, &id);
            assert!(daemon.terminate().success());
        }
    }
}

/// A damaged key makes no proof, or a right one where the damage is one that this proof doesn't meet. Uploaded again, it
/// is used again.
#[test]
fn a_damaged_key_makes_no_wrong_proof() {
    let _alone = alone();
    let mut rng = rng(".zkey");
    let template = template();
    let name = sha256_name(file("circuit.zkey"));
    let mut met = 0;
    for way in ways(&mut rng) {
        let scene = template.fork();
        let daemon = damaged(&scene, &name, way, &mut rng);
        let failed = with_a_damaged_key(&daemon, &name);
        met += u32::from(failed);
        assert!(daemon.terminate().success());
        if failed {
            is_clean(&scene.data);
        } else {
            // What no proof has met yet `fsck` finds.
            let found = proofkeep(["fsck", "--data-dir", &scene.data.to_string_lossy()]).expect(1);
            assert!(found.stdout.contains(&name), "{}", found.stdout);
        }
    }
    // Every point of a whole section: no proof can miss that. In place, under a key that is loaded and mapped.
    let scene = template.fork();
    let daemon = scene.start();
    succeeds(&daemon, &submit(&daemon, &job(&[witness()])));
    let mut bytes = file("circuit.zkey").to_vec();
    let (from, to) = (bytes.len() / 8, bytes.len() - 2000);
    bytes[from..to].iter_mut().step_by(48).for_each(|byte| *byte ^= 1);
    write_in_place(&scene.object(&name), &bytes);
    assert!(with_a_damaged_key(&daemon, &name), "nothing was noticed");
    assert!(daemon.terminate().success());
    is_clean(&scene.data);
    assert!(met > 0, "no damage was met");
}

/// `true` if the job failed for it.
fn with_a_damaged_key(daemon: &Daemon, name: &str) -> bool {
    let id = submit(daemon, &job(&[witness()]));
    let ended = daemon.wait_for_end(&id);
    if ended["state"] == "succeeded" {
        succeeds(daemon, &id);
        return false;
    }
    named(daemon, &id, 0, name, &["zkey-damaged", "blob-missing"]);
    let _ = daemon.upload(file("circuit.zkey"));
    retried(daemon, &id);
    true
}

/// A key that the daemon made itself nobody can upload again, and made again it would be another one: jobs that need it fail
/// and say so, until the file comes back from a backup, or the circuit is deleted and added again.
#[test]
fn a_damaged_key_that_was_made_here_says_what_can_be_done() {
    let _alone = alone();
    let template = Scene::new();
    let daemon = template.start();
    upload_all(&daemon);
    let described = json!({ "r1cs": sha256_name(file("circuit.r1cs")), "setup": "insecure-local" });
    let _ = daemon.put("/v1/circuits/poseidon2", &described).expect(202);
    let circuit = imported(&daemon);
    let name = circuit["files"]["zkey"].as_str().unwrap().to_owned();
    let bytes = std::fs::read(template.object(&name)).unwrap();
    assert!(daemon.terminate().success());
    let ends = |daemon: &Daemon, id: &str| daemon.wait_for_end(id)["state"].as_str().unwrap().to_owned();
    for (delete, from_backup) in [(true, true), (false, true), (false, false)] {
        let scene = template.fork();
        if delete {
            std::fs::remove_file(scene.object(&name)).unwrap();
        } else {
            let mut damaged = bytes.clone();
            let (from, to) = (bytes.len() / 8, bytes.len() - 2000);
            damaged[from..to]
                .iter_mut()
                .step_by(48)
                .for_each(|byte| *byte ^= 1);
            write_in_place(&scene.object(&name), &damaged);
        }
        let daemon = scene.start();
        let id = submit(&daemon, &job(&[witness()]));
        assert_eq!(ends(&daemon, &id), "failed");
        let (class, code, detail) = failure(&daemon, &id, 0);
        assert_eq!(
            (class.as_str(), code.as_str()),
            ("params_mismatch", "local-key-lost"),
            "{detail}"
        );
        let circuit_digest = circuit["digest"].as_str().unwrap();
        for said in [
            &name,
            circuit_digest,
            "from a backup",
            "delete the circuit and add it again",
        ] {
            assert!(detail.contains(said), "{detail}");
        }
        if from_backup {
            assert_eq!(daemon.upload(&bytes), name);
            let answer = daemon.send("POST", &format!("/v1/jobs/{id}/retry"), &[], None);
            assert_eq!(answer.status, 202, "{}", answer.text());
            assert_eq!(ends(&daemon, &id), "succeeded");
        } else {
            assert_eq!(
                daemon.send("DELETE", "/v1/circuits/poseidon2", &[], None).status,
                204
            );
            let _ = daemon.put("/v1/circuits/poseidon2", &described).expect(202);
            let again = imported(&daemon);
            assert_eq!(again["state"], "ready", "{again}");
            assert_ne!(again["files"]["zkey"], circuit["files"]["zkey"]);
            let id = submit(&daemon, &job(&[witness()]));
            assert_eq!(ends(&daemon, &id), "succeeded");
        }
        assert!(daemon.terminate().success());
        is_clean(&scene.data);
    }
}

/// What the daemon made itself it makes again.
#[test]
fn damaged_matrices_and_verification_keys_are_made_again() {
    let _alone = alone();
    let mut rng = rng("matrices, vk");
    let template = template();
    let made: Vec<String> = made_by_the_daemon(&template);
    assert_eq!(made.len(), 2, "matrices and verification key: {made:?}");
    for object in made {
        for damage in Damage::ALL {
            let scene = template.fork();
            let before = std::fs::read(scene.object(&object)).unwrap();
            // The key is loaded at the first proof, the verification key read at its end.
            let daemon = damaged(&scene, &object, (true, damage), &mut rng);
            succeeds(&daemon, &submit(&daemon, &job(&[witness()])));
            assert_eq!(
                std::fs::read(scene.object(&object)).unwrap(),
                before,
                "{damage:?}"
            );
            assert!(daemon.terminate().success());
            is_clean(&scene.data);
        }
    }
}

/// The objects that nobody uploaded.
fn made_by_the_daemon(scene: &Scene) -> Vec<String> {
    let uploaded: Vec<String> = [
        "circuit.zkey",
        "circuit.r1cs",
        "circuit.wasm",
        "circuit.sym",
        "witness.wtns",
    ]
    .map(|name| sha256_name(file(name)))
    .into_iter()
    .collect();
    let mut made = Vec::new();
    for directory in std::fs::read_dir(scene.data.join("objects")).unwrap() {
        for object in std::fs::read_dir(directory.unwrap().path()).unwrap() {
            let hex = object.unwrap().file_name().to_string_lossy().into_owned();
            made.extend(Digest::parse(&hex).map(|digest| digest.to_string()));
        }
    }
    made.retain(|name| !uploaded.contains(name));
    made.sort();
    made
}

/// An import of a file that isn't what was uploaded is refused, by its name; uploaded again, it is imported.
#[test]
fn a_damaged_file_of_a_circuit_is_not_imported() {
    let _alone = alone();
    let mut rng = rng("import");
    let mut refused = 0;
    for name in ["circuit.zkey", "circuit.r1cs", "circuit.wasm", "circuit.sym"] {
        let object = sha256_name(file(name));
        let mut flips = [Damage::FlipAny, Damage::FlipLast];
        flips.shuffle(&mut rng);
        let scene = Scene::new();
        let daemon = scene.start();
        upload_all(&daemon);
        flips[0].to(&scene.object(&object), &mut rng);
        eprintln!("{name}: {:?} before its import", flips[0]);
        let answer = daemon.put("/v1/circuits/poseidon2", &description());
        if answer.status == 422 {
            // Its header is looked at when it is registered.
            assert!(!answer.code().is_empty(), "{}", answer.text());
        } else {
            assert!(matches!(answer.status, 200..=202), "{}", answer.text());
            let failed = imported(&daemon);
            let text = failed["error"].to_string();
            assert_eq!(failed["state"], "failed", "{failed}");
            assert!(text.contains("blob-damaged") && text.contains(&object), "{text}");
            refused += 1;
        }
        register(&daemon);
        succeeds(&daemon, &submit(&daemon, &job(&[witness()])));
        assert!(daemon.terminate().success());
        is_clean(&scene.data);
    }
    assert!(refused > 0, "no import met its damage");
}

fn imported(daemon: &Daemon) -> Value {
    proofkeep_tests::harness::until_some("the import ends", || {
        let shown = daemon.get("/v1/circuits/poseidon2").expect(200).json();
        (shown["state"] != "importing").then_some(shown)
    })
}

/// Public signals that are damaged are never given out, and the partition is proved again.
#[test]
fn damaged_public_signals_are_not_given_out_and_can_be_proved_again() {
    let _alone = alone();
    let mut rng = rng("public signals");
    let template = template();
    let daemon = template.start();
    let id = submit(&daemon, &job(&[witness(), witness()]));
    succeeds(&daemon, &id);
    let public = daemon
        .get(&format!("/v1/jobs/{id}/partitions/0/public?format=bytes-le"))
        .expect(200)
        .body;
    assert!(daemon.terminate().success());
    let object = sha256_name(&public);
    let ways = ways(&mut rng);
    for way in &ways {
        let scene = template.fork();
        let daemon = damaged(&scene, &object, *way, &mut rng);
        for path in ["public", "partitions/0/public"] {
            let answer = daemon.get(&format!("/v1/jobs/{id}/{path}"));
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (500, "proof-damaged"),
                "{path}"
            );
            assert!(answer.text().contains("retry the job"), "{}", answer.text());
        }
        retried(&daemon, &id);
        assert!(daemon.terminate().success());
        is_clean(&scene.data);
    }
}
