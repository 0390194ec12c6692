//! What a start doesn't look at is looked at in the background: ended jobs, and the bytes of objects.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;

use proofkeep_store::clock::Clock;
use proofkeep_store::fsck::Finding;
use proofkeep_store::keys::Family;
use proofkeep_store::machine::{Machine, Rules};
use proofkeep_store::scrub::{Overseer, Position, Scrub, Scrubbed};
use proofkeep_store::{Limits, Options, Store};
use proofkeep_tests::harness::{sha256_name, until_some};

use super::damage::Damage;
use super::live::damage_some;
use super::scene::{Scene, alone, file, job, register, rng, submit, succeeds, witness};

/// Jobs that have ended, and no daemon.
fn ended() -> (Scene, Vec<String>) {
    let scene = Scene::new();
    let daemon = scene.start();
    register(&daemon);
    let jobs: Vec<String> = (0..3)
        .map(|_| submit(&daemon, &job(&[witness(), witness()])))
        .collect();
    jobs.iter().for_each(|job| succeeds(&daemon, job));
    assert!(daemon.terminate().success());
    (scene, jobs)
}

/// Damage that no request meets is found all the same, named with its job in the log and by the status, and touches nobody.
#[test]
fn the_daemon_finds_damage_that_nobody_asked_about() {
    let _alone = alone();
    let mut rng = rng("scrub");
    let (template, jobs) = ended();
    for damage in Damage::ALL {
        let scene = template.fork();
        let attempts = |key: &[u8]| Family::of(key) == Some(Family::Attempt);
        assert_eq!(damage_some(&scene.data, 1, damage, &mut rng, attempts).len(), 1);
        let name = sha256_name(file("circuit.sym"));
        damage.to(&scene.object(&name), &mut rng);
        let daemon = scene.launch().args(["--scrub-every", "1s"]).start();
        // The round that began before the status was asked may have been past it; no round is later than the next but one.
        let store = until_some("a round is over", || {
            let store = daemon.get("/v1/status").expect(200).json()["store"].clone();
            (store["scrub"]["rounds"].as_u64().unwrap() >= 1).then_some(store)
        });
        let found = store["damage"]["found"].as_array().unwrap();
        let places: Vec<&str> = found
            .iter()
            .map(|found| found["place"].as_str().unwrap())
            .collect();
        let attempt = found
            .iter()
            .find(|found| found["place"].as_str().unwrap().starts_with("attempt "));
        let attempt = attempt.unwrap_or_else(|| panic!("{damage:?}: {places:?}"));
        assert!(
            jobs.contains(&attempt["job"].as_str().unwrap().to_owned()),
            "{attempt}"
        );
        assert!(
            places.iter().any(|place| place.contains(&name)),
            "{damage:?}: {places:?}"
        );
        for (what, least) in [("records", 50), ("jobs", 3), ("objects", 5), ("bytes", 100_000)] {
            assert!(store["scrub"][what].as_u64().unwrap() >= least, "{what}: {store}");
        }
        succeeds(&daemon, &submit(&daemon, &job(&[witness()])));
        // Uploaded again, it is whole; the next rounds say so.
        let _ = daemon.upload(file("circuit.sym"));
        until_some("the object is whole again", || {
            let found = daemon.get("/v1/status").expect(200).json()["store"]["damage"]["found"].clone();
            let gone = |found: &serde_json::Value| !found["place"].as_str().unwrap().contains(&name);
            found.as_array().unwrap().iter().all(gone).then_some(())
        });
        let log = {
            daemon.signal(libc::SIGTERM);
            let mut daemon = daemon;
            let ended = until_some("the daemon ends", || daemon.ended());
            assert!(ended.success());
            daemon.kill()
        };
        assert!(
            log.contains("DAMAGED: attempt ") && log.contains("DAMAGED: the note that circuit"),
            "{log}"
        );
        // The next daemon knows when the last round was, and begins none.
        let daemon = scene.launch().args(["--scrub-every", "24h"]).start();
        let scrub = daemon.get("/v1/status").expect(200).json()["store"]["scrub"].clone();
        assert!(
            scrub["ended_at"].is_string() && scrub["phase"].is_null() && scrub["rounds"] == 0,
            "{scrub}"
        );
        assert!(daemon.terminate().success());
    }
}

/// Lets a scrub run for so many slices.
struct Slices {
    left: Cell<u32>,
    at: RefCell<(Position, Scrubbed)>,
    found: RefCell<Vec<Finding>>,
}

impl Overseer for Slices {
    fn rest(&self) -> ControlFlow<()> {
        if self.left.get() == 0 {
            return ControlFlow::Break(());
        }
        self.left.set(self.left.get() - 1);
        ControlFlow::Continue(())
    }

    fn found(&self, finding: Finding) {
        self.found.borrow_mut().push(finding);
    }

    fn reached(&self, position: &Position, scrubbed: Scrubbed) {
        *self.at.borrow_mut() = (position.clone(), scrubbed);
    }
}

/// Stopped after each slice and begun again where it was, it looks at as much as in one go.
#[test]
fn a_round_that_is_cut_off_goes_on_where_it_was() {
    let _alone = alone();
    let (scene, _) = ended();
    let store = Store::open(&scene.data, &Options::default()).unwrap();
    let handle = store
        .start(Machine { rules: Rules::ALL }, Clock::start(), Limits::default())
        .unwrap();
    let all = |slices: u32| {
        let (mut rounds, mut at) = (0, (Position::begin(), Scrubbed::default()));
        loop {
            rounds += 1;
            let overseer = Slices {
                left: Cell::new(slices),
                at: RefCell::new(at.clone()),
                found: RefCell::default(),
            };
            let over = Scrub::new(&handle, store.objects(), &overseer)
                .run(at.0.clone(), at.1)
                .unwrap();
            assert_eq!(overseer.found.into_inner(), []);
            at = overseer.at.into_inner();
            // As a note that was written down has it.
            at.0 = Position::parse(at.0.phase(), &at.0.place()).unwrap();
            if over {
                return (rounds, at.1);
            }
        }
    };
    let (once, whole) = all(u32::MAX);
    let (often, pieces) = all(0);
    assert_eq!(once, 1);
    assert!(often > 5, "{often}");
    assert_eq!(
        (pieces.records, pieces.jobs, pieces.objects),
        (whole.records, whole.jobs, whole.objects)
    );
    handle.stop();
}
