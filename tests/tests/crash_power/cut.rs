//! Images of a recording at many cuts, each judged by processes of its own; some of them are gone on with.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};

use proofkeep_tests::harness::Launch;
use proofkeep_tests::judge::{Judge, is_a_loss};
use proofkeep_tests::kill::copy;
use proofkeep_tests::ledger::{Ledger, Said};
use proofkeep_tests::powercut::{Disk, Model, Recording};

/// Images that are judged at once; sled's threads are waited for, a second at a time, more than anything is computed.
const JUDGES: usize = 6;

/// What is wrong with an image, for callers who were told this much.
pub type Look<'a> = dyn Fn(&Path, &[&[u8]]) -> Vec<String> + Sync + 'a;

/// What is done with a recording.
pub struct Cuts<'a> {
    pub recording: &'a Recording,
    /// Its file, which is kept where something is wrong.
    pub log: &'a Path,
    pub judge: Judge,
    /// Judges an image in its place.
    pub look: Option<&'a Look<'a>>,
    /// How a daemon is started that goes on with an image.
    pub launch: fn(&Path) -> Launch,
    /// What the images are, in turn.
    pub kinds: &'a [(&'static str, Model)],
    /// Every so manieth image is gone on with; 0: none.
    pub go_on_every: usize,
    /// Ends when so many images are wrong.
    pub enough: u64,
    pub seed: u64,
    /// Where images are made.
    pub scratch: &'a Path,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// Images by kind.
    pub kinds: BTreeMap<&'static str, u64>,
    /// Images with which a daemon went on until all jobs had ended.
    pub finished: u64,
    /// Images that lost an answer.
    pub lost: u64,
    /// Images that are wrong in another way.
    pub failed: u64,
    /// Of the first few of these: the cut and what is wrong.
    pub wrong: Vec<String>,
}

impl Found {
    pub fn images(&self) -> u64 {
        self.kinds.values().sum()
    }
}

struct Image {
    index: usize,
    cut: usize,
    kind: &'static str,
    model: Model,
    path: PathBuf,
}

impl Cuts<'_> {
    /// Cuts at these places.
    pub fn at(&self, places: &BTreeSet<usize>) -> Found {
        let found = Mutex::new(Found::default());
        let (send, images) = sync_channel::<Image>(1);
        let images = Mutex::new(images);
        std::thread::scope(|scope| {
            for _ in 0..JUDGES {
                scope.spawn(|| {
                    while let Some(image) = next(&images) {
                        self.one(&image, &found);
                    }
                });
            }
            let mut disk = Disk::empty();
            for (index, &cut) in places.iter().enumerate() {
                let wrong = || {
                    let found = found.lock().unwrap();
                    found.lost + found.failed
                };
                if wrong() >= self.enough {
                    break;
                }
                disk.advance(self.recording, cut).unwrap();
                let (kind, model) = self.kinds[index % self.kinds.len()];
                let model = model.seeded(self.seed.wrapping_add(index as u64));
                let path = self.scratch.join(format!("image-{index}"));
                disk.image(self.recording, model, &path).unwrap();
                send.send(Image {
                    index,
                    cut,
                    kind,
                    model,
                    path,
                })
                .unwrap();
            }
            drop(send);
        });
        found.into_inner().unwrap()
    }

    fn one(&self, image: &Image, found: &Mutex<Found>) {
        let said = || self.recording.acknowledged(image.cut);
        let goes_on = self.go_on_every > 0 && image.index % self.go_on_every == self.go_on_every - 1;
        let mut wrong = Vec::new();
        if goes_on {
            wrong.extend(self.go_on(image));
        }
        let judge = Judge {
            ended: goes_on,
            ..self.judge
        };
        wrong.extend(match self.look {
            Some(look) => look(&image.path, &said().collect::<Vec<_>>()),
            None => judge.judge(&image.path, said()),
        });
        let mut found = found.lock().unwrap();
        *found.kinds.entry(image.kind).or_default() += 1;
        found.finished += u64::from(goes_on && wrong.is_empty());
        if !wrong.is_empty() {
            let lost = wrong.iter().any(|text| is_a_loss(text));
            found.lost += u64::from(lost);
            found.failed += u64::from(!lost);
            if found.wrong.len() < 5 {
                found.wrong.push(format!(
                    "cut at {} of {}, {} ({:?}):\n{}",
                    image.cut,
                    self.recording.entries().len(),
                    image.kind,
                    image.model,
                    wrong.join("\n")
                ));
            }
        }
        drop(found);
        fs::remove_dir_all(&image.path).unwrap();
    }

    /// The real daemon starts on it, goes on with what is there until all of it has ended, and stops in good order.
    fn go_on(&self, image: &Image) -> Vec<String> {
        let ledger = Ledger::new();
        for said in self.recording.acknowledged(image.cut) {
            ledger.note(serde_json::from_slice::<Said>(said).unwrap());
        }
        let daemon = match (self.launch)(&image.path).try_start() {
            Ok(daemon) => daemon.ready(),
            Err(failed) => {
                return vec![format!(
                    "the daemon doesn't start ({}): {}",
                    failed.status, failed.stderr
                )];
            }
        };
        super::client::Client::new(&daemon, &self.scratch.join("said"), 0).wait_for_all();
        let mut wrong = Vec::new();
        for (id, ends) in ledger.jobs() {
            let answer = daemon.get(&format!("/v1/jobs/{id}"));
            // Pruned, if that is allowed: the judge looks.
            if answer.status == 200 {
                let job = answer.json();
                if !ends.contains(&job["state"].as_str().unwrap_or_default()) {
                    wrong.push(format!("job {id} should have ended as one of {ends:?}: {job}"));
                }
            }
        }
        let ended = daemon.terminate();
        if !ended.success() {
            wrong.push(format!("the daemon stops with {ended}"));
        }
        wrong
    }

    /// Keeps what shows a fault; answers where.
    pub fn keep(&self) -> String {
        let kept = std::env::temp_dir().join(format!("proofkeep-power-{}-{}", std::process::id(), self.seed));
        let copied = fs::create_dir_all(&kept).and_then(|()| fs::copy(self.log, kept.join("log")));
        match copied {
            Ok(_) => format!("the recording is kept in {}", kept.display()),
            Err(error) => format!("the recording can't be kept: {error}"),
        }
    }
}

fn next(images: &Mutex<Receiver<Image>>) -> Option<Image> {
    images.lock().unwrap().recv().ok()
}

/// Whether the recording saw everything: played to its end, it gives what the directory holds. Where only the daemon was
/// recorded, the locks of devices are left out: they are all that worker processes write.
pub fn saw_everything(recording: &Recording, data: &Path, scratch: &Path, only_daemon: bool) {
    let mut disk = Disk::empty();
    disk.advance(recording, recording.entries().len()).unwrap();
    let seen = scratch.join("seen");
    copy(data, &seen).unwrap();
    if only_daemon {
        for entry in fs::read_dir(seen.join("run")).unwrap() {
            let file = entry.unwrap().path();
            if file.extension().is_some_and(|extension| extension == "lock") {
                fs::remove_file(file).unwrap();
            }
        }
    }
    disk.agrees_with(recording, &seen).unwrap();
}
