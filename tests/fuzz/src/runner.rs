//! Runs a target: mutates, parses, and holds the parser to its promises.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::panic::catch_unwind;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Outcome, Rng, Shape, Target, alloc, binary, seeds, text};

/// A parser that takes longer than this over an input of a mebibyte at most will not come back.
const PATIENCE: Duration = Duration::from_secs(30);
/// Inputs that may join the seeds for each code: some texts repeat so much of the input that each seems new.
const MOST_FOUND: usize = 200;

/// How long to go on.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// That many mutants.
    Iterations(u64),
    /// That much time.
    Time(Duration),
}

/// What a run did.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Mutants tried.
    pub iterations: u64,
    /// Inputs that were accepted, seeds among them.
    pub accepted: u64,
    /// Those that were refused, by code.
    pub refused: BTreeMap<&'static str, u64>,
    /// Refusals that were worded differently, numbers aside.
    pub distinct: usize,
    /// The most bytes held by one parse, and the length of its input.
    pub peak: (usize, usize),
}

/// A broken promise.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The parser.
    pub target: &'static str,
    /// The seed of the run.
    pub seed: u64,
    /// The mutant, or none if a seed itself failed.
    pub iteration: Option<u64>,
    /// What happened.
    pub what: String,
    /// The input.
    pub input: Vec<u8>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} broke a promise on an input of {} bytes: {}",
            self.target,
            self.input.len(),
            self.what
        )?;
        match self.iteration {
            Some(iteration) => write!(
                f,
                "repeat with: PROOFKEEP_FUZZ_REPLAY={}:{}:{iteration} cargo test --release -p proofkeep-fuzz replay",
                self.target, self.seed
            ),
            None => write!(f, "the input is one of the seeds"),
        }
    }
}

/// Runs a target. Everything it does follows from `seed`, but for where a limit of time ends it.
///
/// # Errors
///
/// The first broken promise.
pub fn run(target: &'static Target, seed: u64, limit: Limit) -> Result<Report, Failure> {
    let watchdog = Watchdog::start(target, seed);
    let mut session = Session::new(target, seed)?;
    let start = Instant::now();
    let goes_on = |done: u64| match limit {
        Limit::Iterations(most) => done < most,
        Limit::Time(most) => start.elapsed() < most,
    };
    while goes_on(session.report.iterations) {
        watchdog.begin(session.report.iterations);
        session.step()?;
    }
    session.report.distinct = session.seen.values().map(HashSet::len).sum();
    Ok(session.report)
}

/// Repeats a run up to and with `iteration`, since later mutants may come from earlier ones.
///
/// # Errors
///
/// The failure that was to be repeated.
pub fn replay(target: &'static Target, seed: u64, iteration: u64) -> Result<Report, Failure> {
    run(target, seed, Limit::Iterations(iteration + 1))
}

struct Session {
    target: &'static Target,
    seed: u64,
    corpus: Vec<Vec<u8>>,
    originals: usize,
    seen: BTreeMap<&'static str, HashSet<String>>,
    report: Report,
}

impl Session {
    fn new(target: &'static Target, seed: u64) -> Result<Self, Failure> {
        let corpus = seeds::load(target);
        let originals = corpus.len();
        let mut session = Session {
            target,
            seed,
            corpus,
            originals,
            seen: BTreeMap::new(),
            report: Report::default(),
        };
        for input in session.corpus.clone() {
            match session.parse(None, &input)? {
                Ok(()) => session.report.accepted += 1,
                Err((code, text)) => {
                    session.is_new(code, &text);
                }
            }
        }
        Ok(session)
    }

    fn step(&mut self) -> Result<(), Failure> {
        let iteration = self.report.iterations;
        let rng = &mut Rng::new(self.seed, iteration);
        // Half of the mutants come from the untouched seeds: what was found must not crowd them out.
        let from = if rng.one_in(2) {
            self.originals
        } else {
            self.corpus.len()
        };
        let mut input = self.corpus[rng.below(from)].clone();
        let other = &self.corpus[rng.below(self.corpus.len())];
        match self.target.shape {
            Shape::Container => binary::mutate(rng, &mut input, other),
            Shape::Text => text::mutate(rng, &mut input, other),
            Shape::Fixed if !rng.one_in(8) => binary::patch(rng, &mut input),
            Shape::Bytes | Shape::Fixed => binary::mutate_flat(rng, &mut input, other),
        }
        if rng.one_in(2) {
            (self.target.finish)(&mut input);
        }

        let outcome = self.parse(Some(iteration), &input)?;
        self.report.iterations += 1;
        match outcome {
            Ok(()) => self.report.accepted += 1,
            Err((code, text)) => {
                *self.report.refused.entry(code).or_default() += 1;
                if self.is_new(code, &text) {
                    self.corpus.push(input);
                }
            }
        }
        Ok(())
    }

    fn is_new(&mut self, code: &'static str, text: &str) -> bool {
        let seen = self.seen.entry(code).or_default();
        // From a file that is of another kind altogether no further check can be reached.
        code != "bad-magic" && seen.len() < MOST_FOUND && seen.insert(worded(text))
    }

    fn parse(&mut self, iteration: Option<u64>, input: &[u8]) -> Result<Outcome, Failure> {
        let failure = |what| {
            let (target, seed) = (self.target.name, self.seed);
            Failure {
                target,
                seed,
                iteration,
                what,
                input: input.to_vec(),
            }
        };
        alloc::set_running(self.target.name, self.seed, iteration.unwrap_or(u64::MAX));
        let (result, peak) = alloc::peak_of(|| catch_unwind(|| (self.target.parse)(input)));
        let outcome = result.map_err(|panic| failure(format!("it panicked: {}", message(&*panic))))?;
        let allowed = self.target.slack + self.target.bytes_per_byte * input.len();
        if peak > allowed {
            return Err(failure(format!(
                "it held {peak} bytes, and {allowed} are allowed"
            )));
        }
        if peak > self.report.peak.0 {
            self.report.peak = (peak, input.len());
        }
        if outcome.is_ok() {
            catch_unwind(|| (self.target.check)(input))
                .map_err(|panic| failure(format!("it was accepted and must not be: {}", message(&*panic))))?;
        }
        Ok(outcome)
    }
}

/// A refusal without what it repeats from the input: numbers, and what stands in quotes. Two that differ in no more
/// than that were made by the same check.
fn worded(text: &str) -> String {
    let unquoted = text.split(['"', '`']).step_by(2);
    let words = unquoted
        .flat_map(str::split_whitespace)
        .filter(|word| !word.contains(|c: char| c.is_ascii_digit()));
    words.take(20).collect::<Vec<_>>().join(" ")
}

fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("with something that is no text")
}

/// Ends the process when a parser doesn't come back: nothing else can stop a thread that loops.
struct Watchdog(Sender<u64>);

impl Watchdog {
    fn start(target: &'static Target, seed: u64) -> Self {
        let (sender, receiver) = channel();
        thread::spawn(move || {
            let mut running = None;
            loop {
                match receiver.recv_timeout(PATIENCE) {
                    Ok(iteration) => running = Some(iteration),
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        let name = target.name;
                        eprintln!(
                            "{name} doesn't come back; PROOFKEEP_FUZZ_REPLAY={name}:{seed}:{running:?}"
                        );
                        std::process::abort();
                    }
                }
            }
        });
        Watchdog(sender)
    }

    fn begin(&self, iteration: u64) {
        // The receiver lives as long as this sender.
        let _ = self.0.send(iteration);
    }
}
