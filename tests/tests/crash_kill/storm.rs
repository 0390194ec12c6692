//! Kills under load: clients submit, upload, cancel and look while the daemon dies again and again.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use proofkeep_tests::harness::{Http, kill_process};
use proofkeep_tests::kill::{Hits, Row};
use proofkeep_tests::shim::{Kill, Role, Shims, When};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use super::scene::{Scene, Started, Workload};

/// A directory lives through so many kills, then all of its jobs must end.
const KILLS_A_DIRECTORY: u32 = 25;

/// At least `kills` of them.
pub fn run(workload: &dyn Workload, kills: u32, rng: &mut ChaCha8Rng) -> Hits {
    let mut hits = Hits::default();
    while hits.kills() < kills {
        let mut scene = Scene::new(workload);
        let room = KILLS_A_DIRECTORY.min(kills - hits.kills());
        while scene.hits.kills() < room {
            let mut so_far = hits.clone();
            so_far.add(&scene.hits);
            life(&mut scene, &so_far, rng);
        }
        let daemon = scene.restart();
        hits.add(&scene.finish(daemon));
    }
    hits
}

/// One life of the daemon.
fn life(scene: &mut Scene<'_>, so_far: &Hits, rng: &mut ChaCha8Rng) {
    let workload = scene.workload;
    let aims = workload.aims();
    let least = aims.iter().map(|row| so_far.of(*row)).min().unwrap_or_default();
    let rare: Vec<Row> = aims
        .into_iter()
        .filter(|row| so_far.of(*row) <= least + 1)
        .collect();
    let aim = rare[rng.gen_range(0..rare.len())];
    // One life in six ends at some durable operation under load, a few of them before it is ready.
    let operation = rng.gen_bool(0.17).then(|| Kill {
        at: rng.gen_range(1..200),
        when: if rng.gen_bool(0.5) {
            When::Before
        } else {
            When::After
        },
        role: Some(Role::Daemon),
        ..Kill::counting(&scene.data)
    });
    if operation.is_some() && !scene.data.exists() {
        std::fs::create_dir(&scene.data).unwrap();
    }
    let by_operation = operation.is_some();
    let started = scene.start(Shims {
        kill: operation,
        ..Shims::default()
    });
    let mut daemon = match started {
        Started::Ready(daemon) => daemon,
        Started::Dead(daemon) => return scene.killed(daemon, false, &[]),
    };
    let http = daemon.http();
    // A daemon that is to die at an operation may do so here.
    let _ = workload.prepare(&http, &scene.shared);
    let stop = AtomicBool::new(false);
    let seeds: [u64; 2] = rng.r#gen();
    let (shared, mut aimer) = (&scene.shared, ChaCha8Rng::from_rng(&mut *rng).unwrap());
    let worker_hit = std::thread::scope(|scope| {
        for seed in seeds {
            let (http, stop) = (http.clone(), &stop);
            scope.spawn(move || {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                let mut go_on = workload.prepare(&http, shared);
                while go_on.is_some() && !stop.load(Ordering::Acquire) {
                    go_on = workload.act(&http, shared, &mut rng);
                }
            });
        }
        let mut worker_hit = None;
        if by_operation {
            let deadline = Instant::now() + Duration::from_secs(3);
            while daemon.ended().is_none() && Instant::now() < deadline {
                std::thread::park_timeout(Duration::from_millis(2));
            }
        } else {
            // The daemon may only die by this thread, so it is there to be asked.
            let _ = workload.provoke(aim, &http, shared, &mut aimer);
            if aimer.gen_bool(0.35) {
                let workers = daemon.workers();
                let seen = wait_for(aim, &http, Duration::from_secs(2));
                if let Some(worker) = workers.first() {
                    kill_process(*worker);
                    worker_hit = Some(seen);
                }
                // Sometimes the daemon has time to see it, sometimes not.
                std::thread::park_timeout(Duration::from_millis(aimer.gen_range(0..400)));
            } else if aimer.gen_bool(0.85) {
                wait_for(aim, &http, Duration::from_secs(2));
            } else {
                std::thread::park_timeout(Duration::from_millis(aimer.gen_range(0..1000)));
            }
        }
        stop.store(true, Ordering::Release);
        // Clients are in the middle of something when it dies; the scope ends once they have noticed.
        drop(daemon.kill());
        worker_hit
    });
    scene.killed(None, true, &[]);
    if let Some(mut seen) = worker_hit {
        seen.insert(Row::WorkerProcess);
        scene.hits.count(seen);
    }
}

/// Waits until the status shows something that can be hit, not longer than `patience`; answers what it shows.
pub fn wait_for(aim: Row, http: &Http, patience: Duration) -> BTreeSet<Row> {
    let deadline = Instant::now() + patience;
    loop {
        let answer = http
            .try_send("GET", "/v1/status", &[], None)
            .filter(|answer| answer.status == 200);
        let seen = answer.map(|answer| rows(&answer.json())).unwrap_or_default();
        if seen.contains(&aim) || Instant::now() > deadline {
            return seen;
        }
    }
}

/// What a status shows.
fn rows(status: &Value) -> BTreeSet<Row> {
    let mut rows = BTreeSet::new();
    let wanted = Row::wanted();
    let mut see = |name: &Value, row: fn(&'static str) -> Row| {
        let known = wanted.iter().find_map(|row| match row {
            Row::Job(state) | Row::Partition(state) if name == *state => Some(*state),
            _ => None,
        });
        rows.extend(known.map(row));
    };
    for job in status["jobs"].as_array().into_iter().flatten() {
        see(&job["state"], Row::Job);
        for partition in job["partitions"].as_array().into_iter().flatten() {
            see(&partition["state"], Row::Partition);
        }
    }
    if status["importing"]
        .as_array()
        .is_some_and(|importing| !importing.is_empty())
    {
        rows.insert(Row::Import);
    }
    rows
}
