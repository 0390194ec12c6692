//! What can go wrong between an `input.json` and a witness.

use std::fmt;

use proofkeep_formats::count;

/// What a [`Frame`] is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A template.
    Template,
    /// A function.
    Function,
}

/// A place in the circuit's source, as circom's error messages name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Template or function.
    pub scope: Scope,
    /// Its name.
    pub name: String,
    /// Line in the file that holds it, from 1.
    pub line: u32,
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scope = match self.scope {
            Scope::Template => "template",
            Scope::Function => "function",
        };
        write!(f, "{scope} {} line {}", self.name, self.line)
    }
}

/// Why there is no witness. The text is for the caller who sent the input; it never holds a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WitnessError {
    /// The bytes aren't a circom 2 witness calculator.
    #[error(
        "not a witness calculator of circom 2: {reason}; give the circuit.wasm that `circom --wasm` wrote"
    )]
    NotCircom {
        /// What was expected and what was found.
        reason: String,
    },
    /// The circuit was compiled for another field.
    #[error(
        "the circuit is over {found}, this prover works over {expected}: compile it with `circom --prime bls12381`"
    )]
    WrongPrime {
        /// The field this prover works over.
        expected: String,
        /// The field the circuit was compiled for.
        found: String,
    },
    /// The input isn't JSON of the accepted shape.
    #[error("input.json, line {line} column {column}: expected {expected}, found {found}")]
    MalformedJson {
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
        /// What may stand there.
        expected: &'static str,
        /// What kind of thing stands there.
        found: &'static str,
    },
    /// One signal is given twice.
    #[error("input.json gives the signal {name} twice: leave one of them")]
    DuplicateKey {
        /// The signal's name.
        name: String,
    },
    /// The circuit has no such input.
    #[error("the circuit has no input signal {name}; {}", known_names(.known))]
    UnknownSignal {
        /// The name that was given.
        name: String,
        /// The names there are, when a `.sym` is at hand.
        known: Option<Vec<String>>,
    },
    /// Inputs of the circuit aren't given.
    #[error("{given} of {expected} input values are given; {}", missing_names(.names))]
    MissingSignal {
        /// The names that are missing, when a `.sym` is at hand.
        names: Option<Vec<String>>,
        /// Values given.
        given: usize,
        /// Values the circuit takes.
        expected: usize,
    },
    /// A signal has more or fewer values than the circuit takes.
    #[error("the signal {name} takes {}, found {found}", count(*.expected, "value"))]
    WrongLength {
        /// The signal's name.
        name: String,
        /// Values the circuit takes.
        expected: usize,
        /// Values given.
        found: usize,
    },
    /// A value lies outside the field.
    #[error(
        "value {position} of the signal {name} is out of range: expected an integer above -r and below r, the order of BLS12-381"
    )]
    OutOfRange {
        /// The signal's name.
        name: String,
        /// Index of the value in the flattened array, from 0.
        position: usize,
    },
    /// A value is no integer.
    #[error(
        "value {position} of the signal {name} is {found}: expected an integer, as a JSON integer, a decimal string or a \"0x…\" string"
    )]
    NotAnInteger {
        /// The signal's name.
        name: String,
        /// Index of the value in the flattened array, from 0.
        position: usize,
        /// What kind of thing was given.
        found: &'static str,
    },
    /// The circuit's own assertion, or a `===`, does not hold for this input.
    #[error("the circuit refuses this input: an assertion fails in {}", places(.frames))]
    AssertFailed {
        /// The place of the assertion, then the places that its component was used from.
        frames: Vec<Frame>,
    },
    /// The circuit stopped with one of circom's other exceptions.
    #[error("the circuit stopped: {what} (in {})", places(.frames))]
    Exception {
        /// circom's name for it.
        what: &'static str,
        /// Where, innermost first.
        frames: Vec<Frame>,
    },
    /// The run didn't end within the fuel.
    #[error(
        "the circuit's code did not end within {fuel} units of fuel: it loops, or the limit is too low for it"
    )]
    FuelExhausted {
        /// The limit, in the interpreter's units (about one an instruction).
        fuel: u64,
    },
    /// Whoever watches the calculation ended it.
    #[error("the calculation was stopped before it was finished")]
    Stopped,
    /// The circuit's code needs more memory than allowed.
    #[error("the circuit's code asks for more than the {limit} bytes of memory that are allowed")]
    MemoryLimit {
        /// Bytes allowed.
        limit: usize,
    },
    /// The circuit's code broke off: an unreachable instruction, an access outside its memory.
    #[error("the circuit's code broke off: {what}")]
    Trap {
        /// The interpreter's name for it.
        what: String,
    },
    /// The circuit's code returned a witness value that is not below r.
    #[error("the circuit's code gave a value for wire {wire} that is not below r")]
    NonCanonical {
        /// The wire.
        wire: usize,
    },
}

impl WitnessError {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotCircom { .. } => "not-circom-wasm",
            Self::WrongPrime { .. } => "wrong-prime",
            Self::MalformedJson { .. } => "malformed-json",
            Self::DuplicateKey { .. } => "signal-twice",
            Self::UnknownSignal { .. } => "signal-unknown",
            Self::MissingSignal { .. } => "signal-missing",
            Self::WrongLength { .. } => "signal-length",
            Self::OutOfRange { .. } => "signal-out-of-range",
            Self::NotAnInteger { .. } => "signal-not-integer",
            Self::AssertFailed { .. } => "assert-failed",
            Self::Exception { .. } => "circuit-exception",
            Self::FuelExhausted { .. } => "fuel-exhausted",
            Self::Stopped => "stopped",
            Self::MemoryLimit { .. } => "memory-limit",
            Self::Trap { .. } => "wasm-trap",
            Self::NonCanonical { .. } => "non-canonical",
        }
    }
}

/// A list of names for people, cut after twenty.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let mut text = names
        .iter()
        .take(SHOWN)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

fn known_names(known: &Option<Vec<String>>) -> String {
    match known {
        Some(names) if names.is_empty() => "it takes no input".to_owned(),
        Some(names) => format!("its inputs are {}", listed(names)),
        None => "give the circuit's .sym file to see the names there are".to_owned(),
    }
}

fn missing_names(names: &Option<Vec<String>>) -> String {
    match names {
        Some(names) => format!("missing: {}", listed(names)),
        None => "give the circuit's .sym file to see which signals are missing".to_owned(),
    }
}

fn places(frames: &[Frame]) -> String {
    if frames.is_empty() {
        return "a place that the circuit's code does not name".to_owned();
    }
    frames
        .iter()
        .map(Frame::to_string)
        .collect::<Vec<_>>()
        .join(", used from ")
}
