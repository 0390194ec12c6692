//! The run loop: look, decide, do; again whenever something changed, and once a second.
//!
//! It wakes on the durable journal number, on the ledger of memory and on a bell, and each time looks at everything
//! anew. So no wake-up can be lost, and nothing is done because of what was remembered.

mod grant;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use proofkeep_store::clock::Clock;
use proofkeep_store::commit::Committed;
use proofkeep_store::ids::{Digest, JobNumber};
use proofkeep_store::machine::Command;
use proofkeep_store::view::Readable;
use proofkeep_store::{CommitError, Handle};
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;

use crate::desk::DaemonDesk;
use crate::kinds::Needs;
use crate::protocol::ToWorker;
use crate::schedule::{Decision, Follow, Live, Retention, Snapshot, Walk, decide, snapshot};
use crate::shared::Core;
use crate::workers::{Fleet, Process};

/// Final checks at a time.
const CHECKS: usize = 2;
/// After a step of the wall clock no deadline is swept for this long.
const AFTER_STEP: Duration = Duration::from_secs(60);
/// Objects that no record names live this long.
const OBJECT_LIFE: Duration = Duration::from_secs(24 * 3600);
/// They are looked for this often.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);
/// The database is opened anew after so many commands, so that the next start reads little.
const REOPEN_AFTER: u64 = 2_000_000;
/// Requests kept in memory for the next partitions of their jobs.
const REQUESTS: usize = 8;
/// Requests of which it is remembered what their partitions need.
const NEEDS: usize = 4096;

/// What the loop is told from outside.
pub(super) enum Order {
    /// Stop claiming, let work end or be checkpointed within the grace period, close the boot.
    Shutdown {
        grace: Duration,
        done: oneshot::Sender<()>,
    },
    /// End at once, without a word to the store: as a crash would, for a daemon that is dropped.
    Abandon,
}

/// What others may see of the loop.
#[derive(Default)]
pub(super) struct Window {
    pub processes: Mutex<Vec<Arc<Process>>>,
    pub stopping: AtomicBool,
    /// Jobs at the head of the queue that wait for memory.
    pub short_of_memory: Mutex<Option<JobNumber>>,
}

pub(super) struct Loop {
    pub core: Arc<Core>,
    /// What kinds may ask of the daemon.
    desk: DaemonDesk,
    pub fleet: Fleet,
    pub retention: Retention,
    pub window: Arc<Window>,
    pub orders: tokio::sync::mpsc::UnboundedReceiver<Order>,
    walk: Walk,
    clock: Clock,
    slow_at: Instant,
    sweep_at: Instant,
    no_deadlines_until: Option<Instant>,
    checks: Arc<AtomicUsize>,
    stop_checks: Arc<AtomicBool>,
    requests: BTreeMap<Digest, Arc<Vec<u8>>>,
    /// What the partitions of a request need; `None`: what its job says.
    needs: BTreeMap<Digest, Option<Needs>>,
    unreadable: bool,
}

impl Loop {
    pub fn new(
        desk: DaemonDesk,
        fleet: Fleet,
        retention: Retention,
        window: Arc<Window>,
        orders: tokio::sync::mpsc::UnboundedReceiver<Order>,
    ) -> Self {
        let core = Arc::clone(&desk.core);
        let clock = core.clock.clone();
        let mut walk = Walk::default();
        walk.set_aside.extend(core.damage.report().set_aside.into_keys());
        let now = Instant::now();
        Self {
            core,
            desk,
            fleet,
            retention,
            window,
            orders,
            walk,
            clock,
            slow_at: now,
            sweep_at: now,
            no_deadlines_until: None,
            checks: Arc::default(),
            stop_checks: Arc::default(),
            requests: BTreeMap::new(),
            needs: BTreeMap::new(),
            unreadable: false,
        }
    }

    /// Works until it is told to end.
    pub async fn run(mut self) {
        let mut journal = self.core.handle.durable();
        let mut memory = self.core.ledger.changes();
        let mut second = tokio::time::interval(Duration::from_secs(1));
        second.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            journal.borrow_and_update();
            memory.borrow_and_update();
            if self.pass(false).await {
                // Something was granted: look again at once, but hear an order first.
                match self.orders.try_recv() {
                    Ok(order) => return self.end(order).await,
                    Err(_) => continue,
                }
            }
            let core = Arc::clone(&self.core);
            tokio::select! {
                order = self.orders.recv() => return self.end(order.unwrap_or(Order::Abandon)).await,
                _ = journal.changed() => {}
                _ = memory.changed() => {}
                () = core.bell.notified() => {}
                _ = second.tick() => {}
            }
        }
    }

    /// Looks once and does what is to be done. `true` if something was granted, so that there may be more to do.
    async fn pass(&mut self, stopping: bool) -> bool {
        self.fleet.tend(stopping).await;
        *self.window.processes.lock() = self.fleet.processes().cloned().collect();
        let now = Instant::now();
        let slow = now >= self.slow_at;
        if slow {
            self.slow_at = now + Duration::from_secs(1);
            self.once_a_second(now).await;
        }
        let Some(mut seen) = self.look(stopping, slow) else {
            return false;
        };
        self.name_keys(&mut seen);
        self.fleet.reconcile(&seen.open, stopping);
        self.send_imports_again();
        let decisions = decide(&seen, &self.core.ledger.snapshot());
        self.remember_what_waits(&seen, &decisions);
        self.act(decisions).await
    }

    fn look(&mut self, stopping: bool, slow: bool) -> Option<Snapshot> {
        self.walk.hints.append(&mut self.core.hints.lock());
        let accounts = self.core.ledger.snapshot();
        let live = Live {
            up: self.fleet.up(),
            asked: self.fleet.asked(),
            verify_room: CHECKS.saturating_sub(self.checks.load(Ordering::Acquire)),
            stopping,
            budget: accounts.budget(),
            reserve: accounts.reserve(),
            no_deadlines: self
                .no_deadlines_until
                .is_some_and(|until| Instant::now() < until),
        };
        let at = self.core.clock.now();
        let (retention, walk) = (self.retention, &mut self.walk);
        // One damaged record must not keep all the others from being scheduled.
        let seen = self.core.handle.read(|view| {
            let readable = Readable::new(view);
            snapshot(&readable, at, &live, retention, walk, slow).map(|seen| (seen, readable.damaged()))
        });
        match seen {
            Ok((seen, damaged)) => {
                self.unreadable = false;
                for (key, text) in damaged {
                    self.core.damage.record("scheduler", &key, &text, at);
                }
                Some(seen)
            }
            Err(error) => {
                if !self.unreadable {
                    tracing::error!("nothing can be scheduled: {error}; run `proofkeep fsck`");
                }
                self.unreadable = true;
                None
            }
        }
    }

    async fn once_a_second(&mut self, now: Instant) {
        if let Some(by_ms) = self.clock.take_step() {
            tracing::warn!("the wall clock jumped by {by_ms} ms; no deadline is swept for a minute");
            self.no_deadlines_until = Some(now + AFTER_STEP);
            self.tell("a step of the clock", Command::ClockStep { by_ms })
                .await;
        }
        if now >= self.sweep_at {
            self.sweep_at = now + SWEEP_EVERY;
            let handle = self.core.handle.clone();
            tokio::task::spawn_blocking(move || {
                if catch_unwind(AssertUnwindSafe(|| sweep(&handle))).is_err() {
                    tracing::error!(
                        "the removal of objects that nobody needs panicked; this is a fault of proofkeep, please report \
                         it. It is tried again in an hour"
                    );
                }
            });
        }
        self.relieve_pressure();
        let idle = self
            .fleet
            .processes()
            .all(|process| process.held.lock().is_empty());
        if idle
            && self.checks.load(Ordering::Acquire) == 0
            && let Err(error) = self.core.handle.reopen_if_due(REOPEN_AFTER)
        {
            tracing::error!("{error}");
        }
    }

    /// The machine runs short of memory, whoever uses it: keys that nobody needs now go.
    fn relieve_pressure(&self) {
        if self.core.ledger.snapshot().idle_keys().is_empty() || !crate::budget::is_short() {
            return;
        }
        for (circuit, bytes) in self.core.ledger.snapshot().idle_keys() {
            tracing::info!(%circuit, bytes, "memory runs short; the key is dropped");
            self.evict(circuit);
        }
    }

    fn evict(&self, circuit: Digest) {
        self.core.ledger.evicting(circuit);
        for process in self.fleet.processes() {
            process.say(ToWorker::Evict { circuit: circuit.0 });
        }
    }

    fn remember_what_waits(&mut self, seen: &Snapshot, decisions: &[Decision]) {
        self.walk.remember(seen, decisions);
        let started = |job, partition| {
            decisions.iter().any(|decision| {
                matches!(decision, Decision::SynthStart { job: other, partition: index, .. } if (*other, *index) == (job, partition))
            })
        };
        let head = seen
            .ready
            .iter()
            .find(|ready| !started(ready.job, ready.partition));
        let accounts = self.core.ledger.snapshot();
        let short = head.filter(|ready| {
            let known = ready
                .key
                .is_some_and(|asked| accounts.keys().contains_key(&asked.key));
            let key = ready.key.filter(|_| !known).map_or(0, |asked| asked.bytes);
            ready.ticket_bytes.saturating_add(key) > accounts.free()
        });
        *self.window.short_of_memory.lock() = short.map(|ready| ready.job);
    }

    /// Does what was decided: all commands are sent at once, so that they share a sync, then their answers are acted on
    /// in order. Nothing is said to a worker process before it is durable.
    async fn act(&mut self, decisions: Vec<Decision>) -> bool {
        let mut sent = Vec::new();
        for decision in decisions {
            let Some(command) = self.command(&decision) else {
                continue;
            };
            match self.core.handle.send(command) {
                Ok(waiting) => sent.push((decision, waiting)),
                Err(error) => self.refused(&decision, &error),
            }
        }
        let mut granted = false;
        for (decision, waiting) in sent {
            match waiting.await.unwrap_or(Err(CommitError::Stopped)) {
                Ok(committed) => granted |= self.done(decision, committed).await,
                Err(error) => self.refused(&decision, &error),
            }
        }
        granted
    }

    /// The command of a decision; `None` for those that only ask a process for something, and without a ticket.
    fn command(&mut self, decision: &Decision) -> Option<Command> {
        if let Decision::Stop {
            process,
            token,
            failure,
        } = decision
            && let Some(process) = self.fleet.process(*process)
        {
            process.ask_stop(*token, failure);
        }
        if let Decision::Evict(circuit) = decision {
            self.evict(*circuit);
        }
        if let Some(ask) = decision.ticket() {
            self.core.ledger.ask(ask).ok()?;
        }
        decision.command()
    }

    /// Nothing was granted: what was taken for it is given back.
    fn refused(&mut self, decision: &Decision, error: &CommitError) {
        match error {
            CommitError::Refused(refusal) => tracing::debug!("{decision:?} was refused: {refusal}"),
            CommitError::Stopped | CommitError::Busy => {}
            // Asked again it would be refused again, and its place in the queue is another's.
            CommitError::Damaged { job, why } => {
                self.core.damage.set_aside(*job, why);
                self.walk.set_aside.insert(*job);
            }
            error => tracing::error!("{decision:?} was not stored: {error}"),
        }
        if let Some(ask) = decision.ticket() {
            self.core.ledger.end(ask.of);
        }
        if let Decision::VerifyStart(job) = decision {
            self.walk.hints.remove(job);
        }
    }

    async fn done(&mut self, decision: Decision, committed: Committed) -> bool {
        let (follow, again) = decision.follow(&committed.reply);
        match follow {
            Follow::Synth { attempt, token, ask } => self.synth(attempt, token, &ask).await,
            Follow::Import { circuit, token, ask } => self.import(circuit, token, &ask).await,
            Follow::Prove {
                attempt,
                token,
                process,
            } => {
                let process = self.fleet.process(process).cloned();
                self.prove(attempt, token, process).await;
            }
            Follow::Check { job, token } => self.check(job, token),
            Follow::EndTicket(of) => self.core.ledger.end(of),
            Follow::Nothing => {}
        }
        again
    }

    async fn tell(&self, what: &str, command: Command) {
        match self.core.handle.commit(command).await {
            Ok(_) | Err(CommitError::Stopped) => {}
            Err(error) => tracing::error!("{what} was not stored: {error}"),
        }
    }

    async fn end(mut self, order: Order) {
        let Order::Shutdown { grace, done } = order else {
            self.stop_checks.store(true, Ordering::Release);
            self.fleet.kill_all();
            self.fleet.join();
            return;
        };
        let mut waiting = vec![done];
        self.window.stopping.store(true, Ordering::Release);
        self.stop_checks.store(true, Ordering::Release);
        let deadline = Instant::now() + grace;
        let mut tick = tokio::time::interval(Duration::from_millis(100));
        let mut killed = false;
        loop {
            self.pass(true).await;
            let gone = self.fleet.wind_down();
            if gone && self.checks.load(Ordering::Acquire) == 0 {
                break;
            }
            if Instant::now() >= deadline && !killed {
                tracing::warn!(
                    "the grace period is over; what still runs is killed and starts again at the next boot"
                );
                self.fleet.kill_all();
                killed = true;
            }
            let core = Arc::clone(&self.core);
            tokio::select! {
                () = core.bell.notified() => {}
                _ = tick.tick() => {}
                order = self.orders.recv() => match order {
                    Some(Order::Shutdown { done, .. }) => waiting.push(done),
                    _ => {
                        self.fleet.kill_all();
                        killed = true;
                    }
                }
            }
        }
        self.fleet.join();
        self.tell("the end of the boot", Command::BootClose).await;
        self.core.handle.stop();
        for done in waiting {
            // Nobody may wait any more; the store is closed all the same.
            let _ = done.send(());
        }
    }
}

/// Removes the objects that no record names.
fn sweep(handle: &Handle) {
    match handle.sweep_objects(OBJECT_LIFE) {
        Ok(swept) if swept.removed > 0 => {
            tracing::info!(
                "objects that nobody needs were removed: {} ({} bytes)",
                swept.removed,
                swept.bytes
            );
        }
        Ok(_) => {}
        Err(error) => tracing::warn!("objects that nobody needs could not be removed: {error}"),
    }
}
