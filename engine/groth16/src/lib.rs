//! A staged Groth16 prover over BLS12-381 that is resumed where it was interrupted.
//!
//! * [`key`]: proving keys from snarkjs (`.zkey`, mapped) and from bellperson, in one form.
//! * [`check`]: what an import checks of a key, once.
//! * [`matrices`]: the constraint system compiled to sparse matrices, kept in a file.
//! * [`backend`]: transforms and multi-scalar multiplications on a device, here the processor with blst.
//! * [`sums`]: sums of groups of points, for setups and checks.
//! * [`stages`]: `matrices × witness → quotient → pieces → assemble`; each piece is a checkpoint.
//! * [`verify`]: the verifier.
//! * [`setup`]: the first key of a ceremony, from powers of tau; keys for tests from a seed, which prove nothing to
//!   anyone.
//! * [`memory`]: how much a proof will take.
//!
//! Witness values, pieces and blinding factors are never shown by `Debug`, errors or logs.

pub mod affine;
pub mod backend;
pub mod bases;
pub mod check;
pub mod control;
pub mod curve;
pub mod domain;
pub mod field;
pub mod key;
pub mod matrices;
pub mod memory;
pub mod msm;
pub mod proof;
pub mod quotient;
pub mod setup;
pub mod stages;
mod subgroup;
pub mod sums;
pub mod synthesis;
#[cfg(test)]
mod torsion;
pub mod verify;
pub mod vk;
pub mod witness;
