//! What is saved and made again: a backup that a daemon makes while it works, a circuit that is removed and its files that
//! are swept, an export, a restore and an import. The disk of the recording holds all of it.

use std::fmt;
use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};
use std::time::Duration;

use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{command, proofkeep, sha256_name, until};
use proofkeep_tests::judge::Judge;
use proofkeep_tests::ledger::Said;
use proofkeep_tests::powercut::{Recording, acknowledge};
use proofkeep_tests::shim::{Record, Shims};
use serde_json::{Value, json};

use super::client::Client;
use super::crowd::stop;
use super::life;

/// The circuit that is removed.
const SPARE: &str = "poseidon2";
/// What nobody needs is kept for a day.
const OLD: Duration = Duration::from_secs(25 * 3600);

/// A recording.
pub struct Saved {
    pub disk: PathBuf,
    pub log: PathBuf,
    /// What had been said when the backup was asked for, and when the export was.
    backed_up: Vec<Vec<u8>>,
    exported: Vec<Vec<u8>>,
    swept: usize,
}

impl fmt::Display for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a backup of {} answers, an export of {}, {} files swept",
            self.backed_up.len(),
            self.exported.len(),
            self.swept
        )
    }
}

/// Makes it.
pub fn record(root: &Path) -> Saved {
    let (disk, log) = (root.join("disk"), root.join("log"));
    fs::create_dir(&disk).unwrap();
    let mut saved = Saved {
        disk,
        log,
        backed_up: Vec::new(),
        exported: Vec::new(),
        swept: 0,
    };
    let data = saved.disk.join("data");
    let daemon = life::launch(&data).shims(saved.shims()).start();
    let client = Client::new(&daemon, &saved.log, 1);
    let witness = life::register(&client);
    let body = json!({ "kind": "groth16", "circuit": "multiplier", "inputs": [{ "witness": witness }] });
    let proved = client.submit_body(&body, true);
    client.wait_for_end(proved);
    let spare = spare(&client);
    let working = working(&client);
    saved.backed_up = client.said();
    let answer = client.http.post(
        "/v1/admin/backup",
        &json!({ "target": saved.disk.join("backup") }),
    );
    let _ = answer.expect(201);
    saved.done("backup");
    client.cancel(working);
    remove_spare(&client);
    stop(daemon, &saved.log);

    // A day later its files are swept, and the uploads that callers were told of are not.
    saved.swept = saved.age(&data);
    let key = object(&data, &spare);
    assert!(
        key.exists(),
        "the key of the circuit that was removed is there until it is swept"
    );
    let daemon = life::launch(&data).shims(saved.shims()).start();
    until("the key of the circuit that was removed is swept", || {
        !key.exists()
    });
    let client = Client::new(&daemon, &saved.log, 2);
    client.submit(3);
    client.wait_for_all();
    assert!(daemon.terminate().success());

    saved.exported = said(&saved.log);
    saved.run([
        "export".as_ref(),
        saved.disk.join("export").as_os_str(),
        "--data-dir".as_ref(),
        data.as_os_str(),
    ]);
    saved.done("export");
    for (verb, from, to) in [
        ("restore", "backup", "restored"),
        ("import", "export", "imported"),
    ] {
        let (from, target) = (saved.disk.join(from), saved.disk.join(to));
        saved.run([
            verb.as_ref(),
            from.as_os_str(),
            "--data-dir".as_ref(),
            target.as_os_str(),
        ]);
        saved.done(to);
    }
    saved
}

/// A circuit of which no caller is told that its files are kept; answers the name of its key.
fn spare(client: &Client) -> String {
    let zkey = fixtures::read(SPARE, "circuit.zkey");
    client.http.register(SPARE, &[("zkey", &zkey)]);
    sha256_name(&zkey)
}

/// A job that is at work when the backup is made.
fn working(client: &Client) -> uuid::Uuid {
    let inputs: Vec<Value> = (0..40)
        .map(|salt| json!({ "piece_ms": 30, "salt": salt }))
        .collect();
    let job = client.submit_body(&json!({ "kind": "scripted", "inputs": inputs }), true);
    until("one of its partitions is proved", || {
        client.look(job)["summary"]["proved"].as_u64() > Some(0)
    });
    job
}

fn remove_spare(client: &Client) {
    let name = SPARE.to_owned();
    let answer = client
        .http
        .send("DELETE", &format!("/v1/circuits/{SPARE}"), &[], None);
    assert!(matches!(answer.status, 200..=204), "{}", answer.text());
    client.say(&Said::Gone { name });
}

fn object(data: &Path, name: &str) -> PathBuf {
    let hex = name.trim_start_matches("sha256:");
    data.join("objects").join(&hex[..2]).join(hex)
}

/// Everything that is acknowledged in a recording so far.
fn said(log: &Path) -> Vec<Vec<u8>> {
    let recording = Recording::read(log).unwrap();
    let all = recording.acknowledged(recording.entries().len());
    all.map(<[u8]>::to_vec).collect()
}

impl Saved {
    fn shims(&self) -> Shims {
        let record = Record {
            dir: self.disk.clone(),
            log: self.log.clone(),
            role: None,
            ack_file: None,
            lying: false,
        };
        Shims {
            record: Some(record),
            ..Shims::default()
        }
    }

    fn run<const N: usize>(&self, arguments: [&std::ffi::OsStr; N]) {
        let mut command = command(arguments);
        self.shims().apply(&mut command).unwrap();
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn done(&self, name: &str) {
        let name = name.to_owned();
        acknowledge(&self.log, &serde_json::to_vec(&Said::Saved { name }).unwrap()).unwrap();
    }

    /// Makes every file a day older that no caller was told of; answers how many.
    fn age(&self, data: &Path) -> usize {
        let told: Vec<PathBuf> = said(&self.log)
            .iter()
            .filter_map(|said| match serde_json::from_slice(said).unwrap() {
                Said::Object(name) => Some(object(data, &name)),
                _ => None,
            })
            .collect();
        let mut aged = 0;
        for directory in fs::read_dir(data.join("objects")).unwrap().flatten() {
            for entry in fs::read_dir(directory.path()).unwrap().flatten() {
                let path = entry.path();
                if told.contains(&path) {
                    continue;
                }
                let earlier = entry.metadata().unwrap().modified().unwrap() - OLD;
                let file = File::open(&path).unwrap();
                file.set_times(FileTimes::new().set_modified(earlier)).unwrap();
                aged += 1;
            }
        }
        aged
    }

    /// What is wrong with an image of the disk, for callers who were told this much.
    pub fn judge(&self, image: &Path, told: &[&[u8]]) -> Vec<String> {
        let judge = Judge::default();
        let done: Vec<String> = told
            .iter()
            .filter_map(|said| match serde_json::from_slice(said).unwrap() {
                Said::Saved { name } => Some(name),
                _ => None,
            })
            .collect();
        let is_done = |name: &str| done.iter().any(|done| done == name);
        let mut wrong = Vec::new();
        if image.join("data").exists() {
            wrong.extend(judge.judge(&image.join("data"), told.iter().copied()));
        } else if !told.is_empty() {
            wrong.push("the data directory is not there".to_owned());
        }
        // What has its name is whole: it can be made a store again.
        for (verb, name, kept) in [
            ("restore", "backup", &self.backed_up),
            ("import", "export", &self.exported),
        ] {
            let (from, target) = (image.join(name), image.join(format!("{name}-made-again")));
            if from.exists() {
                let ran = proofkeep([
                    verb.as_ref(),
                    from.as_os_str(),
                    "--data-dir".as_ref(),
                    target.as_os_str(),
                ]);
                if ran.code == 0 {
                    wrong.extend(judge.judge(&target, kept.iter().map(Vec::as_slice)));
                } else {
                    wrong.push(format!("the {name} is not whole: {}", ran.stderr));
                }
            } else if is_done(name) {
                wrong.push(format!("the {name} that was made is not there"));
            }
        }
        // A store that was being made is whole, or nobody takes it for one.
        for (name, kept) in [("restored", &self.backed_up), ("imported", &self.exported)] {
            let target = image.join(name);
            if target.join("FORMAT").exists() {
                wrong.extend(judge.judge(&target, kept.iter().map(Vec::as_slice)));
            } else if is_done(name) {
                wrong.push(format!("what was {name} is not there"));
            } else if target.exists() {
                let ran = proofkeep(["fsck".as_ref(), "--data-dir".as_ref(), target.as_os_str()]);
                if ran.code == 0 {
                    wrong.push(format!("what is half {name} is taken for a store"));
                }
            }
        }
        wrong
    }
}
