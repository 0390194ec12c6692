//! Bytes of memory: who may use how many.
//!
//! A [`Ledger`] knows the tickets in force and the proving keys that are resident. A ticket is asked for once and
//! whole, pins its key, never grows, and ends when the memory is free. A resident key counts once a machine where all
//! worker processes map the same file, and once a process where each has a copy of its own. Who waits is not kept here: the scheduler looks again at every change, so no
//! wake-up can be lost.

mod accounts;
mod limits;

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use proofkeep_store::ids::{Digest, ProcessId};
use tokio::sync::watch;

pub use accounts::{Accounts, Ask, AskedKey, KeyState, Short, TicketFor};
pub use limits::{MachineMemory, OomCounter, is_short, machine_memory};

/// The accounts, shared by the scheduler (who asks) and the readers of worker processes (who end).
#[derive(Clone)]
pub struct Ledger {
    shared: Arc<Shared>,
}

struct Shared {
    accounts: Mutex<Accounts>,
    changes: watch::Sender<u64>,
}

impl Ledger {
    /// A ledger over `budget` bytes.
    #[must_use]
    pub fn new(budget: u64) -> Self {
        Self::over(Accounts::new(budget))
    }

    /// A ledger that begins with these accounts.
    #[must_use]
    pub fn over(accounts: Accounts) -> Self {
        let (changes, _) = watch::channel(0);
        Self {
            shared: Arc::new(Shared {
                accounts: Mutex::new(accounts),
                changes,
            }),
        }
    }

    /// Asks for a ticket.
    ///
    /// # Errors
    /// [`Short`] when there isn't room now; ask again after a change.
    pub fn ask(&self, ask: &Ask) -> Result<(), Short> {
        // Frees nothing, so nobody needs to look again.
        self.shared.accounts.lock().ask(ask)
    }

    /// Ends a ticket: its memory is free. Ending one that isn't in force changes nothing.
    pub fn end(&self, of: TicketFor) {
        self.change(|accounts| accounts.end(of));
    }

    /// A worker process says how many bytes of a key it has resident; 0: none any more.
    pub fn key(&self, process: ProcessId, circuit: Digest, bytes: u64) {
        self.change(|accounts| accounts.key(process, circuit, bytes));
    }

    /// An operator keeps a key, or no more.
    pub fn keep(&self, circuit: Digest, keep: bool) {
        self.change(|accounts| {
            accounts.keep(circuit, keep);
        });
    }

    /// A key is being evicted; it counts until every process said that it is gone.
    pub fn evicting(&self, circuit: Digest) {
        self.shared.accounts.lock().evicting(circuit);
    }

    /// A worker process is gone, and all its memory with it.
    pub fn process_gone(&self, process: ProcessId) {
        self.change(|accounts| accounts.process_gone(process));
    }

    /// The accounts as they are now.
    #[must_use]
    pub fn snapshot(&self) -> Accounts {
        self.shared.accounts.lock().clone()
    }

    /// Rises whenever memory may have come free.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    fn change(&self, change: impl FnOnce(&mut Accounts)) {
        {
            let mut accounts = self.shared.accounts.lock();
            change(&mut accounts);
            accounts.rest(Instant::now());
        }
        // After the change, so that whoever sees the new number sees the change too.
        self.shared
            .changes
            .send_modify(|number| *number = number.wrapping_add(1));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use std::sync::atomic::{AtomicU64, Ordering};

    use proofkeep_store::ids::{BootNumber, JobNumber};

    use super::*;

    /// R13: many askers that wait for changes alone (no timer) all get their turn.
    #[test]
    fn r13_no_wake_up_is_lost() {
        const ASKERS: u64 = 8;
        const ROUNDS: u64 = 400;
        let ledger = Ledger::new(300);
        let granted = Arc::new(AtomicU64::new(0));
        let process = ProcessId {
            boot: BootNumber(1),
            spawn: 1,
        };
        let threads: Vec<_> = (0..ASKERS)
            .map(|asker| {
                let (ledger, granted) = (ledger.clone(), Arc::clone(&granted));
                std::thread::spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                    for round in 0..ROUNDS {
                        let of = TicketFor::Attempt {
                            job: JobNumber(asker),
                            partition: 0,
                            attempt: round as u32,
                        };
                        let ask = Ask {
                            of,
                            process,
                            bytes: 100,
                            key: None,
                            critical: false,
                        };
                        let mut changes = ledger.changes();
                        loop {
                            changes.borrow_and_update();
                            if ledger.ask(&ask).is_ok() {
                                break;
                            }
                            runtime.block_on(changes.changed()).unwrap();
                        }
                        assert!(ledger.snapshot().reserved() <= 300);
                        granted.fetch_add(1, Ordering::Relaxed);
                        ledger.end(of);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(granted.load(Ordering::Relaxed), ASKERS * ROUNDS);
        assert_eq!(ledger.snapshot().reserved(), 0);
    }
}
