//! Proving keys that an operator keeps in memory, or sends away.

use std::sync::atomic::Ordering;

use proofkeep_store::ids::Digest;
use proofkeep_store::records::{Failure, Priority};

use super::Engine;
use crate::budget::{Ask, AskedKey, TicketFor};
use crate::problem::Problem;
use crate::protocol::ToWorker;

/// Beside the key: what reading it takes.
const READING: u64 = 32 << 20;

/// A key to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyToLoad {
    /// The kind that knows where it lies.
    pub kind: &'static str,
    /// What names it in memory.
    pub key: Digest,
    /// What it is called where it lies.
    pub name: String,
    /// The digest that its file must have.
    pub file: Option<String>,
    /// Bytes that it takes.
    pub bytes: u64,
}

impl Engine {
    /// Loads a key in every worker process that hasn't got it, before anybody needs it; how that went is
    /// [`Self::key_load`]'s to say. One for a kind that is critical may use what is kept free for those.
    ///
    /// # Errors
    /// 503 when no worker process is up, 422 `needs-memory` when there is no room for it now.
    pub fn load_key(&self, load: &KeyToLoad) -> Result<(), Problem> {
        let processes = self.window.processes.lock().clone();
        let up: Vec<_> = processes.iter().filter(|process| process.is_up()).collect();
        if up.is_empty() {
            let detail = "no worker process is up to load it; ask again in a moment";
            return Err(Problem::new(503, "no-worker", "nothing can be loaded now", detail).retryable());
        }
        let kind = self.core.kinds.get(load.kind);
        let critical = kind.is_some_and(|kind| kind.defaults().priority == Priority::Critical);
        for process in up {
            // Its reader writes the answer under this lock, so it comes after this.
            let mut loads = process.loads.lock();
            let accounts = self.core.ledger.snapshot();
            let known = accounts.keys().get(&load.key);
            let resident = known.is_some_and(|key| key.resident.contains(&process.id));
            if resident || loads.get(&load.key) == Some(&None) {
                continue;
            }
            let of = TicketFor::Load {
                key: load.key,
                process: process.id,
            };
            let ask = Ask {
                of,
                process: process.id,
                bytes: READING,
                key: Some(AskedKey {
                    key: load.key,
                    bytes: load.bytes,
                    private: true,
                }),
                critical,
            };
            self.core.ledger.ask(&ask).map_err(|short| {
                let (needed, budget) = (load.bytes.saturating_add(READING), accounts.budget_of(critical));
                let detail = format!(
                    "{} needs {needed} bytes of memory, {} more than are free of {budget} now; evict another key, wait \
                     for work to end, or give proofkeep more memory",
                    load.name, short.by
                );
                Problem::input("needs-memory", detail)
            })?;
            loads.insert(load.key, None);
            process.say(ToWorker::Load {
                kind: load.kind.to_owned(),
                key: load.key.0,
                name: load.name.clone(),
                file: load.file.clone(),
            });
        }
        Ok(())
    }

    /// Whether every worker process that is up has a key; no while none is up.
    #[must_use]
    pub fn is_key_everywhere(&self, key: Digest) -> bool {
        let accounts = self.core.ledger.snapshot();
        let resident = accounts.keys().get(&key).map(|key| &key.resident);
        let processes = self.window.processes.lock();
        let mut up = processes.iter().filter(|process| process.is_up()).peekable();
        up.peek().is_some() && up.all(|process| resident.is_some_and(|some| some.contains(&process.id)))
    }

    /// Whether a key that was told to load is on its way, `Some(None)`, or why it didn't come; `None` when it is there or
    /// nobody told so.
    #[must_use]
    pub fn key_load(&self, key: Digest) -> Option<Option<Failure>> {
        let processes = self.window.processes.lock();
        let states = processes
            .iter()
            .filter(|process| !process.gone.load(Ordering::Acquire))
            .filter_map(|process| process.loads.lock().get(&key).cloned());
        // What is on its way comes first.
        states.min_by_key(Option::is_some)
    }

    /// Keeps a key: once it is resident, no other key's or job's need for room evicts it. It isn't loaded by that. Lasts as
    /// long as the daemon.
    pub fn keep_key(&self, key: Digest, keep: bool) {
        self.core.ledger.keep(key, keep);
    }

    /// Whether a key is kept.
    #[must_use]
    pub fn is_key_kept(&self, key: Digest) -> bool {
        self.core.ledger.snapshot().is_kept(key)
    }

    /// Sends a key away, as soon as nobody uses it; one that isn't resident is away already.
    ///
    /// # Errors
    /// 409 when it is kept.
    pub fn evict_key(&self, key: Digest) -> Result<(), Problem> {
        let accounts = self.core.ledger.snapshot();
        if accounts.is_kept(key) {
            let detail = "the key is pinned, so it isn't evicted; unpin it first";
            return Err(Problem::new(409, "key-pinned", "the key is pinned", detail));
        }
        if accounts.keys().contains_key(&key) {
            self.core.ledger.evicting(key);
            for process in self.window.processes.lock().iter() {
                if !process.gone.load(Ordering::Acquire) {
                    process.say(ToWorker::Evict { circuit: key.0 });
                }
            }
        }
        Ok(())
    }
}
