//! What the tests share: the real daemon under a harness, and machines that cut its power.

pub mod powercut;
pub mod shim;
