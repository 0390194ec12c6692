//! A simulated worker process: it hears the daemon's real words and says the real ones, in its own time. Words of one
//! process keep their order; it may hang, be deaf, die by its own fault, be killed, or run out of memory.

mod work;

use std::collections::{BTreeMap, VecDeque};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use proofkeep_engine::protocol::{
    BUILD, CircuitFiles, FromWorker, ToWorker, WireFailure, WirePiece, WireToken, Work,
};
use proofkeep_store::ids::{Digest, ProcessId};
use proofkeep_store::records::{CircuitFacts, Failure, FailureClass};

use crate::chance::Chance;
use crate::nature::{self, Kind, Nature};

/// Signals, as a status holds them.
pub const SIGABRT: i32 = 6;
/// Killed from outside, or for lack of memory.
pub const SIGKILL: i32 = 9;
/// A process' own fault.
const SIGSEGV: i32 = 11;
/// Asked to end from outside.
pub const SIGTERM: i32 = 15;

/// Pieces of a proof.
const PIECES: [&str; 5] = ["H", "L", "A", "B", "C"];

/// The byte that says that a proof doesn't verify.
pub const BAD_AT: usize = 191;

/// Something that really happened to a partition, and that it may therefore fail for.
pub type Blame = (u64, u32, FailureClass);

/// What a process is doing.
#[derive(Clone, Debug)]
struct Task {
    work: Option<Work>,
    doing: Doing,
    begun: bool,
    stop: Option<String>,
    dropped: bool,
    hung: bool,
    /// It doesn't hear that it should stop.
    deaf: bool,
    left: u32,
}

#[derive(Clone, Debug)]
enum Doing {
    Synth(Witness),
    Prove {
        witness: Witness,
        made: usize,
        reused: Vec<String>,
        unsaved: Vec<WirePiece>,
    },
    Finish(Witness),
    Import {
        kind: &'static Kind,
        done: u64,
    },
}

#[derive(Clone, Debug)]
struct Witness {
    digest: Digest,
    circuit: Option<Digest>,
    nature: Nature,
}

#[derive(Clone, Debug, Default)]
struct Resident {
    pins: u32,
    evict: bool,
}

/// What a process may meet besides its inputs.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// Devices fail, tasks hang.
    pub rough: bool,
}

/// A worker process.
#[derive(Debug)]
pub struct Child {
    /// Its name.
    pub id: ProcessId,
    device: String,
    /// What the daemon said and it didn't hear yet.
    pub inbox: VecDeque<ToWorker>,
    /// What it said and the daemon didn't hear yet.
    pub outbox: VecDeque<FromWorker>,
    /// How it ended.
    pub status: Option<ExitStatus>,
    /// The kernel counted its death as one for lack of memory.
    pub out_of_memory: bool,
    said_hello: bool,
    /// Nothing comes from it, not even its first word.
    mute: bool,
    welcomed: bool,
    quitting: bool,
    tasks: BTreeMap<WireToken, Task>,
    witnesses: BTreeMap<Work, Witness>,
    keys: BTreeMap<Digest, Resident>,
    /// Leases whose work is over.
    past: Vec<WireToken>,
}

impl Child {
    /// A process that was just started.
    #[must_use]
    pub fn new(id: ProcessId, device: &str, mute: bool) -> Self {
        Self {
            id,
            device: device.to_owned(),
            inbox: VecDeque::new(),
            outbox: VecDeque::new(),
            status: None,
            out_of_memory: false,
            said_hello: false,
            mute,
            welcomed: false,
            quitting: false,
            tasks: BTreeMap::new(),
            witnesses: BTreeMap::new(),
            keys: BTreeMap::new(),
            past: Vec::new(),
        }
    }

    /// It has something to do.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        let moves = |task: &Task| !task.hung || (task.stop.is_some() && !task.deaf);
        self.status.is_none()
            && !self.mute
            && (!self.said_hello
                || !self.inbox.is_empty()
                || self.tasks.values().any(moves)
                || (self.quitting && self.tasks.is_empty()))
    }

    /// Ends it. What it said last may not reach the daemon.
    pub fn die(&mut self, status: ExitStatus, chance: &mut Chance) {
        if self.status.is_none() {
            self.status = Some(status);
            if chance.one_in(3) {
                let heard = chance.index(self.outbox.len() + 1);
                self.outbox.truncate(heard);
            }
        }
    }

    /// Ends it by a signal.
    pub fn signal(&mut self, signal: i32, chance: &mut Chance) {
        self.die(ExitStatus::from_raw(signal), chance);
    }

    /// Does one thing. Says what happened to whom, and which objects were written.
    pub fn step(&mut self, chance: &mut Chance, weather: Weather) -> (Vec<Blame>, Vec<Digest>) {
        if !self.said_hello {
            self.said_hello = true;
            self.outbox.push_back(FromWorker::Hello {
                build: BUILD.to_owned(),
                device: self.device.clone(),
                description: "simulated".to_owned(),
            });
            return Default::default();
        }
        if weather.rough && chance.one_in(200) {
            self.stutter(chance);
            return Default::default();
        }
        let moving: Vec<WireToken> = self
            .tasks
            .iter()
            .filter(|(_, task)| !task.hung || (task.stop.is_some() && !task.deaf))
            .map(|(token, _)| *token)
            .collect();
        let hears = !self.inbox.is_empty() && (moving.is_empty() || chance.one_in(2));
        if hears && let Some(word) = self.inbox.pop_front() {
            self.hear(word);
            return Default::default();
        }
        if let Some(token) = chance.pick(&moving).copied() {
            return self.work(token, chance, weather);
        }
        if self.quitting && self.tasks.is_empty() {
            self.status = Some(ExitStatus::from_raw(0));
        }
        Default::default()
    }

    /// Says something late: about work that is over. It must change nothing.
    fn stutter(&mut self, chance: &mut Chance) {
        let Some(token) = chance.pick(&self.past).copied() else {
            return;
        };
        let word = match chance.below(4) {
            0 => FromWorker::Progress { token, permille: 999 },
            1 => FromWorker::Pieces {
                token,
                pieces: Vec::new(),
            },
            _ => FromWorker::Released {
                token,
                gpu_ms: 1,
                reused: Vec::new(),
                saved_ms: 0,
            },
        };
        self.outbox.push_back(word);
    }

    fn hear(&mut self, word: ToWorker) {
        match word {
            ToWorker::Welcome { .. } => self.welcomed = true,
            ToWorker::Synth {
                token,
                work,
                circuit,
                request,
                ..
            } => {
                let nature = nature::natures(&request)
                    .get(work.partition as usize)
                    .copied()
                    .unwrap_or(Nature::Good);
                let name = [&request[..], &work.partition.to_be_bytes()].concat();
                let witness = Witness {
                    digest: Digest::of(&name),
                    circuit: circuit.map(|files| Digest(files.circuit)),
                    nature,
                };
                self.begin(token, Some(work), Doing::Synth(witness), 2);
            }
            ToWorker::Prove {
                token,
                work,
                witness: named,
                pieces,
                ..
            } => match self.witnesses.remove(&work) {
                Some(witness) => {
                    let fits = witness.digest.0 == named;
                    let reused: Vec<String> = pieces
                        .into_iter()
                        .filter(|_| fits)
                        .map(|piece| piece.name)
                        .collect();
                    let doing = Doing::Prove {
                        made: reused.len(),
                        witness,
                        reused,
                        unsaved: Vec::new(),
                    };
                    self.begin(token, Some(work), doing, 0);
                }
                None => self.say_failed(token, FailureClass::DeviceError, "the witness is gone"),
            },
            ToWorker::Import { token, files, done } => self.import(token, &files, done),
            ToWorker::Drop { work } => self.drop_work(work),
            ToWorker::Stop { token, class } => {
                if let Some(task) = self.tasks.get_mut(&token) {
                    task.stop.get_or_insert(class);
                }
            }
            ToWorker::Evict { circuit } => self.evict(Digest(circuit)),
            // Nobody says it here: keys come with what needs them.
            ToWorker::Load { .. } => {}
            ToWorker::Quit => self.quitting = true,
        }
    }

    fn begin(&mut self, token: WireToken, work: Option<Work>, doing: Doing, left: u32) {
        let task = Task {
            work,
            doing,
            begun: false,
            stop: None,
            dropped: false,
            hung: false,
            deaf: false,
            left,
        };
        self.tasks.entry(token).or_insert(task);
    }

    fn import(&mut self, token: WireToken, files: &CircuitFiles, done: u64) {
        match Kind::of(Digest(files.circuit)) {
            Some(kind) => self.begin(token, None, Doing::Import { kind, done }, 0),
            None => self.say_failed(token, FailureClass::CircuitFailed, "there is no such circuit"),
        }
    }

    fn drop_work(&mut self, work: Work) {
        let running = self.tasks.values_mut().find(|task| task.work == Some(work));
        if let Some(task) = running {
            task.dropped = true;
            task.stop.get_or_insert_with(|| "cancelled".to_owned());
            return;
        }
        if let Some(witness) = self.witnesses.remove(&work) {
            self.unpin(&witness);
        }
        self.outbox.push_back(FromWorker::Dropped { work });
    }

    fn evict(&mut self, circuit: Digest) {
        match self.keys.get_mut(&circuit) {
            Some(key) if key.pins > 0 => key.evict = true,
            _ => {
                self.keys.remove(&circuit);
                self.say_key(circuit, 0);
            }
        }
    }

    fn pin(&mut self, witness: &Witness) {
        let Some(circuit) = witness.circuit else { return };
        if !self.keys.contains_key(&circuit) {
            let bytes = Kind::of(circuit).map_or(0, |kind| kind.bytes);
            self.say_key(circuit, bytes);
        }
        self.keys.entry(circuit).or_default().pins += 1;
    }

    fn unpin(&mut self, witness: &Witness) {
        let Some(circuit) = witness.circuit else { return };
        let Some(key) = self.keys.get_mut(&circuit) else {
            return;
        };
        key.pins = key.pins.saturating_sub(1);
        if key.pins == 0 && key.evict {
            self.keys.remove(&circuit);
            self.say_key(circuit, 0);
        }
    }

    fn say_key(&mut self, circuit: Digest, bytes: u64) {
        let circuit = circuit.0;
        self.outbox.push_back(FromWorker::Key { circuit, bytes });
    }

    fn say_failed(&mut self, token: WireToken, class: FailureClass, text: &str) {
        let failure = WireFailure::from(&Failure::new(class, text));
        self.outbox.push_back(FromWorker::Failed {
            token,
            failure,
            peak_bytes: Some(1 << 20),
        });
    }

    /// Ends a task; its last word was said.
    fn end(&mut self, token: WireToken, witness: Option<&Witness>) {
        let Some(task) = self.tasks.remove(&token) else {
            return;
        };
        self.past.push(token);
        if self.past.len() > 8 {
            self.past.remove(0);
        }
        // A synthesis pins the key when it begins; who proves has it pinned since then, also if nothing was proved.
        let pinned = task.begun || !matches!(task.doing, Doing::Synth(_));
        if let Some(witness) = witness
            && pinned
        {
            self.unpin(witness);
        }
        if let Task {
            dropped: true,
            work: Some(work),
            ..
        } = task
        {
            self.outbox.push_back(FromWorker::Dropped { work });
        }
    }

    /// Hangs nothing any more: whatever hung goes on.
    pub fn recover(&mut self) {
        self.mute = false;
        for task in self.tasks.values_mut() {
            task.hung = false;
        }
    }
}

/// What is known of a circuit.
#[must_use]
pub fn facts(kind: &Kind) -> CircuitFacts {
    CircuitFacts {
        constraints: 10,
        wires: 12,
        public: 1,
        domain_log2: 4,
        key_bytes: kind.bytes,
        insecure: false,
        setup: "{}".to_owned(),
    }
}
