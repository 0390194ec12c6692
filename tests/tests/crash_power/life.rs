//! A directory's whole life, small enough that many cuts come to each of its moments: its making, a circuit and its
//! import, uploads, jobs of both kinds, cancels, failures, retries, repeated keys; starts that are killed while they
//! open, orderly ends, migrations, some of them killed, and what follows them.

use std::fmt;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};

use proofkeep_tests::fixtures;
use proofkeep_tests::harness::{Daemon, Launch, command, until, until_some};
use proofkeep_tests::ledger::Said;
use proofkeep_tests::shim::{Kill, Record, Role, Shims, When};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use uuid::Uuid;

use super::client::Client;
use super::crowd::stop;

/// Starts that are killed while they open, in each round.
const KILLED_STARTS: u32 = 4;
/// Durable operations of a start until it is ready, a few less.
const OPENING: u64 = 18;
/// Migrations that are killed, in each round.
const KILLED_MIGRATIONS: u32 = 2;
/// Durable operations of a migration, a few less.
const MIGRATING: u64 = 30;
/// How often all of it happens.
const ROUNDS: u64 = 2;

/// A life that is being recorded.
pub struct Life {
    pub data: PathBuf,
    pub log: PathBuf,
    marks: PathBuf,
    rng: ChaCha8Rng,
    lives: u64,
    pub killed_starts: u64,
    pub killed_migrations: u64,
    pub migrations: u64,
}

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} starts, {} of them killed while they opened; {} migrations, and {} killed ones",
            self.lives, self.killed_starts, self.migrations, self.killed_migrations
        )
    }
}

/// Makes the recording.
pub fn record(root: &Path, seed: u64) -> Life {
    let mut life = Life {
        data: root.join("data"),
        log: root.join("log"),
        marks: root.join("marks"),
        rng: ChaCha8Rng::seed_from_u64(seed),
        lives: 0,
        killed_starts: 0,
        killed_migrations: 0,
        migrations: 0,
    };
    std::fs::create_dir(&life.data).unwrap();
    std::fs::create_dir(&life.marks).unwrap();
    for _ in 0..ROUNDS {
        let daemon = life.start();
        life.work(&daemon);
        stop(daemon, &life.log);
        for _ in 0..KILLED_STARTS {
            life.start_killed();
        }
        let daemon = life.start();
        life.work(&daemon);
        assert!(daemon.terminate().success());
        for _ in 0..KILLED_MIGRATIONS {
            life.migrate_killed();
            let daemon = life.start();
            life.client(&daemon).submit(1);
            assert!(daemon.terminate().success());
        }
        life.migrate();
        // Its boot before was clean, so it removes the database that was migrated.
        let daemon = life.start();
        life.work(&daemon);
        assert!(!life.data.join("store.1").exists(), "the old database is removed");
        stop(daemon, &life.log);
        // Jobs are under way in what is migrated now.
        life.migrate();
        let daemon = life.start();
        life.client(&daemon).wait_for_all();
        assert!(daemon.terminate().success());
    }
    assert!(
        life.killed_starts >= ROUNDS && life.killed_migrations >= ROUNDS,
        "too little was killed: {life}"
    );
    life
}

/// The daemon as it is started for this load.
pub fn launch(data: &Path) -> Launch {
    Launch::test_build(data)
        .args(["--cpu-devices", "2", "--threads", "1", "--memory", "8GiB"])
        .args(["--checkpoint-after", "0ms", "--grace", "5s"])
}

impl Life {
    fn shims(&self, kill: Option<Kill>) -> Shims {
        let record = Record {
            dir: self.data.clone(),
            log: self.log.clone(),
            role: None,
            ack_file: None,
            lying: false,
        };
        Shims {
            kill,
            record: Some(record),
            ..Shims::default()
        }
    }

    /// A kill at one of so many operations, before or after it.
    fn any_kill(&mut self, operations: u64) -> Kill {
        Kill {
            at: self.rng.gen_range(1..=operations),
            when: if self.rng.gen_bool(0.5) {
                When::Before
            } else {
                When::After
            },
            role: Some(Role::Daemon),
            ..Kill::counting(&self.data)
        }
    }

    fn start(&mut self) -> Daemon {
        self.lives += 1;
        launch(&self.data).shims(self.shims(None)).start()
    }

    fn client(&self, daemon: &Daemon) -> Client {
        Client::new(daemon, &self.log, self.lives)
    }

    fn start_killed(&mut self) {
        self.lives += 1;
        let kill = self.any_kill(OPENING);
        let mut daemon = match launch(&self.data).shims(self.shims(Some(kill))).try_start() {
            Ok(daemon) => daemon,
            Err(failed) => {
                assert_eq!(failed.status.signal(), Some(libc::SIGKILL), "{}", failed.stderr);
                self.killed_starts += 1;
                return;
            }
        };
        let ready = |daemon: &Daemon| {
            daemon
                .try_send("GET", "/readyz", &[], None)
                .is_some_and(|answer| answer.status == 200)
        };
        until("the daemon is killed or ready", || {
            daemon.ended().is_some() || ready(&daemon)
        });
        match daemon.ended() {
            Some(status) => {
                assert_eq!(status.signal(), Some(libc::SIGKILL), "{}", daemon.stderr());
                self.killed_starts += 1;
                drop(daemon.kill());
            }
            None => stop(daemon, &self.log),
        }
    }

    fn migrate(&mut self) {
        let (status, said) = self.migration(None);
        assert!(status.success(), "{said}");
        self.migrations += 1;
    }

    fn migrate_killed(&mut self) {
        let kill = self.any_kill(MIGRATING);
        let (status, said) = self.migration(Some(kill));
        if status.success() {
            self.migrations += 1;
        } else {
            assert_eq!(status.signal(), Some(libc::SIGKILL), "{said}");
            self.killed_migrations += 1;
        }
    }

    fn migration(&self, kill: Option<Kill>) -> (std::process::ExitStatus, String) {
        // The two do the same.
        let verb = ["migrate", "compact"][usize::from(self.lives.is_multiple_of(2))];
        let mut migrate = command([verb.as_ref(), "--data-dir".as_ref(), self.data.as_os_str()]);
        self.shims(kill).apply(&mut migrate).unwrap();
        let output = migrate.output().unwrap();
        (
            output.status,
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    }

    /// Everything that callers do; some of it is still under way at the end.
    fn work(&mut self, daemon: &Daemon) {
        let client = self.client(daemon);
        let witness = register(&client);
        let body = json!({
            "kind": "groth16", "circuit": "multiplier", "inputs": [{"witness": witness}, {"witness": witness}],
        });
        let proving = client.submit_body(&body, true);
        let plain = client.submit_as(
            &format!("key-{}", self.lives),
            &json!({ "kind": "scripted", "inputs": [{"salt": self.lives}, {"salt": 1}, {"salt": 2}] }),
        );
        let again = client.submit_as(
            &format!("key-{}", self.lives),
            &json!({ "kind": "scripted", "inputs": [{"salt": self.lives}, {"salt": 1}, {"salt": 2}] }),
        );
        assert_eq!(plain, again, "the same key is the same job");
        // An object that a job needs, and one that nobody needs.
        let needed = client.upload(format!("a job of life {} needs this", self.lives).as_bytes());
        client.upload(&vec![7; 10_000 + usize::try_from(self.lives).unwrap()]);
        client.submit_body(
            &json!({ "kind": "scripted", "needs": needed, "inputs": [{"piece_ms": 2}] }),
            true,
        );
        let failing = self.fails_once(&client, "input_invalid");
        let waiting = self.fails_once(&client, "device_error");
        let slow = json!({ "synth_ms": 3000, "piece_ms": 3000 });
        let cancelled =
            client.submit_body(&json!({ "kind": "scripted", "inputs": [slow, slow, slow] }), true);
        client.cancel(cancelled);
        for id in [proving, plain, failing, waiting, cancelled] {
            client.wait_for_end(id);
        }
        assert_eq!(client.look(failing)["state"], "failed");
        client.retry(failing);
        assert_eq!(client.wait_for_end(failing)["state"], "succeeded");
        // This one is cut off, or goes on behind the stop.
        let inputs: Vec<Value> = (0..6)
            .map(|salt| json!({ "piece_ms": 20, "salt": salt }))
            .collect();
        let last = client.submit_body(&json!({ "kind": "scripted", "inputs": inputs }), true);
        until("one of its partitions is proved", || {
            client.look(last)["summary"]["proved"].as_u64() > Some(0)
        });
    }

    /// A job with a partition that fails the first time.
    fn fails_once(&self, client: &Client, class: &str) -> Uuid {
        let marks = self.marks.join(client.salt().to_string());
        std::fs::create_dir(&marks).unwrap();
        let fail = json!({ "stage": "synth", "class": class, "times": 1 });
        let body = json!({ "kind": "scripted", "marks": marks, "inputs": [{"fail": fail}, {"salt": 3}] });
        client.submit_body(&body, class == "device_error")
    }
}

/// Registers the circuit, or finds it registered; answers the name of its witness.
pub fn register(client: &Client) -> String {
    let name = "multiplier";
    let mut body = serde_json::Map::new();
    for file in ["zkey", "r1cs", "wasm"] {
        let bytes = fixtures::read(name, &format!("circuit.{file}"));
        body.insert(file.to_owned(), client.upload(&bytes).into());
    }
    let path = format!("/v1/circuits/{name}");
    let answer = client.http.put(&path, &Value::Object(body));
    assert!(matches!(answer.status, 200..=202), "{}", answer.text());
    client.say(&Said::Circuit {
        name: name.to_owned(),
        digest: answer.json()["digest"].as_str().unwrap().to_owned(),
    });
    until_some("the circuit is ready", || {
        let circuit = client.http.get(&path).expect(200).json();
        assert_ne!(circuit["state"], "failed", "{circuit}");
        (circuit["state"] == "ready").then_some(())
    });
    client.say(&Said::Ready {
        name: name.to_owned(),
    });
    client.upload(&fixtures::read(name, "witness.wtns"))
}
