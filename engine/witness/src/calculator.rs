//! The calculator: a compiled circuit that turns an `input.json` into a witness.

use std::fmt;
use std::ops::ControlFlow;

use wasmi::{Config, Engine};

use crate::abi::{Code, Run};
use crate::error::WitnessError;
use crate::input::{self, Given, printable};
use crate::names::{self, InputSignal};

/// Fuel for asking a circuit for its sizes, which circom's code answers at once.
const SIZES_FUEL: u64 = 100_000_000;

/// What one call may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Fuel, in the interpreter's units: about one an instruction.
    pub fuel: u64,
    /// Bytes of the code's own memory, and of the witness that is returned.
    pub memory_bytes: usize,
}

impl Default for Limits {
    /// 10^11 units of fuel, some minutes (a SHA-256 block of 31,450 wires takes under 4·10^8), and
    /// 1 GiB.
    fn default() -> Self {
        Self {
            fuel: 100_000_000_000,
            memory_bytes: 1 << 30,
        }
    }
}

/// A circuit's witness calculator. It can be shared between threads: a call changes nothing in it.
pub struct Calculator {
    engine: Engine,
    code: Code,
    limits: Limits,
    input_size: usize,
    witness_size: usize,
    inputs: Option<Vec<InputSignal>>,
}

impl fmt::Debug for Calculator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calculator")
            .field("limits", &self.limits)
            .field("input_size", &self.input_size)
            .field("witness_size", &self.witness_size)
            .field("memory_bytes", &self.memory_bytes())
            .field("inputs", &self.inputs)
            .finish_non_exhaustive()
    }
}

/// How every WebAssembly module begins.
const MAGIC: &[u8] = b"\0asm";

impl Calculator {
    /// Compiles circom's `circuit.wasm` and checks that it is a circom 2 calculator over
    /// BLS12-381. Nothing of the circuit itself runs yet.
    ///
    /// # Errors
    ///
    /// [`WitnessError::NotCircom`], [`WitnessError::WrongPrime`] or one of the limits.
    pub fn new(wasm: &[u8], limits: Limits) -> Result<Self, WitnessError> {
        if !wasm.starts_with(MAGIC) {
            let found = &wasm[..wasm.len().min(MAGIC.len())];
            return Err(WitnessError::NotCircom {
                reason: format!(
                    "it must begin with \"\\0asm\", and begins with \"{}\"",
                    found.escape_ascii()
                ),
            });
        }
        let mut config = Config::default();
        config
            .consume_fuel(true)
            .ignore_custom_sections(true)
            .wasm_multi_memory(false)
            .wasm_memory64(false);
        let engine = Engine::new(&config);
        let code = Code::compile(&engine, wasm, limits)?;
        let sizes = Limits {
            fuel: limits.fuel.min(SIZES_FUEL),
            ..limits
        };
        let mut unwatched = || ControlFlow::Continue(());
        let mut run = Run::start(&engine, &code, sizes, &mut unwatched)?;
        let input_size = run.input_size()?;
        let witness_size = run.witness_size()?;
        if witness_size.saturating_mul(32) > limits.memory_bytes {
            return Err(WitnessError::MemoryLimit {
                limit: limits.memory_bytes,
            });
        }
        Ok(Self {
            engine,
            code,
            limits,
            input_size,
            witness_size,
            inputs: None,
        })
    }

    /// Takes the names of the input signals from the circuit's `.sym`, so that errors can tell
    /// which signals there are and which are missing.
    ///
    /// # Errors
    ///
    /// A limit, if asking the circuit for each name's size runs into one.
    pub fn with_sym(self, sym: &[u8]) -> Result<Self, WitnessError> {
        self.with_sym_watched(sym, &mut || ControlFlow::Continue(()))
    }

    /// [`Calculator::with_sym`], which `watch` can end: see [`Calculator::calculate_watched`].
    ///
    /// # Errors
    ///
    /// [`WitnessError::Stopped`], or as there.
    pub fn with_sym_watched(
        mut self,
        sym: &[u8],
        watch: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Self, WitnessError> {
        let mut run = Run::start(&self.engine, &self.code, self.limits, watch)?;
        self.inputs = Some(names::inputs(sym, self.input_size, |name| {
            run.input_signal_size(name)
        })?);
        Ok(self)
    }

    /// The input signals, when the `.sym` is at hand.
    pub fn inputs(&self) -> Option<&[InputSignal]> {
        self.inputs.as_deref()
    }

    /// How many values all inputs take together.
    pub fn input_size(&self) -> usize {
        self.input_size
    }

    /// How many wires a witness has, the constant 1 included.
    pub fn witness_size(&self) -> usize {
        self.witness_size
    }

    /// Bytes of memory that the code asks for at its start; circom's code never asks for more.
    pub fn memory_bytes(&self) -> usize {
        self.code.memory_bytes()
    }

    /// Calculates the witness: 32 little-endian bytes below r for each wire, wire 0 the constant 1.
    /// The whole input is read and checked before the circuit's code sees any of it.
    ///
    /// # Errors
    ///
    /// Every [`WitnessError`] but those of [`Calculator::new`].
    pub fn calculate(&self, input_json: &[u8]) -> Result<Vec<[u8; 32]>, WitnessError> {
        self.calculate_watched(input_json, &mut || ControlFlow::Continue(()))
    }

    /// [`Calculator::calculate`], which `watch` can end. It is asked after every slice of the calculation, some tenths
    /// of a second at most, whether to go on, whatever the circuit's code does.
    ///
    /// # Errors
    ///
    /// [`WitnessError::Stopped`], or as there.
    pub fn calculate_watched(
        &self,
        input_json: &[u8],
        watch: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Vec<[u8; 32]>, WitnessError> {
        let given = input::read(input_json, self.input_size)?;
        let mut run = Run::start(&self.engine, &self.code, self.limits, watch)?;
        let mut total = 0usize;
        for signal in &given {
            self.check(&mut run, signal)?;
            total = total.saturating_add(signal.count);
        }
        if total < self.input_size {
            return Err(self.missing(&given, total));
        }
        if total > self.input_size {
            // Each count is what the code asked for, so its own sizes don't add up.
            return Err(WitnessError::NotCircom {
                reason: format!("it takes {} values in all and {total} by signal", self.input_size),
            });
        }
        run.init()?;
        for signal in &given {
            for (position, value) in signal.values.iter().enumerate() {
                run.set_input(&signal.name, position, value)?;
            }
        }
        (0..self.witness_size).map(|wire| run.witness(wire)).collect()
    }

    fn check(&self, run: &mut Run<'_>, signal: &Given) -> Result<(), WitnessError> {
        let expected = run.input_signal_size(&signal.name)?;
        // No values for no signal is an array of no elements: nothing to set, nothing wrong.
        if expected == 0 && signal.count > 0 {
            return Err(WitnessError::UnknownSignal {
                name: printable(&signal.name),
                known: self
                    .inputs
                    .as_ref()
                    .map(|inputs| inputs.iter().map(|i| i.name.clone()).collect()),
            });
        }
        if signal.count != expected {
            return Err(WitnessError::WrongLength {
                name: printable(&signal.name),
                expected,
                found: signal.count,
            });
        }
        let Some(bad) = signal.bad else {
            return Ok(());
        };
        let name = printable(&signal.name);
        let position = bad.position;
        Err(match bad.not_integer {
            Some(found) => WitnessError::NotAnInteger {
                name,
                position,
                found,
            },
            None => WitnessError::OutOfRange { name, position },
        })
    }

    fn missing(&self, given: &[Given], total: usize) -> WitnessError {
        WitnessError::MissingSignal {
            names: self.inputs.as_ref().map(|inputs| {
                inputs
                    .iter()
                    .filter(|input| given.iter().all(|g| g.name != input.name))
                    .map(|input| input.name.clone())
                    .collect()
            }),
            given: total,
            expected: self.input_size,
        }
    }
}
