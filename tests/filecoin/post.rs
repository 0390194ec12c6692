use std::ffi::OsStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use filecoin_proofs::constants::SectorShapeSub8;
use filecoin_proofs::{FallbackPoStSectorProof, SectorShapeBase};
use proofkeep_filecoin::circuit::Circuit;
use proofkeep_filecoin::directory::{Content, Directory};
use proofkeep_filecoin::post::Post;
use proofkeep_filecoin::published::verify_post;
use proofkeep_tests::harness::{Daemon, proofkeep};
use serde_json::{Map, Value, json};

use super::support::{daemon, fixture, parameters, post_request, sample};

type Sectors = Vec<FallbackPoStSectorProof<SectorShapeBase>>;

/// Submits, waits for the end, and answers the job.
fn prove(daemon: &Daemon, request: &Map<String, Value>) -> Value {
    let answer = daemon
        .post("/v1/jobs", &Value::Object(request.clone()))
        .expect(202)
        .json();
    let job = daemon.wait_for_end(answer["id"].as_str().unwrap());
    assert_eq!(job["state"], "succeeded", "{job}");
    job
}

/// The joined proof of a job, checked once more by the published verifier, here.
fn verified(daemon: &Daemon, job: &Value, directory: &str) -> Vec<u8> {
    let id = job["id"].as_str().unwrap();
    let proof = daemon
        .get(&format!("/v1/jobs/{id}/proof?format=bytes"))
        .expect(200)
        .body;
    let mut request = post_request(directory);
    let kind = request.remove("kind").unwrap();
    let kind = kind.as_str().unwrap();
    let post = Post::take(&mut request, kind == "winning-post").unwrap();
    let all: Sectors = bincode::deserialize(&fixture(&format!("{directory}/vanilla.bincode"))).unwrap();
    let sectors: Vec<(u64, [u8; 32])> = all
        .iter()
        .map(|sector| {
            let comm_r: &[u8] = sector.comm_r.as_ref();
            (sector.sector_id.into(), comm_r.try_into().unwrap())
        })
        .collect();
    let identifier = Circuit::named(kind, 2048, None).unwrap().identifier().unwrap();
    let vk = std::fs::read(Directory::new(parameters()).file(&identifier, Content::Vk)).unwrap();
    assert!(
        verify_post(&post, &sectors, &vk, &proof).unwrap(),
        "the published verifier"
    );
    let mut other = post.clone();
    other.randomness[0] ^= 1;
    assert!(!verify_post(&other, &sectors, &vk, &proof).unwrap());
    proof
}

/// Every encoding, as one digest or as one for each sector.
fn encodings(daemon: &Daemon, directory: &str) -> Vec<Value> {
    let bincode = fixture(&format!("{directory}/vanilla.bincode"));
    let all: Sectors = bincode::deserialize(&bincode).unwrap();
    let each: Vec<Vec<u8>> = all.iter().map(|one| bincode::serialize(one).unwrap()).collect();
    let go: Vec<String> = each.iter().map(|one| STANDARD.encode(one)).collect();
    vec![
        daemon.upload(&bincode).into(),
        daemon
            .upload(&fixture(&format!("{directory}/vanilla.json")))
            .into(),
        daemon.upload(&serde_json::to_vec(&go).unwrap()).into(),
        each.iter().map(|one| Value::from(daemon.upload(one))).collect(),
    ]
}

#[test]
fn window_and_winning_posts_in_every_encoding_are_proved_and_verify_as_on_the_chain() {
    let data = tempfile::tempdir().unwrap();
    let daemon = daemon(data.path(), parameters());
    for (directory, partitions, priority) in
        [("window-2k-3sectors", 2, "high"), ("winning-2k", 1, "critical")]
    {
        for proofs in encodings(&daemon, directory) {
            let mut request = post_request(directory);
            request.insert("vanilla_proofs".to_owned(), proofs);
            let job = prove(&daemon, &request);
            assert_eq!(job["summary"]["proved"], partitions, "{job}");
            assert_eq!(job["priority"], priority, "{job}");
            assert_eq!(
                verified(&daemon, &job, directory).len(),
                192 * partitions as usize
            );
        }
    }
    // One partition alone is the same statement as among all: its signals are those of the whole job.
    let all: Sectors = bincode::deserialize(&fixture("window-2k-3sectors/vanilla.bincode")).unwrap();
    let mut request = post_request("window-2k-3sectors");
    let second = daemon.upload(&bincode::serialize(&all[2..]).unwrap());
    request.insert("vanilla_proofs".to_owned(), second.into());
    request.insert("partition_index".to_owned(), 1.into());
    let job = prove(&daemon, &request);
    let id = job["id"].as_str().unwrap();
    let alone = daemon.get(&format!("/v1/jobs/{id}/public")).expect(200).json();
    let mut request = post_request("window-2k-3sectors");
    request.insert(
        "vanilla_proofs".to_owned(),
        encodings(&daemon, "window-2k-3sectors")[0].clone(),
    );
    let whole = prove(&daemon, &request);
    let id = whole["id"].as_str().unwrap();
    let signals = daemon
        .get(&format!("/v1/jobs/{id}/partitions/1/public"))
        .expect(200)
        .json();
    assert!(alone == signals || alone == json!([signals]), "{alone} {signals}");
    assert!(daemon.terminate().success());
}

/// What is wrong with the request itself; wrong vanilla proofs are in `malformed`.
#[test]
fn what_is_malformed_is_422_with_its_field_and_nothing_is_synthesized() {
    let data = tempfile::tempdir().unwrap();
    let daemon = daemon(data.path(), parameters());
    let good = daemon.upload(&fixture("window-2k-3sectors/vanilla.json"));
    let no_proofs = daemon.upload(b"no proofs");
    let cases: [(&str, Value, &str); 7] = [
        ("randomness", 7.into(), "randomness"),
        ("prover_id", "00".into(), "prover_id"),
        ("partition_index", (-1).into(), "partition_index"),
        (
            "registered_proof",
            "StackedDrgWinning2KiBV1".into(),
            "registered_proof",
        ),
        ("vanilla_proofs", no_proofs.into(), "vanilla_proofs"),
        ("vanilla_proofs", 7.into(), "vanilla_proofs"),
        ("vanilla_proofs", json!([good, "sha256:7"]), "vanilla_proofs[1]"),
    ];
    for (field, value, place) in cases {
        let mut request = post_request("window-2k-3sectors");
        request.insert("vanilla_proofs".to_owned(), good.clone().into());
        request.insert(field.to_owned(), value.clone());
        let problem = daemon
            .post("/v1/jobs", &Value::Object(request))
            .expect(422)
            .json();
        assert_eq!(problem["field"], place, "{problem}");
        assert!(
            problem["expected"].is_string() && problem["found"].is_string(),
            "{problem}"
        );
    }
    let mut request = post_request("window-2k-3sectors");
    request.insert("vanilla_proofs".to_owned(), good.into());
    request.insert("colour".to_owned(), "red".into());
    let problem = daemon
        .post("/v1/jobs", &Value::Object(request))
        .expect(422)
        .json();
    assert_eq!(problem["code"], "unknown-field", "{problem}");
    let jobs = daemon.get("/v1/jobs").expect(200).json();
    assert_eq!(jobs["jobs"], json!([]), "no job was made: {jobs}");
    let stderr = daemon.kill();
    assert!(!stderr.contains("panicked"), "{stderr}");
}

/// Sectors of 16 KiB have another tree shape, and three of them are two partitions.
#[test]
fn a_window_post_of_larger_sectors_is_proved_in_its_two_partitions() {
    let (data, directory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let words = [
        "params",
        "generate",
        "--kind",
        "window-post",
        "--sector-size",
        "16KiB",
        "--param-dir",
    ];
    let mut words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
    words.push(directory.path().as_os_str());
    assert_eq!(proofkeep(words).code, 0);
    let (mut request, proofs) = sample("window-post", "16KiB", &[]);
    let daemon = daemon(data.path(), directory.path());
    request.insert("vanilla_proofs".to_owned(), daemon.upload(&proofs).into());
    let job = prove(&daemon, &request);
    assert_eq!(job["summary"]["proved"], 2, "{job}");
    let id = job["id"].as_str().unwrap();
    let proof = daemon
        .get(&format!("/v1/jobs/{id}/proof?format=bytes"))
        .expect(200)
        .body;

    request.remove("kind");
    request.remove("vanilla_proofs");
    let post = Post::take(&mut request, false).unwrap();
    let all: Vec<FallbackPoStSectorProof<SectorShapeSub8>> = bincode::deserialize(&proofs).unwrap();
    let sectors: Vec<(u64, [u8; 32])> = all
        .iter()
        .map(|sector| {
            let comm_r: &[u8] = sector.comm_r.as_ref();
            (sector.sector_id.into(), comm_r.try_into().unwrap())
        })
        .collect();
    let identifier = Circuit::named("window-post", 1 << 14, None)
        .unwrap()
        .identifier()
        .unwrap();
    let vk = std::fs::read(Directory::new(directory.path()).file(&identifier, Content::Vk)).unwrap();
    assert!(
        verify_post(&post, &sectors, &vk, &proof).unwrap(),
        "the published verifier"
    );
    let swapped = [&proof[192..], &proof[..192]].concat();
    assert!(!verify_post(&post, &sectors, &vk, &swapped).unwrap());
    assert!(daemon.terminate().success());
}
