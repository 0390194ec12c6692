//! Readers and writers of the files that circom, snarkjs and bellperson exchange, over BLS12-381.
//!
//! | module | file | source of the layout |
//! | --- | --- | --- |
//! | [`r1cs`] | `circuit.r1cs` | iden3's `r1csfile` specification, version 1 |
//! | [`wtns`] | `witness.wtns` | snarkjs `wtns_utils.js`, version 2 |
//! | [`zkey`] | `circuit.zkey` | snarkjs `zkey_utils.js`, version 1, protocol 1 (Groth16) |
//! | [`ptau`] | `pot_final.ptau` | snarkjs `powersoftau_utils.js`, version 1 |
//! | [`params`] | `circuit.params` | bellperson `Parameters::write`, as bellman |
//! | [`json`] | `proof.json`, `public.json`, `verification_key.json` | what `snarkjs groth16` writes |
//! | [`sym`] | `circuit.sym` | circom's symbol list |
//!
//! A reader borrows from one byte slice, usually a mapped file, and copies nothing large. It trusts nothing in that
//! slice: every count is held against the bytes that are there before it is used, every field element must be
//! canonical, and each refusal is a [`FormatError`] with a stable [code](FormatError::code).
//!
//! No curve arithmetic happens here. Points are bytes, and whoever uses them checks that they lie on the curve and in
//! the right subgroup.

#![forbid(unsafe_code)]

mod ceremony;
pub mod container;
mod count;
mod error;
pub mod field;
pub mod json;
pub mod params;
pub mod ptau;
pub mod r1cs;
pub mod sym;
pub mod wtns;
pub mod zkey;

pub use count::count;
pub use error::{FileKind, FormatError};
