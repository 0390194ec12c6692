//! Witnesses from circom's `circuit.wasm` and an `input.json`.
//!
//! A [`Calculator`] holds one compiled circuit. Each [`Calculator::calculate`] runs in a fresh
//! instance (circom's code keeps state and can't be entered twice), under a [`Limits`] of fuel
//! and memory, with circom's four host functions and nothing else: no WASI, no clock, no files.
//!
//! The binary interface is that of the circom 2 compiler's own `witness_calculator.js`
//! (<https://github.com/iden3/circom>, `code_producers/src/wasm_elements`).
//!
//! What an `input.json` may hold is told at [`input`].
//!
//! No error of this crate holds an input or witness value; signal names, counts, template names
//! and lines are all they tell.

mod abi;
mod calculator;
mod error;
mod host;
pub mod input;
mod names;
mod value;

pub use calculator::{Calculator, Limits};
pub use error::{Frame, Scope, WitnessError};
pub use names::InputSignal;
