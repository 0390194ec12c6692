//! From what is to what is next.

use std::collections::{BTreeMap, BTreeSet};

use proofkeep_store::ids::{Digest, ProcessId};
use proofkeep_store::records::{Failure, FailureClass, PartitionState, Priority};

use super::{Decision, DeviceNow, OpenNow, ReadyNow, Snapshot, ticket_of};
use crate::budget::{Accounts, Ask, TicketFor};

/// A partition that asks for more than this is large: of those one is ahead of a slot of the processor, not two. The
/// second would gain nothing, since its synthesis takes the cores from the proof before it, and would take its memory.
const LARGE: u64 = 256 << 20;

/// Everything that is to be done now, in the order in which it is to be done.
#[must_use]
pub fn decide(now: &Snapshot, accounts: &Accounts) -> Vec<Decision> {
    let mut plan = Plan::new(now, accounts.clone());
    plan.timers();
    plan.stop_stopping();
    if !now.stopping {
        plan.device_slots();
        plan.imports();
        if !now.paused {
            plan.syntheses();
        }
        plan.checks();
    }
    plan.decisions
        .extend(now.prune.iter().copied().map(Decision::Prune));
    plan.decisions
}

struct Plan<'a> {
    now: &'a Snapshot,
    /// A copy on which tickets are tried.
    accounts: Accounts,
    decisions: Vec<Decision>,
    /// Devices kept free for a partition that must run alone.
    reserved: BTreeSet<&'a str>,
    /// Syntheses decided on here, by process.
    started: BTreeMap<ProcessId, Vec<bool>>,
    /// A large partition found no place, so who comes after it leaves it one: else small ones would overtake it for ever.
    large_waits: bool,
}

impl<'a> Plan<'a> {
    fn new(now: &'a Snapshot, accounts: Accounts) -> Self {
        Self {
            now,
            accounts,
            decisions: Vec::new(),
            reserved: BTreeSet::new(),
            started: BTreeMap::new(),
            large_waits: false,
        }
    }

    fn timers(&mut self) {
        let now = self.now;
        self.decisions
            .extend(now.expired.iter().copied().map(Decision::Expire));
        self.decisions.extend(
            now.doomed
                .iter()
                .cloned()
                .map(|(job, failure)| Decision::FailJob(job, failure)),
        );
        self.decisions.extend(now.due.iter().copied().map(Decision::Wake));
        let over = now.devices.iter().filter(|device| device.resume);
        self.decisions
            .extend(over.map(|device| Decision::Resume(device.name.clone())));
    }

    /// Whatever still works for a job that stops is asked to end.
    fn stop_stopping(&mut self) {
        for open in self.now.open.iter().filter(|open| open.stopping && !open.asked) {
            let Some(token) = open.token else { continue };
            let failure = Failure::new(
                FailureClass::Cancelled,
                "the job was stopped before it was proved",
            );
            self.decisions.push(Decision::Stop {
                process: open.process,
                token,
                failure,
            });
        }
    }

    /// Free slots go to the most urgent witness that waits in their device's process. A critical one that finds none
    /// takes that of the least urgent.
    fn device_slots(&mut self) {
        for device in &self.now.devices {
            let Some(process) = device.process else { continue };
            let mut waiting: Vec<&OpenNow> = self.of(process, PartitionState::Synthesized).collect();
            waiting.retain(|open| !open.stopping);
            waiting.sort_by_key(|open| order(open));
            let mut waiting = waiting.into_iter();
            for (worker, open) in device.idle.iter().zip(waiting.by_ref()) {
                let (attempt, worker) = (open.attempt, *worker);
                self.decisions.push(Decision::GpuStart {
                    attempt,
                    worker,
                    process,
                });
            }
            self.preempt(
                process,
                waiting.filter(|open| open.priority == Priority::Critical).count(),
            );
        }
    }

    fn preempt(&mut self, process: ProcessId, wanted: usize) {
        let mut proving: Vec<&OpenNow> = self.of(process, PartitionState::Proving).collect();
        let going = proving.iter().filter(|open| open.asked).count();
        proving.retain(|open| !open.asked && !open.stopping && open.priority < Priority::Critical);
        proving.sort_by_key(|open| std::cmp::Reverse(order(open)));
        for open in proving.into_iter().take(wanted.saturating_sub(going)) {
            let Some(token) = open.token else { continue };
            let failure = Failure::new(
                FailureClass::Preempted,
                "a critical partition took its device slot",
            );
            self.decisions.push(Decision::Stop {
                process,
                token,
                failure,
            });
        }
    }

    /// One import a process at a time; they come before syntheses, since jobs wait for them.
    fn imports(&mut self) {
        let mut free: Vec<ProcessId> = self
            .now
            .devices
            .iter()
            .filter_map(|device| device.process)
            .filter(|process| !self.now.importing.contains(process) && !self.has_loner(*process))
            .collect();
        for import in &self.now.imports {
            let Some(process) = free.pop() else { break };
            let of = TicketFor::Import(import.circuit);
            // More than there is at all would wait for ever; the import maps its files and lives with less.
            let bytes = import.bytes.min(self.accounts.budget_of(false));
            let ask = Ask {
                of,
                process,
                bytes,
                key: None,
                critical: false,
            };
            if let Err(short) = self.accounts.ask(&ask) {
                self.make_room(short.by, Priority::Normal, None);
                break;
            }
            self.decisions.push(Decision::ImportStart {
                circuit: import.circuit,
                ask,
            });
        }
    }

    /// From the head of the queue on, until there is no room: who lacks memory is waited for, who lacks a device is
    /// passed over.
    fn syntheses(&mut self) {
        let mut crowded_out = 0;
        for ready in &self.now.ready {
            let Some(device) = self.device_for(ready) else {
                crowded_out += usize::from(ready.priority == Priority::Critical && !ready.alone);
                self.large_waits |= is_large(ready);
                continue;
            };
            let Some(process) = device.process else { continue };
            let ask = ready.ask(process);
            match self.accounts.ask(&ask) {
                Ok(()) => {
                    self.started.entry(process).or_default().push(ready.alone);
                    let (job, partition) = (ready.job, ready.partition);
                    self.decisions.push(Decision::SynthStart { job, partition, ask });
                }
                // The budget was made smaller since it was submitted: it waits for a larger one, alone.
                Err(short) if short.never => {}
                Err(short) => {
                    self.make_room(short.by, ready.priority, ready.key.map(|asked| asked.key));
                    break;
                }
            }
        }
        self.make_place(crowded_out);
    }

    /// Critical partitions found as many ahead of every device as may be: the least urgent of those go back to the queue,
    /// witnesses first, since they go at once.
    fn make_place(&mut self, wanted: usize) {
        if wanted == 0 {
            return;
        }
        let ahead: Vec<&OpenNow> = self
            .now
            .open
            .iter()
            .filter(|open| is_ahead(open) && !self.has_loner(open.process))
            .collect();
        let leaves = |open: &OpenNow| {
            let given = self.decisions.iter().any(|decision| moves(decision, open));
            open.asked || open.stopping || given
        };
        let (going, mut staying): (Vec<_>, Vec<_>) = ahead.into_iter().partition(|open| leaves(open));
        staying.retain(|open| open.priority < Priority::Critical);
        staying.sort_by_key(|open| {
            let synthesizing = open.state == PartitionState::Synthesizing;
            (synthesizing, std::cmp::Reverse(order(open)))
        });
        for open in staying.into_iter().take(wanted.saturating_sub(going.len())) {
            let decision = take_back(open);
            self.decisions.extend(decision);
        }
    }

    /// The device with the most room, one that didn't fail this partition if there is one. A partition that must run
    /// alone takes an empty device, or reserves one until it is empty.
    fn device_for(&mut self, ready: &ReadyNow) -> Option<&'a DeviceNow> {
        let up = |device: &&DeviceNow| device.process.is_some();
        let mut devices: Vec<&'a DeviceNow> = self.now.devices.iter().filter(up).collect();
        devices.sort_by_key(|device| {
            let avoided = ready.avoid_device.as_deref() == Some(device.name.as_str());
            (
                avoided,
                std::cmp::Reverse(self.room(device, ready)),
                device.name.clone(),
            )
        });
        if ready.alone {
            // An empty one at once, else the one that will be empty first; its work only becomes less from here on, so it
            // comes. One that is reserved already waits for another loner.
            devices.sort_by_key(|device| self.burden(device));
            let device = devices
                .into_iter()
                .find(|device| !self.reserved.contains(device.name.as_str()))?;
            self.reserved.insert(&device.name);
            return Some(device).filter(|device| self.burden(device) == 0);
        }
        devices.into_iter().find(|device| {
            let process = device.process.is_some_and(|process| !self.has_loner(process));
            process && !self.reserved.contains(device.name.as_str()) && self.room(device, ready) > 0
        })
    }

    /// Partitions like this one that may still be put ahead of a device.
    fn room(&self, device: &DeviceNow, ready: &ReadyNow) -> u32 {
        let Some(process) = device.process else { return 0 };
        let ahead = self
            .now
            .open
            .iter()
            .filter(|open| open.process == process && is_ahead(open));
        let started = self.started.get(&process).map_or(0, Vec::len);
        let ahead = u32::try_from(ahead.count() + started).unwrap_or(u32::MAX);
        let few = device.is_processor() && (self.large_waits || is_large(ready));
        (if few { 1 } else { 2 } * device.slots).saturating_sub(ahead)
    }

    /// What a device's process has to do before it is empty: its open attempts, its import, and what starts there now.
    fn burden(&self, device: &DeviceNow) -> usize {
        let Some(process) = device.process else {
            return usize::MAX;
        };
        let open = self.now.open.iter().filter(|open| open.process == process);
        let imports = usize::from(self.now.importing.contains(&process));
        open.count() + imports + self.started.get(&process).map_or(0, Vec::len)
    }

    fn has_loner(&self, process: ProcessId) -> bool {
        let open = self
            .now
            .open
            .iter()
            .any(|open| open.process == process && open.alone);
        open || self
            .started
            .get(&process)
            .is_some_and(|started| started.contains(&true))
    }

    /// The head of the queue lacks `by` bytes: idle keys go first (but not the one it needs itself), then witnesses that
    /// wait and are less urgent, and for a critical one also what works and is less urgent. Nothing is thrown away unless
    /// that is enough, what is on its way out already counted.
    fn make_room(&mut self, by: u64, priority: Priority, keep: Option<Digest>) {
        let mut missing = by.saturating_sub(self.accounts.coming_back());
        if priority == Priority::Critical {
            missing = missing.saturating_sub(self.ending());
        }
        let mut thrown = Vec::new();
        for (circuit, bytes) in self.accounts.idle_keys() {
            if missing > 0 && Some(circuit) != keep {
                missing = missing.saturating_sub(bytes);
                thrown.push(Decision::Evict(circuit));
            }
        }
        let mut waiting: Vec<&OpenNow> = self
            .now
            .open
            .iter()
            .filter(|open| open.priority < priority && !open.asked && !open.stopping)
            .filter(|open| match open.state {
                PartitionState::Synthesized => true,
                PartitionState::Synthesizing | PartitionState::Proving => priority == Priority::Critical,
                _ => false,
            })
            .filter(|open| !self.decisions.iter().any(|decision| moves(decision, open)))
            .collect();
        waiting.sort_by_key(|open| {
            let works = open.state != PartitionState::Synthesized;
            (works, std::cmp::Reverse(order(open)))
        });
        for open in waiting {
            if missing > 0 {
                missing = missing.saturating_sub(self.held(open));
                thrown.extend(take_back(open));
            }
        }
        if missing == 0 {
            self.decisions.extend(thrown);
        }
    }

    /// Bytes of tickets that end soon by themselves: of what was asked to stop, and of finished proofs.
    fn ending(&self) -> u64 {
        let asked_here = |open: &OpenNow| {
            let stops =
                |decision: &Decision| matches!(decision, Decision::Stop { .. }) && moves(decision, open);
            self.decisions.iter().any(stops)
        };
        let ends = |open: &&OpenNow| match open.state {
            PartitionState::Finishing => true,
            PartitionState::Synthesizing | PartitionState::Proving => {
                open.asked || open.stopping || asked_here(open)
            }
            _ => false,
        };
        self.now
            .open
            .iter()
            .filter(ends)
            .map(|open| self.held(open))
            .sum()
    }

    /// Bytes of the ticket of an attempt.
    fn held(&self, open: &OpenNow) -> u64 {
        let ticket = self.accounts.ticket(ticket_of(open.attempt));
        ticket.map_or(0, |ticket| ticket.bytes)
    }

    fn checks(&mut self) {
        let jobs = self.now.verify.iter().take(self.now.verify_room);
        self.decisions.extend(jobs.copied().map(Decision::VerifyStart));
    }

    fn of(&self, process: ProcessId, state: PartitionState) -> impl Iterator<Item = &'a OpenNow> + use<'a> {
        self.now
            .open
            .iter()
            .filter(move |open| open.process == process && open.state == state)
    }
}

/// Most urgent first, then the older job, then the lower partition.
fn order(open: &OpenNow) -> (std::cmp::Reverse<Priority>, u64, u32) {
    (
        std::cmp::Reverse(open.priority),
        open.attempt.job.0,
        open.attempt.partition,
    )
}

fn is_large(ready: &ReadyNow) -> bool {
    ready.ticket_bytes > LARGE
}

fn is_ahead(open: &OpenNow) -> bool {
    matches!(
        open.state,
        PartitionState::Synthesizing | PartitionState::Synthesized
    )
}

/// Puts a less urgent attempt back into the queue, nothing counted against it: a witness that waits is dropped, what works
/// is asked to end at its next edge.
fn take_back(open: &OpenNow) -> Option<Decision> {
    if open.state == PartitionState::Synthesized {
        return Some(Decision::GiveBack(open.attempt));
    }
    let failure = Failure::new(
        FailureClass::Preempted,
        "a critical partition needed its place or memory",
    );
    open.token.map(|token| Decision::Stop {
        process: open.process,
        token,
        failure,
    })
}

/// The decision gives a slot to this attempt, or takes it back.
fn moves(decision: &Decision, open: &OpenNow) -> bool {
    match decision {
        Decision::GpuStart { attempt, .. } | Decision::GiveBack(attempt) => *attempt == open.attempt,
        Decision::Stop { token, .. } => Some(*token) == open.token,
        _ => false,
    }
}
