//! Damage to what is live: records of jobs that haven't ended, and the indexes that they are found by. The start puts back
//! what the journal says; what nobody can put back is named, and keeps no other job from going on.

use std::collections::BTreeSet;
use std::path::Path;

use proofkeep_store::ids::JobNumber;
use proofkeep_store::keys::{self, Family};
use proofkeep_tests::harness::{Daemon, proofkeep, until_some};
use rand::Rng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::damage::Damage;
use super::scene::{Scene, alone, is_clean, job, register, rng, submit, succeeds, witness};

const JSON: (&str, &str) = ("content-type", "application/json");
/// The number of the job that is damaged.
const VICTIM: JobNumber = JobNumber(1);

/// A daemon that was killed in the middle of a job, with another one behind it.
struct Half {
    scene: Scene,
    victim: String,
    other: String,
}

fn half_done() -> Half {
    let scene = Scene::new();
    let daemon = scene.start();
    register(&daemon);
    let body = job(&vec![witness(); 60]).to_string();
    let headers = [JSON, ("idempotency-key", "the-victim")];
    let answer = daemon
        .send("POST", "/v1/jobs", &headers, Some(body.as_bytes()))
        .expect(202);
    let victim = answer.json()["id"].as_str().unwrap().to_owned();
    let other = submit(&daemon, &job(&vec![witness(); 4]));
    until_some("some partitions are proved", || {
        let shown = daemon.get(&format!("/v1/jobs/{victim}")).expect(200).json();
        assert!(shown["ended_at"].is_null(), "it was too quick: {shown}");
        (shown["summary"]["proved"].as_u64().unwrap() >= 2
            && shown["summary"]["running"].as_u64().unwrap() > 0)
            .then_some(())
    });
    daemon.kill();
    Half { scene, victim, other }
}

/// Damages up to `most` of the records that `of_it` picks, in a store that nobody has open; answers their keys.
pub fn damage_some(
    data: &Path,
    most: usize,
    damage: Damage,
    rng: &mut ChaCha8Rng,
    of_it: impl Fn(&[u8]) -> bool,
) -> Vec<Vec<u8>> {
    let db = sled::Config::new()
        .path(data.join("store.1"))
        .segment_size(usize::try_from(proofkeep_store::format::SEGMENT_SIZE).unwrap())
        .flush_every_ms(None)
        .use_compression(false)
        .mode(sled::Mode::HighThroughput)
        .open()
        .unwrap();
    let mut records: Vec<_> = db
        .iter()
        .map(Result::unwrap)
        .filter(|(key, _)| of_it(key))
        .collect();
    records.shuffle(rng);
    records.truncate(most);
    for (key, value) in &records {
        let mut value = value.to_vec();
        if damage == Damage::Delete {
            db.remove(key).unwrap();
            continue;
        }
        if value.is_empty() {
            // An index entry says everything in its key.
            value.push(rng.r#gen());
        } else {
            let last = value.len() - 1;
            match damage {
                Damage::Cut => value.truncate(last / 2),
                Damage::Empty => value.clear(),
                Damage::FlipFirst => value[0] ^= 1 << rng.gen_range(0..8),
                Damage::FlipLast => value[last] ^= 1 << rng.gen_range(0..8),
                _ => value[rng.gen_range(0..=last)] ^= 1 << rng.gen_range(0..8),
            }
        }
        db.insert(key, value).unwrap();
    }
    db.flush().unwrap();
    records.into_iter().map(|(key, _)| key.to_vec()).collect()
}

/// Keys of a family that are about the victim.
fn of_victim(family: Family) -> impl Fn(&[u8]) -> bool {
    move |key| Family::of(key) == Some(family) && keys::job_of(key).is_none_or(|job| job == VICTIM)
}

fn damage_told(daemon: &Daemon) -> Value {
    daemon.get("/v1/status").expect(200).json()["store"]["damage"].clone()
}

/// Records that a journal makes are made again by it: the job goes on as if nothing had been.
#[test]
fn what_the_journal_says_is_put_back_at_the_start() {
    let _alone = alone();
    let mut rng = rng("live records");
    let half = half_done();
    let mut ways: Vec<(Family, Damage)> = Vec::new();
    for family in [
        Family::Job,
        Family::Generation,
        Family::Partition,
        Family::Attempt,
        Family::Lease,
        Family::Circuit,
        Family::JobId,
        Family::Idempotency,
    ] {
        ways.extend([*Damage::ALL.choose(&mut rng).unwrap(), Damage::Delete].map(|damage| (family, damage)));
    }
    ways.extend([Family::Active, Family::Ready, Family::Open].map(|family| (family, Damage::Delete)));
    // That a name is gone only the whole journal knows, since names are given anew and taken away.
    ways.push((Family::CircuitName, Damage::FlipAny));
    let mut put_back = 0;
    for (family, damage) in ways {
        let scene = half.scene.fork();
        let damaged = damage_some(&scene.data, 3, damage, &mut rng, of_victim(family));
        eprintln!("{family:?}: {damage:?} of {}", damaged.len());
        assert!(!damaged.is_empty(), "{family:?}");
        let daemon = scene.start();
        let told = damage_told(&daemon);
        assert_eq!(told["set_aside"], json!([]), "{family:?} {damage:?}: {told}");
        assert_eq!(told["found"], json!([]), "{family:?} {damage:?}: {told}");
        let lines = told["put_back"].as_array().unwrap();
        put_back += lines.len();
        assert!(!lines.is_empty(), "{family:?} {damage:?} was not noticed");
        succeeds(&daemon, &half.victim);
        succeeds(&daemon, &half.other);
        let again = job(&vec![witness(); 60]).to_string();
        let headers = [JSON, ("idempotency-key", "the-victim")];
        let answer = daemon
            .send("POST", "/v1/jobs", &headers, Some(again.as_bytes()))
            .expect(200);
        assert_eq!(answer.json()["id"], half.victim.as_str());
        assert!(daemon.terminate().success());
        is_clean(&scene.data);
    }
    assert!(put_back > 20, "{put_back}");
}

/// A job whose journal is damaged as well can't be put back. It is set aside: named everywhere, neither run nor lost from
/// the list, and nobody else's business.
#[test]
fn a_job_that_nobody_can_put_back_is_named_and_the_others_go_on() {
    let _alone = alone();
    let mut rng = rng("live records without a journal");
    let half = half_done();
    for family in [Family::Job, Family::Generation, Family::Partition, Family::Lease] {
        let scene = half.scene.fork();
        let damage = *[Damage::FlipAny, Damage::Cut, Damage::Empty]
            .choose(&mut rng)
            .unwrap();
        let events = events_of_victim(&scene.data);
        let event = |key: &[u8]| Family::of(key) == Some(Family::Event) && events.contains(&key[1..]);
        assert_eq!(
            damage_some(&scene.data, 1, Damage::FlipLast, &mut rng, event).len(),
            1
        );
        let damaged = damage_some(&scene.data, 1, damage, &mut rng, of_victim(family));
        assert_eq!(damaged.len(), 1, "{family:?}");
        eprintln!("{family:?}: {damage:?}, and one of its events");
        // Also the second time: nothing of it was forgotten.
        for _ in 0..2 {
            let daemon = scene.start();
            succeeds(&daemon, &half.other);
            succeeds(&daemon, &submit(&daemon, &job(&[witness()])));
            let told = damage_told(&daemon);
            let aside = &told["set_aside"][0];
            assert_eq!(aside["number"], 1, "{family:?} {damage:?}: {told}");
            let shown = daemon.get(&format!("/v1/jobs/{}", half.victim));
            assert_eq!(
                (shown.status, shown.code().as_str()),
                (500, "job-damaged"),
                "{}",
                shown.text()
            );
            let cancel = daemon.send("POST", &format!("/v1/jobs/{}/cancel", half.victim), &[], None);
            assert!(matches!(cancel.status, 202 | 500), "{}", cancel.text());
            for list in [
                "/v1/jobs",
                "/v1/jobs?order=oldest",
                "/v1/jobs?limit=1&order=oldest",
            ] {
                let jobs = daemon.get(list).expect(200).json();
                let row = jobs["jobs"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .find(|job| job["id"] == half.victim.as_str());
                let row = row.unwrap_or_else(|| panic!("{list} is without it: {jobs}"));
                assert_eq!(row["state"], "damaged", "{row}");
            }
            let log = daemon.kill();
            assert!(log.contains("is set aside"), "{log}");
        }
        let found = proofkeep(["fsck", "--data-dir", &scene.data.to_string_lossy()]).expect(1);
        assert!(found.stdout.contains("job 1"), "{}", found.stdout);
    }
}

/// The ends of the keys of the victim's events after its submission.
fn events_of_victim(data: &Path) -> BTreeSet<Vec<u8>> {
    let store = proofkeep_store::Store::open(data, &proofkeep_store::Options::default()).unwrap();
    let prefix = keys::of_job(Family::JobEvent, VICTIM);
    let entries = store.read(|view| view.scan(&prefix, None, usize::MAX)).unwrap();
    entries
        .into_iter()
        .skip(1)
        .map(|(key, _)| key[9..].to_vec())
        .collect()
}

/// Without these nobody can say what comes next: nothing is started, and that is said.
#[test]
fn damage_to_what_every_job_needs_ends_the_start() {
    let _alone = alone();
    let mut rng = rng("vital records");
    let half = half_done();
    for (family, damage) in [
        (Family::Sequence, Damage::FlipAny),
        (Family::Sequence, Damage::Empty),
        (Family::Sequence, Damage::Delete),
        (Family::Counter, Damage::FlipLast),
        (Family::Boot, Damage::Cut),
        (Family::Boot, Damage::Delete),
    ] {
        let scene = half.scene.fork();
        let damaged = damage_some(&scene.data, 3, damage, &mut rng, |key| {
            Family::of(key) == Some(family)
        });
        assert!(!damaged.is_empty());
        let (status, stderr) = match scene.launch().try_start() {
            Err(failed) => (failed.status, failed.stderr),
            Ok(mut daemon) => (until_some("the daemon ends", || daemon.ended()), daemon.kill()),
        };
        let what = format!("{family:?} {damage:?}: {status}\n{stderr}");
        assert_eq!(status.code(), Some(70), "{what}");
        let said: Vec<&str> = stderr
            .lines()
            .filter(|line| line.starts_with("proofkeep: ") || line.starts_with("error: "))
            .collect();
        assert!(
            said.len() == 1 && said[0].to_lowercase().contains("restore"),
            "{what}"
        );
    }
}

/// What a start leaves alone, an ended job and a name, a person has put back.
#[test]
fn fsck_repairs_what_the_journal_still_says() {
    let _alone = alone();
    let mut rng = rng("repair");
    let scene = Scene::new();
    let daemon = scene.start();
    register(&daemon);
    let ids: Vec<String> = (0..2)
        .map(|_| submit(&daemon, &job(&[witness(), witness()])))
        .collect();
    ids.iter().for_each(|id| succeeds(&daemon, id));
    assert!(daemon.terminate().success());
    for family in [
        Family::Job,
        Family::JobId,
        Family::Attempt,
        Family::CircuitName,
        Family::Done,
    ] {
        // A name that can't be read a start puts back by itself.
        let damage = if matches!(family, Family::Done | Family::CircuitName) {
            Damage::Delete
        } else {
            *[Damage::FlipAny, Damage::Cut, Damage::Delete]
                .choose(&mut rng)
                .unwrap()
        };
        let scene = scene.fork();
        let all = |key: &[u8]| Family::of(key) == Some(family);
        eprintln!("{family:?}: {damage:?}");
        assert_eq!(damage_some(&scene.data, 1, damage, &mut rng, all).len(), 1);
        // The daemon goes on, and loses no job from its list.
        let daemon = scene.start();
        let jobs = daemon.get("/v1/jobs").expect(200).json();
        assert_eq!(jobs["jobs"].as_array().unwrap().len(), 2, "{family:?}: {jobs}");
        for id in &ids {
            let shown = daemon.get(&format!("/v1/jobs/{id}"));
            let damaged = (shown.status, shown.code()) == (500, "job-damaged".to_owned());
            // An id that is gone altogether is known to nobody but a list.
            let unknown = family == Family::JobId && matches!(shown.status, 404 | 500);
            assert!(
                shown.status == 200 || damaged || unknown,
                "{family:?}: {}",
                shown.text()
            );
        }
        assert!(daemon.terminate().success());
        let data = scene.data.to_string_lossy();
        let _ = proofkeep(["fsck", "--data-dir", &data]).expect(1);
        let repaired = proofkeep(["fsck", "--repair", "--data-dir", &data]).expect(0);
        assert!(repaired.stdout.contains("put back: "), "{}", repaired.stdout);
        is_clean(&scene.data);
        let daemon = scene.start();
        ids.iter().for_each(|id| succeeds(&daemon, id));
        succeeds(&daemon, &submit(&daemon, &job(&[witness()])));
        assert!(daemon.terminate().success());
    }
}
