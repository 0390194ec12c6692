//! Random commands: mostly what a scheduler would say next, partly what a late, doubled or confused one would.

use proofkeep_store::ids::{Digest, JobNumber, Millis, ProcessId, Token, WorkerId};
use proofkeep_store::machine::{CircuitAdd, Command, Replacement, Submit, VerifyVerdict};
use proofkeep_store::records::{FailureClass, JobState, OnFailure, PartitionState, Priority};

use super::common;
use super::model::{Circuit, Model};

/// Four random bytes: what to do and to whom. Small numbers, so that a failing run shrinks to a readable one.
#[derive(Clone, Copy, Debug)]
pub struct Op(pub u8, pub u8, pub u8, pub u8);

const DEVICES: [&[(&str, u32)]; 3] = [
    &[("cpu:0", 2)],
    &[("cuda:0", 1), ("cpu:0", 1)],
    &[("cpu:0", 1), ("cuda:0", 2), ("cuda:1", 1)],
];

/// A boot with one of a few sets of devices.
pub fn boot_open(choice: u8) -> Command {
    let devices = DEVICES[choice as usize % DEVICES.len()];
    let devices = devices
        .iter()
        .map(|(name, slots)| ((*name).to_owned(), *slots))
        .collect();
    Command::BootOpen {
        version: "model".into(),
        devices,
    }
}

/// The command that an operation means now. `None`: it is a crash, and the next boot opens.
pub fn command(op: Op, model: &Model, now: Millis, seed: &mut u64) -> Option<Command> {
    let Op(kind, a, b, c) = op;
    let actor = || "tester".to_owned();
    let job = any_job(model, a);
    Some(match kind % 64 {
        0..=3 if live(model) < 4 => Command::Submit(submit(model, now, seed, a, b, c)),
        0..=33 => {
            return advance(model, now, a, b, c)
                .unwrap_or_else(|| Some(Command::Submit(submit(model, now, seed, a, b, c))));
        }
        34 => Command::Cancel { job, actor: actor() },
        35 => Command::Expire { job },
        36 => Command::FailJob {
            job,
            failure: common::failure(FailureClass::InputMissing),
        },
        37..=39 => retry(model, job, b, c),
        40 => Command::Wake { job },
        41 => Command::VerifyStart { job },
        42 => Command::VerifyEnd {
            token: check_token(model, b),
            verdict: verdict(c),
        },
        43 => Command::VerifyDrop {
            token: check_token(model, b),
        },
        44 => Command::Prune { job },
        45 => Command::SynthStart {
            job,
            partition: u32::from(b % 6),
            process: any_process(model, c),
        },
        46 => common::synth_end(any_token(model, b)),
        47 => give_back(model, job, b, c),
        48 => Command::GpuStart {
            job,
            partition: u32::from(b % 6),
            attempt: u32::from(c % 5),
            worker: WorkerId(u32::from(c % 4)),
        },
        49 => common::checkpoint(any_token(model, b), &[PIECES[c as usize % PIECES.len()]]),
        50 => common::gpu_end(any_token(model, b)),
        51 => common::proof(any_token(model, b)),
        52..=54 => {
            let class = FailureClass::ALL[c as usize % FailureClass::ALL.len()];
            common::failed(held_token(model, b), class)
        }
        55 if a.is_multiple_of(2) => start_process(model, b),
        55 | 56 => lost(model, a, b, c),
        57 if a.is_multiple_of(3) => Command::DeviceSuspend {
            device: device(model, b),
            until: None,
            reason: "hot".into(),
        },
        57 => {
            let suspended = model.devices.iter().find(|device| device.suspended);
            let device = suspended.map_or_else(|| device(model, b), |found| found.name.clone());
            Command::DeviceResume { device }
        }
        58 => match a % 8 {
            0 => Command::Pause { actor: actor() },
            1 => Command::Drain { actor: actor() },
            2 => Command::BootClose,
            3 | 4 => Command::ClockStep { by_ms: 100_000 },
            _ => Command::Resume { actor: actor() },
        },
        59 => Command::CircuitAdd(circuit_add(a)),
        60 if a.is_multiple_of(4) => Command::CircuitRemove {
            circuit: circuit(a),
            actor: actor(),
        },
        60 => Command::ImportStart {
            circuit: circuit(a),
            process: any_process(model, c),
        },
        61 | 62 => import_word(model, a, b),
        _ if a.is_multiple_of(2) => return None,
        _ => Command::Wake { job },
    })
}

fn live(model: &Model) -> usize {
    model.jobs.values().filter(|job| !job.state.is_terminal()).count()
}

const PIECES: [&str; 5] = ["a", "b1", "b2", "h", "l"];

/// What a patient scheduler with one device does next, one partition after the other; `None` when every job has ended.
pub fn patient(model: &Model, now: Millis) -> Option<Command> {
    let hopeless = model.jobs.iter().find(|(_, job)| {
        let circuit = job.circuit.map(|circuit| model.circuits.get(&circuit).copied());
        !job.state.is_terminal()
            && matches!(circuit, Some(None | Some(Circuit::Failed)))
            && !matches!(job.state, JobState::Stopping(_))
    });
    if let Some((job, _)) = hopeless {
        let failure = common::failure(FailureClass::CircuitFailed);
        return Some(Command::FailJob { job: *job, failure });
    }
    next_step(model, now, 2, 1, 2)
}

/// What a scheduler would do next with some partition or job: `Some(None)` is a crash, `None` is that nothing is left.
fn advance(model: &Model, now: Millis, a: u8, b: u8, c: u8) -> Option<Option<Command>> {
    if (model.draining || !model.open) && a.is_multiple_of(4) {
        return Some(None);
    }
    if model.paused && a % 4 == 1 {
        return Some(Some(Command::Resume {
            actor: "tester".into(),
        }));
    }
    next_step(model, now, a, b, c).map(Some)
}

fn next_step(model: &Model, now: Millis, a: u8, b: u8, c: u8) -> Option<Command> {
    if let Some(command) = missing_process(model, a) {
        return Some(command);
    }
    let live: Vec<_> = model
        .jobs
        .iter()
        .filter(|(_, job)| !job.state.is_terminal())
        .collect();
    let choice = if a.is_multiple_of(3) {
        a as usize / 3 % live.len().max(1)
    } else {
        0
    };
    let (number, found) = *live.get(choice)?;
    if found.deadline.is_some_and(|at| at <= now) && b.is_multiple_of(8) {
        return Some(Command::Expire { job: *number });
    }
    let job = *number;
    if found.state == JobState::Verifying {
        return Some(match found.verify {
            None => Command::VerifyStart { job },
            Some(token) => Command::VerifyEnd {
                token,
                verdict: verdict(c),
            },
        });
    }
    if let (JobState::Stopping(_), Some(token)) = (found.state, found.verify) {
        return Some(Command::VerifyDrop { token });
    }
    let count = found.partitions.len();
    let goes_on = |index: &usize| {
        let state = found.partitions[*index].state;
        state.is_open() || matches!(state, PartitionState::Ready | PartitionState::Waiting)
    };
    let turn = |step: usize| (b as usize / 4 + step) % count;
    let mut order: Vec<usize> = (0..count).map(turn).filter(goes_on).collect();
    if !b.is_multiple_of(4) {
        // Mostly the one that is furthest.
        order.sort_by_key(|index| std::cmp::Reverse(found.partitions[*index].state));
    }
    let index = *order.first()?;
    let partition = &found.partitions[index];
    let token = partition.token;
    let place = u32::try_from(index).unwrap();
    Some(match partition.state {
        PartitionState::Waiting => Command::Wake { job },
        PartitionState::Ready => match importable(model, found.circuit) {
            Some(command) => command(any_process(model, c)),
            None => Command::SynthStart {
                job,
                partition: place,
                process: any_process(model, c),
            },
        },
        PartitionState::Synthesized => {
            let device = model
                .devices
                .iter()
                .position(|device| device.process == partition.process);
            let worker = model
                .workers
                .iter()
                .position(|(at, held)| Some(*at) == device && held.is_none());
            let worker = WorkerId(u32::try_from(worker.unwrap_or(0)).unwrap());
            Command::GpuStart {
                job,
                partition: place,
                attempt: partition.attempts,
                worker,
            }
        }
        PartitionState::Synthesizing => common::synth_end(token?),
        PartitionState::Proving if c.is_multiple_of(3) => {
            common::checkpoint(token?, &[PIECES[c as usize % PIECES.len()]])
        }
        PartitionState::Proving => common::gpu_end(token?),
        _ => common::proof(token?),
    })
}

/// The next step of a circuit that a job waits for.
fn importable(model: &Model, circuit: Option<Digest>) -> Option<impl FnOnce(ProcessId) -> Command> {
    let circuit = circuit?;
    let Circuit::Importing {
        token, done, local, ..
    } = model.circuits.get(&circuit)?
    else {
        return None;
    };
    let (token, done, local) = (*token, *done, *local);
    Some(move |process| match token {
        None => Command::ImportStart { circuit, process },
        Some(token) if done < 60 => Command::ImportProgress {
            token,
            done: done + 30,
        },
        Some(token) if local => common::local_import_end(token),
        Some(token) => common::import_end(token),
    })
}

fn missing_process(model: &Model, a: u8) -> Option<Command> {
    let device = model.devices.iter().find(|device| device.process.is_none())?;
    (a.is_multiple_of(2)).then(|| Command::ProcessStart {
        device: device.name.clone(),
    })
}

fn submit(model: &Model, now: Millis, seed: &mut u64, a: u8, b: u8, c: u8) -> Submit {
    *seed += 1;
    let mut submit = common::submit(*seed, 1 + u32::from(a % 5));
    if b.is_multiple_of(3) {
        submit.idempotency_key = Some(format!("key-{}", b % 4));
        // One key goes with one of two requests.
        let request = format!("{{\"of\":{}}}", c % 2).into_bytes();
        submit.request = Digest::of(&request);
        submit.inline = Some(request);
    }
    submit.circuit = (c.is_multiple_of(4) && !model.circuits.is_empty()).then(|| circuit(b));
    submit.on_failure = if a.is_multiple_of(3) {
        OnFailure::Stop
    } else {
        OnFailure::Continue
    };
    submit.max_attempts = 1 + u32::from(b % 3);
    submit.priority = Priority::ALL[c as usize % 4];
    submit.deadline = (c.is_multiple_of(5)).then(|| now.after(u64::from(a) * 1000));
    submit
}

fn retry(model: &Model, job: JobNumber, b: u8, c: u8) -> Command {
    let count = model.jobs.get(&job).map_or(1, |job| job.partitions.len());
    let damaged = if b.is_multiple_of(4) {
        vec![u32::from(c) % u32::try_from(count + 1).unwrap()]
    } else {
        Vec::new()
    };
    let replacement = (b.is_multiple_of(5)).then(|| {
        let inline = format!("{{\"replaced\":{c}}}").into_bytes();
        let request = Digest::of(&inline);
        Replacement {
            request,
            inline: Some(inline),
            objects: Vec::new(),
            partitions: vec![0],
        }
    });
    Command::Retry {
        job,
        actor: "tester".into(),
        replacement,
        damaged,
    }
}

fn verdict(c: u8) -> VerifyVerdict {
    match c % 8 {
        0 => VerifyVerdict::BadPartitions(vec![u32::from(c / 8 % 3)]),
        1 => VerifyVerdict::JoinInvalid(common::failure(FailureClass::JoinInvalid)),
        _ => VerifyVerdict::Passed,
    }
}

fn any_job(model: &Model, a: u8) -> JobNumber {
    // Mostly one of the last eight; sometimes pruned, sometimes never there.
    JobNumber((model.last_job + 1).saturating_sub(u64::from(a % 9)))
}

/// Mostly one of the last few tokens, in force or not; now and then any.
fn any_token(model: &Model, b: u8) -> Token {
    let forged = common::forged();
    let back = if b < 200 { b as usize % 8 } else { b as usize };
    model.tokens.iter().rev().nth(back).copied().unwrap_or(forged)
}

/// Mostly a witness that waits for a slot.
fn give_back(model: &Model, job: JobNumber, b: u8, c: u8) -> Command {
    let all = model
        .jobs
        .iter()
        .flat_map(|(number, job)| (0..).zip(&job.partitions).map(move |at| (*number, at)));
    let mut waiting = all.filter(|(_, (_, partition))| partition.state == PartitionState::Synthesized);
    match waiting.next().filter(|_| !b.is_multiple_of(4)) {
        Some((job, (partition, found))) => Command::GiveBack {
            job,
            partition,
            attempt: found.attempts,
        },
        None => Command::GiveBack {
            job,
            partition: u32::from(b % 6),
            attempt: u32::from(c % 5),
        },
    }
}

/// Mostly a lease that a partition holds.
fn held_token(model: &Model, b: u8) -> Token {
    let held: Vec<Token> = model
        .jobs
        .values()
        .flat_map(|job| &job.partitions)
        .filter_map(|partition| partition.token)
        .collect();
    match held.get(b as usize / 4 % held.len().max(1)) {
        Some(token) if !b.is_multiple_of(4) => *token,
        _ => any_token(model, b),
    }
}

/// Mostly the lease of a final check.
fn check_token(model: &Model, b: u8) -> Token {
    let held = model.jobs.values().find_map(|job| job.verify);
    held.filter(|_| !b.is_multiple_of(4))
        .unwrap_or_else(|| any_token(model, b))
}

fn any_process(model: &Model, c: u8) -> ProcessId {
    let gone = ProcessId {
        boot: proofkeep_store::ids::BootNumber(model.boot),
        spawn: 10_000,
    };
    let live: Vec<_> = model.devices.iter().filter_map(|device| device.process).collect();
    live.get(c as usize % live.len().max(1)).copied().unwrap_or(gone)
}

fn device(model: &Model, b: u8) -> String {
    model
        .devices
        .get(b as usize % 4)
        .map_or("nobody's".into(), |device| device.name.clone())
}

fn start_process(model: &Model, a: u8) -> Command {
    missing_process(model, 0).unwrap_or_else(|| Command::ProcessStart {
        device: device(model, a),
    })
}

fn lost(model: &Model, a: u8, b: u8, c: u8) -> Command {
    let out_of_memory = c.is_multiple_of(4);
    let class = if out_of_memory {
        FailureClass::OutOfMemory
    } else {
        FailureClass::Interrupted
    };
    let stalled = || common::failure(FailureClass::Stalled);
    Command::ProcessLost {
        process: any_process(model, a),
        failure: common::failure(class),
        culprit: (c % 8 == 1).then(|| (any_token(model, b), stalled())),
        own_fault: c % 4 != 2,
        process_peak_bytes: None,
    }
}

fn circuit_name(a: u8) -> &'static str {
    ["square", "poseidon"][a as usize % 2]
}

/// One comes with its key, the other's import makes it.
fn circuit_add(a: u8) -> CircuitAdd {
    match circuit_name(a) {
        name @ "poseidon" => common::local_circuit(name),
        name => common::circuit(name),
    }
}

fn circuit(a: u8) -> Digest {
    circuit_add(a).circuit
}

fn import_word(model: &Model, a: u8, b: u8) -> Command {
    let held = model.circuits.values().find_map(|circuit| match circuit {
        Circuit::Importing { token, .. } => *token,
        _ => None,
    });
    let token = held
        .filter(|_| !b.is_multiple_of(4))
        .unwrap_or_else(|| any_token(model, b));
    match a % 5 {
        0 => Command::ImportFailed {
            token,
            failure: common::failure(FailureClass::CircuitFailed),
        },
        1 => common::import_end(token),
        2 => common::local_import_end(token),
        _ => Command::ImportProgress {
            token,
            done: u64::from(b),
        },
    }
}
