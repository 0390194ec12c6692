//! The run loop, turned into steps: look after processes, look at the store, decide, do.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use proofkeep_engine::protocol::{CircuitFiles, ToWorker, WirePiece, Work};
use proofkeep_engine::schedule::{Decision, Follow, Live, Retention, Snapshot, decide, snapshot};
use proofkeep_engine::workers::Patience;
use proofkeep_engine::workers::held::{Overdue, WindDown};
use proofkeep_engine::workers::starts::is_dumb;
use proofkeep_store::ids::{JobNumber, ProcessId, Token};
use proofkeep_store::machine::{Command, Reply};
use proofkeep_store::query;
use proofkeep_store::records::{AttemptRef, CircuitState, Failure, FailureClass};

use crate::child::{Child, SIGKILL};
use crate::daemon::{Check, Daemon, Phase, Process, Turn};
use crate::fair;
use crate::world::World;

/// Final checks at a time.
const CHECKS: usize = 2;
/// After a step of the wall clock no deadline is swept for this long.
const AFTER_STEP: Duration = Duration::from_secs(60);
/// Ended jobs that are kept.
pub const KEPT: u64 = 10;

impl World {
    /// The run loop can go on.
    pub(crate) fn loop_can_go_on(&self, daemon: &Daemon) -> bool {
        let works = matches!(daemon.phase, Phase::Working | Phase::Stopping(_));
        works
            && !daemon.is_locked()
            && match &daemon.turn {
                Turn::Resting => daemon.bell || daemon.order.is_some() || self.time.now() >= daemon.second_at,
                Turn::Tending(_, None) => true,
                Turn::Tending(_, Some(id)) => daemon.mail.contains_key(id),
                Turn::Acting(sent, _) => sent.front().is_none_or(|(_, id)| daemon.mail.contains_key(id)),
            }
    }

    /// One step of the run loop.
    pub(crate) fn loop_step(&mut self, daemon: &mut Daemon) -> Result<(), String> {
        let now = self.time.now();
        match std::mem::replace(&mut daemon.turn, Turn::Resting) {
            Turn::Resting => {
                if let Some(deadline) = daemon.order.take() {
                    daemon.phase = Phase::Stopping(deadline);
                }
                if now >= daemon.second_at {
                    daemon.second_at = now + Duration::from_secs(1);
                }
                daemon.bell = false;
                daemon.turn = Turn::Tending(0, None);
                Ok(())
            }
            Turn::Tending(index, waiting) => self.tend(daemon, index, waiting),
            Turn::Acting(mut sent, granted) => {
                let Some((decision, id)) = sent.pop_front() else {
                    // Something was granted: look again at once, but hear an order first.
                    daemon.bell |= granted;
                    return self.wind_down(daemon);
                };
                let outcome = daemon.mail.remove(&id);
                let granted = match outcome {
                    Some(Ok(committed)) => self.follow(daemon, decision, &committed.reply)? || granted,
                    _ => {
                        if let Some(ask) = decision.ticket() {
                            daemon.accounts.end(ask.of);
                            daemon.bell = true;
                        }
                        if let Decision::VerifyStart(job) = decision {
                            daemon.walk.hints.remove(&job);
                        }
                        granted
                    }
                };
                daemon.turn = Turn::Acting(sent, granted);
                Ok(())
            }
        }
    }

    /// Buries, starts and watches processes, one device a step; then looks and decides.
    fn tend(&mut self, daemon: &mut Daemon, index: usize, waiting: Option<u64>) -> Result<(), String> {
        let now = self.time.now();
        let (stopping, rough) = (daemon.is_stopping(), self.rough);
        if let Some(id) = waiting {
            let outcome = daemon.mail.remove(&id);
            let run = &mut daemon.runs[index];
            match outcome {
                Some(Ok(committed)) => {
                    if let Reply::Process(id) = committed.reply
                        && rough
                        && self.chance.one_in(50)
                    {
                        run.starts.failed(now);
                        self.counts.add("failed starts", 1);
                        daemon.post(not_started(id));
                    } else if let Reply::Process(id) = committed.reply {
                        let mute = rough && self.chance.one_in(60);
                        self.children.insert(id, Child::new(id, &run.device, mute));
                        run.live = Some(Process::new(id, now));
                        self.counts.add("processes", 1);
                    }
                }
                _ => run.starts.refused(now),
            }
            daemon.turn = Turn::Tending(index + 1, None);
            return Ok(());
        }
        let Some(run) = daemon.runs.get_mut(index) else {
            return self.look(daemon);
        };
        if let Some(process) = run.live.take_if(|process| process.gone) {
            let _ = run.starts.gone(process.held.had_work(), process.since, now);
            self.children.remove(&process.id);
        }
        if run.live.is_none() && !stopping && run.starts.is_due(now) {
            let device = run.device.clone();
            let id = daemon.send(Command::ProcessStart { device });
            daemon.turn = Turn::Tending(index, Some(id));
        } else {
            daemon.turn = Turn::Tending(index + 1, None);
        }
        Ok(())
    }

    fn look(&mut self, daemon: &mut Daemon) -> Result<(), String> {
        let now = self.time.now();
        self.watch_silence(daemon, now);
        let slow = now >= daemon.slow_at;
        if slow {
            daemon.slow_at = now + Duration::from_secs(1);
            let wall = self.time.wall();
            if let Some(by_ms) = daemon.clock.take_step_at(wall, now) {
                daemon.no_deadlines_until = Some(now + AFTER_STEP);
                daemon.post(Command::ClockStep { by_ms });
            }
        }
        daemon.walk.hints.append(&mut daemon.hints);
        let live = Live {
            up: daemon
                .processes()
                .filter(|process| process.is_up())
                .map(|process| process.id)
                .collect(),
            asked: daemon
                .processes()
                .flat_map(|process| process.held.asked().collect::<Vec<_>>())
                .collect(),
            verify_room: CHECKS.saturating_sub(daemon.checks.len()),
            stopping: daemon.is_stopping(),
            budget: daemon.accounts.budget(),
            reserve: daemon.accounts.reserve(),
            no_deadlines: daemon.no_deadlines_until.is_some_and(|until| now < until),
        };
        let retention = Retention { max_jobs: Some(KEPT) };
        let at = daemon.clock.at(now);
        let seen = snapshot(&self.disk.view, at, &live, retention, &mut daemon.walk, slow)
            .map_err(|error| format!("the scheduler can't read the store: {error}"))?;
        self.reconcile(daemon, &seen, now);
        self.send_imports_again(daemon, now);
        let decisions = decide(&seen, &daemon.accounts);
        fair::check(&self.disk.view, &seen, &daemon.accounts, &decisions)?;
        daemon.walk.remember(&seen, &decisions);
        self.act(daemon, decisions);
        Ok(())
    }

    /// Notices silence, and acts on it.
    fn watch_silence(&mut self, daemon: &mut Daemon, now: Instant) {
        let mut stop = Vec::new();
        let mut kill = Vec::new();
        let mut dumb = Vec::new();
        for process in daemon.processes().filter(|process| !process.gone) {
            if is_dumb(process.is_up(), process.since, process.closed, now) {
                dumb.push(process.id);
                continue;
            }
            for overdue in process.held.overdue(now, &Patience::default()) {
                match overdue {
                    Overdue::Stop(token, failure) => stop.push((process.id, token, failure)),
                    Overdue::Kill(culprit) => kill.push((process.id, culprit)),
                }
            }
        }
        for (process, token, failure) in stop {
            self.ask_stop(daemon, process, token, &failure);
        }
        for id in dumb {
            if let Some(process) = daemon.process(id) {
                process.nonsense |= process.killed.is_none() && !process.held.is_empty();
            }
            self.kill(daemon, id, None);
        }
        for (process, culprit) in kill {
            self.kill(daemon, process, culprit);
        }
    }

    pub(crate) fn kill(&mut self, daemon: &mut Daemon, id: ProcessId, culprit: Option<(Token, Failure)>) {
        if let Some(process) = daemon.process(id) {
            process.killed.get_or_insert(culprit);
        }
        if let Some(child) = self.children.get_mut(&id) {
            child.signal(SIGKILL, &mut self.chance);
        }
    }

    fn say(&mut self, id: ProcessId, word: ToWorker) {
        if let Some(child) = self.children.get_mut(&id) {
            child.inbox.push_back(word);
        }
    }

    /// Asks for the end of the work under a lease, once.
    pub(crate) fn ask_stop(&mut self, daemon: &mut Daemon, id: ProcessId, token: Token, failure: &Failure) {
        let now = self.time.now();
        let Some(process) = daemon.process(id) else { return };
        if !process.held.ask(token, failure, now) {
            return;
        }
        if let Some(task) = process.held.task(token) {
            let of = (task.attempt.job.0, task.attempt.partition);
            self.blame.entry(of).or_default().insert(failure.class);
        }
        let class = failure.class.name().to_owned();
        let token = token.into();
        self.say(id, ToWorker::Stop { token, class });
    }

    fn drop_witness(&mut self, daemon: &mut Daemon, id: ProcessId, attempt: AttemptRef) {
        let now = self.time.now();
        let Some(process) = daemon.process(id) else { return };
        if process.held.drop_witness(attempt, now) {
            let work = Work::new(attempt.job, attempt.partition, attempt.number);
            self.say(id, ToWorker::Drop { work });
        }
    }

    fn reconcile(&mut self, daemon: &mut Daemon, seen: &Snapshot, now: Instant) {
        let unwanted: Vec<_> = daemon
            .processes()
            .flat_map(|process| {
                let id = process.id;
                process
                    .held
                    .unwanted(&seen.open)
                    .into_iter()
                    .map(move |attempt| (id, attempt))
            })
            .collect();
        for (id, attempt) in unwanted {
            self.drop_witness(daemon, id, attempt);
        }
        let stopping = daemon.is_stopping();
        let mut orphans = Vec::new();
        for open in seen.open.iter().filter(|_| !stopping) {
            if let Some(process) = daemon.process(open.process)
                && process.is_up()
                && !process.held.knows(open)
            {
                orphans.push((open.process, open.attempt));
            }
        }
        for lost in daemon.orphans.see(orphans, now) {
            self.count("orphans");
            self.kill(daemon, lost, None);
        }
    }

    fn send_imports_again(&mut self, daemon: &mut Daemon, now: Instant) {
        let mut again = Vec::new();
        for process in daemon.processes().filter(|process| process.is_up()) {
            for (token, circuit, done) in process.held.imports_due(now) {
                again.push((process.id, token, circuit, done));
            }
        }
        for (id, token, circuit, done) in again {
            let Ok(Some(record)) = query::circuit(&self.disk.view, circuit) else {
                continue;
            };
            if let Some(process) = daemon.process(id) {
                process.held.import_again(token, now);
            }
            let files = CircuitFiles::from(&record);
            let token = token.into();
            self.say(id, ToWorker::Import { token, files, done });
        }
    }

    /// Sends all commands at once; what only asks a process for something is done now.
    fn act(&mut self, daemon: &mut Daemon, decisions: Vec<Decision>) {
        let mut sent = VecDeque::new();
        let mut evicted = BTreeSet::new();
        for decision in decisions {
            self.count(name(&decision));
            match &decision {
                Decision::Stop {
                    process,
                    token,
                    failure,
                } => self.ask_stop(daemon, *process, *token, failure),
                Decision::Evict(circuit) => {
                    evicted.insert(*circuit);
                    daemon.accounts.evicting(*circuit);
                }
                _ => {}
            }
            if let Some(ask) = decision.ticket()
                && daemon.accounts.ask(ask).is_err()
            {
                continue;
            }
            if let Some(command) = decision.command() {
                sent.push_back((decision, daemon.send(command)));
            }
        }
        for circuit in evicted {
            let all: Vec<ProcessId> = daemon.processes().map(|process| process.id).collect();
            for id in all {
                self.say(id, ToWorker::Evict { circuit: circuit.0 });
            }
        }
        self.trace(|| format!("the loop decides {} things", sent.len()));
        daemon.turn = Turn::Acting(sent, false);
    }

    /// What follows a grant; `true` if there may be more to do.
    fn follow(&mut self, daemon: &mut Daemon, decision: Decision, reply: &Reply) -> Result<bool, String> {
        let (follow, again) = decision.follow(reply);
        let now = self.time.now();
        match follow {
            Follow::Synth { attempt, token, ask } => {
                self.is_durable(token)?;
                let view = &self.disk.view;
                let job = query::job_by_number(view, attempt.job).map_err(|error| error.to_string())?;
                let job = job.ok_or("a partition was started whose job is not there")?;
                let circuit = match job.circuit {
                    Some(digest) => query::circuit(view, digest).map_err(|error| error.to_string())?,
                    None => None,
                };
                let request = query::request(view, attempt.job).map_err(|error| error.to_string())?;
                let word = ToWorker::Synth {
                    token: token.into(),
                    work: Work::new(attempt.job, attempt.partition, attempt.number),
                    kind: job.kind,
                    circuit: circuit.as_ref().map(CircuitFiles::from),
                    request: request.unwrap_or_default(),
                    ticket_bytes: ask.bytes,
                    recheck: false,
                };
                if let Some(process) = daemon.process(ask.process) {
                    process.held.synth(attempt, token, now);
                    self.say(ask.process, word);
                }
            }
            Follow::Import { circuit, token, ask } => {
                self.is_durable(token)?;
                let record = query::circuit(&self.disk.view, circuit).map_err(|error| error.to_string())?;
                let (Some(record), Some(process)) = (record, daemon.process(ask.process)) else {
                    return Ok(again);
                };
                let done = match record.state {
                    CircuitState::Importing(import) => import.done,
                    _ => 0,
                };
                process.held.import(circuit, token, done, now);
                let word = ToWorker::Import {
                    token: token.into(),
                    files: CircuitFiles::from(&record),
                    done,
                };
                self.say(ask.process, word);
            }
            Follow::Prove {
                attempt,
                token,
                process,
            } => {
                self.is_durable(token)?;
                let Some(live) = daemon.process(process) else {
                    return Ok(again);
                };
                let Some(made) = live.held.prove(attempt, token, now) else {
                    return Err(format!(
                        "the witness of {attempt:?} is not in its process any more"
                    ));
                };
                let kept = query::checkpoint(&self.disk.view, attempt.job, attempt.partition);
                let pieces = made.pieces(kept.map_err(|error| error.to_string())?);
                self.count_many("pieces reused", pieces.len() as u64);
                let word = ToWorker::Prove {
                    token: token.into(),
                    work: Work::new(attempt.job, attempt.partition, attempt.number),
                    witness: made.witness.0,
                    key: made.key.0,
                    pieces: pieces.iter().map(WirePiece::from).collect(),
                };
                self.say(process, word);
            }
            Follow::Check { job, token } => daemon.checks.push(Check {
                job,
                token,
                sent: None,
            }),
            Follow::EndTicket(of) => {
                daemon.accounts.end(of);
                daemon.bell = true;
            }
            Follow::Nothing => {}
        }
        Ok(again)
    }

    /// At the end of a turn of a daemon that stops: asks everything to end; when all is gone it closes the boot.
    fn wind_down(&mut self, daemon: &mut Daemon) -> Result<(), String> {
        let Phase::Stopping(deadline) = daemon.phase else {
            return Ok(());
        };
        let failure = Failure::new(FailureClass::Shutdown, "the daemon was asked to stop");
        let all: Vec<ProcessId> = daemon.processes().map(|process| process.id).collect();
        for id in all {
            let Some(process) = daemon.process(id) else {
                continue;
            };
            let WindDown { stop, drop, idle } = process.held.wind_down();
            let (up, quits) = (process.is_up(), idle && !process.quitting);
            process.quitting |= idle;
            for token in stop {
                self.ask_stop(daemon, id, token, &failure);
            }
            for attempt in drop {
                self.drop_witness(daemon, id, attempt);
            }
            if quits && up {
                self.say(id, ToWorker::Quit);
            } else if quits || self.time.now() >= deadline {
                self.kill(daemon, id, None);
            }
        }
        let gone = daemon.processes().all(|process| process.gone);
        if gone && daemon.checks.is_empty() {
            let id = daemon.send(Command::BootClose);
            daemon.phase = Phase::Closing(id);
        }
        Ok(())
    }

    /// What is said to a process must be durable.
    fn is_durable(&self, token: Token) -> Result<(), String> {
        if self.disk.unsynced() > 0 {
            return Err(format!("lease {token} goes out before it is durable"));
        }
        Ok(())
    }

    /// A job may be ready for its final check.
    pub(crate) fn hint(daemon: &mut Daemon, job: JobNumber) {
        daemon.hints.insert(job);
        daemon.bell = true;
    }
}

/// A process that could not be started.
fn not_started(process: ProcessId) -> Command {
    Command::ProcessLost {
        process,
        failure: Failure::new(FailureClass::Interrupted, "it could not be started: no memory"),
        culprit: None,
        own_fault: false,
        process_peak_bytes: None,
    }
}

fn name(decision: &Decision) -> &'static str {
    match decision {
        Decision::Wake(_) => "decided: wake",
        Decision::Expire(_) => "decided: expire",
        Decision::FailJob(..) => "decided: fail",
        Decision::Resume(_) => "decided: resume a device",
        Decision::GpuStart { .. } => "decided: prove",
        Decision::SynthStart { .. } => "decided: synthesize",
        Decision::ImportStart { .. } => "decided: import",
        Decision::Stop { failure, .. } if failure.class == FailureClass::Preempted => "decided: preempt",
        Decision::Stop { .. } => "decided: stop",
        Decision::GiveBack(_) => "decided: give back",
        Decision::Evict(_) => "decided: evict",
        Decision::VerifyStart(_) => "decided: verify",
        Decision::Prune(_) => "decided: prune",
    }
}
