//! One run of the circuit's code: circom 2's calling convention over `wasmi`.
//!
//! The interpreter is given its fuel in slices. Between two of them whoever watches is asked whether to go on, so that
//! code without an end can be stopped although it calls nothing.

use std::ops::ControlFlow;

use proofkeep_formats::field::{self, R_LE};
use wasmi::{
    Engine, Error, ExternType, Instance, Linker, Memory, Module, Store, StoreLimits, StoreLimitsBuilder,
    TrapCode, TypedFunc, TypedResumableCall, WasmParams, WasmResults,
};

use crate::calculator::Limits;
use crate::error::{Frame, WitnessError};
use crate::host::{self, Exception, Print};
use crate::names;

/// Elements of one table; circom's code has one, of its templates' and functions' entry points.
const MAX_TABLE: usize = 1 << 20;
const PAGE: u64 = 1 << 16;
/// Fuel between two questions to whoever watches: a tenth of a second or so.
const SLICE: u64 = 10_000_000;

/// Fuel for each step over the border between the code and its host, which takes longer than an instruction.
const CROSSING: u64 = 100;

/// Asked between slices of a calculation whether to go on.
pub(crate) type Watch<'w> = &'w mut dyn FnMut() -> ControlFlow<()>;

/// A module with the linker that instantiates it.
pub(crate) struct Code {
    module: Module,
    linker: Linker<StoreLimits>,
    memory: usize,
}

impl Code {
    /// Bytes of memory that the code starts with.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory
    }

    pub(crate) fn compile(engine: &Engine, wasm: &[u8], limits: Limits) -> Result<Self, WitnessError> {
        let module = Module::new(engine, wasm).map_err(|e| not_circom(&e.to_string()))?;
        for import in module.imports() {
            let known = import.module() == host::MODULE && host::FUNCTIONS.contains(&import.name());
            if !known {
                return Err(not_circom(&format!(
                    "it imports {}.{}, which circom 2 does not",
                    import.module(),
                    import.name()
                )));
            }
        }
        let Some(ExternType::Memory(memory)) = module.get_export("memory") else {
            return Err(not_circom("it exports no memory"));
        };
        let memory = usize::try_from(memory.minimum().saturating_mul(PAGE)).unwrap_or(usize::MAX);
        if memory > limits.memory_bytes {
            return Err(WitnessError::MemoryLimit {
                limit: limits.memory_bytes,
            });
        }
        let mut linker = Linker::new(engine);
        host::link(&mut linker).map_err(|e| not_circom(&e.to_string()))?;
        Ok(Self {
            module,
            linker,
            memory,
        })
    }
}

/// A fresh instance.
pub(crate) struct Run<'w> {
    store: Store<StoreLimits>,
    limits: Limits,
    watch: Watch<'w>,
    /// Fuel that the interpreter wasn't given yet.
    left: u64,
    frames: Vec<Frame>,
    message: Option<TypedFunc<(), i32>>,
    /// Within a message; what the code prints meanwhile is not read.
    reading: bool,
    memory: Memory,
    shared: usize,
    init: TypedFunc<i32, ()>,
    set_input: TypedFunc<(i32, i32, i32), ()>,
    input_signal_size: TypedFunc<(i32, i32), i32>,
    input_size: TypedFunc<(), i32>,
    witness_size: TypedFunc<(), i32>,
    witness: TypedFunc<i32, ()>,
}

impl<'w> Run<'w> {
    /// Instantiates the code and checks that it is circom's, over r. A start function, which circom doesn't write, must
    /// end within one slice.
    pub(crate) fn start(
        engine: &Engine,
        code: &Code,
        limits: Limits,
        watch: Watch<'w>,
    ) -> Result<Self, WitnessError> {
        let bounds = StoreLimitsBuilder::new()
            .memory_size(limits.memory_bytes)
            .table_elements(MAX_TABLE)
            .instances(1)
            .memories(1)
            .tables(1)
            .trap_on_grow_failure(true)
            .build();
        let mut store = Store::new(engine, bounds);
        store.limiter(|bounds| bounds);
        let slice = limits.fuel.min(SLICE);
        store.set_fuel(slice).map_err(|e| not_circom(&e.to_string()))?;
        let instance = match code.linker.instantiate_and_start(&mut store, &code.module) {
            Ok(instance) => instance,
            // A start function may run into a limit; anything else is a module of another kind.
            Err(error) if error.as_trap_code().is_some() => {
                return Err(broken_off(&error, limits));
            }
            Err(error) => return Err(not_circom(&error.to_string())),
        };
        let memory = instance
            .get_memory(&store, "memory")
            .ok_or_else(|| not_circom("it exports no memory"))?;
        let raw_prime = export::<(), ()>(&instance, &store, "getRawPrime")?;
        let words = export::<(), i32>(&instance, &store, "getFieldNumLen32")?;
        let shared = export::<(), i32>(&instance, &store, "getSharedRWMemoryStart")?;
        let mut run = Self {
            init: export(&instance, &store, "init")?,
            set_input: export(&instance, &store, "setInputSignal")?,
            input_signal_size: export(&instance, &store, "getInputSignalSize")?,
            input_size: export(&instance, &store, "getInputSize")?,
            witness_size: export(&instance, &store, "getWitnessSize")?,
            witness: export(&instance, &store, "getWitness")?,
            message: instance.get_typed_func(&store, "getMessageChar").ok(),
            store,
            limits,
            watch,
            left: limits.fuel - slice,
            frames: Vec::new(),
            reading: false,
            memory,
            shared: 0,
        };
        run.shared = run.count(&shared)?;
        let words = run.count(&words)?;
        run.call(&raw_prime, ())?;
        run.check_prime(words)?;
        Ok(run)
    }

    fn check_prime(&mut self, words: usize) -> Result<(), WitnessError> {
        if words == 0 || words > 32 {
            return Err(not_circom(&format!("its field elements have {words} words")));
        }
        let mut prime = vec![0; 4 * words];
        self.memory
            .read(&self.store, self.shared, &mut prime)
            .map_err(|_| not_circom("its shared memory lies outside its memory"))?;
        if prime != R_LE {
            return Err(WitnessError::WrongPrime {
                expected: field::prime_name(&R_LE),
                found: field::prime_name(&prime),
            });
        }
        Ok(())
    }

    /// Begins the calculation. circom's own extra checks stay off, as in snarkjs; `assert` and
    /// `===` are checked all the same.
    pub(crate) fn init(&mut self) -> Result<(), WitnessError> {
        let init = self.init;
        self.call(&init, 0)
    }

    /// How many values all inputs take together.
    pub(crate) fn input_size(&mut self) -> Result<usize, WitnessError> {
        let f = self.input_size;
        self.count(&f)
    }

    /// How many values the input `name` takes. circom's code answers 0 for a name that it does not
    /// know, and so for an array of no elements.
    pub(crate) fn input_signal_size(&mut self, name: &str) -> Result<usize, WitnessError> {
        let f = self.input_signal_size;
        let size = self.call(&f, halves(names::hash(name)))?;
        Ok(usize::try_from(size).unwrap_or(0))
    }

    /// Sets one value. The last one makes the circuit calculate everything.
    pub(crate) fn set_input(
        &mut self,
        name: &str,
        position: usize,
        value: &[u8; 32],
    ) -> Result<(), WitnessError> {
        let position = i32::try_from(position).map_err(|_| trap("too many values"))?;
        self.memory
            .write(&mut self.store, self.shared, value)
            .map_err(|_| trap("its shared memory lies outside its memory"))?;
        let (high, low) = halves(names::hash(name));
        let f = self.set_input;
        self.call(&f, (high, low, position))
    }

    /// How many wires the witness has.
    pub(crate) fn witness_size(&mut self) -> Result<usize, WitnessError> {
        let f = self.witness_size;
        self.count(&f)
    }

    /// The value of one wire.
    pub(crate) fn witness(&mut self, wire: usize) -> Result<[u8; 32], WitnessError> {
        let index = i32::try_from(wire).map_err(|_| trap("too many wires"))?;
        let f = self.witness;
        self.call(&f, index)?;
        let mut value = [0; 32];
        self.memory
            .read(&self.store, self.shared, &mut value)
            .map_err(|_| trap("its shared memory lies outside its memory"))?;
        if field::is_canonical_r(&value) {
            Ok(value)
        } else {
            Err(WitnessError::NonCanonical { wire })
        }
    }

    fn count(&mut self, f: &TypedFunc<(), i32>) -> Result<usize, WitnessError> {
        let n = self.call(f, ())?;
        usize::try_from(n).map_err(|_| not_circom("it reports a negative size"))
    }

    fn call<P: WasmParams, R: WasmResults>(
        &mut self,
        f: &TypedFunc<P, R>,
        params: P,
    ) -> Result<R, WitnessError> {
        let limits = self.limits;
        self.pay()?;
        let mut state = f.call_resumable(&mut self.store, params);
        loop {
            state = match state.map_err(|error| broken_off(&error, limits))? {
                TypedResumableCall::Finished(results) => return Ok(results),
                TypedResumableCall::OutOfFuel(call) => {
                    self.refuel(call.required_fuel())?;
                    call.resume(&mut self.store)
                }
                TypedResumableCall::HostTrap(call) => {
                    if let Some(exception) = call.host_error().downcast_ref::<Exception>() {
                        return Err(exception.into_error(std::mem::take(&mut self.frames)));
                    }
                    if call.host_error().downcast_ref::<Print>().is_none() {
                        return Err(broken_off(call.host_error(), limits));
                    }
                    self.pay()?;
                    self.read_message()?;
                    call.resume(&mut self.store, &[])
                }
            };
        }
    }

    /// Takes a crossing off the slice in work.
    fn pay(&mut self) -> Result<(), WitnessError> {
        let refused = |_| trap("the interpreter refused its fuel");
        let rest = self.store.get_fuel().map_err(refused)?;
        self.store
            .set_fuel(rest.saturating_sub(CROSSING))
            .map_err(refused)
    }

    /// Gives the interpreter its next slice, which is at least what its next step takes.
    fn refuel(&mut self, required: u64) -> Result<(), WitnessError> {
        if (self.watch)().is_break() {
            return Err(WitnessError::Stopped);
        }
        let refused = |_| trap("the interpreter refused its fuel");
        let rest = self.store.get_fuel().map_err(refused)?;
        let slice = SLICE.max(required.saturating_sub(rest)).min(self.left);
        if rest.saturating_add(slice) < required {
            return Err(WitnessError::FuelExhausted {
                fuel: self.limits.fuel,
            });
        }
        self.left -= slice;
        self.store.set_fuel(rest + slice).map_err(refused)
    }

    /// Reads the circuit's message buffer, a character a call, up to its zero, and keeps the place that it names.
    fn read_message(&mut self) -> Result<(), WitnessError> {
        let Some(next) = self.message.filter(|_| !self.reading) else {
            return Ok(());
        };
        self.reading = true;
        let mut text = String::new();
        while text.len() < host::MAX_MESSAGE {
            let Ok(byte @ 1..) = u8::try_from(self.call(&next, ())?) else {
                break;
            };
            text.push(char::from(byte));
        }
        self.reading = false;
        if self.frames.len() < host::MAX_FRAMES {
            self.frames.extend(host::frame(&text));
        }
        Ok(())
    }
}

fn export<P: WasmParams, R: WasmResults>(
    instance: &Instance,
    store: &Store<StoreLimits>,
    name: &str,
) -> Result<TypedFunc<P, R>, WitnessError> {
    instance.get_typed_func(store, name).map_err(|_| {
        not_circom(&format!(
            "it exports no {name} of circom 2's shape (compile with circom 2.1 or later)"
        ))
    })
}

/// The halves of a name's hash in the order of circom's parameters, high first. wasm's integers
/// have no sign of their own; only the bits count.
fn halves(hash: u64) -> (i32, i32) {
    let [a, b, c, d, e, f, g, h] = hash.to_be_bytes();
    (i32::from_be_bytes([a, b, c, d]), i32::from_be_bytes([e, f, g, h]))
}

/// Why a call can't go on. An exception stands here only if the code has it as its very last call, and so no frames.
fn broken_off(error: &Error, limits: Limits) -> WitnessError {
    if let Some(exception) = error.downcast_ref::<Exception>() {
        return exception.into_error(Vec::new());
    }
    match error.as_trap_code() {
        Some(TrapCode::OutOfFuel) => WitnessError::FuelExhausted { fuel: limits.fuel },
        Some(TrapCode::GrowthOperationLimited) => WitnessError::MemoryLimit {
            limit: limits.memory_bytes,
        },
        Some(code) => trap(&code.to_string()),
        None => trap("the interpreter refused a call"),
    }
}

fn trap(what: &str) -> WitnessError {
    WitnessError::Trap {
        what: what.to_owned(),
    }
}

/// The interpreter's own texts quote names of the module, so they are cut and escaped.
fn not_circom(reason: &str) -> WitnessError {
    WitnessError::NotCircom {
        reason: reason.chars().take(200).flat_map(char::escape_debug).collect(),
    }
}
