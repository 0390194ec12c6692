//! sled's files, and the small ones beside it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proofkeep_store::format::SEGMENT_SIZE;
use proofkeep_tests::harness::{Launch, until_some};
use proofkeep_tests::ledger::{Ledger, Said};
use proofkeep_tests::probe::{Probed, answer_if_asked, probe};
use proofkeep_tests::report::Report;
use proofkeep_tests::setting;
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;
use uuid::Uuid;

use super::damage::Damage;
use super::scene::{Scene, alone, job, register, rng, submit, succeeds, witness};

const PROBED: &str = "database::a_damaged_database_never_loses_anything_in_silence";

/// Two lives of a daemon with jobs of each end, the second one killed; with a snapshot of sled's, and log after it.
fn template() -> (Scene, Ledger) {
    let (scene, ledger) = (Scene::new(), Ledger::new());
    let daemon = scene.start();
    let circuit = register(&daemon);
    let digest = circuit["digest"].as_str().unwrap().to_owned();
    ledger.note(Said::Circuit {
        name: "poseidon2".to_owned(),
        digest,
    });
    let told = |daemon: &proofkeep_tests::harness::Daemon, id: &str| {
        let shown = daemon.get(&format!("/v1/jobs/{id}")).expect(200).json();
        Ledger::told_of(&shown)
            .into_iter()
            .for_each(|said| ledger.note(said));
    };
    let submitted = |daemon: &proofkeep_tests::harness::Daemon, count: usize| {
        let id = submit(daemon, &job(&vec![witness(); count]));
        ledger.note(Said::Job {
            id: Uuid::parse_str(&id).unwrap(),
            partitions: count as u32,
            innocent: true,
        });
        id
    };
    for count in [1, 5, 2] {
        let id = submitted(&daemon, count);
        succeeds(&daemon, &id);
        told(&daemon, &id);
    }
    assert!(daemon.terminate().success());
    // sled takes its snapshot while it opens.
    let daemon = scene.start();
    for count in [3, 1] {
        let id = submitted(&daemon, count);
        succeeds(&daemon, &id);
        told(&daemon, &id);
    }
    for count in [4, 20] {
        submitted(&daemon, count);
    }
    daemon.kill();
    assert_eq!(probe(PROBED, &scene.fork().data, &ledger).wrong(), [""; 0]);
    (scene, ledger)
}

/// A store whose log has several segments, some of them older than sled's snapshot: large jobs come and go.
fn large() -> (Scene, Ledger) {
    let (scene, ledger) = (Scene::new(), Ledger::of_a_store_that_prunes());
    let log = || fs::metadata(scene.data.join("store.1/db")).map_or(0, |meta| meta.len());
    let inputs = vec![serde_json::json!({ "synth_ms": 1 }); 1024];
    let body = serde_json::json!({ "kind": "scripted", "inputs": inputs });
    for segments in [2, 3] {
        let launch = Launch::test_build(&scene.data).args(["--cpu-devices", "1", "--memory", "4GiB"]);
        let daemon = launch.args(["--max-jobs", "6"]).start();
        for jobs in 1.. {
            let id = submit(&daemon, &body);
            let uuid = Uuid::parse_str(&id).unwrap();
            ledger.note(Said::Job {
                id: uuid,
                partitions: 1024,
                innocent: true,
            });
            ledger.note(Said::Asked(uuid));
            assert_eq!(
                daemon
                    .send("POST", &format!("/v1/jobs/{id}/cancel"), &[], None)
                    .status,
                202
            );
            ledger.note(Said::Cancel(uuid));
            if log() >= segments * SEGMENT_SIZE {
                break;
            }
            assert!(jobs < 500, "the log has only {} bytes", log());
        }
        daemon.kill();
    }
    assert_eq!(probe(PROBED, &scene.fork().data, &ledger).wrong(), [""; 0]);
    (scene, ledger)
}

/// How damage was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Taken {
    /// Nothing is missing.
    Harmless,
    /// It does not open, and says which file and what to do.
    Refused,
    /// It opens; what is read of it ends the process with 70, and says the same.
    Stopped,
    /// It opens, and `fsck` says which records are damaged or gone.
    Reported,
}

/// What is said of a damaged directory must name a file of it, or a directory of sled's, and say what to do.
fn is_clear(text: &str, data: &Path) -> bool {
    let named = text.contains(&data.join("store.1").display().to_string())
        || ["FORMAT", "CURRENT", "REACHED"]
            .iter()
            .any(|name| text.contains(name));
    named
        && ["restore", "Restore", "back from a backup"]
            .iter()
            .any(|words| text.contains(words))
}

fn taken(data: &Path, ledger: &Ledger) -> Result<Taken, String> {
    match probe(PROBED, data, ledger) {
        Probed::Opened(seen) if seen.findings.is_empty() && seen.losses.is_empty() => Ok(Taken::Harmless),
        Probed::Opened(seen) if seen.findings.is_empty() => {
            Err(format!("lost in silence: {:?}", seen.losses))
        }
        Probed::Opened(_) => Ok(Taken::Reported),
        Probed::Refused(text) if is_clear(&text, data) => Ok(Taken::Refused),
        Probed::Stopped(Some(70), stderr) if is_clear(&stderr, data) => Ok(Taken::Stopped),
        other => Err(format!("{other:?}")),
    }
}

fn sled_files(data: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(data.join("store.1")).unwrap();
    files
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect()
}

#[test]
fn a_damaged_database_never_loses_anything_in_silence() {
    if answer_if_asked() {
        return;
    }
    let _alone = alone();
    let flips: usize = setting::number("PROOFKEEP_DAMAGE").unwrap_or(40);
    assert!(flips >= 10, "PROOFKEEP_DAMAGE must be at least 10, found {flips}");
    let mut rng = rng("database");
    let (template, ledger) = template();
    let mut found: BTreeMap<(String, Taken), u64> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut note = |what: String, taken: Result<Taken, String>| match taken {
        Ok(taken) => *found.entry((what, taken)).or_default() += 1,
        Err(text) => {
            eprintln!("WRONG {what}: {text}");
            wrong.push(format!("{what}: {text}"));
        }
    };
    let mut files = sled_files(&template.data);
    files.extend(["FORMAT", "CURRENT", "REACHED"].map(|name| template.data.join(name)));
    assert!(
        files.iter().any(|file| file.to_string_lossy().contains("snap.")),
        "{files:?}"
    );
    for file in files {
        let below = file.strip_prefix(&template.data).unwrap();
        for damage in Damage::ALL {
            let scene = template.fork();
            damage.to(&scene.data.join(below), &mut rng);
            let name = below.to_string_lossy();
            let name = name
                .split("snap.")
                .next()
                .filter(|_| name.contains("snap."))
                .map_or_else(|| name.to_string(), |before| format!("{before}snap.…"));
            note(format!("{name} {damage:?}"), taken(&scene.data, &ledger));
        }
    }
    // sled's log: anywhere in what is used of it, with the snapshot and without, so that all of the log is read.
    let large = large();
    for flip in 0..flips {
        let (name, (template, ledger)) = if flip % 2 == 0 {
            ("one segment", (&template, &ledger))
        } else {
            ("several segments", (&large.0, &large.1))
        };
        let scene = template.fork();
        let without = flip / 2 % 2 == 0;
        if without {
            sled_files(&scene.data)
                .into_iter()
                .filter(|file| file.to_string_lossy().contains("snap."))
                .for_each(|file| fs::remove_file(file).unwrap());
        }
        let at = flip_used(&scene.data.join("store.1/db"), &mut rng);
        let how = if without {
            "without a snapshot"
        } else {
            "with a snapshot"
        };
        let taken = taken(&scene.data, ledger).map_err(|text| format!("bit flipped at {at}: {text}"));
        note(format!("db, one bit, {name}, {how}"), taken);
    }
    eprintln!("\n| damage | taken as | times |\n| --- | --- | ---: |");
    for ((what, taken), count) in &found {
        eprintln!("| {what} | {taken:?} | {count} |");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let count = |wanted: Taken| -> u64 {
        let of = found.iter().filter(|((_, taken), _)| *taken == wanted);
        of.map(|(_, count)| count).sum()
    };
    Report::new("damage", setting::seed())
        .count("damages", found.values().sum())
        .count("harmless", count(Taken::Harmless))
        .count("refused", count(Taken::Refused))
        .count("stopped with 70", count(Taken::Stopped))
        .count("reported by fsck", count(Taken::Reported))
        .publish();
}

/// Flips a bit somewhere between the start of the file and its last byte that isn't zero; answers where.
fn flip_used(file: &Path, rng: &mut ChaCha8Rng) -> usize {
    let mut bytes = fs::read(file).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let at = rng.gen_range(0..=end);
    bytes[at] ^= 1 << rng.gen_range(0..8);
    fs::write(file, bytes).unwrap();
    at
}

/// The daemon itself: it ends with 70 and a sentence, and makes nothing new.
#[test]
fn a_daemon_does_not_start_on_what_is_damaged() {
    let _alone = alone();
    let mut rng = rng("start");
    let template = Scene::new();
    let daemon = template.start();
    register(&daemon);
    succeeds(&daemon, &submit(&daemon, &job(&[witness()])));
    assert!(daemon.terminate().success());
    for (name, damage) in [
        ("FORMAT", Damage::Delete),
        ("FORMAT", Damage::FlipFirst),
        ("FORMAT", Damage::Empty),
        ("CURRENT", Damage::Delete),
        ("CURRENT", Damage::FlipFirst),
        ("CURRENT", Damage::Empty),
        ("store.1/db", Damage::Delete),
        ("store.1/db", Damage::Empty),
        ("store.1/db", Damage::Cut),
    ] {
        let scene = template.fork();
        damage.to(&scene.data.join(name), &mut rng);
        let (status, stderr) = match scene.launch().try_start() {
            Err(failed) => (failed.status, failed.stderr),
            Ok(mut daemon) => (until_some("the daemon ends", || daemon.ended()), daemon.kill()),
        };
        let what = format!("{name} {damage:?}: {status}\n{stderr}");
        assert_eq!(status.code(), Some(70), "{what}");
        let said: Vec<&str> = stderr
            .lines()
            .filter(|line| line.starts_with("proofkeep: ") || line.starts_with("error: "))
            .collect();
        assert!(said.len() == 1 && is_clear(said[0], &scene.data), "{what}");
    }
}
