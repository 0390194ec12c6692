//! A kill at every durable operation of a small job, from the first `mkdir` of a start to the last sync of a stop.

use proofkeep_tests::harness::{Daemon, until};
use proofkeep_tests::kill::{Hits, Row};
use proofkeep_tests::shim::{Kill, Role, Shims, When, counted};
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::scene::{Scene, Started, Steps, Workload, died};

/// Half-done uploads in the directory that is recovered: each is an `unlink`, so that recovery can be hit in between.
const UPLOADS: u64 = 6;

/// At least `kills` of them, spread evenly over all operations; each operation once if there are that many kills.
pub fn run(workload: &dyn Workload, kills: u32, rng: &mut ChaCha8Rng) -> Hits {
    let mut hits = Hits::default();
    let template = template(workload);
    let (start, operations) = count(&template);
    assert!(
        start > UPLOADS && operations > start + 20,
        "only {start} and {operations} durable operations"
    );
    eprintln!("a small job has {operations} durable operations, {start} of them until the daemon is ready");
    // Creation is mostly 256 directories: a few kills in it, the others in the life of a directory that is there.
    let creation = kills.div_ceil(12);
    for _ in 0..creation {
        let kill = Kill {
            at: rng.gen_range(1..300),
            ..Kill::counting("")
        };
        hits.add(&at(Scene::new(workload), kill));
    }
    let left = u64::from(kills.saturating_sub(creation)).max(3);
    let recovery = start.saturating_sub(UPLOADS + 6)..start;
    let places = spread(1..recovery.start, left / 5, rng)
        .into_iter()
        .chain(spread(recovery, left / 4, rng));
    let places = places.chain(spread(start..operations, left - left / 5 - left / 4, rng));
    for place in places.collect::<Vec<_>>() {
        let when = if rng.gen_bool(0.5) {
            When::Before
        } else {
            When::After
        };
        hits.add(&at(
            template.fork(),
            Kill {
                at: place,
                when,
                ..Kill::counting("")
            },
        ));
    }
    hits
}

/// So many places of a range, evenly, from an offset that the seed draws.
fn spread(range: std::ops::Range<u64>, count: u64, rng: &mut ChaCha8Rng) -> Vec<u64> {
    let length = range.end - range.start;
    let step = length as f64 / count.max(1) as f64;
    let offset = rng.gen_range(0.0..step.max(1.0));
    (0..count)
        .map(|i| range.start + (offset + i as f64 * step) as u64 % length)
        .collect()
}

/// A directory whose daemon was killed with work half done and an upload under way, so that a start finds something to
/// recover.
pub fn template(workload: &dyn Workload) -> Scene<'_> {
    let mut scene = Scene::new(workload);
    let daemon = scene.restart();
    let http = daemon.http();
    workload.prepare(&http, &scene.shared).unwrap();
    let mut rng = rand::SeedableRng::seed_from_u64(1);
    let row = Row::Partition("proving");
    workload.provoke(row, &http, &scene.shared, &mut rng).unwrap();
    super::storm::wait_for(row, &http, std::time::Duration::from_secs(60));
    let uploads: Vec<_> = (0..UPLOADS).map(|_| half_an_upload(&daemon)).collect();
    until("the uploads have begun", || {
        std::fs::read_dir(scene.data.join("tmp")).unwrap().count() as u64 >= UPLOADS
    });
    scene.killed(Some(daemon), true, &[]);
    drop(uploads);
    scene
}

/// An upload that never ends, and that the daemon has begun to write.
pub fn half_an_upload(daemon: &Daemon) -> std::net::TcpStream {
    use std::io::Write as _;
    let host = daemon.url().trim_start_matches("http://");
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    let head = format!(
        "POST /v1/blobs HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/octet-stream\r\nContent-Length: 100000\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&[7; 1000]).unwrap();
    stream
}

/// How many durable operations the daemon has until it is ready, and with a small job and the stop.
pub fn count(template: &Scene<'_>) -> (u64, u64) {
    let scene = template.fork();
    let file = scene.data.with_file_name("count");
    let mut kill = Kill::counting(&scene.data);
    kill.role = Some(Role::Daemon);
    kill.count_file = Some(file.clone());
    let Started::Ready(daemon) = scene.start(Shims {
        kill: Some(kill),
        ..Shims::default()
    }) else {
        panic!("nothing kills a daemon that is only counted");
    };
    let start = counted(&file).unwrap().len() as u64;
    scene
        .workload
        .small_job(&daemon.http(), &scene.shared, &mut Steps::default())
        .unwrap();
    assert!(daemon.terminate().success());
    (start, counted(&file).unwrap().len() as u64)
}

/// One kill, then the rest of the job. No kill, if the daemon stopped before it came to that operation.
pub fn at(mut scene: Scene<'_>, mut kill: Kill) -> Hits {
    let workload = scene.workload;
    let mut steps = Steps::default();
    if !scene.data.exists() {
        std::fs::create_dir(&scene.data).unwrap();
    }
    kill.dir.clone_from(&scene.data);
    kill.role = Some(Role::Daemon);
    match scene.start(Shims {
        kill: Some(kill),
        ..Shims::default()
    }) {
        Started::Dead(daemon) => scene.killed(daemon, false, &[]),
        Started::Ready(mut daemon) => {
            let done = workload.small_job(&daemon.http(), &scene.shared, &mut steps);
            let more: &[Row] = if done.is_some() { &[Row::Closing] } else { &[] };
            if done.is_some() {
                daemon.signal(libc::SIGTERM);
            }
            if died(&mut daemon) {
                scene.killed(Some(daemon), true, more);
            }
        }
    }
    let daemon = scene.restart();
    workload
        .small_job(&daemon.http(), &scene.shared, &mut steps)
        .unwrap();
    scene.finish(daemon)
}
