//! PoReps and updates through the daemon: killed in the second partition, and a WinningPoSt that comes amid them.

use std::time::Duration;

use filecoin_proofs::SectorShapeBase;
use proofkeep_filecoin::circuit::Circuit;
use proofkeep_filecoin::directory::{Content, Directory};
use proofkeep_filecoin::porep::Asked;
use proofkeep_filecoin::published::{verify_porep, verify_update};
use proofkeep_filecoin::snap::Update;
use proofkeep_tests::harness::{Daemon, until_some_within};
use serde_json::Value;

use super::support::{
    daemon, fixture, parameters, porep_request, post_request, submit, succeeded, update_request,
};

/// How long a step of a PoRep may take on a slow machine before it counts as hanging.
const LONG: Duration = Duration::from_secs(900);

fn shown(daemon: &Daemon, job: &str) -> Value {
    daemon.get(&format!("/v1/jobs/{job}")).expect(200).json()
}

fn bytes(daemon: &Daemon, path: &str) -> Vec<u8> {
    daemon.get(path).expect(200).body
}

fn vk(kind: &str, partitions: Option<u8>) -> Vec<u8> {
    let circuit = Circuit::named(kind, 2048, partitions).unwrap();
    let identifier = circuit.identifier().unwrap();
    std::fs::read(Directory::new(parameters()).file(&identifier, Content::Vk)).unwrap()
}

/// The joined proof, checked once more by the published verifier, here, and against another sector's replica.
fn verify_sealed(proof: &[u8]) {
    let mut request = porep_request();
    for common in ["kind", "max_attempts"] {
        request.remove(common);
    }
    let asked = Asked::take(&mut request).unwrap();
    let (commit, _) = asked
        .read::<SectorShapeBase>(&fixture("porep-2k-p2/c1.json"))
        .unwrap();
    let vk = vk("porep-c2", Some(2));
    assert!(
        verify_porep(&commit, &vk, proof).unwrap(),
        "the published verifier"
    );
    let mut other = commit.clone();
    other.seed[0] ^= 1;
    assert!(!verify_porep(&other, &vk, proof).unwrap_or(false));
    let swapped = [&proof[192..], &proof[..192]].concat();
    assert!(!verify_porep(&commit, &vk, &swapped).unwrap_or(false));
}

fn attempts(partition: &Value) -> &Vec<Value> {
    partition["attempts"].as_array().unwrap()
}

/// Waits until one partition is proved and the other is in its middle, with pieces that are durable; answers which one
/// is proved.
fn second_in_its_middle(daemon: &Daemon, job: &str) -> usize {
    until_some_within(LONG, "the second partition is in its middle", || {
        let job = shown(daemon, job);
        assert_ne!(job["state"], "failed", "{job}");
        let partitions = job["partitions"].as_array().unwrap();
        let proved = partitions.iter().position(|one| one["state"] == "proved")?;
        let other = &partitions[1 - proved];
        let pieces = other["checkpoint"].as_array().map_or(0, Vec::len);
        (other["state"] == "proving" && (1..5).contains(&pieces)).then_some(proved)
    })
}

#[test]
fn a_porep_killed_in_its_second_partition_keeps_the_first_and_gives_way_to_a_winning_post() {
    let data = tempfile::tempdir().unwrap();
    let first = daemon(data.path(), parameters());
    let porep = submit(&first, porep_request(), "vanilla_proof", "porep-2k-p2/c1.json");
    let proved = second_in_its_middle(&first, &porep);
    let path = format!("/v1/jobs/{porep}/partitions/{proved}/proof?format=bytes");
    let before = bytes(&first, &path);
    first.kill();

    let second = daemon(data.path(), parameters());
    let another = submit(
        &second,
        porep_request(),
        "vanilla_proof",
        "porep-2k-p2/c1-lotus.json",
    );
    let gave_way = (0..10).any(|_| winning_amid(&second, [&porep, &another]));
    assert!(gave_way, "no WinningPoSt came amid a PoRep");

    let job = succeeded(&second, &porep);
    let kept = &job["partitions"][proved];
    assert_eq!(attempts(kept).len(), 1, "it was proved again: {kept}");
    assert_eq!(bytes(&second, &path), before, "it was proved again");
    let killed = attempts(&job["partitions"][1 - proved]);
    assert_eq!(killed[0]["outcome"], "interrupted", "{job}");
    let reused = |attempt: &Value| attempt["reused"].as_array().map_or(0, Vec::len);
    assert!(killed[1..].iter().any(|attempt| reused(attempt) > 0), "{job}");
    let joined = bytes(&second, &format!("/v1/jobs/{porep}/proof?format=bytes"));
    assert_eq!(joined[192 * proved..][..192], before);
    verify_sealed(&joined);

    // What gave way went on from its pieces, and nothing was counted against it.
    let other = succeeded(&second, &another);
    verify_sealed(&bytes(&second, &format!("/v1/jobs/{another}/proof?format=bytes")));
    let both = [&job, &other];
    for partition in both
        .into_iter()
        .flat_map(|job| job["partitions"].as_array().unwrap())
    {
        let all = attempts(partition);
        for (place, attempt) in all.iter().enumerate() {
            let had_pieces = attempt["outcome"] == "preempted" && attempt["stage"] == "prove";
            let later = all[place + 1..].iter().any(|attempt| attempt["outcome"] == "ok");
            assert!(!had_pieces || later, "{partition}");
        }
    }
    assert!(second.terminate().success());
}

/// Proves a WinningPoSt while PoReps are proved: from when it was ready until it had the slot no partition of them got
/// it. Answers whether one of them had to give way in the middle of its proof.
fn winning_amid(daemon: &Daemon, poreps: [&String; 2]) -> bool {
    until_some_within(LONG, "a PoRep is proved", || {
        let jobs = poreps.map(|job| shown(daemon, job));
        let states = jobs.iter().flat_map(|job| job["partitions"].as_array().unwrap());
        let states: Vec<&str> = states.map(|one| one["state"].as_str().unwrap()).collect();
        let none_left = states.iter().all(|state| *state == "proved");
        assert!(!none_left, "the PoReps ended before a WinningPoSt came");
        states.contains(&"proving").then_some(())
    });
    let winning = submit(
        daemon,
        post_request("winning-2k"),
        "vanilla_proofs",
        "winning-2k/vanilla.bincode",
    );
    succeeded(daemon, &winning);
    let numbers = |job: &str, name: &str| -> Vec<u64> {
        let events = daemon
            .get(&format!("/v1/jobs/{job}/events?limit=1000"))
            .expect(200)
            .json();
        let events = events["events"].as_array().unwrap().iter();
        let named = events.filter(|event| event["event"] == name);
        named.map(|event| event["number"].as_u64().unwrap()).collect()
    };
    let (ready, given) = (
        numbers(&winning, "synth_ended")[0],
        numbers(&winning, "gpu_started")[0],
    );
    for porep in poreps {
        let begun = numbers(porep, "gpu_started");
        assert!(
            !begun.iter().any(|at| (ready..given).contains(at)),
            "{begun:?}: {ready} to {given}"
        );
    }
    poreps.iter().any(|porep| {
        let job = shown(daemon, porep);
        let partitions = job["partitions"].as_array().unwrap();
        let mut all = partitions.iter().flat_map(attempts);
        all.any(|attempt| attempt["outcome"] == "preempted" && attempt["stage"] == "prove")
    })
}

#[test]
fn an_update_is_proved_and_verifies_as_on_the_chain() {
    let data = tempfile::tempdir().unwrap();
    let daemon = daemon(data.path(), parameters());
    let job = submit(
        &daemon,
        update_request(),
        "vanilla_proofs",
        "snap-2k/vanilla.json",
    );
    succeeded(&daemon, &job);
    let proof = bytes(&daemon, &format!("/v1/jobs/{job}/proof?format=bytes"));
    let mut request = update_request();
    request.remove("kind");
    let update = Update::take(&mut request).unwrap();
    let vk = vk("snap-update", None);
    assert!(
        verify_update(&update, &vk, &proof).unwrap(),
        "the published verifier"
    );
    let mut other = update.clone();
    other.comm_d_new[0] ^= 1;
    assert!(!verify_update(&other, &vk, &proof).unwrap_or(false));
    assert!(daemon.terminate().success());
}
