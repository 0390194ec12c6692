//! Keys that a setting keeps in memory (`pinned_params`): loaded at the start, and again when a worker process is lost, so
//! that a WinningPoSt, which has seconds, waits for no disk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofkeep_engine::kinds::Desk as _;
use proofkeep_engine::service::Engine;
use proofkeep_filecoin::directory::Directory;
use proofkeep_filecoin::params;
use proofkeep_filecoin::ready;
use proofkeep_store::ids::Digest;

/// How often it is looked whether they are there.
const LOOK: Duration = Duration::from_secs(5);
/// How long after one that could not be loaded it is tried again.
const AGAIN: Duration = Duration::from_secs(60);

/// Keeps them there; never ends.
pub async fn keep(engine: Arc<Engine>, words: Vec<String>) {
    if words.is_empty() {
        return;
    }
    let mut keeper = Keeper::default();
    let mut looks = tokio::time::interval(LOOK);
    loop {
        looks.tick().await;
        let (engine, words) = (Arc::clone(&engine), words.clone());
        // A panic in it was reported by its hook.
        let looked = tokio::task::spawn_blocking(move || {
            keeper.look(&engine, &words);
            keeper
        });
        keeper = looked.await.unwrap_or_default();
    }
}

#[derive(Default)]
struct Keeper {
    /// Words that named nothing, so that this is said once.
    unknown: BTreeSet<String>,
    /// Pinned by this; an operator may have unpinned it since.
    pinned: BTreeSet<Digest>,
    /// When a load was refused.
    refused: BTreeMap<Digest, Instant>,
}

impl Keeper {
    fn look(&mut self, engine: &Engine, words: &[String]) {
        let directory = Directory::of_environment();
        for word in words {
            let ids = ready::named(&directory, word);
            if ids.is_empty() && self.unknown.insert(word.clone()) {
                tracing::warn!(
                    "pinned_params: no parameter file in {} is called {word:?} or is of a kind of that name; it is pinned \
                     once it is there",
                    directory.path().display()
                );
            }
            for id in ids {
                self.hold(engine, &directory, &id);
            }
        }
    }

    fn hold(&mut self, engine: &Engine, directory: &Directory, id: &str) {
        let Some(key) = params::look(directory, id).key else {
            return;
        };
        if self.pinned.insert(key) {
            engine.keep_key(key, true);
        }
        let lately = self.refused.get(&key).is_some_and(|at| at.elapsed() < AGAIN);
        if lately || !engine.is_key_kept(key) || engine.is_key_everywhere(key) {
            return;
        }
        match engine.key_load(key) {
            Some(None) => return,
            // The worker process has said why; it is tried again later.
            Some(Some(_)) if !self.refused.contains_key(&key) => {
                self.refused.insert(key, Instant::now());
                return;
            }
            _ => {}
        }
        let allow = engine.desk().allow_unofficial_params();
        let loads = ready::to_load(directory, id, allow).and_then(|load| engine.load_key(&load));
        match loads {
            Ok(()) => {
                self.refused.remove(&key);
            }
            // The processes are on their way.
            Err(problem) if problem.code == "no-worker" => {}
            Err(problem) => {
                tracing::warn!("pinned_params: {id} is not loaded: {}", problem.detail);
                self.refused.insert(key, Instant::now());
            }
        }
    }
}
