//! What the tests share: the real daemon under a harness, and machines that cut its power.

pub mod fixtures;
pub mod harness;
pub mod powercut;
pub mod shim;
