//! Proving keys that an operator keeps in memory, or sends away.

use std::sync::atomic::Ordering;

use proofkeep_store::ids::Digest;

use super::Engine;
use crate::problem::Problem;
use crate::protocol::ToWorker;

impl Engine {
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
