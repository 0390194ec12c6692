//! The reader of a worker process, turned into steps: a word, what it comes to, the outcome of that; at the end, the end.

use proofkeep_engine::budget::TicketFor;
use proofkeep_engine::protocol::{FromWorker, ToWorker};
use proofkeep_engine::schedule::ticket_of;
use proofkeep_engine::workers::death::{Circumstances, judge};
use proofkeep_engine::workers::held::Made;
use proofkeep_engine::workers::words::{self, Act, OnRefusal, Speaker};
use proofkeep_store::CommitError;
use proofkeep_store::ids::{Digest, ProcessId, Token};
use proofkeep_store::machine::{Command, Reply};
use proofkeep_store::records::{Failure, FailureClass};

use crate::child::BAD_AT;
use crate::daemon::{Daemon, Waits};
use crate::world::World;

impl World {
    /// The reader of this process can go on.
    pub(crate) fn reader_can_go_on(&self, daemon: &Daemon, index: usize) -> bool {
        let Some(process) = daemon.runs[index].live.as_ref().filter(|process| !process.gone) else {
            return false;
        };
        let Some(child) = self.children.get(&process.id) else {
            return false;
        };
        match &process.waits {
            Some(Waits::Word(id, _) | Waits::Lost(id, _)) => daemon.mail.contains_key(id),
            None if !process.acts.is_empty() => true,
            None => match child.outbox.front() {
                // It reads the job that the proof is of.
                Some(FromWorker::Proof { .. }) => !daemon.is_locked(),
                Some(_) => true,
                None => child.status.is_some(),
            },
        }
    }

    /// One step of the reader of this device's process.
    pub(crate) fn reader_step(&mut self, daemon: &mut Daemon, index: usize) -> Result<(), String> {
        let Some(process) = daemon.runs[index].live.as_mut() else {
            return Ok(());
        };
        let id = process.id;
        if let Some(waits) = process.waits.take() {
            return self.answered(daemon, index, id, waits);
        }
        if let Some(act) = process.acts.pop_front() {
            self.act_on(daemon, index, act);
            return Ok(());
        }
        let word = self
            .children
            .get_mut(&id)
            .and_then(|child| child.outbox.pop_front());
        match word {
            Some(word) => self.hear(daemon, index, word),
            None => {
                self.bury(daemon, index);
                Ok(())
            }
        }
    }

    fn answered(
        &mut self,
        daemon: &mut Daemon,
        index: usize,
        id: ProcessId,
        waits: Waits,
    ) -> Result<(), String> {
        let (now, clock) = (self.time.now(), daemon.clock.at(self.time.now()));
        match waits {
            Waits::Word(mail, on) => {
                let outcome = daemon.mail.remove(&mail);
                let run = &mut daemon.runs[index];
                let Some(process) = run.live.as_mut() else {
                    return Ok(());
                };
                if let Some(Err(CommitError::Refused(refusal))) = outcome {
                    self.counts.add("words refused", 1);
                    let speaker = Speaker {
                        device: &run.device,
                        peak: None,
                        now,
                        clock,
                    };
                    if let OnRefusal::EndAttempt(_) = on {
                        return Err(format!("the end of a synthesis was refused: {refusal}"));
                    }
                    if let Some(instead) = words::refused(&mut process.held, on, &refusal, &speaker) {
                        process.acts = instead.into();
                    }
                }
            }
            Waits::Lost(mail, command) => match daemon.mail.remove(&mail) {
                Some(Ok(committed)) if committed.reply == Reply::More => {
                    let mail = daemon.send((*command).clone());
                    if let Some(process) = daemon.process(id) {
                        process.waits = Some(Waits::Lost(mail, command));
                    }
                }
                Some(Err(CommitError::Refused(refusal))) => {
                    return Err(format!("the end of process {id} was refused: {refusal}"));
                }
                _ => {
                    daemon.accounts.process_gone(id);
                    if let Some(process) = daemon.process(id) {
                        process.gone = true;
                    }
                    daemon.bell = true;
                }
            },
        }
        Ok(())
    }

    fn act_on(&mut self, daemon: &mut Daemon, index: usize, act: Act) {
        match act {
            Act::Post(_, command) => daemon.post(command),
            Act::Commit(_, command, on) => {
                let mail = daemon.send(command);
                if let Some(process) = daemon.runs[index].live.as_mut() {
                    process.waits = Some(Waits::Word(mail, on));
                }
            }
            Act::Forget(attempt) => {
                if let Some(process) = daemon.runs[index].live.as_mut() {
                    process.held.remove(attempt);
                }
                daemon.accounts.end(ticket_of(attempt));
                daemon.bell = true;
            }
            Act::ImportOver(token) => {
                let import = daemon.runs[index]
                    .live
                    .as_mut()
                    .and_then(|process| process.held.imports.remove(&token));
                if let Some(import) = import {
                    daemon.accounts.end(TicketFor::Import(import.circuit));
                }
                daemon.bell = true;
            }
            Act::Hint(job) => Self::hint(daemon, job),
            Act::Ring => daemon.bell = true,
        }
    }

    fn hear(&mut self, daemon: &mut Daemon, index: usize, word: FromWorker) -> Result<(), String> {
        let now = self.time.now();
        let clock = daemon.clock.at(now);
        let run = &mut daemon.runs[index];
        let Some(process) = run.live.as_mut() else {
            return Ok(());
        };
        let speaker = Speaker {
            device: &run.device,
            peak: None,
            now,
            clock,
        };
        let acts = match word {
            FromWorker::Hello { .. } => {
                process.up = true;
                daemon.bell = true;
                let welcome = ToWorker::Welcome {
                    objects: String::new(),
                    scratch: String::new(),
                    boot: daemon.boot.0,
                    threads: 1,
                    checkpoint_after_ms: 0,
                    wasm_memory_bytes: 0,
                    wasm_fuel: 0,
                };
                if let Some(child) = self.children.get_mut(&process.id) {
                    child.inbox.push_back(welcome);
                }
                return Ok(());
            }
            FromWorker::Rss { .. } => return Ok(()),
            FromWorker::Key { circuit, bytes } => {
                daemon.accounts.key(process.id, Digest(circuit), bytes);
                daemon.bell = true;
                return Ok(());
            }
            FromWorker::SynthDone {
                token,
                synth_ms,
                witness,
                public,
                key,
            } => {
                let token = Token::from(token);
                let kept = Digest::of(&public);
                let mut kept = Ok(kept);
                if self.rough && self.chance.one_in(100) {
                    kept = Err("no space is left on the disk".to_owned());
                    if let Some(task) = process.held.task(token) {
                        let of = (task.attempt.job.0, task.attempt.partition);
                        let classes = self.blame.entry(of).or_default();
                        classes.insert(FailureClass::DeviceError);
                    }
                }
                self.disk.objects.extend(kept.clone());
                let made = Made {
                    witness: Digest(witness),
                    key: Digest(key),
                    public,
                };
                words::synth_done(&mut process.held, token, synth_ms, made, kept, &speaker)
            }
            FromWorker::Proof {
                token,
                bytes,
                peak_bytes,
            } => {
                let token = Token::from(token);
                let verified = if bytes[BAD_AT] == 0 {
                    Ok(())
                } else {
                    let failure =
                        Failure::new(FailureClass::InvalidProof, "the pairing equation doesn't hold");
                    if let Some(task) = process.held.task(token) {
                        let of = (task.attempt.job.0, task.attempt.partition);
                        self.blame.entry(of).or_default().insert(failure.class);
                    }
                    Err(failure)
                };
                words::proof(&mut process.held, token, bytes, peak_bytes, verified, &speaker)
            }
            word => words::other(&mut process.held, word, true, &speaker),
        };
        process.acts.extend(acts);
        Ok(())
    }

    /// Nothing more comes: the process is gone, and what it had ends.
    fn bury(&mut self, daemon: &mut Daemon, index: usize) {
        let Some(process) = daemon.runs[index].live.as_mut() else {
            return;
        };
        let Some(child) = self.children.get(&process.id) else {
            return;
        };
        let Some(status) = child.status else { return };
        process.closed = Some(self.time.now());
        let known = Circumstances {
            killed: process.killed.is_some(),
            nonsense: process.nonsense,
            quitting: process.quitting,
            oom_counted: Some(child.out_of_memory),
            rss: 0,
            allowed: 1 << 30,
        };
        let death = judge(status, known);
        let lost = death.lost(process.id, &process.held, process.killed.clone().flatten(), None);
        if let Command::ProcessLost { own_fault: true, .. } = lost {
            self.counts.add("deaths by own fault", 1);
        }
        let mail = daemon.send(lost.clone());
        if let Some(process) = daemon.runs[index].live.as_mut() {
            process.waits = Some(Waits::Lost(mail, Box::new(lost)));
        }
    }
}
