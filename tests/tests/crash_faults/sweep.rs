//! Which operation fails, and how.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;

use proofkeep_tests::shim::{Counted, Fault, Role};
use rand::Rng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

use super::scene::{End, Template};

/// Every kind of operation that the preload library can make fail.
const GROUPS: [&str; 8] = [
    "write", "sync", "rename", "open", "access", "truncate", "unlink", "mkdir",
];

/// By hand: so many runs that don't come to an operation say that there is none.
const TRIES: u32 = 3;

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// Once.
    Once(&'static str),
    /// Once, after half of it was done, and every later one of its kind.
    Half,
    /// It and every later one of its kind.
    FromThen(&'static str),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Once(errno) => f.write_str(errno),
            Self::Half => f.write_str("ENOSPC, half done, from then on"),
            Self::FromThen(errno) => write!(f, "{errno}, from then on"),
        }
    }
}

/// A worker process whose disk refuses for good is followed by others that come no further.
fn failures(role: u8, group: &str) -> &'static [Failure] {
    use Failure::{FromThen, Half, Once};
    match group {
        "write" if role > 0 => &[Once("EIO"), Once("ENOSPC")],
        "write" => &[Once("EIO"), Once("ENOSPC"), FromThen("ENOSPC"), Half],
        "sync" => &[Once("EIO"), Once("ENOSPC")],
        "open" => &[Once("EIO"), Once("ENOSPC"), Once("EMFILE")],
        "access" => &[Once("EIO"), Once("EMFILE")],
        _ => &[Once("EIO"), Once("ENOSPC")],
    }
}

/// One operation of one process, and how it fails.
#[derive(Clone, Debug)]
pub struct Case {
    role: Role,
    group: &'static str,
    at: u64,
    failure: Failure,
}

/// A failure that is late comes so much later.
pub const LATE_MS: u64 = 300;

impl Case {
    /// Half of all failures: a disk that breaks tries for long before it says so, and others wait for it by then.
    fn late(&self) -> bool {
        self.at / 2 % 2 == 1
    }

    fn fault(&self) -> Fault {
        let (errno, times) = match self.failure {
            Failure::Once(errno) => (errno, Some(1)),
            Failure::Half => ("ENOSPC", None),
            Failure::FromThen(errno) => (errno, None),
        };
        Fault {
            errno,
            times,
            late_ms: if self.late() { LATE_MS } else { 0 },
            short: self.failure == Failure::Half,
            role: Some(self.role),
            ..Fault::once("", self.group, self.at)
        }
    }
}

/// What all cases came to.
#[derive(Default)]
pub struct Table {
    rows: BTreeMap<(String, Failure), BTreeMap<End, u64>>,
    pub cases: u64,
    /// The operation didn't come.
    pub missed: u64,
    pub wrong: Vec<String>,
}

impl Table {
    pub fn ends(&self, end: End) -> u64 {
        self.rows.values().filter_map(|ends| ends.get(&end)).sum()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| operation that failed | how | went on | stopped (70) | not started (1) |"
        )?;
        writeln!(f, "| --- | --- | ---: | ---: | ---: |")?;
        for ((what, how), ends) in &self.rows {
            let count = |end| ends.get(&end).copied().unwrap_or(0);
            writeln!(
                f,
                "| {what} | {how} | {} | {} | {} |",
                count(End::WentOn),
                count(End::Stopped),
                count(End::NotStarted)
            )?;
        }
        write!(
            f,
            "\n{} cases, {} of which did not come to their operation",
            self.cases, self.missed
        )
    }
}

/// Each kind of operation at each kind of place with each failure: the numbers that it has in a run without faults.
type Strata = BTreeMap<(Where, Failure), Vec<u64>>;
type Where = (u8, &'static str, String);

fn strata(template: &Template) -> Strata {
    let mut strata = Strata::new();
    for (role, operations) in (0..).zip(template.operations(&GROUPS)) {
        for group in GROUPS {
            let of_group = operations.iter().filter(|one| group_of(&one.operation) == group);
            for (at, one) in (1..).zip(of_group) {
                for failure in failures(role, group) {
                    let place = (role, group, what(one));
                    strata.entry((place, *failure)).or_default().push(at);
                }
            }
        }
    }
    strata
}

fn group_of(operation: &str) -> &str {
    match operation {
        "pwrite" | "writev" | "pwritev" | "fallocate" | "posix_fallocate" => "write",
        "fsync" | "fdatasync" | "sync_file_range" => "sync",
        "ftruncate" => "truncate",
        other => other,
    }
}

/// An operation and where in the directory, without names that differ from run to run.
fn what(operation: &Counted) -> String {
    let mut parts = operation.path.iter().map(|part| part.to_string_lossy());
    let place = match (parts.next(), parts.next()) {
        (None, _) => "the directory itself".to_owned(),
        (Some(first), None) => first.into_owned(),
        (Some(first), Some(second)) if first.starts_with("store.") && second.starts_with("snap.") => {
            let kind = if second.ends_with("generating") {
                ".generating"
            } else {
                ""
            };
            format!("{first}/snap.…{kind}")
        }
        (Some(first), Some(second)) if first.starts_with("store.") => format!("{first}/{second}"),
        (Some(first), Some(_)) => format!("{first}/…"),
    };
    format!("{} {place}", operation.operation)
}

/// So many cases: each kind of operation at each kind of place first, then each failure of it, then more of the same.
pub fn sample(template: &Template, count: usize, rng: &mut ChaCha8Rng) -> Table {
    let strata = strata(template);
    let mut places: BTreeMap<&Where, Vec<Case>> = BTreeMap::new();
    for ((place, failure), numbers) in &strata {
        let case = Case {
            role: role(place.0),
            group: place.1,
            at: numbers[rng.gen_range(0..numbers.len())],
            failure: *failure,
        };
        places.entry(place).or_default().push(case);
    }
    let mut rounds: Vec<Vec<Case>> = Vec::new();
    for (_, mut cases) in places {
        cases.shuffle(rng);
        for (round, case) in cases.into_iter().enumerate() {
            if rounds.len() <= round {
                rounds.push(Vec::new());
            }
            rounds[round].push(case);
        }
    }
    rounds.iter_mut().for_each(|round| round.shuffle(rng));
    let cases: Vec<Case> = rounds.concat().into_iter().take(count).collect();
    eprintln!(
        "{} kinds of operations and places with {} failures; {} cases",
        rounds.first().map_or(0, Vec::len),
        strata.len(),
        cases.len()
    );
    run(template, cases)
}

/// Every operation with every failure.
pub fn every(template: &Template) -> Table {
    let mut last: BTreeMap<(u8, &'static str), u64> = BTreeMap::new();
    for ((place, _), numbers) in strata(template) {
        let most = last.entry((place.0, place.1)).or_default();
        *most = (*most).max(numbers.into_iter().max().unwrap_or(0));
    }
    let cases = last.into_iter().flat_map(|((place, group), most)| {
        // Runs don't all have the same number of operations, as commands meet in groups.
        let numbers = 1..=most + u64::from(most > 20) * most / 10;
        numbers.flat_map(move |at| {
            let of = move |failure: &Failure| Case {
                role: role(place),
                group,
                at,
                failure: *failure,
            };
            failures(place, group).iter().map(of)
        })
    });
    run(template, cases.collect())
}

fn role(place: u8) -> Role {
    if place == 0 { Role::Daemon } else { Role::Worker }
}

/// Runs wait for the disk and for processes most of their time, so there is one for each core at once.
fn run(template: &Template, cases: Vec<Case>) -> Table {
    let total = cases.len();
    let (queue, table) = (Mutex::new(cases.into_iter()), Mutex::new(Table::default()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let Some(case) = queue.lock().unwrap().next() else {
                        return;
                    };
                    one(template, &case, &table);
                    let done = table.lock().unwrap().cases;
                    if done.is_multiple_of(25) {
                        eprintln!("{done} of {total}");
                    }
                }
            });
        }
    });
    table.into_inner().unwrap()
}

fn one(template: &Template, case: &Case, table: &Mutex<Table>) {
    let fault = case.fault();
    let mut outcome = template.run(&fault);
    for _ in 1..TRIES {
        if outcome.hit.is_some() || !outcome.wrong.is_empty() {
            break;
        }
        outcome = template.run(&fault);
    }
    let mut table = table.lock().unwrap();
    table.cases += 1;
    let Some(hit) = outcome.hit else {
        table.missed += 1;
        let wrong = outcome.wrong.iter().map(|text| format!("{case:?}: {text}"));
        return table.wrong.extend(wrong.collect::<Vec<_>>());
    };
    let who = if case.role == Role::Worker { "worker: " } else { "" };
    let what = format!("{who}{}", what(&hit));
    for text in outcome.wrong {
        eprintln!("WRONG {case:?} ({what}): {text}");
        table.wrong.push(format!("{case:?} ({what}): {text}"));
    }
    let row = table.rows.entry((what, case.failure)).or_default();
    *row.entry(outcome.end).or_default() += 1;
}
