//! The accounts themselves: pure, so that the scheduler can try a decision on a copy.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use proofkeep_store::ids::{Digest, JobNumber, ProcessId};

/// What a ticket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TicketFor {
    /// An attempt, from its synthesis until its witness and working set are gone.
    Attempt {
        /// Whose.
        job: JobNumber,
        /// Which partition.
        partition: u32,
        /// Which attempt.
        attempt: u32,
    },
    /// The import of a circuit.
    Import(Digest),
    /// A key that is loaded before anybody needs it.
    Load {
        /// Which.
        key: Digest,
        /// Where.
        process: ProcessId,
    },
}

/// A ticket that somebody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// For what.
    pub of: TicketFor,
    /// In which process.
    pub process: ProcessId,
    /// Bytes, the key not included.
    pub bytes: u64,
    /// The key that it pins.
    pub key: Option<AskedKey>,
    /// It is for a critical job, which may use what is kept free for those.
    pub critical: bool,
}

/// The key that a ticket pins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedKey {
    /// What names it in memory.
    pub key: Digest,
    /// Bytes that one copy of it takes.
    pub bytes: u64,
    /// Each process has a copy of its own. Otherwise all map the same file, so that it counts once a machine.
    pub private: bool,
}

/// There is no room now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// Bytes that are missing.
    pub by: u64,
    /// It would not fit into an empty budget either.
    pub never: bool,
}

/// A key as the accounts see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyState {
    /// Bytes of one copy: what was announced or what is resident, whichever is more.
    pub bytes: u64,
    /// Each process has a copy of its own.
    pub private: bool,
    /// Tickets that pin it, by process.
    pub pins: BTreeMap<ProcessId, u32>,
    /// Processes that have it resident.
    pub resident: BTreeSet<ProcessId>,
    /// It was asked to go.
    pub evicting: bool,
    /// Since when nobody pins it, as far as [`Accounts::rest`] noted it.
    pub idle_since: Option<Instant>,
}

impl KeyState {
    /// Bytes it counts for.
    #[must_use]
    pub fn total(&self) -> u64 {
        let copies = match self.private {
            true => {
                let only_pinned = self
                    .pins
                    .keys()
                    .filter(|process| !self.resident.contains(process));
                self.resident.len() + only_pinned.count()
            }
            false => 1,
        };
        self.bytes.saturating_mul(copies as u64)
    }

    /// Whether a ticket pins it.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        !self.pins.is_empty()
    }

    /// Whether one more ticket in this process takes no more memory for it.
    fn is_at(&self, process: ProcessId) -> bool {
        !self.private || self.resident.contains(&process) || self.pins.contains_key(&process)
    }

    /// How long nobody has pinned it, in milliseconds; 0 while somebody does.
    #[must_use]
    pub fn idle_ms(&self, now: Instant) -> u64 {
        let idle = self
            .idle_since
            .map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        u64::try_from(idle.as_millis()).unwrap_or(u64::MAX)
    }
}

/// Tickets in force and resident keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accounts {
    budget: u64,
    /// Of it, kept free for critical jobs.
    reserve: u64,
    tickets: BTreeMap<TicketFor, Ask>,
    keys: BTreeMap<Digest, KeyState>,
    /// Keys that an operator keeps: once resident they stay.
    kept: BTreeSet<Digest>,
    peak: u64,
}

impl Accounts {
    /// Empty accounts over `budget` bytes.
    #[must_use]
    pub fn new(budget: u64) -> Self {
        Self {
            budget,
            reserve: 0,
            tickets: BTreeMap::new(),
            keys: BTreeMap::new(),
            kept: BTreeSet::new(),
            peak: 0,
        }
    }

    /// The same with `bytes` of the budget kept free for critical jobs.
    #[must_use]
    pub fn with_reserve(mut self, bytes: u64) -> Self {
        self.reserve = bytes;
        self
    }

    /// Bytes that are kept free for critical jobs.
    #[must_use]
    pub fn reserve(&self) -> u64 {
        self.reserve
    }

    /// The most that a job may ever use: the whole budget if it is critical, else what isn't kept for those.
    #[must_use]
    pub fn budget_of(&self, critical: bool) -> u64 {
        match critical {
            true => self.budget,
            false => self.budget.saturating_sub(self.reserve),
        }
    }

    /// Bytes there are.
    #[must_use]
    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// Bytes that tickets and keys count for.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        let tickets: u64 = self.tickets.values().map(|ask| ask.bytes).sum();
        let keys: u64 = self.keys.values().map(KeyState::total).sum();
        tickets.saturating_add(keys)
    }

    /// The most that was ever reserved.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// Bytes that may still be granted.
    #[must_use]
    pub fn free(&self) -> u64 {
        self.budget.saturating_sub(self.reserved())
    }

    /// The keys that count.
    #[must_use]
    pub fn keys(&self) -> &BTreeMap<Digest, KeyState> {
        &self.keys
    }

    /// The tickets in force.
    pub fn tickets(&self) -> impl Iterator<Item = &Ask> {
        self.tickets.values()
    }

    /// The ticket for `of`, if it is in force.
    #[must_use]
    pub fn ticket(&self, of: TicketFor) -> Option<&Ask> {
        self.tickets.get(&of)
    }

    /// Bytes that the ask would add: a key that counts already costs nothing more.
    #[must_use]
    pub fn cost(&self, ask: &Ask) -> u64 {
        let key = ask.key.map_or(0, |asked| match self.keys.get(&asked.key) {
            Some(known) if known.is_at(ask.process) => 0,
            Some(known) => known.bytes,
            None => asked.bytes,
        });
        ask.bytes.saturating_add(key)
    }

    /// Asks for a ticket; one that is in force already is granted as it is, since tickets never grow.
    ///
    /// # Errors
    /// When there isn't room; nothing changed then.
    pub fn ask(&mut self, ask: &Ask) -> Result<(), Short> {
        if self.tickets.contains_key(&ask.of) {
            return Ok(());
        }
        // A key may turn out larger than was said, so that more than the budget is reserved already.
        let wanted = self.reserved().saturating_add(self.cost(ask));
        let mut by = wanted.saturating_sub(self.budget);
        let most = self.budget_of(ask.critical);
        if !ask.critical {
            // Critical tickets use up the reserve first, so they don't stand in the way of others.
            let urgent = self.tickets.values().filter(|other| other.critical);
            let urgent: u64 = urgent.map(|other| other.bytes).sum();
            by = by.max(wanted.saturating_sub(urgent).saturating_sub(most));
        }
        if by > 0 {
            let alone = ask.bytes.saturating_add(ask.key.map_or(0, |asked| asked.bytes));
            return Err(Short {
                by,
                never: alone > most,
            });
        }
        if let Some(asked) = ask.key {
            let key = self.keys.entry(asked.key).or_insert(KeyState {
                bytes: asked.bytes,
                private: asked.private,
                ..KeyState::default()
            });
            *key.pins.entry(ask.process).or_default() += 1;
            (key.evicting, key.idle_since) = (false, None);
        }
        self.tickets.insert(ask.of, *ask);
        self.peak = self.peak.max(self.reserved());
        assert!(
            self.reserved() <= self.budget,
            "a ticket was granted beyond the memory budget"
        );
        Ok(())
    }

    /// Ends a ticket.
    pub fn end(&mut self, of: TicketFor) {
        if let Some(ask) = self.tickets.remove(&of)
            && let Some(AskedKey { key: circuit, .. }) = ask.key
        {
            if let Some(key) = self.keys.get_mut(&circuit)
                && let Entry::Occupied(mut pins) = key.pins.entry(ask.process)
            {
                *pins.get_mut() -= 1;
                if *pins.get() == 0 {
                    pins.remove();
                }
            }
            self.forget(circuit);
        }
    }

    /// A process has so many bytes of a key resident; 0: none any more.
    pub fn key(&mut self, process: ProcessId, circuit: Digest, bytes: u64) {
        if bytes == 0 {
            if let Some(key) = self.keys.get_mut(&circuit) {
                key.resident.remove(&process);
            }
            return self.forget(circuit);
        }
        let key = self.keys.entry(circuit).or_default();
        key.bytes = key.bytes.max(bytes);
        key.resident.insert(process);
        self.peak = self.peak.max(self.reserved());
    }

    /// Notes that keys which nobody pins are idle from now on, if they weren't before. Nothing depends on it but what is
    /// shown of them.
    pub fn rest(&mut self, now: Instant) {
        for key in self.keys.values_mut().filter(|key| !key.is_pinned()) {
            key.idle_since.get_or_insert(now);
        }
    }

    /// An operator keeps a key, or no more: nobody's need for room evicts one that is kept. Answers whether that is new.
    pub fn keep(&mut self, circuit: Digest, keep: bool) -> bool {
        match keep {
            true => self.kept.insert(circuit),
            false => self.kept.remove(&circuit),
        }
    }

    /// Whether an operator keeps a key.
    #[must_use]
    pub fn is_kept(&self, circuit: Digest) -> bool {
        self.kept.contains(&circuit)
    }

    /// A key was asked to go.
    pub fn evicting(&mut self, circuit: Digest) {
        if let Some(key) = self.keys.get_mut(&circuit) {
            key.evicting = true;
        }
    }

    /// A process is gone.
    pub fn process_gone(&mut self, process: ProcessId) {
        let tickets: Vec<TicketFor> = self
            .tickets
            .values()
            .filter(|ask| ask.process == process)
            .map(|ask| ask.of)
            .collect();
        for of in tickets {
            self.end(of);
        }
        let circuits: Vec<Digest> = self.keys.keys().copied().collect();
        for circuit in circuits {
            self.key(process, circuit, 0);
        }
    }

    /// Keys that nobody pins, the largest first; those that are going already, or that an operator keeps, are left out.
    #[must_use]
    pub fn idle_keys(&self) -> Vec<(Digest, u64)> {
        let mut idle: Vec<(Digest, u64)> = self
            .keys
            .iter()
            .filter(|(circuit, key)| !key.is_pinned() && !key.evicting && !self.kept.contains(circuit))
            .map(|(circuit, key)| (*circuit, key.total()))
            .collect();
        idle.sort_by_key(|(circuit, bytes)| (std::cmp::Reverse(*bytes), *circuit));
        idle
    }

    /// Bytes that come back by themselves: keys on their way out.
    #[must_use]
    pub fn coming_back(&self) -> u64 {
        self.keys
            .values()
            .filter(|key| !key.is_pinned() && key.evicting)
            .map(KeyState::total)
            .sum()
    }

    /// A key that is neither pinned nor resident doesn't count.
    fn forget(&mut self, circuit: Digest) {
        if self
            .keys
            .get(&circuit)
            .is_some_and(|key| !key.is_pinned() && key.resident.is_empty())
        {
            self.keys.remove(&circuit);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use proofkeep_store::ids::BootNumber;
    use proptest::prelude::*;

    use super::*;

    fn process(spawn: u64) -> ProcessId {
        ProcessId {
            boot: BootNumber(1),
            spawn,
        }
    }

    fn ask(job: u64, spawn: u64, bytes: u64, key: Option<(u8, u64)>) -> Ask {
        Ask {
            of: TicketFor::Attempt {
                job: JobNumber(job),
                partition: 0,
                attempt: 1,
            },
            process: process(spawn),
            bytes,
            key: key.map(|(name, bytes)| AskedKey {
                key: Digest([name; 32]),
                bytes,
                // Some of each in the books below.
                private: name == 2,
            }),
            critical: false,
        }
    }

    #[test]
    fn the_reserve_is_for_critical_tickets_and_they_use_it_first() {
        let mut accounts = Accounts::new(100).with_reserve(30);
        let urgent = |job, bytes| Ask {
            critical: true,
            ..ask(job, 1, bytes, None)
        };
        let short = accounts.ask(&ask(1, 1, 71, None)).unwrap_err();
        assert_eq!((short.by, short.never), (1, true));
        accounts.ask(&ask(1, 1, 60, None)).unwrap();
        let short = accounts.ask(&ask(2, 1, 20, None)).unwrap_err();
        assert_eq!((short.by, short.never), (10, false));
        accounts.ask(&urgent(3, 30)).unwrap();
        // The critical one lies in the reserve, so the rest is as it was.
        accounts.ask(&ask(4, 1, 10, None)).unwrap();
        assert_eq!(accounts.free(), 0);
        assert_eq!(accounts.ask(&urgent(5, 1)).unwrap_err().by, 1);
        // The whole budget is a critical job's.
        let mut accounts = Accounts::new(100).with_reserve(30);
        accounts.ask(&urgent(1, 100)).unwrap();
        assert!(!accounts.ask(&ask(2, 1, 1, None)).unwrap_err().never);
    }

    #[test]
    fn a_key_counts_once_and_stays_until_it_is_evicted() {
        let mut accounts = Accounts::new(1000);
        accounts.ask(&ask(1, 1, 100, Some((7, 500)))).unwrap();
        accounts.ask(&ask(2, 2, 100, Some((7, 500)))).unwrap();
        assert_eq!(accounts.reserved(), 700);
        accounts.key(process(1), Digest([7; 32]), 500);
        accounts.end(ask(1, 1, 0, None).of);
        accounts.end(ask(2, 1, 0, None).of);
        assert_eq!(accounts.reserved(), 500);
        assert_eq!(accounts.idle_keys(), vec![(Digest([7; 32]), 500)]);
        accounts.evicting(Digest([7; 32]));
        assert_eq!((accounts.idle_keys().len(), accounts.coming_back()), (0, 500));
        accounts.key(process(1), Digest([7; 32]), 0);
        assert_eq!(accounts.reserved(), 0);
    }

    #[test]
    fn a_key_of_which_each_process_has_a_copy_counts_for_each() {
        let mut accounts = Accounts::new(2000);
        accounts.ask(&ask(1, 1, 100, Some((2, 500)))).unwrap();
        accounts.ask(&ask(2, 1, 100, Some((2, 500)))).unwrap();
        assert_eq!(accounts.reserved(), 700);
        accounts.ask(&ask(3, 2, 100, Some((2, 500)))).unwrap();
        assert_eq!(accounts.reserved(), 1300);
        // It is resident where it was asked for: nothing more.
        accounts.key(process(1), Digest([2; 32]), 500);
        assert_eq!(accounts.reserved(), 1300);
        let short = accounts.ask(&ask(4, 3, 201, Some((2, 500)))).unwrap_err();
        assert_eq!((short.by, short.never), (1, false));
        // What never came to be resident goes with its tickets.
        accounts.end(ask(3, 2, 0, None).of);
        accounts.end(ask(2, 1, 0, None).of);
        accounts.end(ask(1, 1, 0, None).of);
        assert_eq!(accounts.idle_keys(), vec![(Digest([2; 32]), 500)]);
        accounts.key(process(2), Digest([2; 32]), 500);
        assert_eq!(accounts.idle_keys(), vec![(Digest([2; 32]), 1000)]);
        accounts.evicting(Digest([2; 32]));
        accounts.process_gone(process(2));
        assert_eq!(accounts.coming_back(), 500);
    }

    #[test]
    fn a_kept_key_is_never_among_those_that_may_go() {
        let (mut accounts, circuit) = (Accounts::new(1000), Digest([7; 32]));
        // Kept before it is there, as the setting does it.
        assert!(accounts.keep(circuit, true));
        assert!(!accounts.keep(circuit, true));
        accounts.key(process(1), circuit, 500);
        assert!(accounts.idle_keys().is_empty());
        // Its process goes, and the next one that has it keeps it too.
        accounts.process_gone(process(1));
        accounts.key(process(2), circuit, 500);
        assert!(accounts.is_kept(circuit) && accounts.idle_keys().is_empty());
        assert!(accounts.keep(circuit, false));
        assert_eq!(accounts.idle_keys(), vec![(circuit, 500)]);
    }

    #[test]
    fn a_key_is_idle_since_its_last_user_went() {
        let (mut accounts, start) = (Accounts::new(1000), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let idle = |accounts: &Accounts, seconds| accounts.keys()[&Digest([7; 32])].idle_ms(at(seconds));
        accounts.ask(&ask(1, 1, 1, Some((7, 500)))).unwrap();
        accounts.ask(&ask(2, 1, 1, Some((7, 500)))).unwrap();
        accounts.key(process(1), Digest([7; 32]), 500);
        accounts.end(ask(1, 1, 0, None).of);
        accounts.rest(at(2));
        assert_eq!(idle(&accounts, 9), 0, "one uses it still");
        accounts.end(ask(2, 1, 0, None).of);
        accounts.rest(at(3));
        accounts.rest(at(4));
        assert_eq!(idle(&accounts, 9), 6000);
        accounts.ask(&ask(3, 1, 1, Some((7, 500)))).unwrap();
        assert_eq!(idle(&accounts, 10), 0);
    }

    #[test]
    fn too_much_is_refused_and_said_to_be_forever_when_it_is() {
        let mut accounts = Accounts::new(1000);
        accounts.ask(&ask(1, 1, 900, None)).unwrap();
        assert_eq!(
            accounts.ask(&ask(2, 1, 200, None)),
            Err(Short {
                by: 100,
                never: false
            })
        );
        assert_eq!(
            accounts.ask(&ask(3, 1, 600, Some((1, 600)))),
            Err(Short {
                by: 1100,
                never: true
            })
        );
        accounts.process_gone(process(1));
        assert_eq!(accounts.reserved(), 0);
    }

    #[test]
    fn nothing_is_granted_while_keys_that_came_out_larger_exceed_the_budget() {
        let mut accounts = Accounts::new(1000);
        accounts.ask(&ask(1, 1, 100, Some((7, 500)))).unwrap();
        accounts.key(process(1), Digest([7; 32]), 1200);
        assert_eq!(accounts.reserved(), 1300);
        for bytes in [0, 50] {
            let short = Short {
                by: 300 + bytes,
                never: false,
            };
            assert_eq!(accounts.ask(&ask(2, 1, bytes, None)), Err(short));
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Ask(Ask),
        End(u64),
        Key(u64, u8, u64),
        Evict(u8),
        Gone(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..12u64, 1..4u64, 0..400u64, proptest::option::of(0..3u8)).prop_map(
                |(job, spawn, bytes, key)| {
                    Step::Ask(ask(
                        job,
                        spawn,
                        bytes,
                        key.map(|key| (key, 100 * (1 + u64::from(key)))),
                    ))
                }
            ),
            (0..12u64).prop_map(Step::End),
            (1..4u64, 0..3u8, any::<bool>()).prop_map(|(spawn, key, there)| Step::Key(
                spawn,
                key,
                if there { 100 * (1 + u64::from(key)) } else { 0 }
            )),
            (0..3u8).prop_map(Step::Evict),
            (1..4u64).prop_map(Step::Gone),
        ]
    }

    proptest! {
        /// Whatever happens, grants stay within the budget, pins are counted right, and when all processes are gone
        /// nothing is left.
        #[test]
        fn the_books_balance(steps in proptest::collection::vec(step(), 1..200)) {
            let mut accounts = Accounts::new(1000);
            for step in steps {
                match step {
                    Step::Ask(ask) => {
                        let before = accounts.clone();
                        if accounts.ask(&ask).is_err() {
                            prop_assert_eq!(&before, &accounts);
                        } else if before.ticket(ask.of).is_none() {
                            prop_assert!(accounts.reserved() <= 1000);
                        }
                    }
                    Step::End(job) => accounts.end(ask(job, 1, 0, None).of),
                    Step::Key(spawn, key, bytes) => accounts.key(process(spawn), Digest([key; 32]), bytes),
                    Step::Evict(key) => accounts.evicting(Digest([key; 32])),
                    Step::Gone(spawn) => accounts.process_gone(process(spawn)),
                }
                for (circuit, key) in accounts.keys() {
                    let pins = accounts.tickets().filter(|ask| ask.key.is_some_and(|asked| asked.key == *circuit));
                    prop_assert_eq!(pins.count(), key.pins.values().sum::<u32>() as usize);
                    prop_assert!(key.is_pinned() || !key.resident.is_empty());
                }
            }
            for spawn in 1..4 {
                accounts.process_gone(process(spawn));
            }
            prop_assert_eq!(accounts.reserved(), 0);
        }
    }
}
